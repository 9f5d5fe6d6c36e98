"""Deletion at a site, and its free disk space."""
