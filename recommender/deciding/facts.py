"""Facts: a group's state as its newest rows show it, or a refusal."""

from datetime import datetime, timedelta
from itertools import islice, takewhile
from math import log, sqrt
from statistics import median

import numpy as np

from cost_model.physics.backlog import backlog_from_visible_lag
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.history import MINUTE_SECONDS, GroupInterval, History
from forecasting.refusal import Refusal
from forecasting.units import Messages, MessagesPerSecond, Seconds
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.deciding.refusing import refusal

# The rate "now" is the mean of this many base rows, half a minute; a backlog counts if each of them shows it, because
# one bad sample would cause a move, and the next one the way back.
ROWS_OF_NOW = 2
# A minute of base rows.
ROWS_OF_WAITING = 4
# A session of 45 s and the backlog of it, consumed at a load of three quarters.
SECONDS_TO_CATCH_UP = 180.0
DEVIATIONS_OF_CHANCE = 2.0
# At least this share of the messages that a surge brought, above the row before, still waits.
BORNE_OUT = 0.25
# A decision prices every useful count for every minute of the horizon: 0.7 s at 5,000 partitions, 3 s at this many.
MOST_PARTITIONS = 20_000


def rests_at_zero(
    history: History, profile: GroupProfile, previous: Recommendation | None, *, patience_seconds: float
) -> bool:
    """True if the group is at 0 by its owner's rule, and not just for a moment.

    It was advised so, or no member has joined for `patience_seconds`: a group whose pods are all replaced at once has
    no members while they start.
    """
    settled = [row for row in history.recent if not row.in_rebalance]
    if profile.scale_to_zero is None or not settled or settled[-1].members != 0:
        return False
    if previous is not None and 0 in {previous.desired_replicas, previous.current_replicas}:
        return True
    since = settled[-1].interval_end_at - timedelta(seconds=patience_seconds)
    latest = [row for row in settled if row.interval_end_at >= since]
    return settled[0].interval_end_at <= since and all(row.members == 0 for row in latest)


def usable_rows(
    history: History, settings: DecisionSettings, *, now: datetime, at_zero: bool = False
) -> list[GroupInterval] | Refusal:
    """The rows that may be decided upon at `now`, at least one, or a refusal: no rows, stale rows, none settled.

    `at_zero`: the group has no members, and is meant to have none.
    """
    if not history.recent:
        return refusal(history, now, "no_data", "No row of this group is known.", remedy="Check the collector.")
    age = (now - history.recent[-1].interval_end_at).total_seconds()
    if age > settings.freshness_limit_seconds:
        return _stale(history, now, age, settings.freshness_limit_seconds)
    # A sample from inside a rebalance shows the pause, not the load: decisions do not use it.
    settled = [row for row in history.recent if not row.in_rebalance]
    usable = [row for row in settled if (row.members or at_zero) and row.lag_messages is not None]
    return usable or _unsettled(history, now, settled_rows=len(settled))


def rows_of_now(rows: list[GroupInterval]) -> list[GroupInterval]:
    """The newest of these rows, as many as the rate and the backlog of now are read from."""
    return rows[-1:] if _is_surge(rows) else rows[-ROWS_OF_NOW:]


def produce_rate_of(rows: list[GroupInterval]) -> float:
    """The mean produce rate of these rows; 0 where none has it."""
    rates = [row.produce_messages_per_second for row in rows if row.produce_messages_per_second is not None]
    return float(np.mean(rates)) if rates else 0.0


def backlog_of(rows: list[GroupInterval], *, produce_rate: float, commit_interval: Seconds) -> float:
    """The least lag in these rows, without the messages that are processed but not yet committed."""
    lag = Messages(min(row.lag_messages or 0.0 for row in rows))
    return backlog_from_visible_lag(lag, consume=MessagesPerSecond(produce_rate), commit_interval=commit_interval)


