"""Sites, their agents, tokens, and past usage."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, PrimaryKeyConstraint, Table, Text

from runyard.store.tables.base import Id, metadata

sites = Table(
    "sites",
    metadata,
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("config", Text, nullable=False),
    Column("drained", Integer, nullable=False),
    Column("drained_at", Double),  # since when
    Column("explicit", Integer, nullable=False),  # 1: takes only runs that name this site
    Column("note", Text, nullable=False),  # why it is explicit, for people
    Column("created_at", Double, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("site", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("node", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("total", Text, nullable=False),
    Column("free", Text, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("unreachable", Integer, nullable=False),
    Column("lease", Double, nullable=False),
    Column("since", Double, nullable=False),  # when it said hello
    Column("labels", Text, nullable=False),  # of its node, as a list
    Column("limits", Text, nullable=False),  # whose runs it takes
    Column("disk", Text),  # the one that is nearest to being full, as it said last
    Column("away", Text),  # why it is unreachable, while it is
    PrimaryKeyConstraint("site", "name", name="pk_agents"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("site", Text),  # of an agent
    Column("recipes", Text, nullable=False),  # of a caller, as a list
    Column("limits", Text, nullable=False),  # of an agent: whose runs it may take
    Column("digest", Text, nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
    Column("revoked_at", Double),
)

shares = Table(  # what each lane has used, halved every day
    "shares",
    metadata,
    Column("lane", Text, primary_key=True),
    Column("amount", Double, nullable=False),
    Column("at", Double, nullable=False),
)
