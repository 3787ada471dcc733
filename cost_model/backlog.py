"""Backlog as a fluid: how it grows and drains, and how many messages wait longer than the promise because of it."""

from math import log
from statistics import NormalDist

from cost_model.fluid import share_late
from forecasting.units import Messages, MessagesPerSecond, Seconds

# Above this load a backlog takes more than 1,000 times its pause to drain: the horizon ends first.
HIGHEST_LOAD = 0.999
# Spare throughput is taken as at least this share of capacity, so that a group at its limit gets a large, finite price.
LEAST_SPARE_FRACTION = 0.01

NOTHING = Messages(0.0)

_NORMAL = NormalDist()


def backlog_from_visible_lag(lag: Messages, *, consume: MessagesPerSecond, commit_interval: Seconds) -> Messages:
    """What waits to be processed: visible lag without the messages that are done but not yet committed.

    Those are half a commit interval's worth on average.

    >>> backlog_from_visible_lag(Messages(3_000), consume=MessagesPerSecond(1_000), commit_interval=Seconds(5))
    500.0
    """
    return Messages(max(0.0, lag - consume * commit_interval / 2.0))


def next_backlog(
    backlog: Messages,
    *,
    produce: MessagesPerSecond,
    capacity: MessagesPerSecond,
    step: Seconds,
    unprocessed: Messages = NOTHING,
) -> Messages:
    """Backlog one step later; `unprocessed` is what a rebalance pause kept the group from consuming.

    >>> next_backlog(Messages(0), produce=MessagesPerSecond(900), capacity=MessagesPerSecond(600), step=Seconds(60))
    18000.0
    """
    return Messages(max(0.0, backlog + (produce - capacity) * step + unprocessed))


def late_share(wait_before: Seconds, wait_after: Seconds, *, max_lag: Seconds) -> float:
    """Share of a step's messages that wait longer than `max_lag`, their wait going evenly from one value to the other.

    >>> late_share(Seconds(0), Seconds(40), max_lag=Seconds(10))
    0.75
    """
    return share_late(wait_before, wait_after, max_lag)


def late_after_pause(
    *, produce: MessagesPerSecond, capacity: MessagesPerSecond, pause: Seconds, max_lag: Seconds
) -> Messages:
    """Messages that one stop of the whole group makes late, those that queue behind its backlog included.

    Formula: produce * (pause - max_lag) / (1 - load), exact for a fluid.

    >>> late_after_pause(
    ...     produce=MessagesPerSecond(1000), capacity=MessagesPerSecond(1400), pause=Seconds(3), max_lag=Seconds(1)
    ... )
    7000.0
    """
    load = min(produce / capacity, HIGHEST_LOAD) if capacity > 0.0 else HIGHEST_LOAD
    return Messages(produce * max(0.0, pause - max_lag) / (1.0 - load))


def late_while_draining(
    *, backlog: Messages, produce: MessagesPerSecond, capacity: MessagesPerSecond, max_lag: Seconds
) -> Messages:
    """Messages that arrive and are late until a backlog has drained to what is processed within `max_lag`.

    >>> late_while_draining(
    ...     backlog=Messages(7_000), produce=MessagesPerSecond(9), capacity=MessagesPerSecond(10), max_lag=Seconds(500)
    ... )
    18000.0
    """
    return Messages(produce * max(0.0, backlog - max_lag * capacity) / spare(produce=produce, capacity=capacity))


def spare(*, produce: MessagesPerSecond, capacity: MessagesPerSecond) -> MessagesPerSecond:
    """Throughput left for working off backlog, at least a hundredth of capacity.

    >>> spare(produce=MessagesPerSecond(1000), capacity=MessagesPerSecond(1000))
    10.0
    """
    return MessagesPerSecond(max(capacity - produce, LEAST_SPARE_FRACTION * capacity))


def expected_overrun(*, mean: Seconds, spread: float, limit: Seconds) -> Seconds:
    """How far a pause outlasts `limit` on average, the pause being log-normal around its mean.

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
