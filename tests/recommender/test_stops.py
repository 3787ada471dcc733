"""Measured stops between the thread that measures and the loop that learns."""

from datetime import UTC, datetime, timedelta

from recommender.following.grading import MeasuredPause
from recommender.stops import STOPS_KEPT, MeasuredStops

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_a_standby_that_takes_none_keeps_the_newest() -> None:
    """After a month beside a leader its memory has not grown, and what it learns from first is the latest."""
    stops = MeasuredStops()
    for number in range(STOPS_KEPT + 7):
        began_at = NOON + timedelta(minutes=number)
        ended_at = began_at + timedelta(seconds=5)
        pause = MeasuredPause(began_at=began_at, ended_at=ended_at, lost_seconds=5.0, resolution_seconds=0.5)
        stops.add(("prod-eu", "orders"), pause)
    taken = stops.taken(("prod-eu", "orders"))
    assert (len(taken), taken[0].began_at) == (STOPS_KEPT, NOON + timedelta(minutes=7))
