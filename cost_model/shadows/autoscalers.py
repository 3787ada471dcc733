"""The compiled loop that plays autoscalers as users run them beside a group: any count, every 15 s.

Of HPA and KEDA these are the rules of their own controllers, read every 15 s; without `behavior` a spike of the last
five minutes also drives growth. They see the lag of committed offsets: what waits, and what is consumed and not
committed yet. While a rebalance stops a group, nothing is consumed, so that all of its lag waits.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from cost_model.shadows.playing import (
    CLASSES,
    LEAST_CARRIED,
    Service,
    Shadows,
    follow,
    pass_messages,
    remember,
    requested,
    smallest_carrying,
)
from cost_model.shadows.tables import MoveTables
from forecasting.compiled import compiled
from forecasting.units import FloatArray, IntArray

# Kinds of autoscalers: one that keeps its count, room for a multiple of the produce rate, the same in useful counts,
# and a lag target with the rules of an HPA without `behavior` (KEDA's are these) and with it.
HELD, RATE, USEFUL, LEGACY, BEHAVIOR = 0, 1, 2, 3, 4
# Autoscalers look once in so many seconds, at the mean produce rate of the last looks.
PASS_SECONDS = 15.0
RATE_PASSES = 4
TOLERANCE = 0.1
STABILISATION_SECONDS = 300.0
# With `behavior` a desired count that is exactly 300 s old has expired.
BEHAVIOR_SECONDS = STABILISATION_SECONDS - 1.0
# An HPA grows to so many pods at once at least: in all without `behavior`, and by so many with it.
LEGACY_LEAST_LIMIT, BEHAVIOR_PODS = 4, 4


class Autoscalers(NamedTuple):
    """One value for each autoscaler (n,): its kind, and its figures, of which each kind reads its own.

    `margin_factor` is room over the produce rate; backlogs are to drain within `drain_seconds`. `lag_target` is
    messages per replica; `capped_partitions` is the partition count up to which KEDA counts the lag target, 0 for no
    cap. Needs are held for `hold_seconds` before a removal.
    """

    kind: IntArray
    margin_factor: FloatArray
    drain_seconds: FloatArray
    lag_target: FloatArray
    capped_partitions: IntArray
    hold_seconds: FloatArray


class Commits(NamedTuple):
    """Seconds between two commits of a consumer, and the mean age of the last commit when the lag is read."""

    interval_seconds: float
    age_seconds: float


@compiled
def capped_lag(lag: float, target: float, partitions: int) -> float:
    """The lag that KEDA reports, no more than the target for each partition; a lag below one more of them escapes."""
    whole = np.floor(lag)
    return float(partitions * target if whole // target > partitions else whole)


@compiled
def wanted_for(metric: float, target: float, replicas: int) -> int:
    """Replicas at which the metric's average would be the target; the present count within the tolerance of a tenth."""
    near = 1.0 - TOLERANCE <= metric / (target * replicas) <= 1.0 + TOLERANCE
    return replicas if near else ceil(metric / target)


@compiled
def requested_by_hpa(shadows: Shadows, scaler: int, kind: int, wanted: int, replicas: int, hold_seconds: float) -> int:
    """The count that an HPA requests for a desired count, before its bounds; the first pass holds the present count."""
    if shadows.held[scaler] == 0:
        remember(shadows, scaler, replicas, hold_seconds)
    highest = remember(shadows, scaler, wanted, hold_seconds)
    if kind == LEGACY:
        return int(min(highest, max(2 * replicas, LEGACY_LEAST_LIMIT)))
    stabilised = min(max(replicas, wanted), highest)
    return int(min(stabilised, max(replicas + BEHAVIOR_PODS, 2 * replicas)))


@compiled
def visible_lag(
    tables: MoveTables, shadows: Shadows, scaler: int, rate: float, service: Service, age_seconds: float
) -> float:
    """Messages produced and not committed: the backlog, and what was consumed since the last commits."""
    lag = shadows.backlog[scaler].sum()
    if shadows.pause_left_seconds[scaler] > 0.0:
        return float(lag)
    members = shadows.members[scaler]
    for place in range(CLASSES):
        consumed = tables.class_shares[members, place] * rate
        if shadows.backlog[scaler, place] > 0.0:
            consumed = max(tables.class_replicas[members, place] * service.capacity, LEAST_CARRIED)
        lag += consumed * age_seconds
    return float(lag)


@compiled
def desired_count(
    tables: MoveTables,
    autoscalers: Autoscalers,
    shadows: Shadows,
    scaler: int,
    rate: float,
    lag: float,
    service: Service,
    commit_interval_seconds: float,
) -> int:
    """The count, by its place, that the autoscaler requests at this produce rate and this visible lag."""
    kind, present = autoscalers.kind[scaler], requested(shadows, scaler)
    least, last = int(tables.counts[0]), tables.counts.size - 1
    replicas, hold = least + present, autoscalers.hold_seconds[scaler]
    if kind == HELD:
        return present
    if kind == USEFUL:
        waiting = max(0.0, lag - commit_interval_seconds * rate) / autoscalers.drain_seconds[scaler]
        need = smallest_carrying(tables, autoscalers.margin_factor[scaler] * rate + waiting, service)
        highest = remember(shadows, scaler, need, hold)
        return int(max(need, min(present, highest)))
    if kind == RATE:
        fair = ceil(autoscalers.margin_factor[scaler] * rate / service.capacity)
        wanted = min(max(fair, least), least + last)
        highest = remember(shadows, scaler, wanted, hold)
        if abs(wanted / replicas - 1.0) <= TOLERANCE:
            return present
        return int(max(wanted, min(replicas, highest))) - least
    target, capped = autoscalers.lag_target[scaler], autoscalers.capped_partitions[scaler]
    metric = lag if capped == 0 else capped_lag(lag, target, capped)
    wanted = wanted_for(metric, target, replicas)
    return int(min(max(requested_by_hpa(shadows, scaler, kind, wanted, replicas, hold) - least, 0), last))


@compiled
def play_passes(
    tables: MoveTables,
    autoscalers: Autoscalers,
    shadows: Shadows,
    recent: FloatArray,
    rate: float,
    seconds: float,
    service: Service,
    commits: Commits,
    account: FloatArray,
) -> None:
    """Let the messages of one row come, `rate` of them per second, in passes of 15 s after which each scaler answers.

    `recent` (RATE_PASSES,) holds the produce rates of the last passes, the newest last, nan before the first; adds
    pod-seconds and late messages to `account` (n, COLUMNS).
    """
    passes = max(1, int(np.round(seconds / PASS_SECONDS)))
    for _ in range(passes):
        pass_messages(tables, shadows, rate, seconds / passes, service, account)
        recent[:-1] = recent[1:]
        recent[-1] = rate
        seen = float(np.nanmean(recent))
        for scaler in range(autoscalers.kind.size):
            lag = visible_lag(tables, shadows, scaler, rate, service, commits.age_seconds)
            wanted = desired_count(tables, autoscalers, shadows, scaler, seen, lag, service, commits.interval_seconds)
            follow(tables, shadows, scaler, wanted, rate, service, account)
