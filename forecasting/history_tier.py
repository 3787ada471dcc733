"""History tiers: the forecasts that a history of a given length allows, and the refusal below the first of them."""

from datetime import timedelta

import numpy as np

from forecasting.forecast import HistoryTier
from forecasting.history import MINUTE_SECONDS, History
from forecasting.refusal import Refusal

MINUTES_PER_DAY = 1440
MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY

# Advice without a forecast begins, which removes nothing; from REACTIVE_MINUTES on errors of forecasts are known.
FIRST_MINUTES = 3
REACTIVE_MINUTES = 30
DAILY_MINUTES = 2 * MINUTES_PER_DAY
WEEKLY_MINUTES = 14 * MINUTES_PER_DAY

# A window of exactly 14 days often lacks its first minutes (a rate needs two samples); an hour less still counts.
_SLACK_MINUTES = 60


def known_minutes(history: History) -> int:
    """Minutes of known produce rate."""
    return int(np.count_nonzero(np.isfinite(history.produce_messages_per_second)))


def history_tier_of(history: History) -> HistoryTier | None:
    """The highest history tier that the history allows; None when fewer than 30 minutes are known.

    A history tier counts the span from the first to the last known minute, at least half of which must be known: two
    days seen eleven months apart are not a season.
    """
    known = np.flatnonzero(np.isfinite(history.produce_messages_per_second))
    if len(known) < REACTIVE_MINUTES:
        return None
    span = int(known[-1] - known[0]) + 1
    if span + _SLACK_MINUTES >= WEEKLY_MINUTES and 2 * len(known) >= WEEKLY_MINUTES:
        return "weekly"
    if span + _SLACK_MINUTES >= DAILY_MINUTES and 2 * len(known) >= DAILY_MINUTES:
        return "daily"
    return "reactive"


def refuse_short(history: History, *, needed_minutes: int) -> Refusal:
    """The refusal of a history below a model's first history tier, with the length it has and the length needed."""
    known_seconds = float(known_minutes(history) * MINUTE_SECONDS)
    limit_seconds = float(needed_minutes * MINUTE_SECONDS)
    return Refusal(
        cluster=history.cluster,
        group=history.group,
        reason="not_enough_history",
        sentence=(
            f"history of group '{history.group}' holds {known_seconds:,.0f} s of known produce rate; "
            f"the limit is {limit_seconds:,.0f} s"
        ),
        evidence=(("history_seconds", known_seconds), ("limit_seconds", limit_seconds)),
        remedy="Keep the collector running, or import history from Prometheus or from the topic's own timestamps.",
        refused_at=history.end_at,
        retry_at=history.end_at + timedelta(seconds=max(limit_seconds - known_seconds, MINUTE_SECONDS)),
    )
