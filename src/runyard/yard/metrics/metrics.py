"""Read the metrics files of attempts into the store: each line exactly once, also across crashes.

The read position of a file moves in the transaction that stores the values, and only from its previous value. So two
servers may read the same file. The store has a row for a file from before its first byte is stored until it is read to
its end, so nothing is overlooked after a crash; a hint only says which file to read first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.blobs import AttemptFiles
from runyard.model.metrics import FILE, MOST_NAMES, Point
from runyard.model.series import Sample
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey
from runyard.store import Store, metrics
from runyard.yard.metrics import file_reader, summaries, views
from runyard.yard.metrics.file_reader import NewLines, ReadPosition
from runyard.yard.runs import settle
from runyard.yard.runs.lookup import find_run

LOOK_S = 10.0  # between two looks at all files
LOOK_SHARED_S = 1.0  # where bytes may come through other servers
PASS_S = 0.5  # of reading in one pass
ANSWER_S = 5.0  # maximum wait of a client for the remaining values of an ended run
MOST_SERIES = 100  # in one answer
MOST_POINTS = 100_000  # in one transaction

Observer = Callable[[Connection, float, int, int, Sequence[Point]], None]

log = logging.getLogger(__name__)


class Metrics:
    """`tick` is for one thread at a time; all else may be called from any."""

    def __init__(self, store: Store, files: AttemptFiles) -> None:
        self._store, self._files = store, files
        self._observers: list[Observer] = []
        self._ring: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._marked: dict[AttemptKey, None] = {}  # those with something new, in the order of their turns
        self._look_at = float("-inf")

    def observe(self, observer: Observer) -> None:
        """Call `observer(connection, now, run_id, attempt, points)` in the transaction that stores the points, each of
        them once; what it writes is committed with them."""
        self._observers.append(observer)

    def on_news(self, ring: Callable[[], None]) -> None:
        """Called when there is something for `tick`, from any thread."""
        self._ring = ring

    # --- bytes that arrive --------------------------------------------------------------------------------------

    def expect(self, key: AttemptKey) -> None:
        """Call before the first byte of an attempt's file is stored."""
        self._store.write(lambda connection: metrics.expect(connection, key)).result()

    def arrived(self, key: AttemptKey) -> None:
        with self._lock:
            self._marked.setdefault(key)
        self._ring()

    # --- for people ---------------------------------------------------------------------------------------------

    def view(self, run_id: int) -> dict[str, Any]:
        """A summary of each metric of a run, and the run's own summary; of an ended run, all values, unless reading
        them takes too long: then it is not `complete`."""
        with self._store.read() as connection:
            self._attempts_of(connection, run_id)
            unread = {AttemptKey(run=run_id, attempt=number) for number in metrics.unread_of(connection, run_id)}
        is_complete = not unread or self.catch_up(unread, ANSWER_S)
        with self._store.read() as connection:
            rows, summary = metrics.of_run(connection, run_id), metrics.summary_of(connection, run_id)
        return {
            "metrics": [views.metric_view(row) for row in rows],
            "summary": views.summary_view(summary),
            "complete": is_complete,
        }

    def points(
        self, run_id: int, names: Collection[str], *, after_step: float | None = None, most: int = 1000
    ) -> dict[str, list[list[Any]]]:
        """Of each name (none: of all) at most so many `[step, at, value]`, as JSON has them."""
        found = self.series(run_id, names)
        return {name: views.points_view(samples, after_step, most) for name, samples in found.items()}

    def series(self, run_id: int, names: Collection[str] = ()) -> dict[str, list[Sample]]:
        """Of each name (none: of all) the values in the order of their steps, as far as they are stored."""
        with self._store.read() as connection:
            attempts = self._attempts_of(connection, run_id)
            wanted = names or [row.name for row in metrics.of_run(connection, run_id)]
        if len(wanted) > MOST_SERIES:
            raise errors.InvalidInput(
                f"{len(wanted)} metrics are too many for one answer", f"name at most {MOST_SERIES} of them"
            )
        return views.series(self._files, run_id, attempts, wanted)

    def _attempts_of(self, connection: Connection, run_id: int) -> int:
        return int(find_run(connection, run_id).attempt)

    # --- into the store -----------------------------------------------------------------------------------------

    def tick(self) -> bool:
        """One pass over new bytes; True when there is more."""
        try:
            return self._pass(self._due(), PASS_S)
        except errors.BlobStoreError as error:
            log.warning("metrics are not read: %s", error, extra={"action": "metrics_unread"})
            self._look_at = time.monotonic() + LOOK_S
            return False

    def catch_up(self, keys: Collection[AttemptKey], seconds: float) -> bool:
        """Read the stored bytes of these attempts' files now; True if they were read to their end. If another server is
        reading too, wait until one of the two has read the files of ended attempts."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            places = [place for place in self._open() if place.key in keys]
            if not self._pass(places, left) and not any(place.is_over for place in places):
                return True
        return False

    def _due(self) -> list[ReadPosition]:
        with self._lock:
            marked, self._marked = self._marked, {}
        is_look = time.monotonic() >= self._look_at
        if is_look:
            self._look_at = time.monotonic() + (LOOK_SHARED_S if self._store.is_shared else LOOK_S)
        if not (is_look or marked):
            return []
        found = {place.key: place for place in self._open()}
        return [found[key] for key in [*marked, *(found.keys() - marked.keys() if is_look else ())] if key in found]

    def _open(self) -> list[ReadPosition]:
        with self._store.read() as connection:
            rows = metrics.open_positions(connection)
        return [
            ReadPosition(
                key=AttemptKey(run=row.run_id, attempt=row.attempt),
                position=row.position,
                is_over=row.state == AttemptState.ENDED,
            )
            for row in rows
        ]

    def _pass(self, places: Sequence[ReadPosition], seconds: float) -> bool:
        """In turns; attempts that the pass does not reach are first in the next one."""
        found, again, points = list[NewLines](), list[AttemptKey](), 0
        waiting = self._grown(places)
        deadline = time.monotonic() + seconds  # however long it took to ask for sizes
        while waiting and time.monotonic() < deadline and points < MOST_POINTS:
            place = waiting.pop(0)
            news = file_reader.read(self._files, place)
            points += len(news.reported.points)
            found += [news] if news.end > news.start or news.is_last else []
            again += [place.key] if news.has_more else []
        self._mark_first([*(place.key for place in waiting), *again])
        if found:
            self._store.write(lambda connection: self._keep(connection, found)).result()
        return bool(waiting or again)

    def _grown(self, places: Sequence[ReadPosition]) -> list[ReadPosition]:
        sizes = self._files.sizes([(place.key, FILE) for place in places])
        return [place for place in places if place.is_over or sizes[place.key, FILE] > place.position]

    def _mark_first(self, keys: Iterable[AttemptKey]) -> None:
        with self._lock:
            self._marked = {**dict.fromkeys(keys), **self._marked}

    def _keep(self, connection: Connection, found: Iterable[NewLines]) -> None:
        now = self._store.now()
        for news in found:
            if metrics.advance(connection, news.key, news.start, news.end, is_open=not news.is_last):
                self._add(connection, now, news)

    def _add(self, connection: Connection, now: float, news: NewLines) -> None:
        key, reported = news.key, news.reported
        dropped = summaries.add(connection, key, reported.points)
        if dropped and metrics.drop(connection, key, dropped):
            message = f"more than {MOST_NAMES} names of metrics: the others are not kept"
            settle.add_event(connection, now, key.run, key.attempt, "note", message)
        if reported.summary:
            summaries.summarise(connection, key.run, reported.summary)
        if reported.points:
            for observer in self._observers:
                observer(connection, now, key.run, key.attempt, reported.points)
