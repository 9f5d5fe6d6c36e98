"""Runs choose among nodes; agents tell of their labels, their disks and whose runs they take."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NO_LIMITS = '{"projects": [], "users": []}'
WAITING = sa.text("state = 'queued' AND blocked = 0")


def upgrade() -> None:
    op.add_column("runs", sa.Column("track", sa.Text(), nullable=False, server_default=""))
    op.execute("UPDATE runs SET track = lane")  # the claim itself still looks whether a run fits its node
    op.drop_index("ix_runs_queue", "runs")
    op.create_index(
        "ix_runs_queue",
        "runs",
        ["wanted_site", "track", sa.literal_column("priority DESC"), "id"],
        unique=False,
        sqlite_where=WAITING,
        postgresql_where=WAITING,
    )
    op.add_column("agents", sa.Column("since", sa.Double(), nullable=False, server_default="0"))
    op.execute("UPDATE agents SET since = seen_at")
    op.add_column("agents", sa.Column("labels", sa.Text(), nullable=False, server_default="[]"))
    op.add_column("agents", sa.Column("limits", sa.Text(), nullable=False, server_default=NO_LIMITS))
    op.add_column("agents", sa.Column("disk", sa.Text()))
    op.add_column("agents", sa.Column("away", sa.Text()))
    op.add_column("sites", sa.Column("drained_at", sa.Double()))
    op.add_column("tokens", sa.Column("limits", sa.Text(), nullable=False, server_default=NO_LIMITS))
