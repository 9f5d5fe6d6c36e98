"""Runs that other programs and drop boxes ask for: recipes and requests."""
