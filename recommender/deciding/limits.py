"""Limits: conditions that make more replicas useless or less effective than expected, read from a group's rows."""

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from cost_model.physics.calibrate import windows_of
from cost_model.physics.capacity import SATURATED_LAG_SECONDS
from cost_model.physics.downstream import downstream_limit
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import carried_by_count, hot_partition
from forecasting.history import History
from forecasting.units import Replicas
from recommender.deciding.recommendation import FindingCode

# The limit of a sink two hours ago no longer holds.
RECENT_MINUTES = 120
# A count counts as tried after so many minutes at its limit: a single one may have been a pause.
LEAST_SATURATED_MINUTES = 3
# Windows show throughput to about 8 %; those within 5 % of the best show the throughput that a smaller count reaches.
AT_THE_TOP = 0.95
# A partition is hot if it is the busiest in every row of five minutes; by chance each row would show another one.
LEAST_SKEW_ROWS = 20
# A partition under twice the mean is less than one more on its replica, which the useful counts and the target
# utilization allow for.
LEAST_SKEW_RATIO = 2.0
# Consuming more than this much above the limit since then shows that the limit has moved.
MOVED_LIMIT_FACTOR = 1.1
# Rows of ten minutes, since one minute shows throughput to about 8 %; a sixth below the configured one is twice that.
LEAST_SHORT_SECONDS = 600.0
FALLEN_SHORT = 5.0 / 6.0
# No pause for a rebalance leaves a partition so far behind for ten minutes without catching up.
SLOW_WAIT_SECONDS = 60.0
# The lag lies in some partitions only: those of one replica, and a fifth more for keys that are uneven.
ONE_REPLICAS_SHARE = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A limit of a group; replicas beyond `most_replicas` cannot help, and none is added while it holds."""

    reason: FindingCode
    most_replicas: Replicas
    sentence: str


def limit_of(history: History, profile: GroupProfile) -> Finding | None:
    """The first limit found; the most certain ones are checked first."""
    return (
        _slow_replica(history, profile)
        or _downstream(history, profile)
        or _hot_partition(history, profile)
        or _fallen_short(history, profile)
    )


def _slow_replica(history: History, profile: GroupProfile) -> Finding | None:
    """Partitions of one replica lag for minutes and do not catch up, while the others do: that replica is slow.

    With more replicas it gets fewer partitions, where it has several; with one partition each only another pod helps.
    """
    rows = [row for row in history.recent if not row.in_rebalance and row.members]
    worst = [row.worst_lag_seconds for row in rows if row.worst_lag_seconds is not None]
    means = [row.lag_seconds for row in rows if row.lag_seconds is not None]
    if not len(rows) == len(worst) == len(means) > 1 or len({row.members for row in rows}) > 1:
        return None
    seconds = (rows[-1].interval_end_at - rows[0].interval_end_at).total_seconds() + rows[0].interval_seconds
    if seconds < LEAST_SHORT_SECONDS or min(worst) < SLOW_WAIT_SECONDS or worst[-1] < worst[0]:
        return None
    newest, replicas = rows[-1], rows[-1].members or 0
    behind = newest.partitions * max(0.0, means[-1] - profile.commits_every_seconds) / worst[-1]
    most_of_one = ceil(newest.partitions / replicas)
    _, seen = busiest_seen(history, profile)
    if replicas < 2 or behind > ONE_REPLICAS_SHARE * most_of_one or seen.partition_weights is not None:
        return None
    return Finding(
        reason="slow_replica",
        most_replicas=Replicas(profile.replica_ceiling),
        sentence=(
            f"One replica seems slow: for {seconds / 60.0:.0f} min partition {newest.worst_partition} has lagged, "
            f"{worst[-1]:,.0f} s now, and the other replicas keep up; replace the pod that reads it."
        ),
    )


def _downstream(history: History, profile: GroupProfile) -> Finding | None:
    """A scale-out within the last hours that did not raise the consume rate."""
    windows = windows_of(history, profile)
    recent = slice(-RECENT_MINUTES, None)
    replicas, rates, saturated = windows.replicas[recent], windows.rates[recent], windows.saturated[recent]
    counts, minutes = np.unique(replicas[saturated], return_counts=True)
    tried = counts[minutes >= LEAST_SATURATED_MINUTES]
    if tried.size == 0:
        return None
    # Only the largest count has to be at its limit: smaller ones have consumed that much already.
    telling = saturated & (replicas == tried.max())
    for count in np.unique(replicas[(replicas > 0) & (replicas < tried.max()) & np.isfinite(rates)]):
        own = replicas == count
        telling |= own & (np.nan_to_num(rates) >= AT_THE_TOP * np.nanmax(rates[own]))
    limit = downstream_limit(profile, replicas=replicas, rates=rates, saturated=telling)
    if limit is None:
        return None
    if (np.nan_to_num(rates) > MOVED_LIMIT_FACTOR * limit.limit_messages_per_second).any():
        return None
    return Finding(
        reason="downstream_limit",
        most_replicas=Replicas(min(limit.replicas_seen)),
        sentence=f"More replicas cannot help: {limit.sentence}.",
    )


def _hot_partition(history: History, profile: GroupProfile) -> Finding | None:
    """One partition that fills a replica by itself, by the profile's weights or by the rows."""
    seen, profile = busiest_seen(history, profile)
    hot = hot_partition(profile)
    if hot is None:
        return None
    name = f"partition {hot.partition}" if seen is None else seen
    return Finding(
        reason="hot_partition",
        most_replicas=hot.max_useful_replicas,
        sentence=f"More replicas cannot help: {hot.sentence.replace(f'partition {hot.partition}', name)}.",
    )


