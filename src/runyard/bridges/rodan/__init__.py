"""Rodan, a web application whose training jobs reach a cluster through a message broker: its requests become runs of a
recipe, and their results are returned in the form that it expects."""
