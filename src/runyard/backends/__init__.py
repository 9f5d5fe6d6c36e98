"""Backends execute attempts: a site's agent submits to them."""
