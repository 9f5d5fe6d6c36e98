"""The tables. Times are seconds since 1970 by the store's clock; JSON is kept as text that nobody queries into."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

# Names for every constraint, so that a migration can name what it changes on both databases.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)

Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite gives its fast row ids to INTEGER alone

counters = Table(  # numbers that are given out once and never again
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

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
    Column("blocked", Integer, nullable=False),  # runs it still waits for
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
    Column("idempotency_key", Text),
    Column("idempotency_digest", Text),
)
WAITING = text("state = 'queued' AND blocked = 0")
ACTIVE = text("state IN ('starting', 'running')")
Index(
    "ix_runs_queue", runs.c.wanted_site, runs.c.lane, runs.c.priority.desc(), runs.c.id,
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

run_tags = Table(
    "run_tags",
    metadata,
    Column("tag", Text, nullable=False),
    Column("run_id", Id, ForeignKey("runs.id"), nullable=False),
    PrimaryKeyConstraint("tag", "run_id", name="pk_run_tags"),
    sqlite_with_rowid=False,
)
Index("ix_run_tags_run", run_tags.c.run_id)

parents = Table(  # the child comes after the parent
    "parents",
    metadata,
    Column("parent_id", Id, ForeignKey("runs.id"), nullable=False),
    Column("child_id", Id, ForeignKey("runs.id"), nullable=False),
    PrimaryKeyConstraint("parent_id", "child_id", name="pk_parents"),
    sqlite_with_rowid=False,
)

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

sites = Table(
    "sites",
    metadata,
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("config", Text, nullable=False),
    Column("drained", Integer, nullable=False),
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
    PrimaryKeyConstraint("site", "name", name="pk_agents"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("site", Text),
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