def _fallen_short(history: History, profile: GroupProfile) -> Finding | None:
    """The lag grows while the group consumes less than was configured, or than before: that capacity no longer holds.

    One count does not show whether replicas became slow or share a limit, so more of them may be tried.
    """
    rows = [row for row in history.recent if not row.in_rebalance and row.members]
    if not rows or profile.capacity is None or profile.capacity.source == "saturated_windows":
        return None
    lags = [row.lag_messages or 0.0 for row in rows]
    done = [row.consume_messages_per_second or 0.0 for row in rows]
    seconds = (rows[-1].interval_end_at - rows[0].interval_end_at).total_seconds() + rows[0].interval_seconds
    floor = SATURATED_LAG_SECONDS + profile.commits_every_seconds
    waiting = all(lag > floor * rate for lag, rate in zip(lags, done, strict=True)) and lags[-1] >= lags[0]
    if seconds < LEAST_SHORT_SECONDS or len({row.members for row in rows}) > 1 or not waiting:
        return None
    _, seen = busiest_seen(history, profile)
    replicas, did = rows[-1].members or 0, float(np.mean(done))
    (should,) = carried_by_count(seen, (replicas,), capacity=profile.capacity.p20)
    if did > FALLEN_SHORT * should:
        return None
    who, do, them = ("1 replica", "consumes", "it") if replicas == 1 else (f"{replicas} replicas", "consume", "them")
    return Finding(
        reason="downstream_limit",
        most_replicas=Replicas(profile.replica_ceiling),
        sentence=f"{who} should consume {should:,.0f}/s and {do} {did:,.0f}: something else limits {them}.",
    )


def busiest_seen(history: History, profile: GroupProfile) -> tuple[str | None, GroupProfile]:
    """The partition that was busiest in all rows, and the profile with its share and even shares for the others.

    None and the profile as it is where weights are known, no partition stands out, or its rate is under twice the mean.
    """
    if profile.partition_weights is not None:
        return None, profile
    rows = [row for row in history.recent if row.busiest_partition is not None and row.partition_skew_ratio is not None]
    names = {row.busiest_partition for row in rows}
    if len(rows) < LEAST_SKEW_ROWS or len(names) > 1 or not 1 < profile.work_units == rows[-1].partitions:
        return None, profile
    ratios = [row.partition_skew_ratio for row in rows if row.partition_skew_ratio is not None]
    # Rounded to a tenth, so that cached results for the group's assignments can be used again.
    ratio = round(float(np.median(ratios)), 1)
    if ratio < LEAST_SKEW_RATIO:
        return None, profile
    share = min(1.0, ratio / profile.work_units)
    others = (1.0 - share) / (profile.work_units - 1)
    weights = (share, *[others] * (profile.work_units - 1))
    return f"partition {names.pop()}", replace(profile, partition_weights=weights)
