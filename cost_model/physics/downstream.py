"""Throughput that replicas do not raise: something behind the group is the limit, and more replicas only cost."""

from dataclasses import dataclass

import numpy as np

from cost_model.physics.capacity import BoolArray
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import carried_by_count
from forecasting.units import FloatArray, IntArray, MessagesPerSecond

# A scale-out that brought less than a tenth of the expected rise was in vain; Flink's autoscaler draws the
# same line.
LEAST_USEFUL_GAIN = 0.1
# Windows show throughput to about 8 %: a rise of less than a tenth cannot be distinguished from none.
LEAST_EXPECTED_RISE = 1.1


def scale_out_gain(before: MessagesPerSecond, after: MessagesPerSecond, *, expected: MessagesPerSecond) -> float | None:
    """The share of the expected rise in throughput that a scale-out brought; None where less than 10 % was expected.

    >>> scale_out_gain(MessagesPerSecond(800.0), MessagesPerSecond(820.0), expected=MessagesPerSecond(1000.0))
    0.1
    """
    if expected < LEAST_EXPECTED_RISE * before:
        return None
    return (after - before) / (expected - before)


@dataclass(frozen=True, slots=True, kw_only=True)
class DownstreamLimit:
    """A finding: the group had a backlog at each of these counts, and consumed the same at all of them."""

    limit_messages_per_second: MessagesPerSecond
    replicas_seen: tuple[int, ...]
    gain_fraction: float

    @property
    def sentence(self) -> str:
        """The problem, and where to look."""
        seen = " and ".join(str(count) for count in self.replicas_seen)
        return (
            f"with a backlog, {seen} replicas all consumed about {self.limit_messages_per_second:,.0f} messages/s: the "
            f"last scale-out brought {self.gain_fraction:.0%} of what it should have; look behind the group, at the "
            "sink or the service that it calls"
        )


def downstream_limit(
    profile: GroupProfile, *, replicas: IntArray, rates: FloatArray, saturated: BoolArray
) -> DownstreamLimit | None:
    """The limit in the group's throughput, or None: its last scale-out helped, or none was seen.

    Compared are counts at which windows were saturated; a bigger one should carry as much as the useful replica counts
    and the weights of the partitions predict, so a step between counts of one useful count proves nothing, nor does a
    hot partition. Shapes: equal lengths, one value per window, of recent windows only: a limit may have moved since
    older ones. Rates are messages/s of the whole group.

    >>> from forecasting.units import Partitions
    >>> profile = GroupProfile(cluster="c", group="g", partitions=Partitions(40), capacity=None)
    >>> counts, full = np.array([8, 8, 10, 20]), np.ones(4, dtype=bool)
    >>> found = downstream_limit(profile, replicas=counts, rates=np.array([800.0, 800.0, 810.0, 805.0]), saturated=full)
    >>> found.replicas_seen, round(found.limit_messages_per_second)
    ((8, 10, 20), 805)
    """
    counts, seen = _saturated_points(replicas, rates, saturated)
    if counts.size < 2:
        return None
    carried = carried_by_count(profile, counts.tolist(), capacity=MessagesPerSecond(1.0))
    top = float(seen[-1])
    gains = [
        scale_out_gain(MessagesPerSecond(rate), MessagesPerSecond(top), expected=MessagesPerSecond(rate * rise))
        for rate, rise in zip(seen[:-1].tolist(), (carried[-1] / carried[:-1]).tolist(), strict=True)
    ]
    in_vain = [position for position, gain in enumerate(gains) if gain is not None and gain < LEAST_USEFUL_GAIN]
    if not in_vain:
        return None
    flat = [*in_vain, counts.size - 1]
    return DownstreamLimit(
        limit_messages_per_second=MessagesPerSecond(float(np.mean(seen[flat]))),
        replicas_seen=tuple(int(counts[position]) for position in flat),
        gain_fraction=max(0.0, *(gain for gain in (gains[position] for position in in_vain) if gain is not None)),
    )


def _saturated_points(replicas: IntArray, rates: FloatArray, saturated: BoolArray) -> tuple[IntArray, FloatArray]:
    """The counts, smallest first, that were seen at their limit, and the mean rate of each.

    >>> full = np.array([True, False, True])
    >>> counts, seen = _saturated_points(np.array([4, 2, 4]), np.array([390.0, 150.0, 410.0]), full)
    >>> counts.tolist(), seen.tolist()
    ([4], [400.0])
    """
    telling = np.isfinite(rates) & (rates > 0.0) & (replicas > 0) & saturated
    counts = np.unique(replicas[telling])
    means = [float(rates[telling & (replicas == count)].mean()) for count in counts]
    return counts, np.array(means, dtype=np.float64)
