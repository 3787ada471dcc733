"""The figures of a soak: what the log, the store and the looks at the memory are taken to say."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.soak.judge import Cycle, Struck, cycles_to_advice, growth, log_of
from benchmarks.soak.stage import Look

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def struck(*, failure: str = "") -> Struck:
    """A fault that was over a minute after noon, before which ten groups had advice."""
    over = NOON + timedelta(minutes=1)
    return Struck(name="any", began_at=NOON, ended_at=over, seconds=60.0, advised=10, failure=failure)


def cycles(*advised: int) -> list[Cycle]:
    """A cycle each minute from noon on."""
    return [Cycle(at=NOON + timedelta(minutes=number), advised=count) for number, count in enumerate(advised)]


@pytest.mark.parametrize(
    ("advised", "number"),
    [
        ((10, 10, 10), 1),  # the cycle of the instant in which the fault ended began before its end
        ((10, 0, 0, 10), 2),
        ((10, 10, 9, 9), None),
        ((10, 10), None),
    ],
)
def test_the_first_cycle_after_a_fault_counts_as_one(advised: tuple[int, ...], number: int | None) -> None:
    """None where the groups that had advice never have it again."""
    assert cycles_to_advice(struck(), cycles(*advised)) == number


def test_a_fault_that_was_never_over_has_no_cycle() -> None:
    """Even where all groups have advice."""
    assert cycles_to_advice(struck(failure="not over after 240 s"), cycles(10, 10, 10)) is None


def test_a_log_tells_what_is_not_over_and_what_nobody_has_foreseen() -> None:
    """A failure and its end name the same unit; the traceback of a part is the told fault itself."""
    lines = [
        {"event": "cycle", "decisions": 12},
        {"event": "step_failed", "name": "store", "error": "away"},
        {"event": "step_failed", "name": "histories", "error": "no folder"},
        {"event": "step_works_again", "name": "store"},
        {"event": "group_failed", "group": "orders", "error": "denied"},
        {"event": "group_failure_over", "group": "orders"},
        {"event": "part_failed", "name": "features", "error": "killed", "exception": "Traceback"},
        {"event": "part_works_again", "name": "features"},
        {"event": "publishing_failed", "where": "Kafka", "error": "timed out"},
        {"event": "publishing_resumed", "where": "Kafka", "undelivered_messages": 3},
        {"event": "group_failed", "name": "c/orders", "error": "KeyError", "exception": "Traceback"},
        {"event": "group_works_again", "name": "c/orders"},
    ]
    log = log_of("\n".join(["words", *map(json.dumps, lines), "Traceback (most recent call last):"]))
    assert log.decisions == [12]
    assert log.not_over == ["step_failed histories: no folder"]
    assert log.tracebacks == ["group_failed c/orders: KeyError", "Traceback (most recent call last):"]
    assert log.undelivered == 3


def test_memory_that_grows_steadily_is_told_by_its_ends() -> None:
    """From 104 to 124 MB in a day is a fifth; the first hour, in which processes start, does not count."""
    looks = [Look(0.0, 500.0, 1), *(Look(hour / 10, 100.0 + hour / 10, 1) for hour in range(10, 250))]
    assert growth(looks, settling=1.0) == pytest.approx(123.0 / 103.0, rel=0.01)


def test_the_memory_of_a_process_that_a_fault_has_ended_is_not_compared_with_the_next_ones() -> None:
    """One of 100 MB for 16 hours, and one of 150 for eight: neither has grown; one that grows is seen to."""
    first = [Look(hour / 10, 100.0, 1) for hour in range(160)]
    assert growth([*first, *(Look(hour / 10, 150.0, 2) for hour in range(160, 240))], settling=1.0) == 1.0
    growing = [Look(hour / 10, 100.0 + hour, 2) for hour in range(60, 240)]
    assert growth([*first[:60], *growing], settling=1.0) > 1.5
