"""The table of decisions: one row for each published one, the newest of each group marked.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the table, and the indexes that keep a page of groups and one group's history quick at any length."""
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("group", sa.Text, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("issued_at", sa.DateTime, nullable=False),
        sa.Column("valid_until", sa.DateTime, nullable=True),
        sa.Column("newest", sa.Boolean, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("decisions_by_time", "decisions", ["cluster", "group", "issued_at"])
    op.create_index("decisions_by_kind", "decisions", ["cluster", "group", "kind", "issued_at"])
    # The database ensures one newest decision for each group. SQLite uses such an index only for a query with the same
    # condition, and SQLAlchemy writes `newest = 1` for a true value.
    op.create_index(
        "decisions_newest",
        "decisions",
        ["cluster", "group"],
        unique=True,
        sqlite_where=sa.text("newest = 1"),
        postgresql_where=sa.text("newest"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("decisions")
