"""The differences between two runs: inputs, site and results."""

from runyard.client.compare.comparison import Comparison, Side, compare
from runyard.client.compare.gather import compare_runs

__all__ = ["Comparison", "Side", "compare", "compare_runs"]
