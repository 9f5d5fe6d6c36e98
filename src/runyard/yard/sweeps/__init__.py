"""Sweeps in the yard: runs from a document, decisions from what runs report, and a log from which they follow."""

from runyard.yard.sweeps.sweeps import SWEEPS_CHANGED, Sweeps

__all__ = ["SWEEPS_CHANGED", "Sweeps"]
