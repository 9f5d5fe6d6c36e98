"""Which sites need a hint that there is work: those with waiting runs and connected agents."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import Connection

from runyard.model.site import AGENT
from runyard.store import queue, site_rows
from runyard.store.rows import AnyRow
from runyard.yard.agents import sites
from runyard.yard.placement import tracks


def demand(connection: Connection) -> dict[str, int]:
    """For each such site the number of its live agents, or of the runs that wait, if those are fewer."""
    alive = Counter(agent.site for agent in site_rows.all_agents(connection) if not agent.unreachable)
    wanted = {
        site.name: _hints(connection, _lines(site), alive[site.name])
        for site in site_rows.all_sites(connection)
        if alive[site.name] and not site.drained and sites.description(site).served_by == AGENT
    }
    return {site: count for site, count in wanted.items() if count}


def _hints(connection: Connection, lines: list[str], agents: int) -> int:
    """It is not known which agent takes a hint. So when a run is not for every node, all of them get one."""
    waiting = queue.waiting_at_most(connection, lines, agents)
    if not 0 < waiting < agents:
        return waiting
    waiting_tracks = (tracks.parse(track) for line in lines for track in queue.tracks(connection, line))
    return agents if any(track.choice for track in waiting_tracks) else waiting


def _lines(site: AnyRow) -> list[str]:
    """The runs that its agents may take."""
    return [site.name] if site.explicit else ["", site.name]
