"""The league as points: cost of replicas against late messages, the front of those that nobody beats in both."""

from typing import Literal

import pytest

from api.pictures.league import FRONT, Standing, league
from tests.api.pictures.laws import drawn, series, titles


def standing(
    policy: str, replicas: float, late_share: float, part: Literal["rival", "ours", "bound"] = "rival"
) -> Standing:
    """A policy that pays so much for replicas, and 100 for each late share of 1."""
    return Standing(
        policy=policy,
        replicas=replicas,
        late=100 * late_share,
        duplicates=0.5,
        late_share=late_share,
        wait_p99_seconds=2.0,
        moves=3,
        part=part,
    )


STANDINGS = (
    standing("Fixed at peak", 190, 0.0),
    standing("HPA", 110, 0.03),
    standing("KEDA", 120, 0.05),
    standing("lagcast", 80, 0.01, "ours"),
    standing("Perfect hindsight", 76, 0.0, "bound"),
)


def test_each_policy_is_a_point_of_its_share_of_late_messages_and_its_cost_of_replicas() -> None:
    """In percent and in the currency; ours and the bound have marks of their own, which differ in shape."""
    picture = league(STANDINGS, currency="USD")
    option = drawn(picture)
    shown = [each for name in ("Others", "Ours", "Knows the future") for each in series(option, name)["data"]]
    points = [(each["name"], *each["value"][:2]) for each in shown]
    table = zip(*(picture.table.column(name) for name in ("policy", "late_percent", "replicas")), strict=True)
    assert points == list(table)
    assert points[1] == ("HPA", pytest.approx(3.0), 110)
    assert titles(option) == ["late messages, %", "cost of replicas, USD"]
    assert len({each["symbol"] for each in option["series"][:3]}) == 3
    assert [each["name"] for each in series(option, "Ours")["data"]] == ["lagcast"]


def test_the_front_joins_those_that_nobody_beats_in_both() -> None:
    """Fixed is never late and ours is cheapest; HPA and KEDA are beaten in both; who knows the future takes no part."""
    front = series(drawn(league(STANDINGS, currency="USD")), FRONT)
    assert (front["type"], front["step"]) == ("line", "end")
    assert front["data"] == [[0.0, 190], [1.0, 80]]


def test_of_two_with_as_few_late_messages_the_cheaper_one_is_on_the_front() -> None:
    """A corner has one point, not a spike."""
    equal = (standing("a", 5, 0.01), standing("b", 4, 0.01), standing("c", 4, 0.02))
    assert series(drawn(league(equal, currency="USD")), FRONT)["data"] == [[1.0, 4]]


def test_the_sentence_has_the_whole_cost_of_ours_of_the_best_rival_and_of_the_bound() -> None:
    """80 + 1 + 0.5 = 81.5 and 110 + 3 + 0.5 = 113.5: totals decide, replicas alone do not."""
    assert league(STANDINGS, currency="USD").sentence == (
        "lagcast costs 81.5 USD with all its items; HPA, the cheapest of 3 others, costs 114 USD. "
        "Perfect hindsight would cost 76.5 USD."
    )


def test_alone_nobody_is_compared() -> None:
    """One policy is a point without a rank."""
    alone = league(STANDINGS[3:4], currency="pod-hours")
    assert alone.sentence == "There is nobody to compare with."
    assert titles(drawn(alone)) == ["late messages, %", "cost of replicas, pod-hours"]
