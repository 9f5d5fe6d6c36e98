"""What runs report."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, Text, text

from runyard.store.tables.base import Id, metadata

metrics = Table(  # one row for each name that a run has reported
    "metrics",
    metadata,
    Column("run_id", Id, ForeignKey("runs.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("count", BigInteger, nullable=False),  # values; of steps that a later attempt repeats, once
    Column("first", Double),  # NULL: not a number
    Column("last", Double),
    Column("minimum", Double),  # NULL: no value was a number
    Column("maximum", Double),
    Column("last_step", Double),  # NULL: reported without one
    Column("last_at", Double, nullable=False),  # by the run's clock
    Column("attempt", Integer, nullable=False),  # the newest that reported it
    Column("reached", Double),  # highest step of all attempts
    Column("known", Double),  # highest step of those before the newest
    PrimaryKeyConstraint("run_id", "name", name="pk_metrics"),
    sqlite_with_rowid=False,
)

metric_positions = Table(  # how much of what an attempt has reported is in `metrics`
    "metric_positions",
    metadata,
    Column("run_id", Id, ForeignKey("runs.id"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("position", BigInteger, nullable=False),  # bytes
    Column("is_open", Integer, nullable=False),  # 1: there may be more
    Column("dropped", BigInteger, nullable=False),  # values of more names than a run may have
    PrimaryKeyConstraint("run_id", "attempt", name="pk_metric_positions"),
    sqlite_with_rowid=False,
)
UNREAD = text("is_open = 1")
Index(
    "ix_metric_positions_open", metric_positions.c.run_id, metric_positions.c.attempt,
    sqlite_where=UNREAD, postgresql_where=UNREAD,
)  # fmt: skip

summaries = Table(  # what runs say of themselves in the end, as JSON
    "summaries",
    metadata,
    Column("run_id", Id, ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
)
