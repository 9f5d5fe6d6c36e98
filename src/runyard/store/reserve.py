"""Reserved space of an SQLite file: also on a full disk runs can end, be cancelled, and be shown.

A file keeps the blocks that it has. So the database has spare pages, and grows by many at once, long before it needs
them; and its write-ahead log, which keeps its length, is restarted when there is no space to make it longer.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time

from sqlalchemy import Connection, Engine, exc

from runyard import errors
from runyard.model import units

SIZE = 1 << 20  # unused bytes in the database: space for the ends of some hundred runs
LEAST = 1 << 20  # bytes on the disk: with less, requests that can be sent again later are refused
LOOK_S = 1.0
_FULL = ("disk is full", "No space left", "disk I/O error")
_TROUBLE = (exc.DBAPIError, sqlite3.Error)


class PageReserve:
    """Belongs to the writing connection, in the writer's thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._look_at = float("-inf")

    def lay_in(self) -> None:
        """Write zeros for all spare pages, and delete them. That also gives the log its length."""
        if _free(self._engine) < 4 * SIZE:
            return
        with contextlib.suppress(*_TROUBLE):
            with self._engine.begin() as connection:
                connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS reserve (room BLOB)")
                connection.exec_driver_sql("INSERT INTO reserve VALUES (zeroblob(?))", (SIZE,))
            with self._engine.begin() as connection:
                connection.exec_driver_sql("DELETE FROM reserve")
            self._ask("PRAGMA wal_checkpoint(PASSIVE)")

    def keep(self) -> None:
        """Reserve more when it is used up; called after each commit."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_S
        with contextlib.suppress(*_TROUBLE):
            if self._ask("PRAGMA freelist_count") * self._ask("PRAGMA page_size") < SIZE:
                self.lay_in()

    def make_room(self) -> None:
        """Free space for one more commit, if possible: it is worth another try."""
        with contextlib.suppress(*_TROUBLE):
            self._ask("PRAGMA wal_checkpoint(RESTART)")

    def _ask(self, pragma: str) -> int:
        """Below SQLAlchemy, which would begin a transaction."""
        with contextlib.closing(self._engine.raw_connection()) as connection:
            return int(connection.cursor().execute(pragma).fetchone()[0])


def check_room(connection: Connection) -> None:
    """The last bytes of a disk are for runs that end, not for new ones."""
    free = _free(connection.engine)
    if free < LEAST:
        place = os.path.dirname(str(connection.engine.url.database))
        raise errors.DiskFull(
            f"the yard's disk is full: {units.show_size(int(free))} free in {place}; nothing was recorded"
        )


def is_full(error: BaseException) -> bool:
    return isinstance(error, exc.DBAPIError) and any(words in str(error.orig) for words in _FULL)


def _free(engine: Engine) -> float:
    """Bytes on the disk of the file; infinite if there is no file, or the number is unknown."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return float("inf")
    try:
        disk = os.statvfs(os.path.dirname(engine.url.database))
    except OSError:
        return float("inf")
    return disk.f_bavail * disk.f_frsize
