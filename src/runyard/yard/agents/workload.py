"""The current work of a yard: agents, their runs, and waiting runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from runyard.store import attempts, queue, runs, site_rows
from runyard.store.rows import AnyRow
from runyard.yard import views


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """Agents that are alive within their lease, by `name@node`; each list of runs has at most `most` entries."""

    agents: list[str]
    queued: list[dict[str, Any]]
    blocked: list[dict[str, Any]]  # they wait for other runs
    active: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def look(connection: Connection, now: float, lease: float, most: int) -> Workload:
    agents = {(row.site, row.name): row for row in site_rows.all_agents(connection)}
    found = Workload(
        agents=[_name(row) for row in agents.values() if not views.is_silent(row, now, lease)],
        queued=_tasks(queue.next_up(connection, blocked=False, limit=most)),
        blocked=_tasks(queue.next_up(connection, blocked=True, limit=most)),
    )
    alive = attempts.alive_runs(connection, most)
    tasks = {row.id: row for row in runs.get_many(connection, [row.run_id for row in alive])}
    for attempt in alive:
        known = agents.get((attempt.site, attempt.agent))
        worker = _name(known) if known else f"{attempt.agent}@{attempt.site}"
        found.active.setdefault(worker, []).extend(_tasks([tasks[attempt.run_id]]))
    return found


def _name(agent: AnyRow) -> str:
    return f"{agent.name}@{agent.node}"


def _tasks(rows: Iterable[AnyRow]) -> list[dict[str, Any]]:
    return [
        {
            "id": row.id,
            "owner": row.owner,
            "recipe": row.recipe,
            "params": json.loads(row.spec).get("params", {}),
            "site": row.site or row.wanted_site,
            "priority": row.priority,
            "attempt": row.attempt,
            "started": row.started_at,
        }
        for row in rows
    ]
