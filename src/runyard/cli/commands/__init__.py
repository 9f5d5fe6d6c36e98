"""One file per command: its options, its requests to the yard, its output."""
