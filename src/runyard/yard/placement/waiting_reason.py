"""Why a run waits although slots may be free: no agent that could take it accepts runs now."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from runyard.model.states import RunState
from runyard.store import site_rows
from runyard.store.rows import AnyRow
from runyard.yard import views
from runyard.yard.placement import tracks


def of(connection: Connection, run: AnyRow, now: float, lease: float) -> str | None:
    """One sentence, or None if an agent may take it."""
    if run.state != RunState.QUEUED or run.blocked:
        return None
    sites = {site.name: site for site in site_rows.all_sites(connection) if _may_go(run, site)}
    track, found = tracks.parse(run.track), []
    for agent in site_rows.all_agents(connection):
        if agent.site in sites and track.suits(site_rows.node_of(agent)):
            obstacle = next(_obstacles(sites[agent.site], agent, now, lease), None)
            if obstacle is None:
                return None
            found.append(obstacle)
    return f"waits: {found[0]}" if found else None


def _may_go(run: AnyRow, site: AnyRow) -> bool:
    return bool(run.wanted_site == site.name if run.wanted_site else not site.explicit)


def _obstacles(site: AnyRow, agent: AnyRow, now: float, lease: float) -> Iterator[str]:
    shown = views.agent_view(agent, now, lease)
    if site.drained:
        yield f"site {site.name} is drained"
    if shown["state"] == "unreachable":
        yield f"{agent.node} is unreachable"
    if shown["trouble"]:
        yield shown["trouble"]
