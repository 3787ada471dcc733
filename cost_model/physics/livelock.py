"""Work that is interrupted before it is done: how much slower it gets, and when scaling can only make it worse."""

from dataclasses import dataclass

from cost_model.physics.profile import GroupProfile, while_behind
from cost_model.physics.rounds import settle_seconds
from forecasting.units import Seconds

# Work that starts again at random interruptions takes (e^x - 1) / x times as long, where x is its length over the time
# between them: 1.11 times at five times its length, 1.7 times at its own.
INTERVAL_PER_PROCESSING_P99 = 5.0
# A batch over 80 % of max.poll.interval.ms needs only one slow call until its member is evicted.
POLL_INTERVAL_FRACTION = 0.8


def least_move_interval_seconds(profile: GroupProfile) -> Seconds:
    """The least time between two moves: time for the group to settle, and for work to finish, five times its p99.

    >>> from forecasting.units import Partitions
    >>> profile = GroupProfile(cluster="c", group="g", partitions=Partitions(10), capacity=None, protocol="cooperative")
    >>> round(least_move_interval_seconds(profile), 1)                  # 2 heartbeats and 8 batches; work takes 1 s
    6.8
    """
    return Seconds(max(INTERVAL_PER_PROCESSING_P99 * profile.processing_p99_seconds, settle_seconds(profile)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowBatches:
    """A finding: batches so long that members are evicted in the middle of them, at every number of replicas."""

    batch_seconds: Seconds
    max_poll_interval_seconds: Seconds
    max_poll_records: int

    @property
    def sentence(self) -> str:
        """The problem, and the setting to change."""
        return (
            f"a batch of up to {self.max_poll_records} records takes {self.batch_seconds:,.0f} s, over "
            f"{POLL_INTERVAL_FRACTION:.0%} of max.poll.interval.ms ({self.max_poll_interval_seconds:,.0f} s): members "
            "are evicted in mid-batch and their work starts again; lower max.poll.records or raise that limit"
        )


def slow_batches(profile: GroupProfile) -> SlowBatches | None:
    """The finding that forbids scaling, or None: the batches of a group that is behind last too long.

    A batch counts as long as the slowest message or as `max_poll_records` at the known capacity, whichever is more.

    >>> from cost_model.physics.profile import Capacity
    >>> from forecasting.units import MessagesPerSecond, Partitions
    >>> rate = MessagesPerSecond(1.0 / 60.0)                                  # a minute for each message
    >>> known = Capacity(p20=rate, p50=rate, p90=rate, source="configured")
    >>> profile = GroupProfile(cluster="c", group="g", partitions=Partitions(10), capacity=known)
    >>> slow_batches(profile).batch_seconds
    30000.0
    """
    batch = while_behind(profile).batch_p99_seconds
    if batch <= POLL_INTERVAL_FRACTION * profile.max_poll_interval_seconds:
        return None
    return SlowBatches(
        batch_seconds=batch,
        max_poll_interval_seconds=profile.max_poll_interval_seconds,
        max_poll_records=profile.max_poll_records,
    )
