"""The yard: one object that joins store, files, blobs and hints with the decisions. Safe to call from any thread.

Methods that change something return a future that resolves after the commit; methods that read answer at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import getpass
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

from runyard import errors, home
from runyard.blobs import S3Access, open_blobs
from runyard.broker.hints import Hints
from runyard.model.roles import Caller, Role
from runyard.model.spec import RunSpec
from runyard.model.states import FINAL, RunState
from runyard.model.wire import AttemptKey, Claim, Hello, SyncRequest, SyncResponse
from runyard.settings import Settings, read_secret
from runyard.store import BulkWork, Store, attempts, counters, dependency_gates, open_store, queue, runs
from runyard.store import sweeps as sweep_rows
from runyard.store.rows import AnyRow
from runyard.version import __version__
from runyard.yard import tokens, views
from runyard.yard.agents import dispatch, reaper, sites, workload
from runyard.yard.agents.permits import Vigil
from runyard.yard.agents.reaper import Deadlines
from runyard.yard.agents.sites import Sites
from runyard.yard.blobs import YardBlobs
from runyard.yard.checkpoints import checkpoints
from runyard.yard.checkpoints.checkpoints import RunCheckpoints
from runyard.yard.incoming.preparations import Preparations
from runyard.yard.incoming.recipes import Recipes
from runyard.yard.incoming.requests import Requests
from runyard.yard.metrics import Metrics
from runyard.yard.outgoing import mirror
from runyard.yard.outgoing.event_feed import EventFeed
from runyard.yard.outgoing.outbox import Outbox
from runyard.yard.outgoing.signed_links import SignedLinks
from runyard.yard.placement import site_hints, waiting_reason
from runyard.yard.runs import actions, submit
from runyard.yard.runs.logs import LogView
from runyard.yard.runs.lookup import find_run
from runyard.yard.runs.rerun import Reruns
from runyard.yard.runs.submit import Handed, Submitted, Submitter
from runyard.yard.runs.upload_check import UploadCheck
from runyard.yard.servers import membership
from runyard.yard.servers.membership import Fleet, Single
from runyard.yard.sweeps import Sweeps
from runyard.yard.views import RunFilter

SLOW_COUNT_S = 0.1  # a busy machine makes a quick one take some ten milliseconds, too
Outcomes = dict[int, dict[str, Any] | errors.RunyardError]
Wish = Callable[[Connection, float, Caller, AnyRow], None]


class Yard:
    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.hints = Hints()
        self.fleet: Fleet = Single()
        self.blob_store = open_blobs(settings.blobs, settings.home, S3Access.of(settings))
        self.blobs, self.files = YardBlobs(self.blob_store.blobs, store), self.blob_store.files
        self._brought = UploadCheck(self.blobs)
        self.recipes = Recipes(store, self.hints, self.blobs)
        self.requests = Requests(store, self.hints, self.recipes)
        self.preparations = Preparations(store, self.hints, self.recipes, self.requests)
        self.sites = Sites(store, self.hints, settings.lease)
        self.links = SignedLinks(store, settings)
        self.feed = EventFeed(store)
        self.outbox = Outbox(store, self.hints, self.blobs, self.files, self.recipes, self.links)
        self.access = tokens.Tokens(store, self.hints)
        self.metrics = Metrics(store, self.files)
        self.sweeps = Sweeps(store, self.hints, self.blobs, self.metrics)
        self.checkpoints = RunCheckpoints(store, self.hints)
        self._dispatcher = dispatch.Dispatcher(
            store, self.files, self.metrics, self.hints, settings.permit, settings.checkpoint_days * 86400.0
        )
        self._submissions: BulkWork[Handed, list[Submitted]] = BulkWork(
            work=lambda connection, handed: submit.submit_all(connection, store.now(), handed),
            then=lambda found: submit.tell_sites(self.hints, (run for runs in found for run in runs)),
        )
        self.reruns = Reruns(store, self.blobs, lambda handed: store.write_in(self._submissions, handed))
        self._counts: dict[str, int] = {}
        self._counted_until = 0.0
        self._vigil: Vigil | None = None  # of a process that is there to listen

    @classmethod
    def open(cls, settings: Settings, *, network: bool = False, passing: bool = False) -> Yard:
        """Open and migrate the store of this home, and create the owner's token if needed. `passing`: no background
        part of the yard will run in this process. Raises ConfigError, also if another server refuses us."""
        home.prepare(settings)
        with contextlib.ExitStack() as on_failure:
            store = open_store(settings.store_url, network=network)
            on_failure.callback(store.close)
            yard = cls(settings, store)
            on_failure.callback(yard.close)
            yard.blob_store.check()
            yard._vigil = None if passing else Vigil(store.now)
            yard.fleet = membership.join(store, yard.hints, yard.blob_store, passing=passing)
            secret = home.first_token(settings.token_file)
            store.write(lambda connection: yard._introduce(connection, secret)).result()
            on_failure.pop_all()
        return yard

    def _introduce(self, connection: Connection, secret: str) -> None:
        now = self.store.now()
        tokens.ensure_admin(connection, now, owner_name(), secret)
        for site, path in self.settings.agent_tokens.items():
            sites.ensure_for_agents(connection, now, site)
            tokens.ensure_agent(connection, now, site, read_secret(path, f"agent_tokens.{site}", "check the path"))
        if not counters.current(
            connection, "yard"
        ):  # a random number that distinguishes this yard's batches from others'
            counters.take(connection, "yard", 1 + secrets.randbelow(1 << 31))
        yard_id, epoch = counters.current(connection, "yard"), counters.take(connection, "epoch")
        self._dispatcher.prefix = f"ry-{yard_id:x}-{epoch}"

    def close(self) -> None:
        self.fleet.close()
        self.blob_store.close()
        self.store.close()

    # --- people -------------------------------------------------------------------------------------------------

    def submit(self, caller: Caller, specs: Sequence[RunSpec]) -> Future[list[Submitted]]:
        submit.check_inputs(self.blobs, specs)
        self._brought.check(specs)

        return self.store.write_in(self._submissions, Handed(source=Submitter(owner=caller.name), specs=specs))

    def plan(self, caller: Caller, spec: RunSpec) -> dict[str, Any]:
        """What `submit` would do, checked the same way; nothing is stored. Code and data need not be sent for that."""
        submit.check_inputs(self.blobs, [spec])
        with self.store.read() as connection:
            candidates = submit.check(connection, caller.name, spec)
            waiting = queue.waiting(connection, ["", *candidates])
        return {
            "site": spec.site or (candidates[0] if len(candidates) == 1 else "any"),
            "sites": candidates,
            "argv": spec.argv(),
            "cwd": spec.cwd,
            "env": spec.env,
            "resources": spec.resources.to_json(),
            "waiting": waiting,
            "spec": spec.to_json(),
        }

    def list_runs(self, wanted: RunFilter) -> list[dict[str, Any]]:
        with self.store.read() as connection:
            rows = runs.list_page(
                connection, states=wanted.states, projects=wanted.projects, owner=wanted.owner, site=wanted.site,
                tag=wanted.tag, name=wanted.name, recipe=wanted.recipe, sweep=wanted.sweep, ids=wanted.ids,
                before=wanted.before, limit=wanted.limit,
            )  # fmt: skip
            tags = runs.tags_of(connection, [row.id for row in rows])
            places = sweep_rows.places_of(connection, [row.id for row in rows])
        return [views.run_view(row, tags.get(row.id, []), places.get(row.id)) for row in rows]

    def get_run(self, run_id: int) -> dict[str, Any]:
        with self.store.read() as connection:
            row = find_run(connection, run_id)
            tags = runs.tags_of(connection, [run_id])
            place = sweep_rows.place_of(connection, run_id)
            tries = attempts.of_run(connection, run_id)
            after = dependency_gates.parents_of(connection, run_id)
            saved = checkpoints.newest_of(connection, run_id)
            obstacle = waiting_reason.of(connection, row, self.store.now(), self.settings.lease)
        return {
            **views.run_view(row, tags.get(run_id, []), place),
            "detail": row.detail or obstacle,
            "spec": views.spec_view(row),
            "after": after,
            "checkpoint": checkpoints.view(saved) if saved is not None else None,
            "attempts": [views.attempt_view(a, self._held(run_id, a.number, "log")) for a in tries],
        }

    def last_run(self, caller: Caller) -> dict[str, Any]:
        with self.store.read() as connection:
            newest = runs.newest_of(connection, caller.name)
        if newest is None:
            raise errors.NotFound(f"{caller.name} has no runs", "submit one: `runyard submit -- COMMAND`")
        return self.get_run(newest)

    def run_states(self, ids: Sequence[int]) -> dict[int, str]:
        with self.store.read() as connection:
            return runs.states(connection, ids)

    def events(self, run_id: int, after: int, limit: int) -> list[dict[str, Any]]:
        with self.store.read() as connection:
            find_run(connection, run_id)
            return [views.event_view(row) for row in runs.event_page(connection, run_id, after, limit)]

    def cancel(self, caller: Caller, ids: Sequence[int]) -> Future[Outcomes]:
        return self._wish(caller, ids, actions.cancel)

    def retry(self, caller: Caller, ids: Sequence[int], how: str = "") -> Future[Outcomes]:
        """`how`: see `checkpoints.RETRY`."""
        return self._wish(caller, ids, functools.partial(actions.retry, how=how))

    def _wish(self, caller: Caller, ids: Sequence[int], wish: Wish) -> Future[Outcomes]:
        def work(connection: Connection) -> Outcomes:
            now = self.store.now()
            found = actions.each(connection, caller, ids, lambda c, run: wish(c, now, caller, run))
            tags, places = runs.tags_of(connection, list(found)), sweep_rows.places_of(connection, list(found))
            return {
                run_id: row
                if isinstance(row, errors.RunyardError)
                else views.run_view(row, tags.get(run_id, []), places.get(run_id))
                for run_id, row in found.items()
            }

        def then(outcomes: Outcomes) -> None:
            self._ring_runs(outcomes)
            self.hints.ring_all("site:")

        return self.store.write(work, then)

    # --- logs, usage, outputs -----------------------------------------------------------------------------------

    def log_size(self, run_id: int, attempt: int | None = None, file: str = "log") -> int:
        return self._log(run_id, attempt, file).size()

    def read_log(self, run_id: int, offset: int, limit: int, attempt: int | None = None, file: str = "log") -> bytes:
        return self._log(run_id, attempt, file).read(offset, limit)

    def _log(self, run_id: int, attempt: int | None, file: str) -> LogView:
        with self.store.read() as connection:
            newest = find_run(connection, run_id).attempt
        if attempt is None:
            return LogView(self.files, run_id, range(1, newest + 1), file, marked=True)
        if not 1 <= attempt <= newest:
            raise errors.NotFound(f"run {run_id} has no attempt {attempt}", f"it has had {newest}")
        return LogView(self.files, run_id, [attempt], file, marked=False)

    def usage(self, run_id: int, last: int) -> list[dict[str, Any]]:
        """The newest samples of the newest attempt, oldest first."""
        with self.store.read() as connection:
            newest = find_run(connection, run_id).attempt
        if newest == 0:
            return []
        size = self._held(run_id, newest, "usage.jsonl")
        room = 400 * last
        data = self.files.read(AttemptKey(run=run_id, attempt=newest), "usage.jsonl", max(0, size - room), room)
        lines = data.split(b"\n")[(1 if size > room else 0) : -1]
        return [json.loads(line) for line in lines[-last:]]

    def outputs(self, run_id: int) -> list[dict[str, Any]]:
        with self.store.read() as connection:
            find_run(connection, run_id)
            return [views.output_view(row) for row in attempts.outputs_of(connection, run_id)]

    def ask_outputs(self, run_id: int) -> Future[int]:
        """Request the current outputs of a run from its site; see `wishes.ask_outputs`."""

        def work(connection: Connection) -> int:
            return actions.ask_outputs(connection, find_run(connection, run_id))

        return self.store.write(work, lambda number: self.hints.ring_all("site:") if number else None)

    def has_outputs(self, run_id: int, wish: int) -> bool:
        """Whether they answer the request, or are the last there will be."""
        with self.store.read() as connection:
            row = find_run(connection, run_id)
            newest = attempts.get(connection, run_id, row.attempt)
        return RunState(row.state) in FINAL or (newest is not None and 0 < wish <= newest.brought)

    def _held(self, run_id: int, attempt: int, file: str) -> int:
        return self.files.size(AttemptKey(run=run_id, attempt=attempt), file)

    # --- agents -------------------------------------------------------------------------------------------------

    def hello(self, caller: Caller, hello: Hello) -> Future[tuple[int, list[Claim]]]:
        return self._dispatcher.hello(caller, hello)

    def sync(self, caller: Caller, request: SyncRequest) -> Future[SyncResponse]:
        return self._dispatcher.sync(caller, request)

    def expire_checkpoints(
        self, caller: Caller, site: str, agent: str, incarnation: int, run_ids: Sequence[int]
    ) -> Future[dict[int, int]]:
        return self._dispatcher.expire(caller, site, agent, incarnation, run_ids)

    def append(
        self,
        caller: Caller,
        site: str,
        agent: str,
        incarnation: int,
        key: AttemptKey,
        file: str,
        offset: int,
        data: bytes,
    ) -> int:
        return self._dispatcher.append(caller, site, agent, incarnation, key, file, offset, data)

    def demand(self) -> dict[str, int]:
        """How many agents of each site could use a ticket now."""
        with self.store.read() as connection:
            return site_hints.demand(connection)

    def tick(self) -> None:
        """One pass over the deadlines."""
        deadlines = Deadlines(lease=self.settings.lease, lost_after=self.settings.lost_after)
        if (vigil := self._vigil) is not None:
            deadlines = dataclasses.replace(deadlines, since=vigil.since(), listening=vigil.listening_for())

        def work(connection: Connection) -> list[int]:
            return reaper.reap(connection, self.store.now(), deadlines)

        def then(moved: list[int]) -> None:
            self._ring_runs(moved)
            if moved:
                self.hints.ring_all("site:")

        self.store.write(work, then).result()

    def _ring_runs(self, ids: Iterable[int]) -> None:
        for run_id in ids:
            self.hints.ring(f"run:{run_id}")

    # --- access and health --------------------------------------------------------------------------------------

    def authenticate(self, secret: str) -> Caller:
        return self.access.authenticate(secret)

    def remembered(self, secret: str) -> Caller | None:
        return self.access.remembered(secret)

    def owner(self) -> Caller:
        """The owner of this yard: the name for actions of its own process."""
        return Caller(name=owner_name(), role=Role.ADMIN)

    def counts(self) -> dict[str, int]:
        """Runs per state. Counting millions takes a while, so a slow count is kept for ten times as long as it took."""
        began = time.monotonic()
        if began >= self._counted_until:
            with self.store.read() as connection:
                self._counts = runs.counts(connection)
            took = time.monotonic() - began
            self._counted_until = began + (10 * took if took > SLOW_COUNT_S else 0)
        return dict(self._counts)

    def workload(self, most: int) -> workload.Workload:
        with self.store.read() as connection:
            return workload.look(connection, self.store.now(), self.settings.lease, most)

    def health(self) -> dict[str, Any]:
        return {
            "status": "ok",
            "version": __version__,
            "home": str(self.settings.home),
            "pid": os.getpid(),
            "runs": self.counts(),
            "mirror": mirror.view(self.settings, self.store),
        }


def owner_name() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"uid{os.getuid()}"
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
