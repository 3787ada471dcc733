"""Measured stops wait for the move that they belong to."""

from datetime import UTC, datetime

from recommender.following.grading import MeasuredPause
from recommender.stops import MeasuredStops

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
ORDERS, CLICKS = ("prod-eu", "orders"), ("prod-eu", "clicks")


def test_a_stop_is_handed_out_once_and_to_its_own_group() -> None:
    """Two of orders, in their order; afterwards none, and never one of clicks."""
    stops = MeasuredStops()
    first, second = (
        MeasuredPause(began_at=NOON, ended_at=NOON, lost_seconds=seconds, resolution_seconds=0.8)
        for seconds in (1.5, 2.0)
    )
    stops.add(ORDERS, first)
    stops.add(ORDERS, second)
    assert stops.taken(CLICKS) == ()
    assert stops.taken(ORDERS) == (first, second)
    assert stops.taken(ORDERS) == ()
