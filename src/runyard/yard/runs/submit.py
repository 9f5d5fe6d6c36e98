"""Accept runs: checked against the sites and the runs they depend on, then written in one commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.blobs import Blobs
from runyard.broker.hints import Hints
from runyard.model import fields
from runyard.model.spec import RunSpec
from runyard.model.states import Reason, RunState
from runyard.store import counters, dependency_gates, reserve, runs, site_rows
from runyard.store.rows import AnyRow
from runyard.yard.placement import feasibility, tracks
from runyard.yard.runs.dependencies import DependencyPlan, Outlook


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    id: int
    created: bool  # False: this idempotency key was seen before, and nothing new was stored
    sites: Sequence[str] = ()  # those that may take it, where it is new


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitter:
    """The submitter, and the recipe if there is one."""

    owner: str
    recipe: str | None = None
    digests: Mapping[str, str] = field(default_factory=dict)  # of requests as they were sent, by idempotency key

    def digest(self, spec: RunSpec) -> str:
        """Digest of the request, without the machine and directory it was sent from."""
        known = self.digests.get(spec.idempotency_key or "")
        return known or hashlib.sha256(json.dumps(_asked(spec), sort_keys=True).encode()).hexdigest()

    def describe(self, spec: RunSpec) -> str:
        recipe = f" as recipe {self.recipe}" if self.recipe else ""
        again = f", again from run {spec.origin['run']}" if "run" in spec.origin else ""
        return f"submitted by {self.owner}{recipe}{again}"


def _asked(spec: RunSpec) -> dict[str, Any]:
    return {name: value for name, value in spec.to_json().items() if name not in ("idempotency_key", "origin")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Handed:
    """Runs that are accepted all or not at all."""

    source: Submitter
    specs: Sequence[RunSpec]


def submit(connection: Connection, now: float, source: Submitter, specs: Sequence[RunSpec]) -> list[Submitted]:
    return submit_all(connection, now, [Handed(source=source, specs=specs)])[0]


def submit_all(connection: Connection, now: float, handed: Sequence[Handed]) -> list[list[Submitted]]:
    """Runs of several callers, in as few statements as for one of them."""
    known = {one.source.owner: _Known(connection, one.source.owner) for one in handed}
    ids = _fresh_ids(connection, [spec for one in handed for spec in one.specs])
    rows, seen = _Rows(now), dict[tuple[str, str], tuple[int, str]]()
    results = []
    for one in handed:
        found, fresh = _split_repeated(connection, one, known[one.source.owner], ids, seen)
        rows.add(one.source, fresh, known[one.source.owner].parents)
        results.append(found)
    rows.insert(connection)
    return results


def tell_sites(hints: Hints, submitted: Iterable[Submitted]) -> None:
    """Only sites that may take one of the runs: agents of other sites would ask without result each time."""
    sites = {site for run in submitted for site in run.sites}
    hints.ring_some([f"site:{site}" for site in sites], "site:")


def check(connection: Connection, owner: str, spec: RunSpec) -> list[str]:
    """The sites that may take it; raises what `submit` would raise."""
    return _Known(connection, owner).check(spec)


def check_inputs(blobs: Blobs, specs: Sequence[RunSpec]) -> None:
    """No run waits for a file that was not uploaded. Files that were checked are kept until the run is stored."""
    known: set[str] = set()
    for index, spec in enumerate(specs):
        with numbered(index if len(specs) > 1 else None):
            for asked in spec.inputs:
                if asked.digest and asked.digest not in known and not blobs.has(asked.digest):
                    raise errors.InvalidInput(
                        f"inputs: the yard has no file {asked.digest} for {asked.to!r}",
                        f"upload it first: PUT /api/v1/blobs/{asked.digest}",
                    )
                known.add(asked.digest)


class numbered:
    """Adds the index in the list to an error."""

    def __init__(self, index: int | None) -> None:
        self._index = index

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._index is not None and isinstance(error, errors.InvalidInput):
            raise type(error)(f"runs[{self._index}]: {error.message}", error.fix) from None


class _Known:
    """Existing sites with their nodes, and the parents that specs name. Looked up once per call."""

    def __init__(self, connection: Connection, owner: str) -> None:
        self._connection, self._owner = connection, owner
        landscape = site_rows.landscape(connection)
        self._sites, self._nodes = landscape.sites, landscape.nodes
        self._fits: dict[tuple[Any, ...], list[str]] = {}
        self.parents: dict[int, AnyRow] = {}
        self._loaded: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()

    def check(self, spec: RunSpec) -> list[str]:
        seen = (spec.site, spec.resources, spec.choice, spec.project)
        if seen not in self._fits:
            candidates = self._candidates(spec.site)
            # A site that no agent has served yet may turn out to have anything.
            if all(site in self._nodes for site in candidates):
                feasibility.check(spec, self._owner, {site: self._nodes[site] for site in candidates})
            self._fits[seen] = candidates
        if (spec.after, spec.after_any) not in self._loaded:
            self._load_parents(spec.after + spec.after_any)
            self._loaded.add((spec.after, spec.after_any))
        return self._fits[seen]

    def _candidates(self, site: str | None) -> list[str]:
        if site is not None:
            if site not in self._sites:
                raise errors.InvalidInput(f"site: there is no site {site!r}", fields.nearest(site, self._sites))
            return [site]
        free = [name for name, row in self._sites.items() if not row.explicit]
        if not free:
            notes = "; ".join(row.note for row in self._sites.values() if row.note)
            if not self._sites:
                raise errors.Unsatisfiable("this yard has no site yet", "add one: `runyard site add NAME …`")
            raise errors.Unsatisfiable(f"no site takes this run by itself: {notes}", "name one with --site")
        return free

    def _load_parents(self, ids: Sequence[int]) -> None:
        missing = [run_id for run_id in ids if run_id not in self.parents]
        self.parents.update({row.id: row for row in runs.get_many(self._connection, missing)})
        for run_id in missing:
            if run_id not in self.parents:
                raise errors.InvalidInput(f"after: there is no run {run_id}", "list yours with `runyard ls`")


def _split_repeated(
    connection: Connection,
    handed: Handed,
    known: _Known,
    ids: Iterator[int],
    seen: dict[tuple[str, str], tuple[int, str]],
) -> tuple[list[Submitted], list[tuple[int, RunSpec]]]:
    """Ids for all specs, and those that are new. Only these are checked: a run that was accepted before may have
    become impossible since, but exists all the same."""
    results: list[Submitted] = []
    fresh: list[tuple[int, RunSpec]] = []
    source = handed.source
    for index, spec in enumerate(handed.specs):
        first = _first_with_key(connection, source, spec, seen)
        if first is not None:
            results.append(Submitted(id=first, created=False))
            continue
        run_id = next(ids)
        with numbered(index if len(handed.specs) > 1 else None):
            results.append(Submitted(id=run_id, created=True, sites=known.check(spec)))
        fresh.append((run_id, spec))
        if spec.idempotency_key:
            seen[source.owner, spec.idempotency_key] = (run_id, source.digest(spec))
    return results, fresh


def _fresh_ids(connection: Connection, specs: Sequence[RunSpec]) -> Iterator[int]:
    """All at once where all will be used; one by one where some specs may turn out to be repeated."""
    step = 1 if any(spec.idempotency_key for spec in specs) else len(specs)
    while True:
        first = counters.take(connection, "runs", step)
        yield from range(first, first + step)


def _first_with_key(
    connection: Connection, source: Submitter, spec: RunSpec, seen: Mapping[tuple[str, str], tuple[int, str]]
) -> int | None:
    key = spec.idempotency_key
    if key is None:
        return None
    first = seen.get((source.owner, key))
    if first is None:
        row = runs.by_idempotency_key(connection, source.owner, key)
        if row is None:
            return None
        first = (row.id, row.idempotency_digest)
    if first[1] != source.digest(spec):
        raise errors.Conflict(
            f"idempotency_key {key!r} was used for run {first[0]} with another body", "use a new key for a new run"
        )
    return first[0]


class _Rows:
    """The rows for new runs, collected."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._runs: list[dict[str, Any]] = []
        self._gates: list[dependency_gates.Gate] = []
        self._tags: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []

    def add(self, source: Submitter, fresh: list[tuple[int, RunSpec]], parents: Mapping[int, AnyRow]) -> None:
        plan = DependencyPlan({run_id for run_id, _ in fresh}, parents)
        rows = [_row(self._now, source, run_id, spec, plan.add(run_id, spec)) for run_id, spec in fresh]
        self._runs += rows
        self._gates += plan.gates()
        self._tags += [{"run_id": run_id, "tag": tag} for run_id, spec in fresh for tag in spec.tags]
        self._events += [_event(self._now, source, spec, row) for (_, spec), row in zip(fresh, rows, strict=True)]

    def insert(self, connection: Connection) -> None:
        if self._runs:
            reserve.check_room(connection)
        runs.insert_runs(connection, self._runs)
        dependency_gates.add(connection, self._gates)
        runs.insert_tags(connection, self._tags)
        runs.insert_events(connection, self._events)


