"""The meter on a real broker: stops and rebalances of known length are measured within a second or a fifth."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise

import pytest
from confluent_kafka import Consumer

from collector.kafka_admin import KafkaAdminCollector
from collector.meter import Interruption
from collector.watch import watch_forever
from forecasting.columns import REBALANCING_STATES
from tests.live.harness.clients import (
    NOON,
    create_topic,
    fresh_name,
    has_members,
    produced_steadily,
    read_until,
    wait_until,
)
from tests.live.harness.executors import read_clock

pytestmark = [pytest.mark.kafka, pytest.mark.alone]

PARTITIONS = 4
# Twenty messages a second into each partition.
produced = partial(produced_steadily, partitions=PARTITIONS, every_seconds=0.05)


class Stoppable:
    """A member that can be stopped, and that knows from its messages how long each partition was not read."""

    def __init__(self, bootstrap: str, group: str, topic: str, *, commit_milliseconds: int = 200) -> None:
        commits = {"auto.commit.interval.ms": str(commit_milliseconds)}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **commits})
        self._consumer.subscribe([topic])
        self._orders: list[float] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self.read: dict[int, list[float]] = {}

    def stop_for(self, seconds: float) -> None:
        """Process nothing for so long, from the next poll on."""
        self._orders.append(seconds)

    def _poll(self) -> None:
        while not self._ending.is_set():
            if self._orders:
                time.sleep(self._orders.pop())
            message = self._consumer.poll(0.02)
            if message is not None and message.error() is None:
                self.read.setdefault(message.partition() or 0, []).append(time.monotonic())
        self._consumer.close()

    @contextmanager
    def polling(self) -> Iterator["Stoppable"]:
        """Be in the group until the block ends."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            self._thread.join()


@contextmanager
def watched(
    bootstrap: str, group: str, on_commit_interval: Callable[[str, float], object] = lambda _group, _seconds: None
) -> Iterator[list[Interruption]]:
    """The watch's findings about the group, added as they are made."""
    found: list[Interruption] = []
    stop, collector = threading.Event(), KafkaAdminCollector(bootstrap, cluster="live")
    thread = threading.Thread(
        target=watch_forever,
        args=(collector, lambda: [group], found.append),
        kwargs={"clock": read_clock, "wait": stop.wait, "on_commit_interval": on_commit_interval},
    )
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()


def first_that_ends_after(
    found: list[Interruption], instant: datetime, *, look: Callable[[], object] = lambda: None
) -> Interruption:
    """The interruption of the stop that lasts until then; a busy machine may stop a member for a second before.

    `look` is called again and again until it is found.
    """

    def ended() -> bool:
        look()
        return any(each.ended_at > instant for each in found)

    wait_until(ended)
    return next(each for each in found if each.ended_at > instant)


def longest_gap(*members: Stoppable, partition: int, since: float) -> float:
    """The longest time in which no member read a message of the partition, by the instants of their reads."""
    instants = sorted(at for member in members for at in member.read.get(partition, []) if at >= since)
    return max(after - before for before, after in pairwise(instants))


def test_stops_of_known_length_are_measured(bootstrap: str, collector: KafkaAdminCollector) -> None:
    """A consumer that is stopped for 2, 5 and 12 s is reported as a stall of all partitions, each with its length."""
    topic, group = fresh_name("topic"), fresh_name("group")
    create_topic(bootstrap, topic, partitions=PARTITIONS)
    with (
        produced(bootstrap, [topic]),
        Stoppable(bootstrap, group, topic).polling() as member,
    ):
        read_until(collector, group, has_members(1))
        with watched(bootstrap, group) as found:
            time.sleep(12.0)
            for seconds in (2.0, 5.0, 12.0):
                commanded_at, since = read_clock(), time.monotonic() - 1.0
                member.stop_for(seconds)
                interruption = first_that_ends_after(found, commanded_at + timedelta(seconds=seconds))
                time.sleep(1.0)
                assert (interruption.kind, len(interruption.stops)) == ("stall", PARTITIONS)
                for stop in interruption.stops:
                    gap = longest_gap(member, partition=stop.partition, since=since)
                    assert gap >= seconds
                    assert stop.seconds == pytest.approx(gap, abs=max(1.0, 0.2 * gap))


def test_b17_a_rebalance_of_known_length_is_measured(bootstrap: str, collector: KafkaAdminCollector) -> None:
    """A second member joins while the first is busy for 6 s: all stop until it answers, and the meter reports it."""
    topic, group = fresh_name("topic"), fresh_name("group")
    create_topic(bootstrap, topic, partitions=PARTITIONS)
    with ExitStack() as ends:
        ends.enter_context(produced(bootstrap, [topic]))
        first = ends.enter_context(Stoppable(bootstrap, group, topic).polling())
        read_until(collector, group, has_members(1))
        found = ends.enter_context(watched(bootstrap, group))
        time.sleep(8.0)
        commanded_at, since = read_clock(), time.monotonic() - 1.0
        first.stop_for(6.0)
        time.sleep(0.5)
        second = ends.enter_context(Stoppable(bootstrap, group, topic).polling())
        unrest: list[float] = []

        def look() -> None:
            if {row.group_state for row in collector.collect([group], now=NOON).samples} <= REBALANCING_STATES:
                unrest.append(time.monotonic())

        interruption = first_that_ends_after(found, commanded_at + timedelta(seconds=6), look=look)
        time.sleep(1.0)
        gaps = [longest_gap(first, second, partition=number, since=since) for number in range(PARTITIONS)]
    assert (interruption.kind, interruption.members_before, interruption.members_after) == ("rebalance", 1, 2)
    assert [stop.partition for stop in interruption.stops] == list(range(PARTITIONS))
    for stop, gap in zip(interruption.stops, gaps, strict=True):
        assert gap >= 5.5
        assert stop.seconds == pytest.approx(gap, abs=max(1.0, 0.2 * gap))
    assert interruption.rebalancing_seconds == pytest.approx(unrest[-1] - unrest[0], abs=1.5)
    assert interruption.rebalancing_seconds > 2.0
    assert interruption.repeated_messages_least == 0


@pytest.mark.parametrize(("milliseconds", "seconds"), [(1000, 1.0), (3000, 3.0)])
def test_how_often_a_group_commits_is_measured(
    bootstrap: str, collector: KafkaAdminCollector, milliseconds: int, seconds: float
) -> None:
    """A tenth of it and a quarter of a second may be off; nobody tells lagcast how the consumer is set."""
    topic, group = fresh_name("topic"), fresh_name("group")
    create_topic(bootstrap, topic, partitions=PARTITIONS)
    member = Stoppable(bootstrap, group, topic, commit_milliseconds=milliseconds)
    with produced(bootstrap, [topic]), member.polling():
        read_until(collector, group, has_members(1))
        intervals: list[float] = []
        with watched(bootstrap, group, lambda _, learnt: intervals.append(learnt)):
            wait_until(lambda: intervals)
    assert intervals[0] == pytest.approx(seconds, rel=0.1, abs=0.25)
