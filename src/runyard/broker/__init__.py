"""Delivers, does not remember: hints that there may be work or news."""
