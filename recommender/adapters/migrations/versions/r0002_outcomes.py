"""The table of graded moves: the expected and the measured effects of each.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table; its key is also the index by which a group's last moves are found."""
    op.create_table(
        "outcomes",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("group", sa.Text, primary_key=True),
        sa.Column("graded_at", sa.DateTime, primary_key=True),
        sa.Column("recommendation_id", sa.String(128), nullable=True),
        sa.Column("document", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("outcomes")
