"""From free slots to the end of the process: start, watch, stop."""
