"""Code and data as they are at the moment of a submit: later edits never change a queued run."""

from runyard.client.snapshot.folders import (
    Camera,
    ProgressDisplay,
    Snapshot,
    SnapshotLimits,
    take_code,
    take_data,
    unseen,
)

__all__ = ["Camera", "ProgressDisplay", "Snapshot", "SnapshotLimits", "take_code", "take_data", "unseen"]
