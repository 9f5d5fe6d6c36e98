"""Which sites could have use for a hint that there is work: those where runs wait and agents dial in."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import Connection

from runyard.model.site import AGENT
from runyard.store import places, queue
from runyard.store.rows import AnyRow
from runyard.yard import needs, sites


def demand(connection: Connection) -> dict[str, int]:
    """For each such site the number of its live agents, or of the runs that wait, if those are fewer."""
    alive = Counter(agent.site for agent in places.all_agents(connection) if not agent.unreachable)
    wanted = {
        site.name: _hints(connection, _lines(site), alive[site.name])
        for site in places.all_sites(connection)
        if alive[site.name] and not site.drained and sites.description(site).served_by == AGENT
    }
    return {site: count for site, count in wanted.items() if count}


def _hints(connection: Connection, lines: list[str], agents: int) -> int:
    """Nobody knows which agent takes a hint. So when a run is not for every node, all of them get one."""
    waiting = queue.waiting_at_most(connection, lines, agents)
    if not 0 < waiting < agents:
        return waiting
    tracks = (needs.parse(track) for line in lines for track in queue.tracks(connection, line))
    return agents if any(track.choice for track in tracks) else waiting


def _lines(site: AnyRow) -> list[str]:
    """What its agents may take from."""
    return [site.name] if site.explicit else ["", site.name]
