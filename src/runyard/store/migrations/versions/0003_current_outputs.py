"""Outputs may be asked for while their run goes on."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("asked", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("attempts", sa.Column("brought", sa.Integer(), nullable=False, server_default="0"))
