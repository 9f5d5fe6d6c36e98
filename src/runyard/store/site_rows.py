"""Rows of sites, their agents, and tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from runyard.model.nodes import EVERYBODY, Limits, NodeChoice
from runyard.model.resources import Capacity
from runyard.store.rows import AnyRow
from runyard.store.tables import agents, sites, tokens
from runyard.store.writer import MEMO

_SITE = select(sites).where(sites.c.name == bindparam("name"))
_AGENT = select(agents).where(agents.c.site == bindparam("site"), agents.c.name == bindparam("name"))
_ALL_SITES = select(sites).order_by(sites.c.name)
_NODES = select(agents.c.site, agents.c.node, agents.c.total, agents.c.labels, agents.c.limits).order_by(
    agents.c.site, agents.c.name
)
_SEEN = (
    update(agents)
    .where(agents.c.site == bindparam("site_key"), agents.c.name == bindparam("name_key"))
    .values(seen_at=bindparam("new_seen_at"), free=bindparam("new_free"), disk=bindparam("new_disk"))
    .values(unreachable=0, away=None)
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """What an agent reports about its node, and which users' runs it takes."""

    name: str
    total: Capacity
    labels: tuple[str, ...] = ()
    limits: Limits = EVERYBODY

    def may_run(self, choice: NodeChoice) -> bool:
        """At a site with a scheduler, the scheduler applies the choice."""
        return self.total.elastic or choice.allows(self.name, self.labels)


def node_of(agent: AnyRow) -> Node:
    return Node(
        name=agent.node,
        total=Capacity.from_json(json.loads(agent.total)),
        labels=tuple(json.loads(agent.labels)),
        limits=Limits.from_json(json.loads(agent.limits)),
    )


@dataclass(frozen=True, slots=True)
class Landscape:
    sites: dict[str, AnyRow]
    nodes: dict[str, list[Node]]  # of each site that an agent has served


def _forget_landscape(connection: Connection) -> None:
    if MEMO in connection.info:
        connection.info[MEMO] = None


def all_sites(connection: Connection) -> list[AnyRow]:
    return list(connection.execute(_ALL_SITES).all())


def landscape(connection: Connection) -> Landscape:
    """All sites with their agents' capacities. Submits that share a commit read it once."""
    known = connection.info.get(MEMO)
    if isinstance(known, Landscape):
        return known
    found = Landscape(sites={row.name: row for row in all_sites(connection)}, nodes={})
    for row in connection.execute(_NODES):
        found.nodes.setdefault(row.site, []).append(node_of(row))
    if connection.info.get(MEMO, ...) is None:
        connection.info[MEMO] = found
    return found


def site(connection: Connection, name: str) -> AnyRow | None:
    return connection.execute(_SITE, {"name": name}).first()


def insert_site(connection: Connection, **values: Any) -> None:
    _forget_landscape(connection)
    connection.execute(insert(sites).values(**values))


def change_site(connection: Connection, name: str, **values: Any) -> None:
    _forget_landscape(connection)
    connection.execute(update(sites).where(sites.c.name == name).values(**values))


def remove_site(connection: Connection, name: str) -> None:
    _forget_landscape(connection)
    connection.execute(delete(agents).where(agents.c.site == name))
    connection.execute(delete(sites).where(sites.c.name == name))


def all_agents(connection: Connection, site_name: str | None = None) -> list[AnyRow]:
    query = select(agents).order_by(agents.c.site, agents.c.name)
    return list(connection.execute(query if site_name is None else query.where(agents.c.site == site_name)).all())


def agent(connection: Connection, site_name: str, name: str) -> AnyRow | None:
    return connection.execute(_AGENT, {"site": site_name, "name": name}).first()


def insert_agent(connection: Connection, **values: Any) -> None:
    _forget_landscape(connection)
    connection.execute(insert(agents).values(**values))


def change_agent(connection: Connection, site_name: str, name: str, **values: Any) -> None:
    _forget_landscape(connection)
    connection.execute(update(agents).where(agents.c.site == site_name, agents.c.name == name).values(**values))


def remove_agent(connection: Connection, site_name: str, name: str) -> None:
    _forget_landscape(connection)
    connection.execute(delete(agents).where(agents.c.site == site_name, agents.c.name == name))


def agent_seen(connection: Connection, site_name: str, name: str, now: float, free: str, disk: str | None) -> None:
    given = {"site_key": site_name, "name_key": name, "new_seen_at": now, "new_free": free, "new_disk": disk}
    connection.execute(_SEEN, given)


def insert_token(connection: Connection, **values: Any) -> None:
    connection.execute(insert(tokens).values(**values))


def all_tokens(connection: Connection) -> list[AnyRow]:
    return list(connection.execute(select(tokens).where(tokens.c.revoked_at.is_(None)).order_by(tokens.c.id)).all())


def token_by_digest(connection: Connection, digest: str) -> AnyRow | None:
    query = select(tokens).where(tokens.c.digest == digest, tokens.c.revoked_at.is_(None))
    return connection.execute(query).first()


def was_revoked(connection: Connection, digest: str) -> bool:
    query = select(tokens.c.id).where(tokens.c.digest == digest, tokens.c.revoked_at.is_not(None))
    return connection.execute(query).first() is not None


def revoke_token(connection: Connection, token_id: int, now: float) -> bool:
    query = update(tokens).where(tokens.c.id == token_id, tokens.c.revoked_at.is_(None)).values(revoked_at=now)
    return connection.execute(query).rowcount > 0
