"""Facts: what the newest rows say of a group, or the refusal they call for."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from cost_model.profile import Capacity, GroupProfile
from forecasting.history import MINUTE_SECONDS, GroupInterval, History
from forecasting.refusal import Refusal, RefusalReason
from recommender.decision import DecisionSettings

# The rate "now" is the mean of this many base rows, half a minute; a backlog is what each of them shows, because one
# bad sample would ask for a move, and the next one for the way back.
ROWS_OF_NOW = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The newest settled row, and the figures without which nothing can be advised.

    `lag_messages` is the least lag of the newest rows; a single sample's is `row.lag_messages`.
    """

    row: GroupInterval
    replicas: int
    capacity: Capacity
    produce_messages_per_second: float
    lag_messages: float


def read_facts(
    history: History, profile: GroupProfile, settings: DecisionSettings, *, now: datetime
) -> Facts | Refusal:
    """What may be decided upon at `now`, or why nothing may: no rows, stale rows, an unsettled group, no capacity."""
    if not history.recent:
        return _refusal(history, now, "no_data", "No row of this group is known.", remedy="Check the collector.")
    age = (now - history.recent[-1].interval_end_at).total_seconds()
    if age > settings.freshness_limit_seconds:
        return _stale(history, now, age, settings.freshness_limit_seconds)
    # A sample from inside a rebalance shows the pause, not the load: it decides nothing.
    settled = [row for row in history.recent if not row.in_rebalance]
    usable = [row for row in settled if row.members and row.lag_messages is not None]
    if not usable:
        return _unsettled(history, now, settled_rows=len(settled))
    row = usable[-1]
    if profile.capacity is None:
        return _refusal(
            history,
            now,
            "capacity_unknown",
            "What one replica can consume was neither configured nor seen: it never had to work at its limit.",
            evidence=(("history_seconds", float(history.minutes * MINUTE_SECONDS)),),
            remedy="Set capacity_messages_per_second_per_replica for this group, or wait for a window with backlog.",
            hold=row.members,
        )
    newest = usable[-ROWS_OF_NOW:]
    rates = [r.produce_messages_per_second for r in newest if r.produce_messages_per_second is not None]
    return Facts(
        row=row,
        replicas=row.members or 0,
        capacity=profile.capacity,
        produce_messages_per_second=float(np.mean(rates)) if rates else 0.0,
        lag_messages=min(r.lag_messages or 0.0 for r in newest),
    )


def _stale(history: History, now: datetime, age: float, limit: float) -> Refusal:
    return _refusal(
        history,
        now,
        "history_stale",
        f"The newest row ended {age:,.0f} s before now; the freshness limit is {limit:,.0f} s.",
        evidence=(("history_age_seconds", age), ("freshness_limit_seconds", limit)),
        remedy="Check that samples are collected and that the features job runs.",
        hold=history.recent[-1].members,
    )


def _unsettled(history: History, now: datetime, *, settled_rows: int) -> Refusal:
    return _refusal(
        history,
        now,
        "partial_data" if settled_rows else "rebalancing",
        f"None of the last {len(history.recent)} rows shows the group settled, with its members and its lag.",
        evidence=(("rows", float(len(history.recent))), ("settled_rows", float(settled_rows))),
        remedy="Wait for the group to settle; if it does not, look for members that join and leave.",
    )


def _refusal(
    history: History,
    now: datetime,
    reason: RefusalReason,
    sentence: str,
    *,
    remedy: str,
    evidence: tuple[tuple[str, float], ...] = (),
    hold: int | None = None,
) -> Refusal:
    return Refusal(
        cluster=history.cluster,
        group=history.group,
        reason=reason,
        sentence=sentence,
        evidence=evidence,
        remedy=remedy,
        refused_at=now,
        hold_replicas=hold,
    )
