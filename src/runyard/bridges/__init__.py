"""Bridges: turn scripts and requests of other systems into runs."""
