"""What belonged to checkpoints that went is removed from the blob store."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "condemned",
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_condemned_state", "condemned", ["state", "since"])
