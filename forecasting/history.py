"""What was observed of one consumer group: single rows, and the minute series that forecasters read."""

from dataclasses import dataclass
from datetime import datetime

from forecasting.units import FloatArray

MINUTE_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInterval:
    """One row of the feature table: a group over one interval that ends at `interval_end_at`.

    The fields are the columns of `forecasting.columns.GROUP_INTERVALS`, in the same order and under the same names.
    None means unknown (no honest difference of offsets, no member count), never zero.
    """

    cluster: str
    group: str
    topics: str
    interval_end_at: datetime
    interval_seconds: int
    produce_messages_per_second: float | None
    consume_messages_per_second: float | None
    lag_messages: float | None
    lag_seconds: float | None
    partitions: int
    sampled_partitions: int
    members: int | None
    group_state: str = "STABLE"
    in_rebalance: bool = False
    partition_skew_ratio: float | None = None
    busiest_partition: str | None = None
    gap_count: int = 0
    no_commit_count: int = 0
    negative_race_count: int = 0
    offset_reset_count: int = 0
    in_rebalance_count: int = 0
    partition_appeared_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One group's past up to `end_at`: minute series for the forecasters, the newest base rows for the decision.

    Shapes: the series have one value per minute, equal lengths; value i covers the minute that ends at
    `end_at - (len - 1 - i) minutes`. Units are in the names. NaN marks a minute of which nothing is known; it never
    leaves these arrays. `recent` holds the base rows of the last 15 minutes, oldest first. Arrays are read-only.
    `peak_messages_per_second` is, per minute, the highest base-interval rate inside it: what a minute's mean hides.
    """

    cluster: str
    group: str
    end_at: datetime
    produce_messages_per_second: FloatArray
    peak_messages_per_second: FloatArray
    consume_messages_per_second: FloatArray
    lag_messages: FloatArray
    members: FloatArray
    in_rebalance: FloatArray  # share of the minute's base rows that lay inside a rebalance
    recent: tuple[GroupInterval, ...]

    @property
    def minutes(self) -> int:
        """How many minutes the series span, gaps included."""
        return len(self.produce_messages_per_second)
