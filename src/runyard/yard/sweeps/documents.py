"""Sweeps as their rows tell them."""

from __future__ import annotations

import functools
import json

from sqlalchemy import Connection

from runyard import errors
from runyard.model.sweep import SweepSpec
from runyard.store import sweeps
from runyard.store.rows import AnyRow


@functools.lru_cache(maxsize=64)
def parse(document: str) -> SweepSpec:
    """Of the text, so that what is remembered is never out of date."""
    return SweepSpec.parse(json.loads(document))


def find(connection: Connection, sweep_id: int) -> AnyRow:
    row = sweeps.get(connection, sweep_id)
    if row is None:
        raise errors.NotFound(f"there is no sweep S{sweep_id}", "list sweeps with `runyard sweep list`")
    return row
