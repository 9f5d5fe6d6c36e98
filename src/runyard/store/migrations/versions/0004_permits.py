"""Attempts may have a permit, and may be tried again elsewhere when it must have run out."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("permit", sa.Double()))
