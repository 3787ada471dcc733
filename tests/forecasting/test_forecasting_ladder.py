"""The sufficiency ladder: half an hour, two days, two weeks."""

from collections.abc import Callable

import numpy as np
import pytest

from forecasting.forecast import Rung
from forecasting.history import History
from forecasting.ladder import refuse_short, rung_of
from forecasting.units import FloatArray

MakeHistory = Callable[[FloatArray], History]

DAY = 1440


@pytest.mark.parametrize(
    ("minutes", "rung"),
    [
        (29, None),
        (30, "reactive"),
        (2 * DAY - 61, "reactive"),
        (2 * DAY, "daily"),
        (14 * DAY - 61, "daily"),
        (14 * DAY, "weekly"),
    ],
)
def test_the_rung_follows_the_span(minutes: int, rung: Rung | None, history: MakeHistory) -> None:
    """Reactive from 30 minutes, daily from two days, weekly from fourteen."""
    assert rung_of(history(np.full(minutes, 10.0))) == rung


def test_a_window_that_lacks_its_first_minutes_keeps_its_rung(history: MakeHistory) -> None:
    """Fourteen days whose first twenty minutes are unknown still count as fourteen."""
    rates = np.full(14 * DAY, 10.0)
    rates[:20] = np.nan
    assert rung_of(history(rates)) == "weekly"


def test_two_hours_a_fortnight_apart_are_no_season(history: MakeHistory) -> None:
    """A span mostly unknown stays reactive: at least half of a rung's minutes must be known."""
    rates = np.full(14 * DAY, np.nan)
    rates[:60] = rates[-60:] = 10.0
    assert rung_of(history(rates)) == "reactive"


def test_a_refusal_says_when_enough_will_be_known(history: MakeHistory) -> None:
    """Ten of thirty minutes known: asking again makes sense twenty minutes later."""
    known = history(np.full(10, 5.0))
    refusal = refuse_short(known, needed_minutes=30)
    assert refusal.refused_at == known.end_at
    assert refusal.retry_at is not None
    assert (refusal.retry_at - refusal.refused_at).total_seconds() == 1200.0
