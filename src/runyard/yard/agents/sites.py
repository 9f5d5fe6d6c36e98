"""Sites and their agents: add, change, remove and show them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

from runyard import errors, kinds
from runyard.broker.hints import Hints
from runyard.model import spec_values
from runyard.model.nodes import EVERYBODY
from runyard.model.site import AGENT, YARD, SiteSpec
from runyard.model.states import RunState
from runyard.store import Store, attempts, runs, site_rows, sweeps
from runyard.store.rows import AnyRow
from runyard.yard import views

MOST_RUNS = 1000

Agent = Mapping[str, Any]
SITES_CHANGED = "sites"  # the hint for agents in this process

Shown = dict[str, Any]
Change = Callable[[Connection, float], None]


class Sites:
    def __init__(self, store: Store, hints: Hints, lease: float) -> None:
        self._store, self._hints, self._lease = store, hints, lease

    def all(self) -> list[Shown]:
        with self._store.read() as connection:
            return [self._view(connection, row) for row in site_rows.all_sites(connection)]

    def get(self, name: str) -> Shown:
        with self._store.read() as connection:
            return full_view(connection, get(connection, name), self._store.now(), self._lease)

    def agents(self) -> list[Shown]:
        now = self._store.now()
        with self._store.read() as connection:
            return [views.agent_view(row, now, self._lease) for row in site_rows.all_agents(connection)]

    def ensure(self, name: str, kind: str, *, explicit: bool = False, note: str = "") -> Future[Shown]:
        return self._change(
            name, lambda connection, now: ensure(connection, now, name, kind, explicit=explicit, note=note)
        )

    def add(self, name: str, described: SiteSpec) -> Future[Shown]:
        return self._change(name, lambda connection, now: add(connection, now, name, described))

    def edit(self, name: str, changes: Mapping[str, Any]) -> Future[Shown]:
        return self._change(name, lambda connection, _: edit(connection, name, changes))

    def drain(self, name: str, drained: bool) -> Future[Shown]:
        """A drained site starts no new runs; running runs continue."""

        def change(connection: Connection, now: float) -> None:
            get(connection, name)
            site_rows.change_site(connection, name, drained=int(drained), drained_at=now if drained else None)

        return self._change(name, change)

    def remove(self, name: str) -> Future[None]:
        return self._store.write(lambda connection: remove(connection, name), lambda _: self._hints.ring(SITES_CHANGED))

    def _change(self, name: str, change: Change) -> Future[Shown]:
        def work(connection: Connection) -> Shown:
            change(connection, self._store.now())
            return self._view(connection, get(connection, name))

        def then(_: Shown) -> None:
            self._hints.ring(f"site:{name}")
            self._hints.ring(SITES_CHANGED)

        return self._store.write(work, then)

    def _view(self, connection: Connection, row: AnyRow) -> Shown:
        return view(connection, row, self._store.now(), self._lease)


def get(connection: Connection, name: str) -> AnyRow:
    row = site_rows.site(connection, name)
    if row is None:
        raise errors.NotFound(f"there is no site {name!r}", "list them with `runyard site list`")
    return row


def add(connection: Connection, now: float, name: str, described: SiteSpec) -> None:
    spec_values.name_text(name, "name")
    _check_kind(described)
    if site_rows.site(connection, name) is not None:
        raise errors.Conflict(f"there is a site {name!r} already", f"change it with `runyard site edit {name}`")
    site_rows.insert_site(
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
    """Make sure that the site exists with these properties; whether it is drained does not change."""
    if site_rows.site(connection, name) is None:
        add(connection, now, name, SiteSpec(kind=kind))
    site_rows.change_site(connection, name, kind=kind, explicit=int(explicit), note=note)


def ensure_for_agents(connection: Connection, now: float, name: str) -> None:
    """Make sure that the site exists; an existing one is not changed."""
    if site_rows.site(connection, name) is None:
        add(connection, now, name, SiteSpec(served_by=AGENT))


def edit(connection: Connection, name: str, changes: Mapping[str, Any]) -> None:
    row = get(connection, name)
    changed = description(row).edited(changes)
    _check_kind(changed)
    if attempts.alive_of_site(connection, name):
        _check_unmoved(name, description(row), changed)
    for node in description(row).nodes().keys() - changed.nodes().keys():
        _remove_node(connection, name, node)
    site_rows.change_site(connection, name, kind=changed.kind, config=json.dumps(changed.to_json()))


def _check_unmoved(name: str, before: SiteSpec, changed: SiteSpec) -> None:
    """Its agent finds running runs by the kind of the site, in its directory; without one, in the agent's own home."""
    moved = {
        "kind": changed.kind != before.kind,
        "dir": changed.dir != before.dir,
        "served_by": changed.dir is None and changed.served_by != before.served_by,
    }
    for what in (what for what, is_moved in moved.items() if is_moved):
        fix = f"wait for them or cancel them: `runyard ls --site {name}`"
        raise errors.Conflict(f"site {name!r} has runs, so its {what} cannot change now", fix)


def _check_kind(described: SiteSpec) -> None:
    """Agents on other machines may have plug-ins that are not installed here."""
    if described.served_by == YARD:
        kinds.check(described.kind)


def _remove_node(connection: Connection, site: str, node: str) -> None:
    """No agent would watch the runs that it still has."""
    if attempts.alive(connection, site, node):
        fix = f"wait for them or cancel them: `runyard ls --site {site}`; until then keep it with --ssh"
        raise errors.Conflict(f"node {node!r} of site {site!r} has runs", fix)
    site_rows.remove_agent(connection, site, node)


def remove(connection: Connection, name: str) -> None:
    """Only a site without unfinished runs."""
    get(connection, name)
    unfinished = (RunState.QUEUED, RunState.STARTING, RunState.RUNNING)
    if runs.list_page(connection, site=name, states=unfinished, limit=1):
        raise errors.Conflict(
            f"site {name!r} has runs that have not ended", f"see them with `runyard ls --site {name}`"
        )
    site_rows.remove_site(connection, name)


def description(row: AnyRow) -> SiteSpec:
    return SiteSpec.parse(json.loads(row.config))


def view(connection: Connection, row: AnyRow, now: float, lease: float) -> dict[str, Any]:
    agents = [views.agent_view(agent, now, lease) for agent in site_rows.all_agents(connection, row.name)]
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
    """With its nodes and its runs."""
    shown = view(connection, row, now, lease)
    active = runs.list_page(connection, site=row.name, states=(RunState.STARTING, RunState.RUNNING), limit=MOST_RUNS)
    nodes = _nodes(connection, row, shown["agents"], description(row).nodes())
    members = sweeps.places_of(connection, [run.id for run in active])
    return {**shown, "nodes": nodes, "runs": [views.run_view(run, [], members.get(run.id)) for run in active]}


def _nodes(
    connection: Connection, site: AnyRow, agents: Sequence[Agent], expected: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """One for each agent of a pool, and for each `expected` one that never connected; of a cluster, the nodes that have
    runs. `agents` as they are shown."""
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
    """Since when: unreachable since its last message, drained since the command, else since it connected."""
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
