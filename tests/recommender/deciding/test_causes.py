"""Causes of a backlog, in rows whose messages can be counted by hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from cost_model.physics.profile import GroupProfile, StreamsProfile
from forecasting.history import History
from recommender.deciding.causes import cause_of
from recommender.deciding.context import DecisionContext

MakeContext = Callable[..., DecisionContext]
MakeHistory = Callable[..., History]
# Eight replicas carry 8,000/s; 6,000/s come; the promise of 10 s is kept while 60,000 wait.
RATE, WAITS = 6000.0, 200_000.0


@pytest.fixture(name="caused")
def caused_fixture(context: MakeContext, history: MakeHistory) -> Callable[..., str | None]:
    """`caused(changes, ...)`: the cause after a quarter of an hour whose newest rows are changed so, oldest first."""

    def caused(*changes: dict[str, object]) -> str | None:
        past = history(RATE)
        first = len(past.recent) - len(changes)
        changed = [
            replace(row, lag_messages=WAITS, **change)  # type: ignore[arg-type]  # columns of a row
            for row, change in zip(past.recent[first:], changes, strict=True)
        ]
        rows = (*past.recent[:first], *changed)
        return cause_of(
            context(
                history=replace(past, recent=rows), produce_messages_per_second=RATE, backlog_messages=WAITS - 15_000.0
            )
        )

    return caused


STOOD: dict[str, object] = {"consume_messages_per_second": 0.0}
DRAINS: dict[str, object] = {"consume_messages_per_second": 8000.0}
WEAK: dict[str, object] = {"consume_messages_per_second": 3000.0}
PEAK: dict[str, object] = {"produce_messages_per_second": 12_000.0, "consume_messages_per_second": 8000.0}


def test_what_waits_is_counted_since_it_began(caused: Callable[..., str | None]) -> None:
    """Standing still leaves 90,000 in a row, half the work 45,000, and twelve thousands a second 60,000."""
    assert caused(STOOD, STOOD, DRAINS) == "restart_backlog"
    assert caused({"in_rebalance": True, **WEAK}, {"members": 0, **WEAK}, DRAINS) == "restart_backlog"
    assert caused(WEAK, WEAK, WEAK) == "capacity_drop"
    assert caused(PEAK, PEAK, DRAINS) == "load"
    assert caused(STOOD, WEAK) == "restart_backlog"
    assert caused(STOOD, WEAK, WEAK, WEAK) == "capacity_drop"
    assert caused(STOOD, PEAK) == "restart_backlog"
    assert caused(STOOD, PEAK, PEAK) == "load"


def test_commits_of_an_application_that_are_not_due_yet_are_no_backlog(
    context: MakeContext, history: MakeHistory, profile: GroupProfile
) -> None:
    """Kafka Streams commits each 30 s: 40 s of lag are within the promise of 10 s, and a stop before them is over."""
    past = history(RATE)
    stood, within, weak = (
        replace(past.recent[-1], lag_messages=seconds * RATE, consume_messages_per_second=consumed)
        for seconds, consumed in ((60.0, 0.0), (39.0, 6000.0), (60.0, 3000.0))
    )
    made = context(
        history=replace(past, recent=(*past.recent[:-3], stood, within, weak)),
        produce_messages_per_second=RATE,
        backlog_messages=45.0 * RATE,
        profile=replace(profile, streams=StreamsProfile(stateful=False, tasks=24)),
    )
    assert cause_of(made) == "capacity_drop"


def test_without_a_backlog_or_its_begin_there_is_no_cause(
    caused: Callable[..., str | None], context: MakeContext
) -> None:
    """Within the promise nothing is asked; a backlog that drains all the time is older than the rows."""
    assert cause_of(context()) is None
    assert caused(*[DRAINS] * 60) is None
