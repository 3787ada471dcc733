"""History tiers: half an hour, two days, two weeks."""

from collections.abc import Callable

import numpy as np
import pytest

from forecasting.forecast import HistoryTier
from forecasting.history import History
from forecasting.history_tier import history_tier_of, refuse_short
from forecasting.units import FloatArray

MakeHistory = Callable[[FloatArray], History]

DAY = 1440


@pytest.mark.parametrize(
    ("minutes", "history_tier"),
    [
        (29, None),
        (30, "reactive"),
        (2 * DAY - 61, "reactive"),
        (2 * DAY, "daily"),
        (14 * DAY - 61, "daily"),
        (14 * DAY, "weekly"),
    ],
)
def test_the_history_tier_follows_the_span(
    minutes: int, history_tier: HistoryTier | None, history: MakeHistory
) -> None:
    """Reactive from 30 minutes, daily from two days, weekly from fourteen."""
    assert history_tier_of(history(np.full(minutes, 10.0))) == history_tier


def test_a_window_that_lacks_its_first_minutes_keeps_its_history_tier(history: MakeHistory) -> None:
    """Fourteen days whose first twenty minutes are unknown still count as fourteen."""
    rates = np.full(14 * DAY, 10.0)
    rates[:20] = np.nan
    assert history_tier_of(history(rates)) == "weekly"


def test_two_hours_a_fortnight_apart_are_no_season(history: MakeHistory) -> None:
    """A span mostly unknown stays reactive: at least half of a history tier's minutes must be known."""
    rates = np.full(14 * DAY, np.nan)
    rates[:60] = rates[-60:] = 10.0
    assert history_tier_of(history(rates)) == "reactive"


def test_a_refusal_has_the_time_when_enough_will_be_known(history: MakeHistory) -> None:
    """Ten of thirty minutes are known: the next attempt makes sense twenty minutes later."""
    known = history(np.full(10, 5.0))
    refusal = refuse_short(known, needed_minutes=30)
    assert refusal.refused_at == known.end_at
    assert refusal.retry_at is not None
    assert (refusal.retry_at - refusal.refused_at).total_seconds() == 1200.0
