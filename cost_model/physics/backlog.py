"""Backlog as a fluid: its growth and drain, and the messages that wait longer than the promise because of it."""

from math import log
from statistics import NormalDist

from forecasting.units import Messages, MessagesPerSecond, Seconds

# Above this load a backlog takes more than 1,000 times its pause to drain: the horizon ends first.
HIGHEST_LOAD = 0.999
# Spare throughput is taken as at least this share of capacity, so that a group at its limit gets a large, finite price.
LEAST_SPARE_FRACTION = 0.01

_NORMAL = NormalDist()


def backlog_from_visible_lag(lag: Messages, *, consume: MessagesPerSecond, commit_interval: Seconds) -> Messages:
    """Messages that wait to be processed: visible lag without those that are processed but not yet committed.

    The processed and uncommitted messages are half a commit interval's worth on average.

    >>> backlog_from_visible_lag(Messages(3_000), consume=MessagesPerSecond(1_000), commit_interval=Seconds(5))
    500.0
    """
    return Messages(max(0.0, lag - consume * commit_interval / 2.0))


def spare(*, produce: MessagesPerSecond, capacity: MessagesPerSecond) -> MessagesPerSecond:
    """Throughput left for consuming backlog, at least a hundredth of capacity.

    >>> spare(produce=MessagesPerSecond(1000), capacity=MessagesPerSecond(1000))
    10.0
    """
    return MessagesPerSecond(max(capacity - produce, LEAST_SPARE_FRACTION * capacity))


def late_by_pause(
    stop: Seconds, *, produce: MessagesPerSecond, capacity: MessagesPerSecond, limit: Seconds
) -> Messages:
    """Messages that one stop of the whole group makes late: all that arrive until the backlog drops under the promise.

    >>> late_by_pause(Seconds(12), produce=MessagesPerSecond(500), capacity=MessagesPerSecond(1000), limit=Seconds(10))
    2000.0
    """
    return Messages(produce * max(0.0, stop - limit) * capacity / spare(produce=produce, capacity=capacity))


def expected_overrun(*, mean: Seconds, spread: float, limit: Seconds) -> Seconds:
    """The mean time by which a pause exceeds `limit`, the pause being log-normal around its mean.

    `spread` is the deviation of ln pause; 0 makes the pause certain. A mean pause of 8 s never passes a limit of 10 s,
    yet one in four such pauses does.

    >>> expected_overrun(mean=Seconds(8), spread=0.0, limit=Seconds(10))
    0.0
    >>> round(expected_overrun(mean=Seconds(8), spread=0.5, limit=Seconds(10)), 2)
    0.95
    """
    if spread <= 0.0 or mean <= 0.0 or limit <= 0.0:
        return Seconds(max(0.0, mean - max(limit, 0.0)))
    location = log(mean) - spread**2 / 2.0
    upper = (location + spread**2 - log(limit)) / spread
    # Formula: E[(pause - limit)+] = mean * cdf(d) - limit * cdf(d - spread), the Black-Scholes partial expectation.
    overrun = mean * _NORMAL.cdf(upper) - limit * _NORMAL.cdf(upper - spread)
    return Seconds(max(0.0, overrun))  # two equal terms may differ by rounding
