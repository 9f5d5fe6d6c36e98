"""Look up runs by number."""

from __future__ import annotations

from sqlalchemy import Connection

from runyard import errors
from runyard.store import runs
from runyard.store.rows import AnyRow


def find_run(connection: Connection, run_id: int) -> AnyRow:
    """Raises NotFound."""
    row = runs.get(connection, run_id)
    if row is None:
        raise no_run(run_id)
    return row


def no_run(run_id: int) -> errors.NotFound:
    return errors.NotFound(f"there is no run {run_id}", "list runs with `runyard ls`")
