"""The table of accounts: of each group and quarter of an hour, what following has cost.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table, and the index by which old rows of all groups are found."""
    op.create_table(
        "accounts",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("group", sa.Text, primary_key=True),
        sa.Column("began_at", sa.DateTime, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("accounts_by_age", "accounts", ["began_at"])


def downgrade() -> None:
    """Drop the table, and its index with it."""
    op.drop_table("accounts")
