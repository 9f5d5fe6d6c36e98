"""Batch clusters: one life cycle, joined from a dialect (what to say to a scheduler) and a host (where to say it)."""
