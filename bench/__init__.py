"""Measurements of runyard against the plain alternatives, one file each; `make bench` runs them all."""
