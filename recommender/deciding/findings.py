"""Findings: conditions that make any move harmful, at any produce rate, read from a group's rows and profile."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise, takewhile

from cost_model.physics.livelock import SlowBatches, slow_batches
from cost_model.physics.profile import GroupProfile
from forecasting.history import GroupInterval, History
from forecasting.refusal import Refusal
from recommender.deciding.limits import Finding, limit_of
from recommender.deciding.recommendation import Recommendation
from recommender.deciding.refusing import refusal

# Rows without a commit have to span this long: a member that is not evicted commits within one batch.
LEAST_SILENCE_SECONDS = 180.0
# A commit that failed is tried again at the next one; three in a row do not fail by chance.
COMMITS_MISSED = 3.0
# The lag of a partition that is not consumed grows by a second a second, less the uncertainty of rates of 15 s.
STANDING_GROWTH = 0.8
# The lag also grows by no more than one partition's share of all produce rates: over half of the mean, because keys
# are uneven, and under twice the mean.
LEAST_LEFT, MOST_LEFT = 0.5, 2.0
# A pod that crashes and restarts makes two rebalances; a rolling restart makes one or two for each pod.
REBALANCES_OF_A_ROLLOUT = 3
ROLLOUT_LOOK_BACK = timedelta(minutes=5)
# Pods of a rollout follow each other within this time; later it is over.
ROLLOUT_QUIET = timedelta(minutes=2)


def finding_of(
    history: History, profile: GroupProfile, *, previous: Recommendation | None, now: datetime
) -> Refusal | Finding | None:
    """A refusal where no move is possible, a finding where more replicas cannot help, or None.

    `previous` is the recommendation in force: rebalances that it caused do not count as a rollout.
    """
    return (
        _livelock(history, profile, now=now)
        or _standing_partition(history, profile, now=now)
        or _rollout(history, previous, now=now)
        or limit_of(history, profile)
    )


def _livelock(history: History, profile: GroupProfile, *, now: datetime) -> Refusal | None:
    """Messages wait, none was committed for minutes, and members come and go, are too slow for a batch, or hang.

    Members that stay hang once they are silent for longer than the longest batch or the time between commits, while
    messages arrive: without produce rates the lag may be transaction markers, which are never consumed.
    """
    known = [row for row in history.recent if row.consume_messages_per_second is not None]
    silent = takewhile(lambda row: not row.consume_messages_per_second and row.lag_messages != 0.0, reversed(known))
    rows = list(silent)[::-1]
    if not rows or not rows[-1].lag_messages:
        return None
    seconds = (rows[-1].interval_end_at - rows[0].interval_end_at).total_seconds() + rows[0].interval_seconds
    slow = slow_batches(profile)
    churn = len(_rebalances([row for row in history.recent if row.interval_end_at >= rows[0].interval_end_at]))
    longest = max(profile.max_poll_interval_seconds, COMMITS_MISSED * profile.commits_every_seconds)
    hanging = seconds > longest and any(row.produce_messages_per_second for row in rows)
    if seconds < LEAST_SILENCE_SECONDS or (slow is None and churn < REBALANCES_OF_A_ROLLOUT and not hanging):
        return None
    why, remedy = _why_silent(slow, churn)
    evidence = [("seconds_without_commit", seconds), ("rebalances", float(churn))]
    if slow is not None:
        evidence += [
            ("batch_seconds", float(slow.batch_seconds)),
            ("max_poll_interval_seconds", float(slow.max_poll_interval_seconds)),
        ]
    return refusal(
        history,
        now,
        "livelock_suspected",
        f"Nothing was committed in {seconds:,.0f} s though {rows[-1].lag_messages:,.0f} messages wait: {why}.",
        remedy=remedy,
        evidence=tuple(evidence),
        hold=_members(history),
    )


def _why_silent(slow: SlowBatches | None, churn: int) -> tuple[str, str]:
    """The cause that keeps a group from committing, and its remedy."""
    if slow is None and churn < REBALANCES_OF_A_ROLLOUT:
        return (
            "the members stay and hang, or the sink that they write to hangs",
            "Look at a consumer's stack and at its sink; further replicas would hang there too.",
        )
    why = slow.sentence if slow is not None else f"the group rebalanced {churn} times meanwhile"
    return why, "Lower max.poll.records until a batch fits well into max.poll.interval.ms; replicas only add churn."


def _standing_partition(history: History, profile: GroupProfile, *, now: datetime) -> Refusal | None:
    """One partition waits for longer than a batch may last while the others are consumed: usually a message that fails.

    Its wait grows by a second each second, and the group's lag by about one partition's produce rate. Where the lag
    grows faster, something else is wrong as well, and advice is given.
    """
    newest = history.recent[-1] if history.recent else None
    if newest is None or not newest.members or newest.worst_partition is None or profile.work_units == 1:
        return None
    same = (newest.members, newest.worst_partition)
    alike = takewhile(
        lambda row: (row.members, row.worst_partition) == same and not row.in_rebalance, reversed(history.recent)
    )
    rows = list(alike)[::-1]
    lags = [row.lag_messages for row in rows if row.lag_messages is not None]
    waits = [row.worst_lag_seconds for row in rows if row.worst_lag_seconds is not None]
    if not len(lags) == len(waits) == len(rows) > 1:
        return None
    seconds = (rows[-1].interval_end_at - rows[0].interval_end_at).total_seconds()
    longest = max(profile.max_poll_interval_seconds, COMMITS_MISSED * profile.commits_every_seconds)
    arrived = sum((row.produce_messages_per_second or 0.0) * row.interval_seconds for row in rows[1:])
    left = (lags[-1] - lags[0]) * rows[-1].partitions / arrived if arrived else 0.0
    if seconds <= longest or waits[-1] - waits[0] < STANDING_GROWTH * seconds or not LEAST_LEFT < left < MOST_LEFT:
        return None
    return refusal(
        history,
        now,
        "livelock_suspected",
        f"For {seconds:,.0f} s partition {newest.worst_partition} was not consumed and the others were: its messages "
        f"wait for {waits[-1]:,.0f} s.",
        remedy="Look at the next message of this partition, and at the consumer that reads it; further replicas "
        "would hang at it too.",
        evidence=(("partition_silent_seconds", seconds), ("worst_lag_seconds", waits[-1])),
        hold=_members(history),
    )


def _rollout(history: History, previous: Recommendation | None, *, now: datetime) -> Refusal | None:
    """Several rebalances with an unchanged count: the pods are restarted one by one."""
    since = now - ROLLOUT_LOOK_BACK
    if previous is not None and previous.action != "hold" and since <= previous.execute_at <= now:
        return None
    rows = [row for row in history.recent if row.interval_end_at > since]
    rebalances = _rebalances(rows)
    settled = [row.members for row in rows if row.members and not row.in_rebalance]
    if len(rebalances) < REBALANCES_OF_A_ROLLOUT or now - rebalances[-1] > ROLLOUT_QUIET:
        return None
    if not settled or settled[0] != settled[-1]:
        return None
    return refusal(
        history,
        now,
        "rollout_in_progress",
        f"{len(rebalances)} rebalances in {ROLLOUT_LOOK_BACK.total_seconds():.0f} s and still {settled[-1]} members: "
        "pods are being replaced.",
        remedy="Nothing, if it is a rollout: advice returns two minutes after its last rebalance.",
        evidence=(("rebalances", float(len(rebalances))), ("members", float(settled[-1]))),
        hold=_members(history),
    )


def _rebalances(rows: Sequence[GroupInterval]) -> list[datetime]:
    """Instants at which the group was last seen unsettled in each of its rebalances, oldest first.

    A rebalance is a run of rows inside one, or two settled rows with different members.
    """
    runs = groupby(rows, key=lambda row: row.in_rebalance)
    ends = [list(run)[-1].interval_end_at for unsettled, run in runs if unsettled]
    between = [
        after.interval_end_at
        for before, after in pairwise(rows)
        if not (before.in_rebalance or after.in_rebalance)
        and None not in (before.members, after.members)
        and before.members != after.members
    ]
    return sorted(ends + between)


def _members(history: History) -> int | None:
    """The newest known member count."""
    return next((row.members for row in reversed(history.recent) if row.members), None)