def _is_surge(rows: list[GroupInterval]) -> bool:
    """True if the newest produce rate exceeds the one before and the lag confirms it: then it is used alone.

    Averaged with the row before it, a surge would be measured at half its size and answered twice.
    """
    if len(rows) < ROWS_OF_NOW:
        return False
    before, newest = rows[-2:]
    if None in (before.produce_messages_per_second, newest.produce_messages_per_second, before.lag_messages):
        return False
    risen = (newest.produce_messages_per_second or 0.0) - (before.produce_messages_per_second or 0.0)
    piled_up = (newest.lag_messages or 0.0) - (before.lag_messages or 0.0)
    return risen > 0.0 and piled_up > BORNE_OUT * risen * newest.interval_seconds


def behind_seconds(rows: list[GroupInterval], commit_interval_seconds: Seconds) -> float:
    """Seconds by which the worst partition lags beyond commits and chance; 0 where unknown.

    It is the median of the newest rows, since one sample may fall just before a commit. It is not read soon after a
    change of members: partitions that stopped then catch up by themselves.
    """
    members = rows[-1].members
    alike = list(takewhile(lambda row: row.members == members, reversed(rows)))
    if (alike[0].interval_end_at - alike[-1].interval_end_at).total_seconds() < SECONDS_TO_CATCH_UP:
        return 0.0
    waits = [excess_seconds(row, commit_interval_seconds) for row in islice(alike, ROWS_OF_WAITING)]
    known = [wait for wait in waits if wait is not None]
    return median(known) if known else 0.0


def excess_seconds(row: GroupInterval, commit_interval_seconds: Seconds) -> float | None:
    """Seconds by which the worst partition lags in one row beyond commits and chance; None where unknown.

    Within a commit interval of 5 s at 4 messages/s, 20 arrive, give or take 4.5: two of these, 2.2 s, are chance. The
    worst of 40 partitions is usually 2.7 of these out, so that for them 5.3 s are.
    """
    rate = row.produce_messages_per_second
    if row.worst_lag_seconds is None or not rate:
        return None
    deviations = sqrt(2.0 * log(row.partitions)) + DEVIATIONS_OF_CHANCE
    chance = deviations * sqrt(commit_interval_seconds * row.partitions / rate)
    return max(0.0, row.worst_lag_seconds - commit_interval_seconds - chance)


def _stale(history: History, now: datetime, age: float, limit: float) -> Refusal:
    return refusal(
        history,
        now,
        "history_stale",
        f"The newest row ended {age:,.0f} s before now; the freshness limit is {limit:,.0f} s.",
        evidence=(("history_age_seconds", age), ("freshness_limit_seconds", limit)),
        remedy="Check that samples are collected and that the features job runs.",
        hold=history.recent[-1].members,
    )


def _unsettled(history: History, now: datetime, *, settled_rows: int) -> Refusal:
    return refusal(
        history,
        now,
        "partial_data" if settled_rows else "rebalancing",
        f"None of the last {len(history.recent)} rows shows the group settled, with its members and its lag.",
        evidence=(("rows", float(len(history.recent))), ("settled_rows", float(settled_rows))),
        remedy="Wait for the group to settle; if it does not, look for members that join and leave.",
    )


def priceable(history: History, profile: GroupProfile, now: datetime, *, hold: int | None) -> Capacity | Refusal:
    """The capacity of a group whose plans can be priced; else the refusal, which keeps `hold` replicas."""
    most = profile.replica_ceiling
    if most > MOST_PARTITIONS:
        return refusal(
            history,
            now,
            "unsupported",
            f"Up to {most:,} replicas of this group could have work; counts up to {MOST_PARTITIONS:,} are priced.",
            evidence=(("partitions", float(profile.partitions)), ("most_partitions", float(MOST_PARTITIONS))),
            remedy=f"Set max_replicas of this group to {MOST_PARTITIONS:,} or fewer.",
            hold=hold,
        )
    return profile.capacity or _capacity_unknown(history, now, hold=hold)


def _capacity_unknown(history: History, now: datetime, *, hold: int | None) -> Refusal:
    return refusal(
        history,
        now,
        "capacity_unknown",
        "The capacity of one replica was neither configured nor measured: no replica ever worked at its limit.",
        evidence=(("history_seconds", float(history.minutes * MINUTE_SECONDS)),),
        remedy=(
            "Set capacity_messages_per_second_per_replica for this group, or wait for three minutes of samples with "
            "members, which show what a replica does at least."
        ),
        hold=hold,
    )
