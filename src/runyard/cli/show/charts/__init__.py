"""Curves over steps, drawn in a terminal or into an image, without any library."""
