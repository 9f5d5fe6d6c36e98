"""Sweeps in the yard: runs from a document, decisions from reported metrics, and a log to replay them."""

from runyard.yard.sweeps.sweeps import SWEEPS_CHANGED, Sweeps

__all__ = ["SWEEPS_CHANGED", "Sweeps"]
