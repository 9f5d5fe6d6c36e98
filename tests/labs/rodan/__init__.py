"""Both sides of Rodan that a cluster meets: its HTTP interface, and the job that asks through the broker and waits."""

from __future__ import annotations

from tests.labs.rodan.api import RodanApi
from tests.labs.rodan.job import RodanJobs

__all__ = ["RodanApi", "RodanJobs"]
