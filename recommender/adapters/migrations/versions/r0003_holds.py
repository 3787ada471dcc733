"""The table of holds: the scope of each, its reason and its end.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table; an empty name in its key stands for any."""
    op.create_table(
        "holds",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("namespace", sa.Text, primary_key=True),
        sa.Column("group", sa.Text, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("placed_at", sa.DateTime, nullable=False),
        sa.Column("until", sa.DateTime, nullable=True),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("holds")
