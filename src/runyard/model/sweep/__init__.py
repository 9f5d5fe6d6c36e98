"""Sweeps: many runs made from one document. No I/O; what a yard does with them is in runyard.yard.sweeps."""

from runyard.model.sweep.document import SweepSpec

__all__ = ["SweepSpec"]
