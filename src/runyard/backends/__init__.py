"""Ways to have attempts executed: what a site's agent submits to."""
