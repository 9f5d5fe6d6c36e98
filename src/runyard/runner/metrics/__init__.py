"""Metrics that a run leaves in files below its OUTPUT_DIR, or prints, read while it runs and written to metrics.jsonl.

A run of a few milliseconds pays for one look into an empty folder. What a kind of file needs is imported when the first
such file is there. Nothing in here may raise because of what a user wrote.
"""
