"""The pictures of a group's day: one axis of time, what is not known left open, and a sentence of the same figures."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from api import parts
from api import schemas as wire
from api.convert import to_wire
from api.pictures.accuracy import accuracy
from api.pictures.fan import fan
from api.pictures.lag import LEAST_SECONDS, lag
from api.pictures.picture import LIGHT, MOST_POINTS, THEMES, Picture, millis, time_axis
from api.pictures.replicas import OVER, UNDER, replicas
from api.pictures.states import states
from recommender.configuring.settings_group import GroupSettings
from recommender.deciding.recommendation import ForecastSummary, Recommendation
from tests.api.pictures.laws import drawn, series, titles

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def minute_of(
    number: int,
    *,
    rate: float | None = 100.0,
    lag_seconds: float | None = 2.0,
    members: int | None = 6,
    share: float = 0.0,
) -> parts.ObservedMinute:
    """The minute that ends so many minutes after 11:00."""
    return parts.ObservedMinute(
        ends_at=NOON - timedelta(hours=1) + number * MINUTE,
        produce_messages_per_second=rate,
        lag_messages=200.0,
        lag_seconds=lag_seconds,
        members=members,
        in_rebalance_fraction=share,
    )


def day_of(*minutes: parts.ObservedMinute, **more: object) -> wire.GroupDay:
    """A day that ends at noon."""
    empty = {"minutes": minutes, "standings": (), "quarters": (), "max_lag_seconds": 10.0}
    words = {
        "group_key": "k",
        "cluster": "c",
        "group_id": "orders",
        "since_at": NOON - timedelta(days=1),
        "until_at": NOON,
    }
    return wire.GroupDay.model_validate({**words, **empty, **more})


@pytest.fixture
def sent(advice: Callable[..., Recommendation]) -> Callable[..., wire.RecommendationV1]:
    """Advice on the wire, of an instant, with a forecast of 60 minutes around a rate."""

    def made(at: datetime = NOON, rate: float = 100.0, **changes: object) -> wire.RecommendationV1:
        low, middle, high = ((rate + more,) * 60 for more in (-10, 0, 10))
        forecast = ForecastSummary(model="blend", history_tier="weekly", step_seconds=60, p05=low, p50=middle, p95=high)
        decision = advice(issued_at=at, execute_at=at + 2 * MINUTE, forecast=forecast, **changes)
        found = to_wire(decision, GroupSettings(), now=at)
        assert isinstance(found, wire.RecommendationV1)
        return found

    return made


MakeSent = Callable[..., wire.RecommendationV1]


def points_of(picture: Picture, name: str) -> list[tuple[int, float | None]]:
    return [(at, value) for at, value in series(picture.option(), name)["data"]]


class TestFan:
    """Produced and expected."""

    def test_what_came_stands_beside_what_was_expected_and_what_is(self, sent: MakeSent) -> None:
        """An hour that came at 100/s, but for one minute at 150/s that was outside of the band; the next from noon."""
        minutes = [minute_of(number, rate=150.0 if number == 30 else 100.0) for number in range(1, 61)]
        picture = fan(day_of(*minutes), sent(NOON), [sent(NOON - timedelta(hours=1))])
        option = drawn(picture)
        assert titles(option) == ["messages/s"]
        assert option["xAxis"]["type"] == "time"
        assert points_of(picture, "Outside of the band") == [(millis(NOON - 30 * MINUTE), 150.0)]
        assert len([value for _, value in points_of(picture, "Produced") if value is not None]) == 60
        expected = points_of(picture, "Expected")
        assert expected[-1] == (millis(NOON + timedelta(hours=1)), 100.0)
        assert points_of(picture, "Expected at least")[-1][1] == 90.0
        assert "98% of 60 minutes were inside of the band" in picture.sentence
        assert "100 messages/s came in the minute until 12:00" in picture.sentence
        assert "at most 110 are expected in the next 1 h, at 13:00" in picture.sentence

    def test_a_newer_forecast_takes_the_place_of_an_older_one(self, sent: MakeSent) -> None:
        """That of 11:30 stands from 11:31 on."""
        minutes = [minute_of(number) for number in range(1, 61)]
        before = [sent(NOON - timedelta(hours=1), 50.0), sent(NOON - timedelta(minutes=30), 100.0)]
        picture = fan(day_of(*minutes), None, before)
        by_instant = dict(points_of(picture, "Expected"))
        assert by_instant[millis(NOON - 30 * MINUTE)] == 50.0
        assert by_instant[millis(NOON - 29 * MINUTE)] == 100.0

    def test_a_minute_that_nobody_saw_breaks_the_line(self) -> None:
        """Not a line from one side of the gap to the other, and never 0."""
        picture = fan(day_of(minute_of(1), minute_of(5)), None, [])
        assert [value for _, value in points_of(picture, "Produced")] == [100.0, None, 100.0]

    def test_without_anything_known_it_says_so(self) -> None:
        """And is no error."""
        picture = fan(day_of(), None, [])
        drawn(picture)
        assert picture.sentence == "The produce rate is unknown."


class TestReplicas:
    """Members, advice and other scalers."""

    def test_members_are_told_where_they_change_and_not_where_nobody_saw_them(self) -> None:
        """Six, eight, nothing for two minutes, eight again."""
        minutes = [minute_of(1), minute_of(2, members=8), minute_of(5, members=8)]
        picture = replicas(day_of(*minutes), None)
        drawn(picture)
        start = NOON - timedelta(hours=1)
        assert points_of(picture, "Members") == [
            (millis(start), 6),
            (millis(start + MINUTE), 8),
            (millis(start + 2 * MINUTE), None),
            (millis(start + 4 * MINUTE), 8),
            (millis(start + 5 * MINUTE), 8),
        ]
        assert "the group had 6 to 8" in picture.sentence

    def test_advice_counts_from_its_instant_on_and_a_refusal_is_a_gap(self, sent: MakeSent) -> None:
        """Six were right, then there was no advice, and eight are advised from 12:02 on."""
        standings = (
            parts.Standing(
                since_at=NOON - 50 * MINUTE, reason_code="CheaperToStay", current_replicas=6, desired_replicas=6
            ),
            parts.Standing(since_at=NOON - 10 * MINUTE, reason_code="NoData"),
        )
        picture = replicas(day_of(standings=standings), sent())
        option = drawn(picture)
        assert titles(option) == ["replicas"]
        advised = dict(points_of(picture, "Advised"))
        assert advised[millis(NOON - 50 * MINUTE)] == 6
        assert advised[millis(NOON - 10 * MINUTE)] is None
        assert advised[millis(NOON + 2 * MINUTE)] == 8
        assert picture.sentence.startswith("6 now, 8 advised from 12:02 on")

    def test_every_simulated_scaler_can_be_chosen_and_two_are_shown(self) -> None:
        """Of a ledger's ten, HPA and KEDA at 2,000 messages are drawn at first."""
        quarter = parts.LedgerQuarter(
            begins_at=NOON - 15 * MINUTE,
            replicas={"stay": 6.0, "keda-2000": 9.5, "hpa-behavior-2000": 7.0, "paid": 6.0},
            late_messages={},
        )
        picture = replicas(day_of(minute_of(59), quarters=(quarter,)), None)
        option = drawn(picture)
        assert option["legend"]["selected"] == {"stay": False, "keda-2000": True, "hpa-behavior-2000": True}
        assert dict(points_of(picture, "keda-2000"))[millis(NOON - 15 * MINUTE)] == 9.5
        assert [column.name for column in picture.table.columns] == [
            *("at", "members", "desired_replicas", "hindsight_replicas", "stay", "keda-2000", "hpa-behavior-2000"),
        ]

    def test_what_was_needed_is_known_afterwards_and_the_difference_is_shaded_in_two_patterns(self) -> None:
        """Of six members four were enough for half an hour, then eight were needed; of a quarter nothing is known.

        Areas stand on the smaller one of both, and are as high as the difference.
        """
        needed = [*[4] * 30, *[8] * 15, *[None] * 15]
        minutes = [
            minute_of(number).model_copy(update={"hindsight_replicas": count})
            for number, count in enumerate(needed, start=1)
        ]
        picture = replicas(day_of(*minutes), None)
        option = drawn(picture)
        start = NOON - timedelta(hours=1)
        assert points_of(picture, "Hindsight") == [
            (millis(start), 4),
            (millis(start + 30 * MINUTE), 8),
            (millis(start + 45 * MINUTE), None),
            (millis(NOON), None),
        ]
        for name, stacked in ((OVER, [(4, 2), (6, 0)]), (UNDER, [(4, 0), (6, 2)])):
            floor, height = series(option, f"{name}, from"), series(option, name)
            values = [[value for _, value in each["data"]] for each in (floor, height)]
            assert list(zip(*values, strict=True)) == [*stacked, (None, None), (None, None)]
            assert floor["stack"] == height["stack"] == name
        assert option["legend"]["data"][:5] == ["Members", "Advised", "Hindsight", OVER, UNDER]
        patterns = [each["itemStyle"]["decal"]["rotation"] for each in option["series"] if "areaStyle" in each]
        assert len(set(patterns)) == 2
        assert (
            "beside the cheapest plan, known afterwards, it had 1 replica-hours too many, and 0.500 too few, in the "
            "0.750 h of which both are known"
        ) in picture.sentence

    def test_where_nothing_is_known_afterwards_nothing_is_drawn(self) -> None:
        """A standby, and a group without a capacity, have neither the line nor the areas."""
        picture = replicas(day_of(minute_of(1), minute_of(2)), None)
        assert not {each["name"] for each in drawn(picture)["series"]} & {"Hindsight", OVER, UNDER}
        assert set(picture.table.column("hindsight_replicas")) == {None}
        assert "afterwards" not in picture.sentence


