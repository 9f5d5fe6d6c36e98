"""Sweeps: their trials, which runs these are, and what was decided."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
HUNGRY = sa.text("hungry = 1")
UNMADE = sa.text("run_id IS NULL")


def upgrade() -> None:
    op.add_column("runs", sa.Column("stop_detail", sa.Text()))
    op.create_table(
        "sweeps",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("planned", sa.Integer(), nullable=False),
        sa.Column("made", sa.Integer(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.Column("decided", sa.Integer(), nullable=False),
        sa.Column("hungry", sa.Integer(), nullable=False),
        sa.Column("detail", sa.Text()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("cancelled_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweeps")),
    )
    op.create_index("ix_sweeps_identity", "sweeps", ["owner", "project", "identity", "id"], unique=False)
    op.create_index("ix_sweeps_hungry", "sweeps", ["id"], unique=False, sqlite_where=HUNGRY, postgresql_where=HUNGRY)
    op.create_table(
        "trials",
        sa.Column("sweep_id", ID, sa.ForeignKey("sweeps.id", name="fk_trials_sweep_id"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("params", sa.Text(), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("low", sa.Double()),
        sa.Column("high", sa.Double()),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("stopped", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("sweep_id", "number", name="pk_trials"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_trials_value", "trials", ["sweep_id", "value"], unique=False)
    op.create_table(
        "sweep_runs",
        sa.Column("sweep_id", ID, sa.ForeignKey("sweeps.id", name="fk_sweep_runs_sweep_id"), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("rep", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("run_id", ID),
        sa.PrimaryKeyConstraint("sweep_id", "position", name="pk_sweep_runs"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sweep_runs_trial", "sweep_runs", ["sweep_id", "trial", "rep"], unique=True)
    op.create_index("ix_sweep_runs_run", "sweep_runs", ["run_id"], unique=False)
    op.create_index(
        "ix_sweep_runs_unmade",
        "sweep_runs",
        ["sweep_id", "position"],
        unique=False,
        sqlite_where=UNMADE,
        postgresql_where=UNMADE,
    )
    op.create_table(
        "decisions",
        sa.Column("sweep_id", ID, sa.ForeignKey("sweeps.id", name="fk_decisions_sweep_id"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("run_id", ID),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sweep_id", "number", name="pk_decisions"),
        sqlite_with_rowid=False,
    )
