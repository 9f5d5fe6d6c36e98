"""The nodes of a site, and who runs what on each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from runyard.model.nodes import EVERYBODY
from runyard.store import attempts
from runyard.store.rows import AnyRow
from runyard.yard import views

MOST_RUNS = 1000

Agent = Mapping[str, Any]


def look(
    connection: Connection, site: AnyRow, agents: Sequence[Agent], expected: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """One for each agent of a pool, and for each that is `expected` and never came; of a cluster those nodes that its
    runs are on. `agents` as they are shown."""
    rows = attempts.on_site(connection, site.name, MOST_RUNS)
    if any(agent["total"]["elastic"] for agent in agents):
        return [_of_cluster(site, name, found) for name, found in sorted(_grouped(rows, "node").items()) if name]
    by_agent = _grouped(rows, "agent")
    found = [_of_agent(site, agent, by_agent[agent["name"]]) for agent in agents]
    found += [_never_seen(name) for name in expected if name not in {agent["name"] for agent in agents}]
    return sorted(found, key=lambda node: str(node["name"]))


def _grouped(rows: Iterable[AnyRow], column: str) -> defaultdict[str, list[AnyRow]]:
    found: defaultdict[str, list[AnyRow]] = defaultdict(list)
    for row in rows:
        found[getattr(row, column) or ""].append(row)
    return found


def _of_agent(site: AnyRow, agent: Agent, rows: Iterable[AnyRow]) -> dict[str, Any]:
    """Since when: unreachable since it was heard last, drained since somebody said so, else since it came."""
    state, since = agent["state"], agent["since"]
    if state == "unreachable":
        since = agent["seen_at"]
    elif site.drained:
        state, since = "drained", views.iso(site.drained_at)
    shown = {name: agent[name] for name in ("total", "free", "labels", "limits", "disk", "trouble")}
    return {**shown, "name": agent["node"], "agent": agent["name"], "state": state, "since": since, "runs": _runs(rows)}


def _never_seen(name: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("agent", "since", "total", "free", "disk"))
    trouble = f"{name} has not answered yet; see `runyard site test`"
    return {
        **nothing, "name": name, "state": "unreachable", "labels": [], "limits": EVERYBODY.to_json(), "runs": [],
        "trouble": trouble,
    }  # fmt: skip


def _of_cluster(site: AnyRow, name: str, rows: Sequence[AnyRow]) -> dict[str, Any]:
    nothing = dict.fromkeys(("agent", "since", "total", "free", "disk", "trouble"))
    state = "drained" if site.drained else "alive"
    return {**nothing, "name": name, "state": state, "labels": [], "limits": EVERYBODY.to_json(), "runs": _runs(rows)}


def _runs(rows: Iterable[AnyRow]) -> list[dict[str, Any]]:
    return [
        {
            "id": row.id, "owner": row.owner, "project": row.project, "name": row.name, "state": row.state,
            "since": views.iso(row.started_at or row.claimed_at),
        }
        for row in rows
    ]  # fmt: skip
