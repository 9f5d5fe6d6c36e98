"""Blobs that belonged to checkpoints which went are removed, when nobody has looked at them for an hour and nothing
refers to them."""

from runyard.yard.clearing.clearing import LATE_S, Clearing

__all__ = ["LATE_S", "Clearing"]
