"""Plans as bars: each item is the wire's, all of them add up, and a word says which plan is dear and why."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from api.convert import to_wire
from api.pictures.picture import Picture
from api.pictures.waterfall import waterfall
from api.plans import PLANS
from api.schemas import RecommendationV1
from recommender.configuring.settings import GroupSettings
from recommender.deciding.recommendation import PricedPlan, Recommendation
from tests.api.pictures.laws import drawn, series, titles

MakeAdvice = Callable[..., Recommendation]


@pytest.fixture(name="picture_of")
def picture_of_fixture(advice: MakeAdvice) -> Callable[..., Picture]:
    """The picture of advice with these fields changed."""

    def made(**changes: object) -> Picture:
        given = advice(**changes)
        sent = to_wire(given, GroupSettings(), now=given.issued_at)
        assert isinstance(sent, RecommendationV1)
        return waterfall(sent)

    return made


def test_each_plan_is_a_bar_whose_items_add_up_to_its_total(picture_of: Callable[..., Picture]) -> None:
    """8 replicas cost 0.38 + 0.05 + 0.01 + 0.05 + 0.1 = 0.59, and staying 0.3 + 1.18 = 1.48."""
    picture = picture_of()
    option = drawn(picture)
    assert [plan["value"] for plan in option["yAxis"]["data"]] == ["8 from 12:02", "12 from 12:02", "stay at 6"]
    assert titles(option) == ["USD over 1 h"]
    bars = [each for each in option["series"] if each["type"] == "bar"]
    totals = [sum(bar["data"][row] for bar in bars) for row in range(3)]
    assert totals == pytest.approx([0.59, 0.59, 1.48])
    marks = series(option, "Total")["data"]
    assert [mark["value"] for mark in marks] == [[pytest.approx(total), row] for row, total in enumerate(totals)]
    assert [mark["label"]["formatter"] for mark in marks] == ["0.590", "0.590", "1.48"]
    assert {bar["stack"] for bar in bars} == {"row"}


def test_the_table_has_the_bars_figures(picture_of: Callable[..., Picture]) -> None:
    """Who cannot see the bars reads the same figures, in the names of the wire."""
    picture = picture_of()
    option = drawn(picture)
    names = {"replicas": "Replicas", "late": "Late messages", "pause_late": "Late by a pause", "start_up": "Start-up"}
    for item, title in (names | {"risk": "Risk of moves"}).items():
        assert list(picture.table.column(item)) == series(option, title)["data"]
    assert picture.table.column("chosen") == (True, False, False)


def test_items_differ_without_their_colours(picture_of: Callable[..., Picture], advice: MakeAdvice) -> None:
    """All eight items, each with a pattern of its own."""
    chosen = replace(advice().chosen, backlog=0.1, duplicates=0.2, restore=0.3)
    bars = [each for each in drawn(picture_of(chosen=chosen))["series"] if each["type"] == "bar"]
    assert len({str(bar["itemStyle"]["decal"]) for bar in bars}) == len(bars) == 8


def test_items_that_cost_nothing_are_left_out(picture_of: Callable[..., Picture]) -> None:
    """Nothing is restored in any plan: no bar, no word in the legend, no column."""
    picture = picture_of()
    assert "Restored state" not in drawn(picture)["legend"]["data"]
    assert "restore" not in [column.name for column in picture.table.columns]


def test_the_sentence_says_what_staying_costs_more_and_why(picture_of: Callable[..., Picture]) -> None:
    """1.48 - 0.59 = 0.89, nearly all of it late messages."""
    assert picture_of().sentence == (
        "Staying at 6 replicas costs 1.48 USD over 1 h, 0.890 more than 8 replicas; "
        "the largest part of what staying costs is late messages."
    )


def test_where_staying_is_advised_the_cheapest_move_stands_beside_it(
    picture_of: Callable[..., Picture], advice: MakeAdvice
) -> None:
    """0.59 for staying, 1.48 for the move, whose late messages are the most of it."""
    given = advice()
    moves = (PricedPlan(desired_replicas=12, execute_at=given.execute_at, cost=given.stay),)
    picture = picture_of(
        action="hold",
        desired_replicas=6,
        chosen=given.chosen,
        stay=given.chosen,
        alternatives=moves,
        currency="pod-hours",
    )
    assert picture.sentence == (
        "Staying at 6 replicas costs 0.590 pod-hours over 1 h, 0.890 less than 12 replicas; "
        "the largest part of what that move costs is late messages."
    )
    assert titles(drawn(picture)) == ["pod-hours over 1 h"]


def test_where_nothing_else_was_priced_the_sentence_says_so(picture_of: Callable[..., Picture]) -> None:
    """One bar, and no plan is compared with itself."""
    picture = picture_of(action="hold", desired_replicas=6, alternatives=())
    assert picture.sentence.endswith("over 1 h; no other plan was priced.")
    assert len(series(drawn(picture), "Total")["data"]) == 1


def test_an_item_below_zero_lies_left_of_zero_and_the_total_is_still_right(
    picture_of: Callable[..., Picture], advice: MakeAdvice
) -> None:
    """Prices of others may be below 0; the mark stands at the sum, not at the end of the bar."""
    option = drawn(picture_of(chosen=replace(advice().chosen, risk=-0.09), alternatives=()))
    assert series(option, "Risk of moves")["data"][0] == -0.09
    assert series(option, "Total")["data"][0]["value"] == [pytest.approx(0.4), 0]


def test_one_picture_shows_a_few_of_many_plans(picture_of: Callable[..., Picture], advice: MakeAdvice) -> None:
    """Fifty plans were priced: the chosen one, staying, and the cheapest."""
    given = advice()
    many = tuple(
        PricedPlan(desired_replicas=12, execute_at=given.execute_at + timedelta(minutes=minute), cost=given.chosen)
        for minute in range(50)
    )
    assert len(drawn(picture_of(alternatives=many))["yAxis"]["data"]) == PLANS + 2
