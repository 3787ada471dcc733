"""The watch: how often it reads, which groups, and that a reading which fails is only a gap."""

# ruff: noqa: D102  # the fake's methods are those of the port

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from collector.errors import UnavailableError
from collector.kafka_admin import Collected
from collector.meter import Interruption
from collector.sample import OffsetSample
from collector.watch import MOST_GROUPS, RESTLESS_SECONDS, Attention, watch_forever

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SAMPLE = OffsetSample(
    cluster="c",
    group="orders",
    topic="orders",
    partition=0,
    sampled_at=NOON,
    end_offset=0,
    committed_offset=0,
    log_start_offset=0,
    group_state="STABLE",
    group_protocol="classic",
    group_assignor="range",
    members=2,
)


class Kafka:
    """A cluster with 40 messages a second, not consumed from the 20th to the 26th second; its clock moves by waiting.

    Readings in the seconds of `down` fail.
    """

    def __init__(self, *, down: tuple[float, float] = (0.0, 0.0)) -> None:
        self.seconds, self.waits = 0.0, list[float]()
        self.requested: list[tuple[str, ...]] = []
        self._down = down

    def clock(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.seconds += seconds
        return self.seconds > 60.0

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        self.requested.append(tuple(groups or ()))
        if self._down[0] <= self.seconds < self._down[1]:
            message = "no answer"
            raise UnavailableError(message)
        is_rebalancing = 20.0 <= self.seconds < 26.0
        rows = (
            replace(
                SAMPLE,
                group=group,
                sampled_at=now,
                end_offset=int(40 * self.seconds),
                committed_offset=800 if is_rebalancing else int(40 * self.seconds) - 1,
                group_state="PREPARING_REBALANCING" if is_rebalancing else "STABLE",
            )
            for group in groups or ()
        )
        return Collected(samples=tuple(rows), errors=())


def watched(kafka: Kafka, *groups: str) -> list[Interruption]:
    found: list[Interruption] = []
    watch_forever(kafka, lambda: groups, found.append, clock=kafka.clock, wait=kafka.wait)
    return found


def test_it_reads_twice_a_second_and_more_often_in_an_interruption() -> None:
    """It reads four times a second for ten seconds and in the rebalance, and else twice a second."""
    kafka = Kafka()
    (found,) = watched(kafka, "orders")
    assert found.kind == "rebalance"
    assert found.rebalance_pause_seconds == pytest.approx(6.0, abs=1.0)
    # The first 40 readings come by 10.25 s, the next 20 by 20.25 s, where the rebalance is seen; it is over at 26.0 s.
    assert set(kafka.waits[1:40]) == {0.25}
    assert set(kafka.waits[40:60]) == {0.5}
    assert set(kafka.waits[60:83]) == {0.25}
    assert set(kafka.waits[83:]) == {0.5}


def test_a_reading_that_fails_is_a_gap() -> None:
    """A rebalance is reported although readings fail for five of its seconds."""
    found = watched(Kafka(down=(21.0, 25.0)), "orders")
    assert [each.kind for each in found] == ["rebalance"]


def test_without_groups_no_request_is_made() -> None:
    """A minute without groups is a minute without requests."""
    kafka = Kafka()
    assert watched(kafka) == []
    assert kafka.requested == []


def round_of(at: float, members: dict[str, int], *, rebalancing: str = "") -> Collected:
    return Collected(
        samples=tuple(
            replace(
                SAMPLE,
                group=group,
                sampled_at=NOON + timedelta(seconds=at),
                members=count,
                group_state="RECONCILING" if group == rebalancing else "STABLE",
            )
            for group, count in members.items()
        ),
        errors=(),
    )


def test_few_groups_are_all_watched() -> None:
    """Eight groups are all watched, whether they change or not."""
    attention = Attention()
    attention.note_round(round_of(0.0, {f"group-{number}": 2 for number in range(MOST_GROUPS)}))
    assert len(attention.groups) == MOST_GROUPS


def test_of_many_groups_those_that_changed_last_are_watched() -> None:
    """Of a hundred groups those whose members changed or that are rebalancing are watched, the last eight of them."""
    attention = Attention()
    everyone = {f"group-{number:02d}": 2 for number in range(100)}
    for group in everyone:
        attention.note_commit_interval(group, 5.0)
    attention.note_round(round_of(0.0, everyone))
    assert list(attention.groups) == []
    attention.note_round(round_of(15.0, everyone | {"group-07": 3}, rebalancing="group-09"))
    assert attention.groups == ("group-07", "group-09")
    for number in range(10):
        attention.note_round(
            round_of(30.0 + 15.0 * number, everyone | {"group-07": 3}, rebalancing=f"group-{number + 20}")
        )
    assert attention.groups == tuple(f"group-{number}" for number in range(22, 30))


def test_of_many_groups_two_at_a_time_have_their_commit_interval_learnt() -> None:
    """Each for two minutes, those again that showed none; groups that are unsettled keep six of eight places."""
    attention, turns = Attention(), list[tuple[str, ...]]()
    everyone = {f"group-{number}": 2 for number in range(9)}
    for number in range(30):
        turns.append(attention.groups)
        attention.note_round(round_of(15.0 * number, everyone))
        if number == 20:
            attention.note_commit_interval("group-4", 30.0)
    assert turns[1:18:8] == [("group-0", "group-1"), ("group-2", "group-3"), ("group-4", "group-5")]
    assert turns[22] == ("group-5", "group-6")
    attention = Attention()
    for number in range(9):
        attention.note_round(round_of(15.0 * number, everyone, rebalancing=f"group-{number}"))
    assert len(attention.groups) == MOST_GROUPS
    assert {"group-2", "group-3"} <= set(attention.groups)


def test_what_the_watch_has_learnt_of_commits_is_in_the_next_round() -> None:
    """40 messages a second, all but one committed at each look: the commit interval is that of the closest looks."""
    kafka, attention = Kafka(), Attention()
    watch_forever(
        kafka,
        lambda: ("orders",),
        lambda _: None,
        on_commit_interval=attention.note_commit_interval,
        clock=kafka.clock,
        wait=kafka.wait,
    )
    rows = attention.with_commit_intervals([SAMPLE, replace(SAMPLE, group="payments")])
    assert [row.commit_interval_seconds for row in rows] == [round(RESTLESS_SECONDS, 1), None]
