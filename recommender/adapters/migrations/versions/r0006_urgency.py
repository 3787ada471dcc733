"""The place of each group in a list that begins with the worst, and what the totals of a fleet are sums of.

The newest decisions are in an index in the order of that list, which has the summands too: no document is read for
either. A decision from before these columns keeps the last place, a refusal the first, until the next one is made.

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_PLACE = ["rank", "unit", "minus_weight", "cluster", "group"]
_SUMMANDS = ["valid_until", "current_replicas", "desired_replicas", "currency", "saving_per_hour", "paid_per_hour"]


def upgrade() -> None:
    """Add the columns, and the index of the newest decisions."""
    op.add_column("decisions", sa.Column("rank", sa.Integer, nullable=False, server_default="3"))
    op.add_column("decisions", sa.Column("unit", sa.Text, nullable=False, server_default=""))
    op.add_column("decisions", sa.Column("minus_weight", sa.Float(53), nullable=False, server_default="0"))
    op.add_column("decisions", sa.Column("currency", sa.Text, nullable=True))
    op.add_column("decisions", sa.Column("saving_per_hour", sa.Float(53), nullable=True))
    op.add_column("decisions", sa.Column("paid_per_hour", sa.Float(53), nullable=True))
    decisions = sa.table("decisions", sa.column("kind"), sa.column("newest", sa.Boolean()), sa.column("rank"))
    refusals = decisions.c.newest & (decisions.c.kind == "Refusal")
    op.execute(sa.update(decisions).where(refusals).values(rank=0))
    op.create_index(
        "decisions_worst_first",
        "decisions",
        # `newest` too: SQLite reads an index alone only if it has all columns, those of its own condition too.
        [*_PLACE, *_SUMMANDS, "newest"],
        sqlite_where=sa.text("newest = 1"),
        postgresql_where=sa.text("newest"),
    )


def downgrade() -> None:
    """Take them away again."""
    op.drop_index("decisions_worst_first", "decisions")
    for name in ("paid_per_hour", "saving_per_hour", "currency", "minus_weight", "unit", "rank"):
        op.drop_column("decisions", name)
