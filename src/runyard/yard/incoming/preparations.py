"""Requests whose runs need files that must be fetched first: stored before their message is acknowledged.

A fetcher reserves a request for a while, and ends with `start`, `fail` or `postpone`; if it dies, another one takes
over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.broker.hints import Hints
from runyard.model.input_file import InputFile
from runyard.model.intake import Intake
from runyard.model.request import Asked, Params
from runyard.store import Store
from runyard.store import requests as rows
from runyard.yard import backoff
from runyard.yard.incoming import requests
from runyard.yard.incoming.recipes import Recipes
from runyard.yard.incoming.requests import REPLIES, Accepted, Requests

PREPARATIONS = "preparations"  # the hint that files are to be fetched
HELD_S = 30.0  # how long a request is ours without a word
LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Preparation:
    id: int
    bodies: list[Params]
    received_at: float  # by the store's clock
    tries: int = 0


class Preparations:
    """Also accepts messages of an intake whose requests need files: they are checked as always, and started later."""

    def __init__(self, store: Store, hints: Hints, recipes: Recipes, refusals: Requests) -> None:
        self._store, self._hints, self._recipes, self._refusals = store, hints, recipes, refusals

    def accept(self, intake: Intake, asked: Asked, bodies: list[Params], *, is_group: bool) -> Future[Accepted]:
        """As `Requests.accept`, except that nothing is started yet."""
        with self._store.read() as connection:
            known = requests.find(connection, intake.name, asked)
        if known is None or known.error is not None:
            self._recipes.ready(requests.caller_of(intake), intake.recipe, bodies)

        def work(connection: Connection) -> Accepted:
            now, known = self._store.now(), requests.find(connection, intake.name, asked)
            if known is not None and known.error is None:
                return requests.again(connection, now, known, asked)
            facts = {"recipe": intake.recipe, "is_group": int(is_group), "waiting": json.dumps(bodies)}
            request_id = requests.put(connection, now, intake.name, asked, known, **facts)
            return Accepted(id=request_id, runs=range(0), created=True)

        return self._store.write(work, lambda _: self._hints.ring(PREPARATIONS))

    def refuse(self, intake: Intake, asked: Asked, error: str) -> Future[int]:
        return self._refusals.refuse(intake, asked, error)

    def take(self, queue: str, limit: int) -> list[Preparation]:
        """Requests that may be tried now, reserved for us."""
        with self._store.read() as connection:
            if not rows.waiting(connection, queue, self._store.now(), 1):
                return []

        def work(connection: Connection) -> list[Preparation]:
            now = self._store.now()
            found = rows.waiting(connection, queue, now, limit)
            for row in found:
                rows.change(connection, row.id, next_try=now + HELD_S)
            return [_preparation(row) for row in found]

        return self._store.write(work).result()

    def hold(self, request_id: int) -> None:
        """Extend the reservation."""
        self._change(request_id, next_try=self._store.now() + HELD_S)

    def start(self, intake: Intake, preparation: Preparation, inputs: Sequence[InputFile]) -> None:
        """Its files are fetched: start its runs. Raises what `Recipes.request` raises."""
        ready = self._recipes.ready(requests.caller_of(intake), intake.recipe, preparation.bodies, inputs)

        def work(connection: Connection) -> None:
            row, now = rows.get(connection, preparation.id), self._store.now()
            if row is None or row.waiting is None:
                raise errors.Conflict(f"request {preparation.id} was started by another process")
            started = ready.start(connection, now)
            rows.change(
                connection, row.id, waiting=None, recipe=started.recipe, first_run=started.runs[0].id,
                run_count=len(started.runs), tries=0, next_try=now, trouble=None,
            )  # fmt: skip

        self._store.write(work, lambda _: self._hints.ring_all("site:")).result()

    def fail(self, request_id: int, error: str) -> None:
        """Its files cannot be fetched: end it, and answer its sender with the reason."""
        self._change(request_id, waiting=None, error=error, tries=0, next_try=self._store.now(), trouble=None)
        self._hints.ring(REPLIES)

    def postpone(self, preparation: Preparation, trouble: str) -> float:
        """A failed try: try again later. Returns for how many seconds it has been waiting."""
        now, pause = self._store.now(), backoff.after(preparation.tries, LONGEST_PAUSE_S)
        self._change(preparation.id, tries=preparation.tries + 1, next_try=now + pause, trouble=trouble)
        return now - preparation.received_at

    def _change(self, request_id: int, **values: Any) -> None:
        """Unless another fetcher was faster: a request that was started or answered is no longer ours."""

        def work(connection: Connection) -> None:
            row = rows.get(connection, request_id)
            if row is not None and row.waiting is not None:
                rows.change(connection, request_id, **values)

        self._store.write(work).result()


def _preparation(row: Any) -> Preparation:
    return Preparation(id=row.id, bodies=json.loads(row.waiting), received_at=row.received_at, tries=row.tries)
