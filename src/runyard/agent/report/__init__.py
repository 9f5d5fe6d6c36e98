"""Uploads and reports of an attempt: log, metrics, outputs, checkpoints, end."""
