"""Accepting runs: checked against the sites and the runs they come after, then written in one commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.model import fields
from runyard.model.resources import Capacity, Resources
from runyard.model.spec import RunSpec
from runyard.model.states import FINAL, Reason, RunState
from runyard.store import counters, places, runs
from runyard.store.rows import AnyRow
from runyard.yard import placement


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    id: int
    created: bool  # False: this idempotency key was seen before, and nothing new was stored


def submit(connection: Connection, now: float, owner: str, specs: Sequence[RunSpec]) -> list[Submitted]:
    known = _Known(connection)
    for index, spec in enumerate(specs):
        with _numbered(index if len(specs) > 1 else None):
            known.check(spec)
    results, fresh = _split_repeated(connection, owner, specs)
    if fresh:
        _insert(connection, now, owner, fresh, known)
    return results


def check(connection: Connection, spec: RunSpec) -> list[str]:
    """The sites that may take it; raises what `submit` would raise."""
    return _Known(connection).check(spec)


class _numbered:
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

    def check(self, spec: RunSpec) -> list[str]:
        seen = (spec.site, spec.resources)
        if seen not in self._fits:
            candidates = self._candidates(spec.site)
            self._check_fits(spec, candidates)
            self._fits[seen] = candidates
        self._load_parents(spec.after + spec.after_any)
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
    connection: Connection, owner: str, specs: Sequence[RunSpec]
) -> tuple[list[Submitted], list[tuple[int, RunSpec]]]:
    """Ids for all specs, and those that are new."""
    results: list[Submitted] = []
    fresh: list[tuple[int, RunSpec]] = []
    seen: dict[str, tuple[int, str]] = {}
    ids = _fresh_ids(connection, specs)
    for spec in specs:
        first = _first_with_key(connection, owner, spec, seen)
        run_id = next(ids) if first is None else first
        results.append(Submitted(id=run_id, created=first is None))
        if first is None:
            fresh.append((run_id, spec))
            if spec.idempotency_key:
                seen[spec.idempotency_key] = (run_id, spec_digest(spec))
    return results, fresh


def _fresh_ids(connection: Connection, specs: Sequence[RunSpec]) -> Iterator[int]:
    """All at once where all will be used; one by one where some specs may turn out to be repeated."""
    step = 1 if any(spec.idempotency_key for spec in specs) else len(specs)
    while True:
        first = counters.take(connection, "runs", step)
        yield from range(first, first + step)


def _first_with_key(
    connection: Connection, owner: str, spec: RunSpec, seen: Mapping[str, tuple[int, str]]
) -> int | None:
    key = spec.idempotency_key
    if key is None:
        return None
    first = seen.get(key)
    if first is None:
        row = runs.by_idempotency_key(connection, owner, key)
        if row is None:
            return None
        first = (row.id, row.idempotency_digest)
    if first[1] != spec_digest(spec):
        raise errors.Conflict(
            f"idempotency_key {key!r} was used for run {first[0]} with another body", "use a new key for a new run"
        )
    return first[0]


def spec_digest(spec: RunSpec) -> str:
    """Of what was asked, not of where it was asked from."""
    asked = {name: value for name, value in spec.to_json().items() if name not in ("idempotency_key", "origin")}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _insert(connection: Connection, now: float, owner: str, fresh: list[tuple[int, RunSpec]], known: _Known) -> None:
    together = {run_id for run_id, _ in fresh}
    fresh = [(run_id, _in_turn(run_id, spec, together)) for run_id, spec in fresh]
    rows = [_row(now, owner, run_id, spec, known.parents) for run_id, spec in fresh]
    runs.insert_runs(connection, rows)
    runs.insert_tags(connection, [{"run_id": run_id, "tag": tag} for run_id, spec in fresh for tag in spec.tags])
    runs.insert_parents(
        connection,
        [
            {"parent_id": parent, "child_id": run_id}
            for run_id, spec in fresh
            for parent in dict.fromkeys(spec.after + spec.after_any)
        ],
    )
    runs.insert_events(connection, [_event(now, owner, row) for row in rows])


def _in_turn(run_id: int, spec: RunSpec, together: set[int]) -> RunSpec:
    """Where only `limit` tasks of an array may run together, each comes after the one that many places before it."""
    array = spec.array
    if array is None or array.limit is None or array.offset < array.limit or run_id - array.limit not in together:
        return spec
    return spec.evolve(after_any=(*spec.after_any, run_id - array.limit))


def turns_before(run: AnyRow) -> range:
    """The runs of its array that must have ended before this one has its turn, the nearest first."""
    array = json.loads(run.spec).get("array") or {}
    limit = array.get("limit")
    return range(run.id - limit, run.id - array["offset"] - 1, -limit) if limit else range(0)


def may_fail(run: AnyRow, parent: int) -> bool:
    """Whether the run begins also when that one did not succeed."""
    return parent in json.loads(run.spec).get("after_any", ()) or parent in turns_before(run)


def _event(now: float, owner: str, row: Mapping[str, Any]) -> dict[str, Any]:
    message = row["detail"] if row["state"] == RunState.FAILED else f"submitted by {owner}"
    kind = "failed" if row["state"] == RunState.FAILED else "submitted"
    return {"run_id": row["id"], "attempt": 0, "at": now, "kind": kind, "message": message}


def _row(now: float, owner: str, run_id: int, spec: RunSpec, parents: Mapping[int, AnyRow]) -> dict[str, Any]:
    open_parents = [parent for parent in dict.fromkeys(spec.after + spec.after_any) if _is_open(parents.get(parent))]
    bad = [parent for parent in spec.after if parents[parent].state in (RunState.FAILED, RunState.CANCELLED)]
    return {
        "id": run_id,
        "owner": owner,
        "project": spec.project,
        "name": spec.name,
        "state": RunState.FAILED if bad else RunState.QUEUED,
        "reason": Reason.DEPENDENCY if bad else None,
        "detail": dependency_detail(bad[0], parents[bad[0]].state) if bad else waits_for(open_parents),
        "exit_code": None,
        "priority": spec.priority,
        "wanted_site": spec.site or "",
        "lane": f"{owner}/{spec.project}",
        "blocked": len(open_parents),
        "cpus": spec.resources.cpus,
        "gpus": spec.resources.gpus,
        "resources": json.dumps(spec.resources.to_json(), sort_keys=True),
        "spec": json.dumps(spec.to_json()),
        "attempt": 0,
        "failures": 0,
        "created_at": now,
        "queued_at": now,
        "ended_at": now if bad else None,
        "idempotency_key": spec.idempotency_key,
        "idempotency_digest": spec_digest(spec) if spec.idempotency_key else None,
    }


def _is_open(parent: AnyRow | None) -> bool:
    """One that is not known yet is submitted in the same call."""
    return parent is None or RunState(parent.state) not in FINAL


def waits_for(parents: Sequence[int]) -> str | None:
    if not parents:
        return None
    return f"waits for run {parents[0]}" + (f" and {len(parents) - 1} more" if len(parents) > 1 else "")


def dependency_detail(parent: int, state: str) -> str:
    return f"run {parent}, which it comes after, {'was cancelled' if state == RunState.CANCELLED else 'failed'}"
