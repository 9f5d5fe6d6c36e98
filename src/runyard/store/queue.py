"""The queue of waiting runs, read by track, without reading all of it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, insert, select, text, update

from runyard.store.rows import AnyRow
from runyard.store.tables import ACTIVE, WAITING, runs, shares

# Jumps from track to track along the index: the cost grows with the number of tracks, not with the number of runs.
_TRACKS = text(
    """
    WITH RECURSIVE tracks(track) AS (
        SELECT min(track) FROM runs WHERE state = 'queued' AND blocked = 0 AND wanted_site = :site
        UNION ALL
        SELECT (SELECT min(track) FROM runs
                WHERE state = 'queued' AND blocked = 0 AND wanted_site = :site AND track > tracks.track)
        FROM tracks WHERE tracks.track IS NOT NULL
    )
    SELECT track FROM tracks WHERE track IS NOT NULL
    """
)
_HEADS = (
    select(runs.c.id, runs.c.lane, runs.c.priority, runs.c.resources, runs.c.attempt, runs.c.queued_at)
    .where(WAITING, runs.c.wanted_site == bindparam("site"), runs.c.track == bindparam("track"))
    .order_by(runs.c.priority.desc(), runs.c.id)
    .limit(bindparam("limit"))
)
_IN_USE = select(runs.c.lane, func.sum(runs.c.cpus + 8 * runs.c.gpus)).where(ACTIVE).group_by(runs.c.lane)
_POSITION = (
    select(func.count()).select_from(runs).where(WAITING, runs.c.wanted_site.in_(bindparam("sites", expanding=True)))
)

_SHARES = select(shares)
_SHARE = select(shares).where(shares.c.lane == bindparam("lane_key"))
_CHANGE_SHARE = (
    update(shares).where(shares.c.lane == bindparam("lane_key")).values(amount=bindparam("new"), at=bindparam("now"))
)
_SOME = (
    select(runs.c.id)
    .where(WAITING, runs.c.wanted_site.in_(bindparam("sites", expanding=True)))
    .limit(bindparam("limit"))
)


def tracks(connection: Connection, site: str) -> list[str]:
    return list(connection.execute(_TRACKS, {"site": site}).scalars())


def heads(connection: Connection, site: str, track: str, limit: int) -> Sequence[AnyRow]:
    return connection.execute(_HEADS, {"site": site, "track": track, "limit": limit}).all()


def in_use(connection: Connection) -> dict[str, float]:
    """Slots that each lane holds now; a GPU counts as eight cpus."""
    return {lane: float(amount) for lane, amount in connection.execute(_IN_USE)}


def waiting(connection: Connection, sites: Sequence[str]) -> int:
    return int(connection.execute(_POSITION, {"sites": list(sites)}).scalar() or 0)


def waiting_at_most(connection: Connection, sites: Sequence[str], most: int) -> int:
    """As `waiting`, without counting further than that."""
    return len(connection.execute(_SOME, {"sites": list(sites), "limit": most}).all())


def next_up(connection: Connection, *, blocked: bool, limit: int) -> Sequence[AnyRow]:
    """Runs that wait for a slot, or for other runs; the first ones first."""
    kept = runs.c.blocked > 0 if blocked else runs.c.blocked == 0
    query = select(runs).where(runs.c.state == "queued", kept).order_by(runs.c.priority.desc(), runs.c.id).limit(limit)
    return connection.execute(query).all()


def past_use(connection: Connection, now: float, half_life: float) -> dict[str, float]:
    found = {}
    for row in connection.execute(_SHARES):
        found[row.lane] = row.amount * 0.5 ** (max(0.0, now - row.at) / half_life)
    return found


def add_use(connection: Connection, lane: str, amount: float, now: float, half_life: float) -> None:
    row = connection.execute(_SHARE, {"lane_key": lane}).first()
    if row is None:
        connection.execute(insert(shares).values(lane=lane, amount=amount, at=now))
        return
    kept = row.amount * 0.5 ** (max(0.0, now - row.at) / half_life)
    connection.execute(_CHANGE_SHARE, {"lane_key": lane, "new": kept + amount, "now": now})
