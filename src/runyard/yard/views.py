"""Rows as JSON with ISO times."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from runyard.model import units
from runyard.model.states import FINAL, RunState
from runyard.model.wire import Disk
from runyard.store.rows import AnyRow


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFilter:
    states: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    owner: str | None = None
    site: str | None = None
    tag: str | None = None
    name: str | None = None
    recipe: str | None = None
    sweep: int | None = None
    ids: tuple[int, ...] = ()
    before: int | None = None
    limit: int = 50


def iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def run_view(row: AnyRow, tags: list[str], place: AnyRow | None = None) -> dict[str, Any]:
    """`place`: of a run of a sweep, see store.sweeps."""
    spec = json.loads(row.spec)
    record = json.loads(row.record) if row.record else {}
    return {
        "id": row.id,
        "project": row.project,
        "name": row.name,
        "owner": row.owner,
        "state": row.state,
        "reason": row.reason,
        "detail": row.detail,
        "exit_code": row.exit_code,
        "params": spec.get("params", {}),
        "params_as": spec.get("params_as"),
        "site": row.site or row.wanted_site or None,
        "node": row.node,
        "attempt": row.attempt,
        "priority": row.priority,
        "tags": tags,
        "command": spec["command"],
        "index": spec.get("index"),
        "array": spec.get("array"),
        "dialect": spec.get("dialect"),
        "recipe": row.recipe,
        "seed": spec.get("seed"),
        "sweep": {"id": place.sweep_id, "trial": place.trial, "rep": place.rep} if place is not None else None,
        "rerun_of": spec.get("origin", {}).get("run"),
        "resources": json.loads(row.resources),
        "granted": json.loads(row.granted) if row.granted else None,
        "created_at": iso(row.created_at),
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
        "cancel_requested": row.cancel_at is not None and RunState(row.state) not in FINAL,
        "peak_memory": record.get("peak_memory"),
        "cpu_time": record.get("cpu_time"),
        "wall_time": record.get("wall_time"),
    }


def request_view(row: AnyRow) -> dict[str, Any]:
    """A run as its caller sees it: its parameters and its ending, without the contents of the recipe."""
    return {
        "id": row.id,
        "recipe": row.recipe,
        "owner": row.owner,
        "state": row.state,
        "reason": row.reason,
        "detail": row.detail,
        "exit_code": row.exit_code,
        "params": json.loads(row.spec).get("params", {}),
        "created_at": iso(row.created_at),
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
    }


def spec_view(row: AnyRow) -> dict[str, Any]:
    return dict(json.loads(row.spec))


def attempt_view(row: AnyRow, log_size: int) -> dict[str, Any]:
    return {
        "number": row.number,
        "state": row.state,
        "outcome": row.outcome,
        "reason": row.reason,
        "detail": row.detail,
        "exit_code": row.exit_code,
        "signal": row.signal,
        "site": row.site,
        "agent": row.agent,
        "node": row.node,
        "native_id": row.native_id,
        "granted": json.loads(row.granted) if row.granted else None,
        "record": json.loads(row.record) if row.record else None,
        "claimed_at": iso(row.claimed_at),
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
        "log_size": log_size,
    }


def event_view(row: AnyRow) -> dict[str, Any]:
    return {"id": row.id, "attempt": row.attempt, "at": iso(row.at), "kind": row.kind, "message": row.message}


def output_view(row: AnyRow) -> dict[str, Any]:
    return {"path": row.path, "size": row.size, "digest": row.digest, "mode": row.mode, "attempt": row.attempt}


def is_silent(agent: AnyRow, now: float, lease: float) -> bool:
    """Silent for longer than the yard's lease and the agent's own."""
    return bool(now - agent.seen_at > max(lease, agent.lease))


def agent_view(row: AnyRow, now: float, lease: float) -> dict[str, Any]:
    disk = Disk(**json.loads(row.disk)) if row.disk else None
    is_full = disk is not None and disk.is_full
    return {
        "site": row.site,
        "name": row.name,
        "node": row.node,
        "version": row.version,
        "incarnation": row.incarnation,
        "state": "unreachable" if row.unreachable or is_silent(row, now, lease) else "full" if is_full else "alive",
        "total": json.loads(row.total),
        "free": json.loads(row.free),
        "labels": json.loads(row.labels),
        "limits": json.loads(row.limits),
        "disk": disk.to_json() if disk else None,
        "trouble": row.away or (_full(row.node, disk) if disk and is_full else None),
        "seen_at": iso(row.seen_at),
        "since": iso(row.since),
    }


def _full(node: str, disk: Disk) -> str:
    free, kept = units.show_size(disk.free), units.show_size(disk.kept)
    told = f"{node} starts nothing: {free} free in {disk.path}, {kept} are reserved"
    return f"{told}; free some space or lower disk_reserve"


def token_view(row: AnyRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "role": row.role,
        "site": row.site,
        "recipes": json.loads(row.recipes),
        "limits": json.loads(row.limits),
        "created_at": iso(row.created_at),
    }
