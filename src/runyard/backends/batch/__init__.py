"""Batch clusters: one life cycle, joined from a dialect (the scheduler's commands and answers) and a host (the machine
they run on)."""
