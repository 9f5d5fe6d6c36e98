"""Requests and answers of the Training Runs server: run configurations, grids of them, its answers."""
