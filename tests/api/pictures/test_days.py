"""Policies day by day: a point for each day, the figures of all under one cursor, and the lost days shaded."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from api.pictures.days import by_day
from api.pictures.league import DayOfPolicy, Part, Standing
from api.pictures.picture import Option, millis
from tests.api.pictures.laws import drawn, series, titles

BEGIN = datetime(2026, 5, 30, tzinfo=UTC)
# Of three days the last one has six hours.
SPANS = (
    (BEGIN, BEGIN + timedelta(days=1)),
    (BEGIN + timedelta(days=1), BEGIN + timedelta(days=2)),
    (BEGIN + timedelta(days=2), BEGIN + timedelta(days=2, hours=6)),
)
MIDDLES = ["2026-05-30T12:00Z", "2026-05-31T12:00Z", "2026-06-01T03:00Z"]


def standing(policy: str, *costs: float, late: float = 0.0, part: Part = "rival") -> Standing:
    """A policy that has paid so much on each day; so many messages were late on the first, and half of that later."""
    days = tuple(
        DayOfPolicy(begins_at=begin, ends_at=end, cost=cost, late_share=late if begin == BEGIN else late / 2)
        for cost, (begin, end) in zip(costs, SPANS, strict=False)
    )
    return Standing(
        policy=policy,
        replicas=sum(costs),
        late=0.0,
        duplicates=0.0,
        late_share=late,
        wait_p99_seconds=1.0,
        moves=1,
        part=part,
        days=days,
    )


STANDINGS = (
    standing("Fixed", 30, 30, 7.5),
    standing("HPA", 12, 9, 2.5, late=0.2),
    standing("lagcast", 10, 10, 2, late=0.01, part="ours"),
    standing("Hindsight", 8, 8, 1, part="bound"),
)


def points(option: Option, policy: str) -> list[tuple[str, float]]:
    """When and how high the points of a policy are."""
    return [
        (datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%MZ"), value)
        for at, value, *_ in series(option, policy)["data"]
    ]


def test_each_policy_has_a_point_in_the_middle_of_each_day() -> None:
    """Of what it paid on a log axis, and of its late messages in percent; on the same days, which one cursor joins."""
    paid, late = by_day(STANDINGS, currency="USD")
    of_costs, of_late = drawn(paid), drawn(late)
    assert points(of_costs, "HPA") == list(zip(MIDDLES, [12, 9, 2.5], strict=True))
    assert points(of_late, "HPA") == list(zip(MIDDLES, [20.0, 10.0, 10.0], strict=True))
    assert titles(of_costs) == ["cost of a day, USD, log scale"]
    assert titles(of_late) == ["late messages, %"]
    for option in (of_costs, of_late):
        assert [each["name"] for each in option["series"]] == ["Fixed", "HPA", "lagcast", "Hindsight"]
        assert (option["xAxis"]["type"], option["tooltip"]["trigger"]) == ("time", "axis")
        assert (option["xAxis"]["min"], option["xAxis"]["max"]) == (millis(BEGIN), millis(SPANS[-1][1]))


def test_the_cursor_tells_the_span_of_its_day() -> None:
    """Each point has the begin and the end of its day, of which the function that is named makes words.

    The policies stand below them, the cheapest first.
    """
    paid, _ = by_day(STANDINGS, currency="USD")
    option = drawn(paid)
    spans = [tuple(span) for _, _, *span in series(option, "lagcast")["data"]]
    assert spans == [(millis(begin), millis(end)) for begin, end in SPANS]
    assert option["tooltip"]["axisPointer"]["label"]["formatter"] == {"$fn": "label_of_day"}
    assert option["tooltip"]["order"] == "valueAsc"


def test_a_day_that_ours_lost_is_shaded_in_both() -> None:
    """The second, on which HPA paid 9 and lagcast 10; that hindsight paid less on each is no loss."""
    begin, end = (millis(at) for at in SPANS[1])
    for picture in by_day(STANDINGS, currency="USD"):
        shaded = series(drawn(picture), "lagcast")["markArea"]["data"]
        assert shaded == [[{"xAxis": begin}, {"xAxis": end}]]


def test_the_table_has_each_day_with_all_figures_and_who_paid_least() -> None:
    """As the cursor tells them, with the hours of each day and the policies' own names."""
    paid, late = by_day(STANDINGS, currency="USD")
    assert [column.title for column in paid.table.columns] == [
        "Day from (UTC)",
        "Hours",
        "Fixed, USD",
        "HPA, USD",
        "lagcast, USD",
        "Hindsight, USD",
        "Paid least",
        "Lost by lagcast",
    ]
    assert paid.table.rows == (
        (SPANS[0][0], 24.0, 30, 12, 10, 8, "lagcast", False),
        (SPANS[1][0], 24.0, 30, 9, 10, 8, "HPA", True),
        (SPANS[2][0], 6.0, 7.5, 2.5, 2, 1, "lagcast", False),
    )
    assert late.table.column("HPA") == (20.0, 10.0, 10.0)
    assert late.table.column("lost") == (False, True, False)
    assert late.table.columns[3].title == "HPA, %"


