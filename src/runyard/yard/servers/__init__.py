"""Several servers of one yard: who is there, and which of them runs a background loop."""
