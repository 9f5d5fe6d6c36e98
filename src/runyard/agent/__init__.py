"""The site's loop: claim, stage, start, watch, relay."""
