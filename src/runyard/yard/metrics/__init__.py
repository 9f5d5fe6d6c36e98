"""What runs report of themselves, in the yard: read as it arrives, summed up in the store, and told to observers."""

from runyard.yard.metrics.metrics import Metrics, Observer

__all__ = ["Metrics", "Observer"]
