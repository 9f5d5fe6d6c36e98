"""Replies that are due: requests that have ended or were refused, and have not been answered yet.

Nothing is written when a run ends. Due replies are found by a query, so no crash can lose one; a server that sends one
reserves it for a while first, so that several servers do not send it at once.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.blobs import AttemptFiles, Blobs
from runyard.broker.hints import Hints
from runyard.model.request import LeftFile, Outcome, RunOutcome
from runyard.model.wire import AttemptKey
from runyard.store import Store, attempts, requests, runs
from runyard.store.rows import AnyRow
from runyard.yard import backoff, views
from runyard.yard.incoming.recipes import Recipes
from runyard.yard.incoming.requests import REPLIES
from runyard.yard.outgoing.signed_links import SignedLinks

HELD_S = 60.0  # how long a reply is held by the server that sends it
KEPT_S = 7 * 86400.0  # how long a reply can be sent again, and is tried at all
LONGEST_PAUSE_S = 3600.0
LOG_END = 4096  # bytes

log = logging.getLogger(__name__)


class Outbox:
    def __init__(
        self, store: Store, hints: Hints, blobs: Blobs, files: AttemptFiles, recipes: Recipes, links: SignedLinks
    ) -> None:
        self._store, self._hints, self._blobs, self._files = store, hints, blobs, files
        self._recipes, self._links = recipes, links
        self._held_until: dict[int, float] = {}

    def take(self, link_times: Mapping[str, float], limit: int) -> list[Outcome]:
        """Due replies of these intakes (with the lifetime of their links), reserved for us."""
        with self._store.read() as connection:
            if not requests.due(connection, list(link_times), self._store.now(), 1):
                return []
        rows = self._store.write(lambda connection: self._hold(connection, list(link_times), limit)).result()
        with self._store.read() as connection:
            return [self._outcome(connection, row, link_times[row.queue]) for row in rows]

    def _hold(self, connection: Connection, queues: list[str], limit: int) -> list[AnyRow]:
        now = self._store.now()
        rows = requests.due(connection, queues, now, limit)
        for row in rows:
            requests.change(connection, row.id, due_at=row.due_at or now, next_try=now + HELD_S)
            self._held_until[row.id] = now + HELD_S
        return rows

    def sent(self, request_id: int, remark: str | None = None) -> None:
        """`remark`: why it counts as sent. If it was requested again since we took it, it stays due."""
        now, held_until = self._store.now(), self._held_until.pop(request_id, 0.0)
        self._store.write(
            lambda connection: requests.answered(connection, request_id, held_until, now, remark)
        ).result()

    def failed(self, request_id: int, trouble: str) -> None:
        """A failed try: try again later, with a longer pause each time."""

        def work(connection: Connection) -> None:
            row = requests.get(connection, request_id)
            if row is not None:
                pause = backoff.after(row.tries, LONGEST_PAUSE_S)
                next_try = self._store.now() + pause
                requests.change(connection, row.id, tries=row.tries + 1, next_try=next_try, trouble=trouble)

        self._store.write(work).result()

    def give_back(self, request_id: int) -> None:
        """Release it without a try."""
        self._change(request_id, next_try=self._store.now())

    def _change(self, request_id: int, **values: Any) -> None:
        self._store.write(lambda connection: requests.change(connection, request_id, **values)).result()

    # --- for people ---------------------------------------------------------------------------------------------

    def every(
        self, *, queue: str | None = None, unanswered: bool = False, before: int | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        with self._store.read() as connection:
            found = requests.page(connection, queue=queue, unanswered=unanswered, before=before, limit=limit)
        return [_view(row, self._store.now()) for row in found]

    def resend(self, ids: Sequence[int] = (), queue: str | None = None) -> Future[list[int]]:
        """Send replies again: as soon as their runs have ended, with the count of tries reset."""

        def work(connection: Connection) -> list[int]:
            for request_id in ids:
                _check_resendable(requests.get(connection, request_id), request_id)
            return requests.send_again(connection, self._store.now(), ids=ids, queue=queue)

        return self._store.write(work, lambda _: self._hints.ring(REPLIES))

    def tidy(self) -> None:
        """Delete requests that are too old."""
        before = self._store.now() - KEPT_S
        for row in self._store.write(lambda connection: requests.forget(connection, before)).result():
            log.warning("the reply to request %d of queue %s is given up: %s", row.id, row.queue, row.trouble)

    # --- what became of a request -------------------------------------------------------------------------------

    def _outcome(self, connection: Connection, row: AnyRow, link_time: float) -> Outcome:
        ids = range(row.first_run, row.first_run + row.run_count) if row.first_run is not None else ()
        found = sorted(runs.get_many(connection, ids), key=lambda run: run.id)
        return Outcome(
            id=row.id,
            queue=row.queue,
            correlation_id=row.correlation_id,
            reply_to=row.reply_to,
            error=row.error or "",
            is_group=bool(row.is_group),
            runs=[self._run(connection, run, link_time) for run in found],
            reply=self._recipes.reply_of(connection, row.recipe),
        )

    def _run(self, connection: Connection, run: AnyRow, link_time: float) -> RunOutcome:
        left = [self._file(output, link_time) for output in attempts.outputs_of(connection, run.id)]
        record = json.loads(run.record) if run.record else {}
        numbers = {name: record.get(name) for name in ("wall_time", "cpu_time", "peak_memory")}
        log_end = functools.partial(self._log_end, AttemptKey(run=run.id, attempt=run.attempt))
        return RunOutcome(view={**views.request_view(run), **numbers}, files=left, log_end=log_end)

    def _file(self, output: AnyRow, link_time: float) -> LeftFile:
        name = output.path.rpartition("/")[2]
        return LeftFile(
            path=output.path,
            size=output.size,
            digest=output.digest,
            read=functools.partial(self._read, output.digest),
            link=functools.partial(self._links.make, output.digest, name, link_time),
        )

    def _log_end(self, key: AttemptKey) -> str:
        start = max(0, self._files.size(key, "log") - LOG_END)
        return self._files.read(key, "log", start, LOG_END).decode(errors="replace")

    def _read(self, digest: str) -> bytes:
        return b"".join(self._blobs.chunks(digest))


def _check_resendable(row: AnyRow | None, request_id: int) -> None:
    if row is None:
        raise errors.NotFound(f"there is no request {request_id}", "list them with `runyard reply list`")
    if row.reply_to is None:
        raise errors.Conflict(f"request {request_id} named no queue for a reply", "its sender waits for nothing")


def _view(row: AnyRow, now: float) -> dict[str, Any]:
    return {
        "id": row.id,
        "queue": row.queue,
        "correlation_id": row.correlation_id,
        "reply_to": row.reply_to,
        "recipe": row.recipe,
        "runs": [row.first_run, row.first_run + row.run_count - 1] if row.first_run is not None else None,
        "state": _state(row),
        "error": row.error,
        "tries": row.tries,
        "trouble": row.trouble,
        "received_at": views.iso(row.received_at),
        "replied_at": views.iso(row.replied_at),
        "next_try": views.iso(max(row.next_try, now)) if _state(row) == "due" else None,
    }


def _state(row: AnyRow) -> str:
    if row.waiting is not None:
        return "waiting"
    if row.open_runs:
        return "running"
    if row.reply_to is None:
        return "unwanted"
    return "replied" if row.replied_at is not None else "due"
