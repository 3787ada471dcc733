"""A group of 24 partitions, row by row: steady at 8 replicas unless a test changes it."""

from datetime import UTC, datetime, timedelta

from cost_model.physics.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.units import MessagesPerSecond, Partitions, Replicas

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
RATE = MessagesPerSecond(1000.0)
PROFILE = GroupProfile(cluster="c", group="g", partitions=Partitions(24), capacity=None, max_replicas=Replicas(24))


def row(place: int, *, members: int = 8, rate: float = 6000.0, lag_seconds: float = 2.5) -> GroupInterval:
    """The row of 15 s that ends `place` rows after noon."""
    return GroupInterval(
        cluster="c",
        group="g",
        topics="t",
        interval_end_at=NOON + timedelta(seconds=15 * place),
        interval_seconds=15,
        produce_messages_per_second=rate,
        consume_messages_per_second=rate,
        lag_messages=lag_seconds * rate,
        lag_seconds=lag_seconds,
        partitions=24,
        sampled_partitions=24,
        members=members,
    )
