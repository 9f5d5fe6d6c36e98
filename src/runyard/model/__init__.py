"""What things are: runs, attempts, states, resources. No input or output happens here."""
