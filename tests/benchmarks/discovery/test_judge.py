"""The judgement of the lab of ten groups: what counts as found, assumed, wrong and silent, and from which minute on."""

from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.discovery.judge import Found, Judged, Told, judged, reading_of, verdict_of

TRUTH: Mapping[str, str | bool | float] = {
    "protocol": "cooperative",
    "static_membership": False,
    "commit_interval_seconds": 1.0,
    "members": 3.0,
    "work_units": 12.0,
    "capacity": 25.0,
}


def advice(*figures: tuple[str, object, str], p50: float = 25.0, source: str = "saturated_windows") -> dict[str, Any]:
    """Advice as REST has it, for a group of three members."""
    return {
        "kind": "Recommendation",
        "reason": {"code": "AtTarget"},
        "current_replicas": 3,
        "useful_replicas": [1, 2, 3, 4, 6, 12],
        "capacity_messages_per_second_per_replica": {"p20": p50, "p50": p50, "p90": p50, "source": source},
        "profile": [{"name": name, "value": value, "source": told} for name, value, told in figures],
    }


def refused(code: str) -> dict[str, Any]:
    """A refusal as REST has it."""
    return {"kind": "Refusal", "reason": {"code": code}}


def found(*decisions: dict[str, Any]) -> Found:
    """What one decision a minute, from minute 1 on, has found."""
    return judged([reading_of(each, minute=float(minute)) for minute, each in enumerate(decisions, start=1)], TRUTH)


def figure(of: Found, name: str) -> Judged:
    """One of the figures."""
    return next(each for each in of.figures if each.name == name)


RIGHT = (("protocol", "cooperative", "detected"), ("static_membership", False, "detected"))


def test_a_figure_is_found_where_it_was_detected_and_is_true() -> None:
    """As are the members and the partitions, which advice tells beside its profile; what is not told is silent."""
    of = found(advice(*RIGHT, ("commit_interval_seconds", 5.0, "assumed")))
    verdicts = {each.name: each.verdict for each in of.figures}
    assert verdicts == {
        "protocol": "found",
        "static_membership": "found",
        "commit_interval_seconds": "off",
        "members": "found",
        "work_units": "found",
        "capacity": "found",
    }
    assert figure(found(advice()), "protocol").verdict == "silent"


def test_a_wrong_figure_counts_as_wrong_unless_it_is_marked_as_assumed() -> None:
    """The same value is wrong as detected or measured, and off as assumed or taken from similar groups."""
    for source, verdict in {
        "detected": "wrong",
        "measured": "wrong",
        "assumed": "off",
        "similar_groups": "off",
    }.items():
        assert figure(found(advice(("protocol", "eager", source))), "protocol").verdict == verdict


def test_a_figure_that_was_wrong_once_stays_wrong() -> None:
    """Whoever read the advice of that minute was misled, though a later one is right."""
    of = found(advice(("protocol", "eager", "detected")), advice(*RIGHT))
    assert (figure(of, "protocol").verdict, figure(of, "protocol").wrong_at_minute) == ("wrong", 1.0)
    changing = found({**advice(*RIGHT), "current_replicas": 0}, advice(*RIGHT))
    assert (figure(changing, "members").verdict, figure(changing, "members").wrong_at_minute) == ("found", 1.0)
    learnt = figure(found(advice(p50=28.0), advice(p50=26.0)), "capacity")
    assert (learnt.verdict, learnt.wrong_at_minute) == ("found", 1.0)


@pytest.mark.parametrize(
    ("value", "source", "verdict"),
    [
        (27.4, "measured", "found"),
        (27.6, "measured", "wrong"),
        (22.6, "lower_bound", "assumed"),
        (12.0, "lower_bound", "off"),
        (24.0, "unsaturated_windows", "assumed"),
    ],
)
def test_a_capacity_is_right_within_a_tenth_and_marked_where_it_is_a_bound(
    value: float, source: str, verdict: str
) -> None:
    """Of 25 messages/s."""
    assert verdict_of("capacity", Told(value=value, source=source), 25.0) == verdict


def test_minutes_count_from_the_first_advice_and_from_when_the_capacity_stayed_right() -> None:
    """Refused for two minutes, right by chance in the third, and right for good from the fifth on."""
    right, low = advice(*RIGHT), advice(*RIGHT, p50=12.0, source="lower_bound")
    of = found(refused("CapacityUnknown"), refused("CapacityUnknown"), right, low, right, right)
    assert (of.first_advice_minute, of.capacity_minute) == (3.0, 5.0)
    assert of.refusals == (("CapacityUnknown", 1.0, 2.0),)
    never = found(refused("NoData"), low)
    assert (never.first_advice_minute, never.capacity_minute) == (2.0, None)


def test_refusals_are_told_with_each_reason_and_its_minutes() -> None:
    """One after the other, also after advice."""
    of = found(
        refused("NoData"), refused("CapacityUnknown"), advice(), refused("HistoryStale"), refused("HistoryStale")
    )
    assert of.refusals == (("NoData", 1.0, 1.0), ("CapacityUnknown", 2.0, 2.0), ("HistoryStale", 4.0, 5.0))
    nothing = found(refused("NoData"))
    assert nothing.first_advice_minute is None
    assert {each.verdict for each in nothing.figures} == {"silent"}
