"""Rebalances as spans: minutes that follow each other are one, and a gap is not taken for quiet."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from api.parts import Happened, ObservedMinute
from api.pictures.picture import MOST_POINTS, millis
from api.pictures.rebalances import MOVE, REBALANCE, UNSEEN, rebalances
from api.schemas import GroupDay, Outcome
from tests.api.pictures.laws import drawn, series

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MakeDay = Callable[[Sequence[float | None]], GroupDay]


def at(minute: float) -> datetime:
    """So many minutes after noon."""
    return NOON + timedelta(minutes=minute)


@pytest.fixture(name="day")
def day_fixture() -> MakeDay:
    """A day of these minutes after noon, each with its share of rebalance; None: nothing was seen."""
    return lambda shares: GroupDay(
        group_key="k",
        cluster="prod-eu",
        group_id="orders",
        since_at=NOON,
        until_at=at(len(shares)),
        minutes=tuple(
            ObservedMinute(ends_at=at(minute + 1), in_rebalance_fraction=share)
            for minute, share in enumerate(shares)
            if share is not None
        ),
        standings=(),
        quarters=(),
    )


def move(minute: float, pause: float | None = 3.4) -> Outcome:
    """A move from 6 to 8 replicas that was graded so many minutes after noon."""
    return Outcome(
        graded_at=at(minute),
        from_replicas=6,
        to_replicas=8,
        happened=Happened(rebalance_pause_seconds=pause),
        sentence="6 -> 8",
    )


def test_minutes_that_follow_each_other_are_one_rebalance(day: MakeDay) -> None:
    """0.5 + 1 + 0.25 minutes from 12:01 to 12:04, and 0.1 from 12:05 to 12:06."""
    picture = rebalances(day([0, 0.5, 1, 0.25, 0, 0.1]), [])
    option = drawn(picture)
    spans = series(option, "Spans")
    assert [row[:3] for row in spans["data"]] == [
        [0, millis(at(1)), millis(at(4))],
        [0, millis(at(5)), millis(at(6))],
    ]
    assert [row[4] for row in spans["data"]] == ["rebalance, 105 s", "rebalance, 6 s"]
    assert spans["renderItem"] == {"$fn": "bar_of_span"}
    assert option["yAxis"]["data"] == [REBALANCE, UNSEEN, MOVE]
    assert (option["xAxis"]["min"], option["xAxis"]["max"]) == (millis(NOON), millis(at(6)))
    assert picture.table.column("seconds") == (105.0, 6.0)
    assert [millis(each) for each in picture.table.column("begins_at")] == [row[1] for row in spans["data"]]
    assert picture.sentence == "2 rebalances took 111 s together; 0 moves were graded."


def test_a_gap_is_said_and_does_not_join_two_rebalances(day: MakeDay) -> None:
    """At the beginning, in the middle, and at the end of the day."""
    picture = rebalances(day([None, 0.5, None, None, 0.5, None]), [])
    gaps = [row[:3] for row in series(drawn(picture), "Spans")["data"] if row[0] == 1]
    assert gaps == [[1, millis(at(first)), millis(at(last))] for first, last in ((0, 1), (2, 4), (5, 6))]
    assert picture.sentence == "2 rebalances took 60 s together; 0 moves were graded. Nothing was seen for 4 min."


@pytest.mark.parametrize(("first_seen", "begins"), [(2, 2), (-600, 0), (None, 0)])
def test_before_a_group_was_first_seen_there_is_no_gap(day: MakeDay, first_seen: float | None, begins: float) -> None:
    """The picture of a group that is younger than the day begins with it; an older one that was away has a gap."""
    since = None if first_seen is None else at(first_seen)
    picture = rebalances(day([None, None, 0, None, 0]).model_copy(update={"first_seen_at": since}), [])
    option = drawn(picture)
    assert option["xAxis"]["min"] == millis(at(begins))
    gaps = [row[1] for row in series(option, "Spans")["data"] if row[0] == 1]
    assert gaps == [millis(at(minute)) for minute in (0, 3) if minute >= begins]
    assert ("The group was first seen at 2026-01-05 12:02:00 UTC." in picture.sentence) == (begins == 2)


def test_a_graded_move_stands_where_it_was_graded_with_its_pause(day: MakeDay) -> None:
    """When it began is not published; one that was graded before the day is not in it."""
    picture = rebalances(day([0.0] * 10), [move(7, None), move(3), move(-1)])
    points = series(drawn(picture), MOVE)["data"]
    assert points == [
        {"name": "6 to 8, pause 3.4 s", "value": [millis(at(3)), 2]},
        {"name": "6 to 8, pause unknown", "value": [millis(at(7)), 2]},
    ]
    assert picture.sentence == "0 rebalances took 0 s together; 2 moves were graded, with a pause of 3.4 s at most."


def test_a_day_of_which_nothing_was_seen_has_no_rebalances_and_no_peace(day: MakeDay) -> None:
    """Whoever decides on the group has its minutes."""
    picture = rebalances(day([]), [])
    assert series(drawn(picture), "Spans")["data"] == []
    assert picture.sentence.startswith("Nothing was seen of the group here")


def test_a_day_full_of_rebalances_stays_within_the_limit(day: MakeDay) -> None:
    """Every other minute of a day, with nothing seen between them: 720 spans of each kind."""
    spans = series(drawn(rebalances(day([0.5, None] * 720), [])), "Spans")["data"]
    assert len(spans) == 1440 <= MOST_POINTS
