"""What runs report of themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

RUN_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "metrics",
        sa.Column("run_id", RUN_ID, sa.ForeignKey("runs.id", name="fk_metrics_run_id"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("first", sa.Double()),
        sa.Column("last", sa.Double()),
        sa.Column("minimum", sa.Double()),
        sa.Column("maximum", sa.Double()),
        sa.Column("last_step", sa.Double()),
        sa.Column("last_at", sa.Double(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("reached", sa.Double()),
        sa.Column("known", sa.Double()),
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_metrics"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "metric_positions",
        sa.Column("run_id", RUN_ID, sa.ForeignKey("runs.id", name="fk_metric_positions_run_id"), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("is_open", sa.Integer(), nullable=False),
        sa.Column("dropped", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "attempt", name="pk_metric_positions"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_metric_positions_open", "metric_positions", ["run_id", "attempt"],
        sqlite_where=sa.text("is_open = 1"), postgresql_where=sa.text("is_open = 1"),
    )  # fmt: skip
    op.create_table(
        "summaries",
        sa.Column("run_id", RUN_ID, sa.ForeignKey("runs.id", name="fk_summaries_run_id"), primary_key=True,
                  autoincrement=False),
        sa.Column("body", sa.Text(), nullable=False),
    )  # fmt: skip
