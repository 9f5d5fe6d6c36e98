"""The yard's decisions: which runs are accepted, which agent gets them, and what an ending means."""

from runyard.yard.runs.submit import Submitted
from runyard.yard.yard import Yard

__all__ = ["Submitted", "Yard"]
