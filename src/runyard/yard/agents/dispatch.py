"""The yard's side of the agent protocol: hello, sync, bytes. Every message of an agent has its incarnation."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

from sqlalchemy import Connection

from runyard import errors
from runyard.blobs import AttemptFiles
from runyard.broker.hints import Hints
from runyard.model import spec_values
from runyard.model.metrics import FILE as METRICS_FILE
from runyard.model.roles import Caller, Role
from runyard.model.site import AGENT, SiteSpec
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey, Claim, Hello, Report, SyncRequest, SyncResponse
from runyard.store import Store, attempts, queue, site_rows
from runyard.store.rows import AnyRow
from runyard.yard.agents import reaper, sites
from runyard.yard.checkpoints import checkpoints
from runyard.yard.metrics import Metrics
from runyard.yard.placement import claim
from runyard.yard.runs import settle
from runyard.yard.runs.settle import ReportResult

Held = Callable[[AttemptKey, str], int]  # bytes that the yard has of a file


class Dispatcher:
    def __init__(
        self, store: Store, files: AttemptFiles, metrics: Metrics, hints: Hints, permit: float, kept_s: float
    ) -> None:
        """`permit`: seconds for which runs may live after their agent's last message; see `permits`. `kept_s`: how
        long checkpoints stay at a site after the end of a run that did not succeed."""
        self._permit, self._kept_s = permit, kept_s
        self._store = store
        self._files = files
        self._metrics = metrics
        self._hints = hints
        self.prefix = "ry"  # of batch names: unique to this yard and this start of it

    def hello(self, caller: Caller, hello: Hello) -> Future[tuple[int, list[Claim]]]:
        _allow(caller, hello.site)

        def work(connection: Connection) -> tuple[int, list[Claim]]:
            incarnation = _register(connection, self._store.now(), caller, hello)
            return incarnation, claim.owned(connection, hello.site, hello.agent)

        return self._store.write(work)

    def sync(self, caller: Caller, request: SyncRequest) -> Future[SyncResponse]:
        _allow(caller, request.site)
        moved: list[int] = []
        held = self._held(request.reports)

        def work(connection: Connection) -> SyncResponse:
            moved.clear()
            return self._sync(connection, caller, request, held, moved)

        return self._store.write(work, lambda _: self._ring(moved))

    def _held(self, reports: Iterable[Report]) -> Held:
        """Stored sizes of files that should be complete. Queried before the transaction, because with S3 the query is
        slow."""
        ended = [report for report in reports if report.state == AttemptState.ENDED]
        found = self._files.sizes([(report.key, file) for report in ended for file in settle.promised(report.record)])
        return lambda key, file: found[key, file]

    def _sync(
        self, connection: Connection, caller: Caller, request: SyncRequest, held: Held, moved: list[int]
    ) -> SyncResponse:
        now = self._store.now()
        agent = _fenced(connection, request.site, request.agent, request.incarnation)
        site = site_rows.site(connection, request.site)
        assert site is not None
        _note_presence(connection, now, agent, request)
        cases = settle.cases(connection, request.reports, held)
        verdicts = {
            case.report.key: settle.decide(connection, now, request.site, request.agent, case) for case in cases
        }
        _charge(connection, now, verdicts.values())
        ordered, wanted = claim.wishes(connection, request.site, request.agent)
        stops = [*(verdict.stop for verdict in verdicts.values() if verdict.stop), *ordered]
        claims, more = claim.claim(connection, now, site, agent, request, caller.limits, self.prefix, self._permit)
        moved.extend(run_id for verdict in verdicts.values() for run_id in verdict.moved)
        moved.extend(item.key.run for item in claims)
        settled = [key for key, verdict in verdicts.items() if verdict.settled]
        given_up = [key for key, verdict in verdicts.items() if verdict.given_up]
        return SyncResponse(
            claims=claims, stops=stops, settled=settled, given_up=given_up, wanted=wanted, more=more
        )  # fmt: skip

    def expire(
        self, caller: Caller, site: str, agent: str, incarnation: int, run_ids: Sequence[int]
    ) -> Future[dict[int, int]]:
        """Runs whose checkpoints the agent may delete, with their newest attempts."""
        _allow(caller, site)

        def work(connection: Connection) -> dict[int, int]:
            _fenced(connection, site, agent, incarnation)
            return checkpoints.expired(connection, self._store.now(), self._kept_s, site, agent, run_ids)

        return self._store.write(work)

    def _ring(self, moved: list[int]) -> None:
        for run_id in moved:
            self._hints.ring(f"run:{run_id}")
            self._hints.ring(f"log:{run_id}")

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
        """Append bytes to an attempt's file, sent by its owner; returns the stored size."""
        _allow(caller, site)
        with self._store.read() as connection:
            _fenced(connection, site, agent, incarnation)
            row = attempts.get(connection, key.run, key.attempt)
        if row is None or (row.site, row.agent) != (site, agent) or row.state == AttemptState.ENDED:
            raise errors.Stale(f"attempt {key} does not belong to agent {agent} of site {site} any more")
        has_metrics = file == METRICS_FILE and bool(data)
        if has_metrics and offset == 0:
            self._metrics.expect(key)
        held = self._files.append(key, file, offset, data)
        if has_metrics:
            self._metrics.arrived(key)
        self._hints.ring(f"log:{key.run}")
        return held