class TestLag:
    """Lag in seconds."""

    def test_the_promise_and_rebalances_stand_behind_the_lag(self) -> None:
        """Three minutes of 2, 12 and 0 s; the second had a rebalance in it."""
        minutes = [minute_of(1), minute_of(2, lag_seconds=12.0, share=0.5), minute_of(3, lag_seconds=0.0)]
        picture = lag(day_of(*minutes), None)
        option = drawn(picture)
        (axis,) = [option["yAxis"]]
        assert (axis["type"], axis["name"]) == ("log", "seconds")
        assert [value for _, value in points_of(picture, "Lag")] == [2.0, 12.0, LEAST_SECONDS]
        (found,) = [each for each in option["series"] if each["name"] == "Lag"]
        start = NOON - timedelta(hours=1)
        assert [(area[0]["xAxis"], area[1]["xAxis"]) for area in found["markArea"]["data"]] == [
            (millis(start + MINUTE), millis(start + 2 * MINUTE))
        ]
        assert {"yAxis": 10.0}.items() <= found["markLine"]["data"][1].items()
        assert picture.sentence == (
            "The highest lag was 12 s, in the minute until 11:02; 2 of 3 minutes were within the promise of 10 s; "
            "1 had a rebalance in them."
        )

    def test_lag_that_is_not_known_is_a_gap(self) -> None:
        """And never 0 s."""
        picture = lag(day_of(minute_of(1, lag_seconds=None), minute_of(2)), None)
        drawn(picture)
        assert [value for _, value in points_of(picture, "Lag")] == [None, 2.0]
        assert lag(day_of(), None).sentence == "The lag of the last day is not known."