def _event(now: float, source: Submitter, spec: RunSpec, row: Mapping[str, Any]) -> dict[str, Any]:
    message = row["detail"] if row["state"] == RunState.FAILED else source.describe(spec)
    kind = "failed" if row["state"] == RunState.FAILED else "submitted"
    return {"run_id": row["id"], "attempt": 0, "at": now, "kind": kind, "message": message}


def _row(now: float, source: Submitter, run_id: int, spec: RunSpec, outlook: Outlook) -> dict[str, Any]:
    lane = f"{source.owner}/{spec.project}"
    return {
        "id": run_id,
        "owner": source.owner,
        "project": spec.project,
        "name": spec.name,
        "state": RunState.FAILED if outlook.hopeless else RunState.QUEUED,
        "reason": Reason.DEPENDENCY if outlook.hopeless else None,
        "detail": outlook.detail,
        "exit_code": None,
        "priority": spec.priority,
        "wanted_site": spec.site or "",
        "lane": lane,
        "track": tracks.track(lane, spec),
        "blocked": outlook.blocked,
        "cpus": spec.resources.cpus * spec.resources.nodes,
        "gpus": spec.resources.gpus * spec.resources.nodes,
        "resources": json.dumps(spec.resources.to_json(), sort_keys=True),
        "spec": json.dumps(spec.to_json()),
        "attempt": 0,
        "failures": 0,
        "created_at": now,
        "queued_at": now,
        "ended_at": now if outlook.hopeless else None,
        "idempotency_key": spec.idempotency_key,
        "idempotency_digest": source.digest(spec) if spec.idempotency_key else None,
        "recipe": source.recipe,
    }
