"""The common part of both mirror loops: follow the ends of runs, and wait while the share is unavailable."""

from __future__ import annotations

import abc
import hashlib
import json
import logging
import time

from sqlalchemy import Connection

from runyard.blobs import BlobStore
from runyard.errors import BlobStoreError
from runyard.loop import Loop
from runyard.model.mirror import Mirror
from runyard.store import Store, counters, cursors
from runyard.store.rows import AnyRow
from runyard.yard import backoff
from runyard.yard.outgoing.mirror.share import Away, Share

LONGEST_PAUSE_S = 60.0

log = logging.getLogger(__name__)


def yard_id(store: Store) -> str:
    with store.read() as connection:
        return f"{counters.current(connection, 'yard'):x}"


def cursor_name(half: str, mirror: Mirror) -> str:
    """With other settings the loop starts from the first event again: existing results are recognized and skipped."""
    told = json.dumps(mirror.to_json(), sort_keys=True)
    return f"{half}:{hashlib.sha256(told.encode()).hexdigest()[:16]}"


class MirrorLoop(Loop):
    """Its position is in the store, so nothing is skipped after a crash."""

    at_once = 50  # endings in one pass
    kinds: tuple[str, ...]

    def __init__(self, half: str, mirror: Mirror, store: Store, blob_store: BlobStore) -> None:
        super().__init__(half)
        self._mirror, self._store, self._blob_store = mirror, store, blob_store
        self._share = Share(mirror.dir, yard_id(store))
        self._cursor = cursor_name(half, mirror)
        self._tries, self._not_before, self._trouble = 0, float("-inf"), ""
        store.write(lambda connection: cursors.begin_anew(connection, half, self._cursor, store.now())).result()

    def tick(self) -> bool:
        if time.monotonic() < self._not_before:
            return False
        try:
            more = self.walk(self._share.check())
        except (Away, OSError, BlobStoreError) as error:
            self._failed(error)
            return False
        self._recovered()
        return more

    @abc.abstractmethod
    def walk(self, tag: str) -> bool:
        """One pass; raises Away and OSError when it has to be tried again. `tag` is added to the names of runs."""

    def endings(self) -> list[AnyRow]:
        """Those that are new, oldest first."""
        with self._store.read() as connection:
            cursor = cursors.get(connection, self._cursor)
            position = cursor.position if cursor is not None else 0
            return cursors.events_after(connection, position, self.kinds, self.at_once)

    def passed(self, event_id: int) -> None:
        self._change(position=event_id)

    def wants(self, project: str) -> bool:
        return not self._mirror.projects or project in self._mirror.projects

    def _failed(self, error: Exception) -> None:
        """A lasting problem is logged and stored only once."""
        told = str(error) if isinstance(error, Away) else f"{self._mirror.dir}: {error}"
        if told != self._trouble:
            log.warning("results are not mirrored: %s", told)
            self._change(trouble=told, failing_since=self._store.now())
        self._trouble = told
        self._not_before = time.monotonic() + backoff.after(self._tries, LONGEST_PAUSE_S)
        self._tries += 1

    def _recovered(self) -> None:
        if self._tries or self._trouble:
            self._change(trouble=None, failing_since=None)
        self._tries, self._trouble = 0, ""

    def _change(self, **values: object) -> None:
        def work(connection: Connection) -> None:
            cursors.change(connection, self._cursor, **values)

        self._store.write(work).result()
