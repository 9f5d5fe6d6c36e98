"""Decisions: what is accepted, who gets which slot, what an ending means."""

from runyard.yard.submit import Submitted
from runyard.yard.yard import Yard

__all__ = ["Submitted", "Yard"]
