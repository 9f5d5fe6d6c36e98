"""The yard's own state: sequence numbers, cursors on the event table, secrets."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, Table, Text

from runyard.store.tables.base import Id, metadata

counters = Table(  # numbers that are given out once and never again
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

cursors = Table(  # the position of each listener in the events
    "cursors",
    metadata,
    Column("name", Text, primary_key=True),
    Column("position", Id, nullable=False),  # the last event that it has
    Column("tries", Integer, nullable=False),  # of the next one, in vain
    Column("failing_since", Double),
    Column("next_try", Double, nullable=False),
    Column("trouble", Text),
)

keys = Table(  # secrets of the yard itself, the same for all its servers
    "keys",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)
