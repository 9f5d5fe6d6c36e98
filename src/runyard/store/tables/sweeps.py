"""Sweeps and their decisions."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, Text, text

from runyard.store.tables.base import Id, metadata

sweeps = Table(
    "sweeps",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("identity", Text, nullable=False),  # identifies it when it is submitted again
    Column("document", Text, nullable=False),
    Column("planned", Integer, nullable=False),  # trials that it will have when all are made
    Column("made", Integer, nullable=False),  # trials
    Column("places", Integer, nullable=False),  # runs, with those that are not made yet
    Column("decided", Integer, nullable=False),  # the number of the newest decision
    Column("hungry", Integer, nullable=False),  # 1: trials or runs of it are still to be made
    Column("detail", Text),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),  # when it was last submitted
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
