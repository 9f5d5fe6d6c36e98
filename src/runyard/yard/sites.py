"""Sites: describing, changing, removing them, and what is shown of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from runyard import errors, kinds
from runyard.model import spec
from runyard.model.site import AGENT, YARD, SiteSpec
from runyard.model.states import RunState
from runyard.store import attempts, places, runs, sweeps
from runyard.store.rows import AnyRow
from runyard.yard import nodes_view, views
from runyard.yard.nodes_view import MOST_RUNS


def get(connection: Connection, name: str) -> AnyRow:
    row = places.site(connection, name)
    if row is None:
        raise errors.NotFound(f"there is no site {name!r}", "list them with `runyard site list`")
    return row


def add(connection: Connection, now: float, name: str, described: SiteSpec) -> None:
    spec.name_text(name, "name")
    _check_kind(described)
    if places.site(connection, name) is not None:
        raise errors.Conflict(f"there is a site {name!r} already", f"change it with `runyard site edit {name}`")
    places.insert_site(
        connection,
        name=name,
        kind=described.kind,
        config=json.dumps(described.to_json()),
        drained=0,
        explicit=0,
        note="",
        created_at=now,
    )


def ensure(connection: Connection, now: float, name: str, kind: str, *, explicit: bool, note: str) -> None:
    """The site exists with these properties; whether it is drained stays as it is."""
    if places.site(connection, name) is None:
        add(connection, now, name, SiteSpec(kind=kind))
    places.change_site(connection, name, kind=kind, explicit=int(explicit), note=note)


def ensure_for_agents(connection: Connection, now: float, name: str) -> None:
    """The site exists; one that somebody has described stays as it is."""
    if places.site(connection, name) is None:
        add(connection, now, name, SiteSpec(served_by=AGENT))


def edit(connection: Connection, name: str, changes: Mapping[str, Any]) -> None:
    row = get(connection, name)
    changed = description(row).edited(changes)
    _check_kind(changed)
    if attempts.alive_of_site(connection, name):
        _check_unmoved(name, description(row), changed)
    for node in description(row).nodes().keys() - changed.nodes().keys():
        _remove_node(connection, name, node)
    places.change_site(connection, name, kind=changed.kind, config=json.dumps(changed.to_json()))


def _check_unmoved(name: str, before: SiteSpec, changed: SiteSpec) -> None:
    """Whoever serves it finds what runs there by its kind, in its directory; without one, in a home of their own."""
    moved = {
        "kind": changed.kind != before.kind,
        "dir": changed.dir != before.dir,
        "served_by": changed.dir is None and changed.served_by != before.served_by,
    }
    for what in (what for what, is_moved in moved.items() if is_moved):
        fix = f"wait for them or cancel them: `runyard ls --site {name}`"
        raise errors.Conflict(f"site {name!r} has runs, so its {what} cannot change now", fix)


def _check_kind(described: SiteSpec) -> None:
    """Agents elsewhere may have plug-ins that are not installed here."""
    if described.served_by == YARD:
        kinds.check(described.kind)


def _remove_node(connection: Connection, site: str, node: str) -> None:
    """Nobody would look after what it still runs."""
    if attempts.alive(connection, site, node):
        fix = f"wait for them or cancel them: `runyard ls --site {site}`; until then keep it with --ssh"
        raise errors.Conflict(f"node {node!r} of site {site!r} has runs", fix)
    places.remove_agent(connection, site, node)


def remove(connection: Connection, name: str) -> None:
    """Only a site that nobody counts on any more."""
    get(connection, name)
    unfinished = (RunState.QUEUED, RunState.STARTING, RunState.RUNNING)
    if runs.list_page(connection, site=name, states=unfinished, limit=1):
        raise errors.Conflict(
            f"site {name!r} has runs that have not ended", f"see them with `runyard ls --site {name}`"
        )
    places.remove_site(connection, name)


def description(row: AnyRow) -> SiteSpec:
    return SiteSpec.parse(json.loads(row.config))


def view(connection: Connection, row: AnyRow, now: float, lease: float) -> dict[str, Any]:
    agents = [views.agent_view(agent, now, lease) for agent in places.all_agents(connection, row.name)]
    return {
        "name": row.name,
        "kind": row.kind,
        "drained": bool(row.drained),
        "drained_at": views.iso(row.drained_at),
        "explicit": bool(row.explicit),
        "note": row.note,
        "created_at": views.iso(row.created_at),
        "config": description(row).to_json(),
        "agents": agents,
        "active_runs": attempts.alive_of_site(connection, row.name),
    }


def full_view(connection: Connection, row: AnyRow, now: float, lease: float) -> dict[str, Any]:
    """With its nodes, and the runs that it has."""
    shown = view(connection, row, now, lease)
    active = runs.list_page(connection, site=row.name, states=(RunState.STARTING, RunState.RUNNING), limit=MOST_RUNS)
    nodes = nodes_view.look(connection, row, shown["agents"], description(row).nodes())
    members = sweeps.places_of(connection, [run.id for run in active])
    return {**shown, "nodes": nodes, "runs": [views.run_view(run, [], members.get(run.id)) for run in active]}
