"""Metrics of runs in the yard: read as they arrive, summarized in the store, and passed to observers."""

from runyard.yard.metrics.metrics import Metrics, Observer

__all__ = ["Metrics", "Observer"]
