"""What runs saved comes to the yard, and goes along where they go on."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

RUN_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("run_id", RUN_ID, sa.ForeignKey("runs.id", name="fk_checkpoints_run_id"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("tree", sa.Text()),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_checkpoints"),
        sqlite_with_rowid=False,
    )
    op.add_column("runs", sa.Column("afresh", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("attempts", sa.Column("asked_checkpoint", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("attempts", sa.Column("brought_checkpoint", sa.Integer(), nullable=False, server_default="0"))
