"""Runs, their dependencies, attempts and events."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, Text, text

from runyard.store.tables.base import Id, metadata

runs = Table(
    "runs",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("detail", Text),
    Column("exit_code", Integer),
    Column("priority", Integer, nullable=False),
    Column("wanted_site", Text, nullable=False),  # '' means any
    Column("lane", Text, nullable=False),  # owner/project: what fair share is fair between
    Column("track", Text, nullable=False),  # the lane, and what only some nodes have: see yard.needs
    Column("blocked", Integer, nullable=False),  # gates that are shut for it
    Column("cpus", Integer, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("resources", Text, nullable=False),
    Column("spec", Text, nullable=False),
    Column("attempt", Integer, nullable=False),  # number of the newest attempt, 0 before the first
    Column("failures", Integer, nullable=False),  # attempts that the retry rule has used up
    Column("site", Text),  # where it runs or ran
    Column("node", Text),
    Column("granted", Text),
    Column("record", Text),  # exit record of the newest attempt
    Column("created_at", Double, nullable=False),
    Column("queued_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("cancel_by", Text),
    Column("cancel_at", Double),
    Column("stop_detail", Text),  # why a sweep wants it to end early; NULL: it does not
    Column("idempotency_key", Text),
    Column("idempotency_digest", Text),
    Column("recipe", Text),  # that made it
    Column("afresh", Integer, nullable=False, server_default="0"),  # what attempts up to this one saved does not count
)
WAITING = text("state = 'queued' AND blocked = 0")
ACTIVE = text("state IN ('starting', 'running')")
Index(
    "ix_runs_queue", runs.c.wanted_site, runs.c.track, runs.c.priority.desc(), runs.c.id,
    sqlite_where=WAITING, postgresql_where=WAITING,
)  # fmt: skip
Index("ix_runs_active", runs.c.lane, sqlite_where=ACTIVE, postgresql_where=ACTIVE)
Index("ix_runs_state", runs.c.state, runs.c.id)
Index("ix_runs_project", runs.c.project, runs.c.id)
Index("ix_runs_owner", runs.c.owner, runs.c.id)
Index(
    "ix_runs_idempotency", runs.c.owner, runs.c.idempotency_key, unique=True,
    sqlite_where=text("idempotency_key IS NOT NULL"), postgresql_where=text("idempotency_key IS NOT NULL"),
)  # fmt: skip
Index(
    "ix_runs_recipe", runs.c.recipe, runs.c.id,
    sqlite_where=text("recipe IS NOT NULL"), postgresql_where=text("recipe IS NOT NULL"),
)  # fmt: skip

run_tags = Table(
    "run_tags",
    metadata,
    Column("tag", Text, nullable=False),
    Column("run_id", Id, ForeignKey("runs.id"), nullable=False),
    PrimaryKeyConstraint("tag", "run_id", name="pk_run_tags"),
    sqlite_with_rowid=False,
)
Index("ix_run_tags_run", run_tags.c.run_id)

parents = Table(  # what a gate waits for
    "parents",
    metadata,
    Column("parent_id", Id, ForeignKey("runs.id"), nullable=False),
    Column("gate_id", Id, nullable=False),
    Column("kind", Text, nullable=False),
    PrimaryKeyConstraint("parent_id", "gate_id", name="pk_parents"),
    sqlite_with_rowid=False,
)
Index("ix_parents_gate", parents.c.gate_id)

children = Table(  # who is behind a gate
    "children",
    metadata,
    Column("gate_id", Id, nullable=False),
    Column("child_id", Id, ForeignKey("runs.id"), nullable=False),
    Column("shut", Integer, nullable=False),  # 1: it waits there
    PrimaryKeyConstraint("gate_id", "child_id", name="pk_children"),
    sqlite_with_rowid=False,
)
Index("ix_children_child", children.c.child_id)

batches = Table(
    "batches",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),  # unique for ever, in any scheduler
    Column("site", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("resources", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("run_id", Id, ForeignKey("runs.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("outcome", Text),  # the run state that its ending meant
    Column("reason", Text),
    Column("detail", Text),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("site", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("batch_id", Id, nullable=False),
    Column("position", Integer, nullable=False),
    Column("native_id", Text),
    Column("node", Text),
    Column("granted", Text),
    Column("record", Text),
    Column("claimed_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("asked", Integer, nullable=False, server_default="0"),  # number of requests for its current outputs
    Column("brought", Integer, nullable=False, server_default="0"),  # the newest of these requests that was answered
    Column("asked_checkpoint", Integer, nullable=False, server_default="0"),  # as `asked`, for what it saved
    Column("brought_checkpoint", Integer, nullable=False, server_default="0"),
    Column("permit", Double),  # seconds for which it may live after its agent was last heard of; NULL: for ever
    PrimaryKeyConstraint("run_id", "number", name="pk_attempts"),
    sqlite_with_rowid=False,
)
ALIVE = text("state <> 'ended'")
Index("ix_attempts_alive", attempts.c.site, attempts.c.agent, sqlite_where=ALIVE, postgresql_where=ALIVE)

events = Table(
    "events",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("run_id", Id, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("message", Text, nullable=False),
)
Index("ix_events_run", events.c.run_id, events.c.id)

outputs = Table(
    "outputs",
    metadata,
    Column("run_id", Id, ForeignKey("runs.id"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("path", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("mode", Integer, nullable=False),
    PrimaryKeyConstraint("run_id", "attempt", "path", name="pk_outputs"),
    sqlite_with_rowid=False,
)