def _note_presence(connection: Connection, now: float, agent: AnyRow, request: SyncRequest) -> None:
    """If an agent reports that it cannot reach its node, the node's silence counts."""
    if not request.away:
        disk = json.dumps(request.disk.to_json()) if request.disk else None
        site_rows.agent_seen(connection, request.site, request.agent, now, json.dumps(request.free.to_json()), disk)
        if agent.unreachable:
            reaper.welcome(connection, agent, now)
    elif not agent.unreachable:
        reaper.mark(connection, agent, now, request.away)


def _charge(connection: Connection, now: float, verdicts: Iterable[ReportResult]) -> None:
    """The usage of ended attempts, summed: one row per lane, however many attempts."""
    used: defaultdict[str, float] = defaultdict(float)
    for verdict in verdicts:
        if verdict.used:
            used[verdict.lane] += verdict.used
    for lane, amount in used.items():
        queue.add_use(connection, lane, amount, now, settle.HALF_LIFE)


def _allow(caller: Caller, site: str) -> None:
    if caller.role == Role.ADMIN or (caller.role == Role.AGENT and caller.site == site):
        return
    raise errors.Forbidden(f"{caller.name} may not serve site {site!r}", "use a token made with `--role agent --site`")


def _register(connection: Connection, now: float, caller: Caller, hello: Hello) -> int:
    spec_values.name_text(hello.site, "site")
    spec_values.name_text(hello.agent, "agent")
    if site_rows.site(connection, hello.site) is None:
        if caller.role != Role.ADMIN:
            raise errors.NotFound(f"there is no site {hello.site!r}", "an administrator's agent creates it")
        sites.add(connection, now, hello.site, SiteSpec(served_by=AGENT))
    total = json.dumps(hello.total.to_json())
    facts = {
        "node": hello.node, "boot_id": hello.boot_id, "version": hello.version, "total": total, "free": total,
        "seen_at": now, "unreachable": 0, "lease": hello.lease, "since": now, "disk": None, "away": None,
        "labels": json.dumps(hello.labels), "limits": json.dumps(hello.limits.to_json()),
    }  # fmt: skip
    row = site_rows.agent(connection, hello.site, hello.agent)
    if row is None:
        site_rows.insert_agent(connection, site=hello.site, name=hello.agent, incarnation=1, **facts)
        return 1
    site_rows.change_agent(connection, hello.site, hello.agent, incarnation=row.incarnation + 1, **facts)
    if row.unreachable:
        reaper.welcome(connection, row, now)
    return int(row.incarnation) + 1


def _fenced(connection: Connection, site: str, agent: str, incarnation: int) -> AnyRow:
    row = site_rows.agent(connection, site, agent)
    if row is None or row.incarnation != incarnation:
        raise errors.Stale(f"agent {agent} of site {site} was started anew: incarnation {incarnation} is over")
    return row
