"""Read sweeps from their rows."""

from __future__ import annotations

import difflib
import functools
import json

from sqlalchemy import Connection

from runyard import errors
from runyard.model.sweep import SweepSpec
from runyard.store import sweeps
from runyard.store.rows import AnyRow

MOST_NAMESAKES = 10  # that are listed where a name alone does not say which
MOST_NAMES = 1000  # of the newest sweeps, among which one that was misspelt is looked for


@functools.lru_cache(maxsize=64)
def parse(document: str) -> SweepSpec:
    """Keyed by the text, so that a cached value is never outdated."""
    return SweepSpec.parse(json.loads(document))


def find(connection: Connection, sweep_id: int) -> AnyRow:
    row = sweeps.get(connection, sweep_id)
    if row is None:
        raise errors.NotFound(f"there is no sweep S{sweep_id}", "list sweeps with `runyard sweep list`")
    return row


def named(connection: Connection, name: str) -> AnyRow:
    """The sweep with this name. Names are chosen by users: two sweeps may have the same one."""
    found = sweeps.list_page(connection, name=name, limit=MOST_NAMESAKES)
    if not found:
        raise errors.NotFound(f"there is no sweep {name!r}", _offer(connection, name))
    if len(found) > 1:
        many = f"{MOST_NAMESAKES} or more" if len(found) == MOST_NAMESAKES else len(found)
        labels = ", ".join(f"S{row.id}" for row in found)
        raise errors.Conflict(f"{many} sweeps are called {name!r}", f"say which, the newest first: {labels}")
    return found[0]


def _offer(connection: Connection, name: str) -> str:
    close = difflib.get_close_matches(name, sweeps.names(connection, MOST_NAMES))
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return "runyard sweep list shows their numbers and names"
