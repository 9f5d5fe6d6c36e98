"""Checkpoints, and blobs to delete with them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, Text

from runyard.store.tables.base import Id, metadata

checkpoints = Table(  # what runs saved, as the yard has it
    "checkpoints",
    metadata,
    Column("run_id", Id, ForeignKey("runs.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("tree", Text),  # NULL: it is only at the place of that agent
    Column("size", BigInteger, nullable=False),
    Column("files", Integer, nullable=False),
    Column("site", Text, nullable=False),
    Column("agent", Text, nullable=False),
    PrimaryKeyConstraint("run_id", "number", name="pk_checkpoints"),
    sqlite_with_rowid=False,
)

condemned = Table(  # blobs that belonged to checkpoints which went
    "condemned",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("since", Double, nullable=False),  # in this state; of one that is condemned, since it was last looked at
    sqlite_with_rowid=False,
)
Index("ix_condemned_state", condemned.c.state, condemned.c.since)
