"""Rodan, a web application whose training jobs reach a cluster through a message broker: its requests become runs of a
recipe, and what becomes of them goes back in the form that it waits for."""