@pytest.mark.parametrize(
    ("costs", "won", "lost"),
    [
        ((10, 10, 2), "on 2 of 3 days", " The day that it lost is shaded: 2026-05-31, 1 USD to HPA."),
        (
            (14, 10, 2),
            "on 1 of 3 days",
            " The days that it lost are shaded; it lost most on 2026-05-30, 2 USD to HPA.",
        ),
        ((12, 9, 2), "on each of 3 days", ""),
        ((12, 9), "on each of 2 days", ""),
    ],
)
def test_the_sentence_names_the_day_on_which_most_was_lost(costs: tuple[float, ...], won: str, lost: str) -> None:
    """A tie is no loss; of a last day that is a part of one its hours are told."""
    ours = replace(STANDINGS[2], days=standing("lagcast", *costs).days)
    others = (replace(each, days=each.days[: len(costs)]) for each in (*STANDINGS[:2], STANDINGS[3]))
    paid, _ = by_day([ours, *others], currency="USD")
    short = " The last day is 6 h long." if len(costs) == len(SPANS) else ""
    assert paid.sentence == f"lagcast has paid least {won}.{short}{lost}"
    assert any(paid.table.column("lost")) == bool(lost)


def test_the_sentence_on_late_messages_has_the_worst_day_of_ours_and_of_the_best() -> None:
    """Ours is 1 %; without Fixed, which is never late, HPA's 20 % is the best of the others."""
    _, late = by_day(STANDINGS, currency="USD")
    assert late.sentence == (
        "On its worst day lagcast had 1 % of its messages late, and Fixed, the best of 2 others in this, had 0 %."
    )
    _, late = by_day(STANDINGS[1:], currency="USD")
    assert late.sentence == "On its worst day lagcast had 1 % of its messages late, and HPA had 20 %."


def test_lines_differ_in_more_than_their_colour() -> None:
    """Of the five rivals of a replay, in the legend too; ours is the widest, and has its mark of the league."""
    rivals = [standing(f"rival {number}", 3, 3) for number in range(5)]
    ours = replace(STANDINGS[2], days=STANDINGS[2].days[:2])
    paid, _ = by_day([*rivals, ours], currency="USD")
    option = drawn(paid)
    looks = [(each["symbol"], each["lineStyle"]["type"]) for each in option["series"] if each["showSymbol"]]
    assert len(set(looks)) == len(option["series"]) == 6
    assert "icon" not in option["legend"]
    widths = {each["name"]: each["lineStyle"]["width"] for each in option["series"]}
    assert max(widths, key=lambda name: widths[name]) == "lagcast"
    assert series(option, "lagcast")["symbol"] == "diamond"


def test_a_day_without_cost_has_no_point_on_a_log_axis() -> None:
    """A group that is scaled to zero for a day: the table has its 0."""
    free = replace(STANDINGS[0], days=standing("Fixed", 30, 0, 7.5).days)
    paid, late = by_day([free, *STANDINGS[1:]], currency="USD")
    assert [value for _, value in points(drawn(paid), "Fixed")] == [30, None, 7.5]
    assert [value for _, value in points(drawn(late), "Fixed")] == [0, 0, 0]
    assert paid.table.column("Fixed") == (30, 0, 7.5)


def test_nothing_is_drawn_where_there_is_nothing_to_compare() -> None:
    """No days, one day, which the league tells all of, or nobody beside ours."""
    assert by_day([], currency="USD") == ()
    for few in (0, 1):
        assert by_day([replace(each, days=each.days[:few]) for each in STANDINGS], currency="USD") == ()
    assert by_day(STANDINGS[2:], currency="USD") == ()
    assert by_day(STANDINGS[:2], currency="USD") == ()
