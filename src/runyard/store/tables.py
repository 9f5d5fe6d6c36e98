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
    Column("asked", Integer, nullable=False, server_default="0"),  # how often somebody wanted its outputs of then
    Column("brought", Integer, nullable=False, server_default="0"),  # the newest of these wishes that was met
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

recipes = Table(
    "recipes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("config", Text, nullable=False),
    Column("is_default", Integer, nullable=False),  # 1: the one that is meant when none is named
    Column("changed_by", Text, nullable=False),
    Column("changed_at", Double, nullable=False),
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

requests = Table(  # of other programs, by messages; the outbox is made of those that are over and not answered
    "requests",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("queue", Text, nullable=False),  # the intake's name
    Column("identity", Text, nullable=False),  # by which a message is known when it comes again
    Column("digest", Text, nullable=False),  # of what it asks for
    Column("correlation_id", Text),
    Column("reply_to", Text),  # NULL: nobody waits
    Column("recipe", Text),
    Column("first_run", Id),  # its runs have consecutive numbers; NULL: refused, or waiting
    Column("run_count", Integer, nullable=False),
    Column("is_group", Integer, nullable=False),
    Column("error", Text),  # why it was refused
    Column("waiting", Text),  # what it asks for, as JSON, while files are brought that its runs need
    Column("received_at", Double, nullable=False),
    Column("due_at", Double),  # when its reply was first tried
    Column("replied_at", Double),
    Column("tries", Integer, nullable=False),  # of the reply, in vain
    Column("next_try", Double, nullable=False),
    Column("trouble", Text),  # why the last try was in vain
)
Index("ix_requests_identity", requests.c.queue, requests.c.identity, unique=True)
UNANSWERED = text("replied_at IS NULL")
Index("ix_requests_unanswered", requests.c.next_try, sqlite_where=UNANSWERED, postgresql_where=UNANSWERED)

cursors = Table(  # how far each listener has been told of events
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

sweeps = Table(
    "sweeps",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("identity", Text, nullable=False),  # by which it is known when it is handed in again
    Column("document", Text, nullable=False),
    Column("planned", Integer, nullable=False),  # trials that it will have when all are made
    Column("made", Integer, nullable=False),  # trials
    Column("places", Integer, nullable=False),  # runs, with those that are not made yet
    Column("decided", Integer, nullable=False),  # the number of the newest decision
    Column("hungry", Integer, nullable=False),  # 1: trials or runs of it are still to be made
    Column("detail", Text),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),  # when it was last handed in
    Column("cancelled_at", Double),
)
Index("ix_sweeps_identity", sweeps.c.owner, sweeps.c.project, sweeps.c.identity, sweeps.c.id)
HUNGRY = text("hungry = 1")
Index("ix_sweeps_hungry", sweeps.c.id, sqlite_where=HUNGRY, postgresql_where=HUNGRY)

trials = Table(  # configurations of sweeps
    "trials",
    metadata,
    Column("sweep_id", Id, ForeignKey("sweeps.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("params", Text, nullable=False),  # with those that all trials share
    Column("value", Double),  # the mean over repetitions that have succeeded
    Column("low", Double),
    Column("high", Double),
    Column("n", Integer, nullable=False),
    Column("stopped", Integer, nullable=False),  # the decision to stop it; 0: there is none
    PrimaryKeyConstraint("sweep_id", "number", name="pk_trials"),
    sqlite_with_rowid=False,
)
Index("ix_trials_value", trials.c.sweep_id, trials.c.value)

sweep_runs = Table(  # which run is which repetition of which trial
    "sweep_runs",
    metadata,
    Column("sweep_id", Id, ForeignKey("sweeps.id"), nullable=False),
    Column("position", Integer, nullable=False),  # counted from 1: the run's index
    Column("trial", Integer, nullable=False),
    Column("rep", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("run_id", Id),  # NULL: not made yet
    PrimaryKeyConstraint("sweep_id", "position", name="pk_sweep_runs"),
    sqlite_with_rowid=False,
)
Index("ix_sweep_runs_trial", sweep_runs.c.sweep_id, sweep_runs.c.trial, sweep_runs.c.rep, unique=True)
Index("ix_sweep_runs_run", sweep_runs.c.run_id)
UNMADE = text("run_id IS NULL")
Index(
    "ix_sweep_runs_unmade", sweep_runs.c.sweep_id, sweep_runs.c.position,
    sqlite_where=UNMADE, postgresql_where=UNMADE,
)  # fmt: skip

decisions = Table(  # of sweeps, each with what it was decided by
    "decisions",
    metadata,
    Column("sweep_id", Id, ForeignKey("sweeps.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("run_id", Id),
    Column("body", Text, nullable=False),
    PrimaryKeyConstraint("sweep_id", "number", name="pk_decisions"),
    sqlite_with_rowid=False,
)
