"""Accepting runs: checked against the sites and the runs they come after, then written in one commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.blobs import Blobs
from runyard.model import fields
from runyard.model.resources import Capacity, Resources
from runyard.model.spec import RunSpec
from runyard.model.states import Reason, RunState
from runyard.store import counters, gates, places, runs
from runyard.store.rows import AnyRow
from runyard.yard import placement
from runyard.yard.dependencies import Outlook, Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    id: int
    created: bool  # False: this idempotency key was seen before, and nothing new was stored


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Who hands in, and by which recipe if by one."""

    owner: str
    recipe: str | None = None
    digests: Mapping[str, str] = field(default_factory=dict)  # of requests as they were sent, by idempotency key

    def digest(self, spec: RunSpec) -> str:
        """Of what was asked, not of where it was asked from."""
        known = self.digests.get(spec.idempotency_key or "")
        return known or hashlib.sha256(json.dumps(_asked(spec), sort_keys=True).encode()).hexdigest()

    def describe(self) -> str:
        return f"submitted by {self.owner}" + (f" as recipe {self.recipe}" if self.recipe else "")


def _asked(spec: RunSpec) -> dict[str, Any]:
    return {name: value for name, value in spec.to_json().items() if name not in ("idempotency_key", "origin")}


def submit(connection: Connection, now: float, source: Source, specs: Sequence[RunSpec]) -> list[Submitted]:
    known = _Known(connection)
    for index, spec in enumerate(specs):
        with numbered(index if len(specs) > 1 else None):
            known.check(spec)
    results, fresh = _split_repeated(connection, source, specs)
    if fresh:
        _insert(connection, now, source, fresh, known)
    return results


def check(connection: Connection, spec: RunSpec) -> list[str]:
    """The sites that may take it; raises what `submit` would raise."""
    return _Known(connection).check(spec)


def check_inputs(blobs: Blobs, specs: Sequence[RunSpec]) -> None:
    """Nothing waits for a file that nobody has brought. Blobs are never taken away, so once is enough."""
    known: set[str] = set()
    for index, spec in enumerate(specs):
        with numbered(index if len(specs) > 1 else None):
            for asked in spec.inputs:
                if asked.digest not in known and not blobs.has(asked.digest):
                    raise errors.InvalidInput(
                        f"inputs: the yard has no file {asked.digest} for {asked.to!r}",
                        f"upload it first: PUT /api/v1/blobs/{asked.digest}",
                    )
                known.add(asked.digest)


class numbered:
    """Names the spec of a list that an error is about."""

    def __init__(self, index: int | None) -> None:
        self._index = index

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._index is not None and isinstance(error, errors.InvalidInput):
            raise type(error)(f"runs[{self._index}]: {error.message}", error.fix) from None


class _Known:
    """What exists now: sites with their capacities, and the parents that specs name. Looked up once per call."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        landscape = places.landscape(connection)
        self._sites, self._capacities = landscape.sites, landscape.capacities
        self._fits: dict[tuple[str | None, Resources], list[str]] = {}
        self.parents: dict[int, AnyRow] = {}
        self._loaded: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()

    def check(self, spec: RunSpec) -> list[str]:
        seen = (spec.site, spec.resources)
        if seen not in self._fits:
            candidates = self._candidates(spec.site)
            self._check_fits(spec, candidates)
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
            raise errors.Unsatisfiable(f"no site takes this run by itself: {notes}", "name one with --site")
        return free

    def _check_fits(self, spec: RunSpec, candidates: list[str]) -> None:
        fitting: dict[str, Capacity] = {}
        for site in candidates:
            capacities = self._capacities.get(site, [])
            # A site that nobody has served yet may turn out to have anything.
            if not capacities or any(not capacity.shortages(spec.resources) for capacity in capacities):
                return
            fitting.update({f"site {site!r}": capacity for capacity in capacities})
        raise errors.Unsatisfiable(
            f"no site can ever give {spec.resources.describe()}", placement.nearest(spec.resources, fitting)
        )

    def _load_parents(self, ids: Sequence[int]) -> None:
        missing = [run_id for run_id in ids if run_id not in self.parents]
        self.parents.update({row.id: row for row in runs.get_many(self._connection, missing)})
        for run_id in missing:
            if run_id not in self.parents:
                raise errors.InvalidInput(f"after: there is no run {run_id}", "list yours with `runyard ls`")


def _split_repeated(
    connection: Connection, source: Source, specs: Sequence[RunSpec]
) -> tuple[list[Submitted], list[tuple[int, RunSpec]]]:
    """Ids for all specs, and those that are new."""
    results: list[Submitted] = []
    fresh: list[tuple[int, RunSpec]] = []
    seen: dict[str, tuple[int, str]] = {}
    ids = _fresh_ids(connection, specs)
    for spec in specs:
        first = _first_with_key(connection, source, spec, seen)
        run_id = next(ids) if first is None else first
        results.append(Submitted(id=run_id, created=first is None))
        if first is None:
            fresh.append((run_id, spec))
            if spec.idempotency_key:
                seen[spec.idempotency_key] = (run_id, source.digest(spec))
    return results, fresh


def _fresh_ids(connection: Connection, specs: Sequence[RunSpec]) -> Iterator[int]:
    """All at once where all will be used; one by one where some specs may turn out to be repeated."""
    step = 1 if any(spec.idempotency_key for spec in specs) else len(specs)
    while True:
        first = counters.take(connection, "runs", step)
        yield from range(first, first + step)


def _first_with_key(
    connection: Connection, source: Source, spec: RunSpec, seen: Mapping[str, tuple[int, str]]
) -> int | None:
    key = spec.idempotency_key
    if key is None:
        return None
    first = seen.get(key)
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


def _insert(
    connection: Connection, now: float, source: Source, fresh: list[tuple[int, RunSpec]], known: _Known
) -> None:
    plan = Plan({run_id for run_id, _ in fresh}, known.parents)
    rows = [_row(now, source, run_id, spec, plan.add(run_id, spec)) for run_id, spec in fresh]
    runs.insert_runs(connection, rows)
    gates.add(connection, plan.gates())
    runs.insert_tags(connection, [{"run_id": run_id, "tag": tag} for run_id, spec in fresh for tag in spec.tags])
    runs.insert_events(connection, [_event(now, source, row) for row in rows])


def _event(now: float, source: Source, row: Mapping[str, Any]) -> dict[str, Any]:
    message = row["detail"] if row["state"] == RunState.FAILED else source.describe()
    kind = "failed" if row["state"] == RunState.FAILED else "submitted"
    return {"run_id": row["id"], "attempt": 0, "at": now, "kind": kind, "message": message}


def _row(now: float, source: Source, run_id: int, spec: RunSpec, outlook: Outlook) -> dict[str, Any]:
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
        "lane": f"{source.owner}/{spec.project}",
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
