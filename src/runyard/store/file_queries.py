"""Questions to an SQLite file itself, read-only and without opening the store: for a check that may have nothing to do,
and for one of a store that may be damaged. Nothing but the standard library is loaded."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

PATIENCE_S = 5.0
EXAMINATION_S = 10.0
LATE_S = 7200  # what is left of expired checkpoints is deleted long after they expired

_OPEN_WORK = (
    "SELECT 1 FROM runs WHERE state IN ('queued', 'starting', 'running') "
    "UNION ALL SELECT 1 FROM metric_positions WHERE is_open = 1 "
    "UNION ALL SELECT 1 FROM sweeps WHERE hungry = 1 "
    f"UNION ALL SELECT 1 FROM condemned WHERE state <> 'gone' AND since < strftime('%s', 'now') - {LATE_S}"
)
_SITE = "SELECT 1 FROM sites WHERE name = ?"
_UNSETTLED = "SELECT 1 FROM attempts WHERE run_id = ? AND number = ? AND state != 'ended'"


class Unreadable(Exception):
    """The file cannot be read: its rights, its disk; not what is in it."""


def has_open_work(database: Path) -> bool:
    """Whether a tick may have anything to do: unfinished runs, unread metrics, sweeps, deletions that are due."""
    return _has_row(database, _OPEN_WORK)


def has_site(database: Path, name: str) -> bool:
    return _has_row(database, _SITE, name)


def is_unsettled(database: Path, run: int, attempt: int) -> bool:
    """Whether this attempt has not ended yet, as far as the store knows."""
    return _has_row(database, _UNSETTLED, run, attempt)


def examine(database: Path) -> tuple[str, int]:
    """What SQLite reports of the file ("ok" where it is undamaged), and the number of runs. Raises Unreadable."""
    import sqlite3

    try:
        with contextlib.closing(_opened(database, EXAMINATION_S)) as connection:
            (report,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone()
    except sqlite3.OperationalError as error:
        raise Unreadable(str(error)) from error
    except sqlite3.DatabaseError as error:
        return str(error), 0
    return str(report), int(runs)


def _has_row(database: Path, question: str, *values: int | str) -> bool:
    """True also where the file cannot be asked: the yard itself reports it better."""
    if not database.exists():
        return False
    import sqlite3  # a check for a yard elsewhere needs none

    try:
        with contextlib.closing(_opened(database, PATIENCE_S)) as connection:
            return connection.execute(f"{question} LIMIT 1", values).fetchone() is not None
    except sqlite3.Error:
        return True


def _opened(database: Path, patience: float) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=patience)
