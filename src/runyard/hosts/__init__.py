"""Machines on which commands run and from which files are transferred."""
