"""Code and data as they are at the moment of a submit: later edits never change a queued run."""

from runyard.client.snapshot.folders import Camera, Limits, Progress, Snapshot, take_code, take_data, unseen

__all__ = ["Camera", "Limits", "Progress", "Snapshot", "take_code", "take_data", "unseen"]
