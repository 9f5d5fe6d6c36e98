"""Curves over steps, drawn in a terminal or into a picture, without any library."""
