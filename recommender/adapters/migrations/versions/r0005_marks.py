"""What a picture of a day shows of each decision, beside its document: reason and counts, in the index by time.

A day of decisions is 46 MB a group; these columns of it are read from the index alone. Rows that are older than the
columns have null there, and are shown by their documents only.

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns, and put them into the index by time."""
    op.add_column("decisions", sa.Column("reason", sa.String(64), nullable=True))
    op.add_column("decisions", sa.Column("current_replicas", sa.Integer, nullable=True))
    op.add_column("decisions", sa.Column("desired_replicas", sa.Integer, nullable=True))
    op.drop_index("decisions_by_time", "decisions")
    op.create_index(
        "decisions_by_time",
        "decisions",
        ["cluster", "group", "issued_at", "reason", "current_replicas", "desired_replicas"],
    )


def downgrade() -> None:
    """Take them away again."""
    op.drop_index("decisions_by_time", "decisions")
    op.create_index("decisions_by_time", "decisions", ["cluster", "group", "issued_at"])
    for name in ("desired_replicas", "current_replicas", "reason"):
        op.drop_column("decisions", name)
