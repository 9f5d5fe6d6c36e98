"""What differs between two runs: what was asked for, where it ran, and what came of it."""

from runyard.client.compare.comparison import Comparison, Side, compare
from runyard.client.compare.gather import compare_runs

__all__ = ["Comparison", "Side", "compare", "compare_runs"]
