"""What programs of the Training Runs server send and expect: run configurations, grids of them, its answers."""
