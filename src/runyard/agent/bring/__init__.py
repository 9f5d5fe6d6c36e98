"""Staging before a run takes a slot: directory, code, data, inputs, Python."""
