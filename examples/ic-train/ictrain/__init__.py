"""Trains an image classifier from one run configuration, and writes what a run of the Training Runs stack wrote."""