class TestStates:
    """Data, rebalances and decisions."""

    def test_each_lane_has_its_states_where_they_change(self) -> None:
        """Two minutes, a gap of three, one minute in a rebalance; six are right, then eight, then nothing is told."""
        minutes = [minute_of(1), minute_of(2), minute_of(6, share=1.0)]
        counts = {"current_replicas": 6, "desired_replicas": 6}
        standings = (
            parts.Standing(since_at=NOON - 59 * MINUTE, reason_code="CheaperToStay", **counts),
            parts.Standing(since_at=NOON - 30 * MINUTE, reason_code="RampAhead", **counts | {"desired_replicas": 8}),
            parts.Standing(since_at=NOON - 10 * MINUTE, reason_code="NoData"),
        )
        picture = states(day_of(*minutes, standings=standings), None)
        drawn(picture)
        told = [
            (row[0], round((row[2] - row[1]) / MINUTE), row[3], row[4])  # type: ignore[operator]  # instants
            for row in picture.table.rows
        ]
        assert told == [
            ("Data", 2, "seen", ""),
            ("Data", 3, "no data", ""),
            ("Data", 1, "seen", ""),
            ("Data", 54, "no data", ""),
            ("Group", 2, "stable", ""),
            ("Group", 1, "rebalance", ""),
            ("Decision", 29, "stays", "cheaper to stay"),
            ("Decision", 20, "move advised", "6 to 8, ramp ahead"),
            ("Decision", 10, "refused", "no data"),
        ]
        assert picture.sentence == (
            "3 of 60 minutes were seen; 1 had a rebalance in them; 1 time a move was advised; no advice in 10 minutes."
        )

    def test_without_anything_known_it_says_so(self) -> None:
        """And is no error."""
        picture = states(day_of(), None)
        drawn(picture)
        assert picture.sentence == "Nothing was observed and nothing was decided in the last day."


