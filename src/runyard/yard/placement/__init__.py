"""Which agent gets which run: fair share, what fits, and why a run waits."""