def test_a_whole_day_stays_within_the_points_of_a_series(sent: MakeSent) -> None:
    """1,440 minutes with a gap in each hour, and a decision each minute."""
    minutes = [
        parts.ObservedMinute(
            ends_at=NOON - number * MINUTE,
            produce_messages_per_second=100.0,
            lag_seconds=1.0,
            members=6 + number % 3,
            in_rebalance_fraction=float(number % 2),
        )
        for number in reversed(range(1440))
        if number % 60
    ]
    day = day_of(*minutes)
    for picture in (fan(day, sent(), []), replicas(day, sent()), lag(day, sent()), states(day, sent())):
        for theme in THEMES.values():
            assert all(len(each["data"]) <= MOST_POINTS for each in picture.option(theme)["series"]), picture.name


def test_where_a_day_begins_its_date_stands() -> None:
    """On the first of a month and of a year too, where ECharts' own words would be "Jun" and "2027"."""
    formats = time_axis(LIGHT)["axisLabel"]["formatter"]
    assert formats["year"] == formats["month"] == formats["day"] == "{bold|{yyyy}-{MM}-{dd}}"


def test_all_pictures_of_a_day_have_one_axis_of_time(sent: MakeSent) -> None:
    """What stands above itself in the next picture happened at the same instant."""
    day = day_of(minute_of(1), minute_of(2))
    pictures = (fan(day, sent(), []), replicas(day, sent()), lag(day, sent()), states(day, sent()))
    axes = {(option["xAxis"]["min"], option["xAxis"]["max"]) for option in (each.option() for each in pictures)}
    assert axes == {(millis(NOON - 59 * MINUTE), millis(NOON + timedelta(hours=1)))}
    assert {each.option()["grid"]["left"] for each in pictures} == {64}


class TestAccuracy:
    """Forecasts against what came."""

    def test_errors_and_bands_are_told_by_how_far_ahead(self, sent: MakeSent) -> None:
        """An hour of 100/s, expected as 100, and then as 80: off by 0 and by a fifth, inside the band and outside."""
        minutes = [minute_of(number) for number in range(1, 61)]
        right, wrong = sent(NOON - timedelta(hours=1), 100.0), sent(NOON - timedelta(minutes=30), 80.0)
        picture = accuracy(day_of(*minutes), [right, wrong])
        option = drawn(picture)
        assert titles(option) == ["minutes ahead", "%"]
        assert [row[:2] for row in picture.table.rows] == [(5, 10.0), (15, 10.0), (30, 10.0), (60, 0.0)]
        assert picture.table.column("inside_percent") == (50.0, 50.0, 50.0, 100.0)
        assert picture.table.column("minutes") == (10, 20, 30, 30)
        assert picture.sentence.startswith("Up to 60 minutes ahead forecasts were off by 0 % of what came")

    def test_without_anything_to_judge_it_says_so(self, sent: MakeSent) -> None:
        """Of a forecast whose minutes nobody saw nothing is told."""
        picture = accuracy(day_of(), [sent(NOON - timedelta(hours=1))])
        drawn(picture)
        assert picture.sentence == "No forecast of the last day can be held against what came yet."
