"""Arrivals of the past, from a log that is a table here: which minutes are known, and the offset of each partition."""

# ruff: noqa: D102  # the fake's methods are the client's own

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.errors import UnavailableError
from collector.kafka_requests import KafkaRequests
from collector.offsets_for_times import CHUNK_MINUTES, past_samples, plan_backfill
from collector.offsets_topic import Committed, GroupMembers, PastCommits
from collector.sample import OffsetSample
from tests.collector.memory_cluster import settled

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
Log = Sequence[datetime]  # when each message was made; its offset is its place, behind those that were removed


class _Read:
    """The answer of a request of one partition, in flight until it is read."""

    def __init__(self, logs: "MemoryLogs", future: "Future[Any]") -> None:
        self._logs, self._future = logs, future

    def result(self) -> Any:  # noqa: ANN401  # as of a future
        self._logs._unread -= 1
        return self._future.result()


class MemoryLogs:
    """Partitions as lists of instants, some of their first messages removed."""

    def __init__(
        self, logs: Mapping[int, Log], *, gone: Mapping[int, int] | None = None, policy: str = "delete"
    ) -> None:
        self.logs, self.gone, self.policy = logs, dict(gone or {}), policy
        self.away: set[int] = set()
        self.request_count = 0
        self.in_flight: list[int] = []  # with each request, as it is sent
        self._unread = 0

    def poll(self, _: float) -> None: ...

    def describe_configs(self, resources: Sequence[Any]) -> Mapping[Any, "Future[Any]"]:
        return {resource: settled({"cleanup.policy": SimpleNamespace(value=self.policy)}) for resource in resources}

    def list_offsets(self, request: Mapping[TopicPartition, Any]) -> Mapping[TopicPartition, _Read]:
        self.request_count += 1
        self._unread += 1
        self.in_flight.append(self._unread)
        return {key: _Read(self, settled(self._first(key.partition, spec._value))) for key, spec in request.items()}

    def _first(self, partition: int, milliseconds: int) -> object:
        if partition in self.away:
            return KafkaException(KafkaError(KafkaError._TRANSPORT))
        for place, made_at in enumerate(self.logs[partition]):
            stamp = round(made_at.timestamp() * 1000)
            if place >= self.gone.get(partition, 0) and stamp >= milliseconds:
                return SimpleNamespace(offset=place, timestamp=stamp)
        return SimpleNamespace(offset=-1, timestamp=-1)

    def present(self, *, at: datetime = NOON) -> list[OffsetSample]:
        """One reading of every partition by the group `orders`."""
        return [
            OffsetSample(
                cluster="prod-eu",
                group="orders",
                topic="orders-in",
                partition=partition,
                sampled_at=at,
                end_offset=len(log),
                committed_offset=len(log),
                log_start_offset=self.gone.get(partition, 0),
                group_state="STABLE",
                group_protocol="classic",
                group_assignor="range",
                members=3,
            )
            for partition, log in self.logs.items()
        ]

    def requests(self) -> KafkaRequests:
        kafka = KafkaRequests("127.0.0.1:9092", cluster="prod-eu", client_config={})
        kafka._client = self  # type: ignore[assignment]  # it stands where the client stands
        return kafka


def minutes_ago(*minutes: float) -> list[datetime]:
    return [NOON - timedelta(minutes=each) for each in sorted(minutes, reverse=True)]


def known_past(
    cluster: MemoryLogs, *, days: float = 1.0, until: datetime | None = None, commits: PastCommits | None = None
) -> list[OffsetSample]:
    kafka = cluster.requests()
    known_from = {} if until is None else {"orders": until}
    plan = plan_backfill(kafka, cluster.present(), since=NOON - timedelta(days=days), known_from=known_from)
    samples = [sample for chunk in past_samples(kafka, plan, commits or PastCommits()) for sample in chunk]
    assert plan.samples == len(samples)
    return sorted(samples, key=lambda sample: (sample.sampled_at, sample.partition))


def test_the_offset_of_a_minute_is_that_of_the_first_message_from_then_on() -> None:
    """Messages 4.5, 3.5, 3.2 and 1.5 minutes ago give the offsets 1, 3, 3 and 4 from four minutes before noon on."""
    past = known_past(MemoryLogs({0: minutes_ago(4.5, 3.5, 3.2, 1.5)}))
    assert [(sample.sampled_at, sample.end_offset) for sample in past] == [
        (NOON - timedelta(minutes=4), 1),
        (NOON - timedelta(minutes=3), 3),
        (NOON - timedelta(minutes=2), 3),
        (NOON - timedelta(minutes=1), 4),
    ]


def test_fields_that_are_unknown_of_the_past_stay_empty() -> None:
    """Commits, log starts, members and state of the past are None or UNKNOWN, not those of now."""
    for sample in known_past(MemoryLogs({0: minutes_ago(10, 5)})):
        assert (sample.committed_offset, sample.log_start_offset, sample.members) == (None, None, None)
        assert (sample.group_state, sample.group_protocol, sample.group_assignor) == ("UNKNOWN", None, None)


def test_commits_and_members_of_the_past_are_those_of_kafkas_own_topic() -> None:
    """Two members since 4.5 minutes ago, three since 2.5; a commit of what is stamped a little later counts up to then.

    The minutes in which members came have a rebalance in them.
    """
    commits = PastCommits()
    for ago, record in (
        (4.5, GroupMembers("orders", 2)),
        (4.2, Committed("orders", "orders-in", 0, 1)),
        (2.5, GroupMembers("orders", 3)),
        (2.4, Committed("orders", "orders-in", 0, 9)),
    ):
        at = NOON - timedelta(minutes=ago)
        commits.take(record, timestamp_milliseconds=round(at.timestamp() * 1000))
    past = known_past(MemoryLogs({0: minutes_ago(5.5, 4.5, 3.5, 3.2, 1.5)}), commits=commits)
    assert [(row.end_offset, row.committed_offset, row.members, row.group_state) for row in past] == [
        (1, None, None, "UNKNOWN"),
        (2, 1, 2, "PREPARING_REBALANCING"),
        (4, 1, 2, "STABLE"),
        (4, 4, 3, "PREPARING_REBALANCING"),
        (5, 5, 3, "STABLE"),
    ]


def test_history_begins_with_the_oldest_message_that_is_kept() -> None:
    """Of six messages three have expired: nothing is known before the fourth, 3 minutes ago."""
    past = known_past(MemoryLogs({0: minutes_ago(8, 7, 6, 3, 2.5, 1.5)}, gone={0: 3}))
    assert past[0].sampled_at == NOON - timedelta(minutes=2)
    assert past[0].end_offset == 5


def test_a_partition_with_few_messages_does_not_shorten_the_history_of_the_others() -> None:
    """A partition with one kept message leaves the five hours of the other partition, with 300 messages, known."""
    busy, idle = minutes_ago(*range(1, 301)), minutes_ago(400, 1)
    past = known_past(MemoryLogs({0: busy, 1: idle}, gone={1: 1}))
    assert past[0].sampled_at == NOON - timedelta(minutes=299)
    assert {sample.partition for sample in past} == {0, 1}


def test_partitions_without_a_kept_message_have_a_constant_offset() -> None:
    """A partition of which both messages expired has the offset 2 in every minute."""
    past = known_past(MemoryLogs({0: minutes_ago(5, 4), 1: minutes_ago(900, 800)}, gone={1: 2}))
    assert {sample.end_offset for sample in past if sample.partition == 1} == {2}


def test_nothing_is_known_of_a_group_without_a_kept_message() -> None:
    """An empty topic has no past."""
    assert known_past(MemoryLogs({0: []})) == []


def test_stored_minutes_are_not_requested_again() -> None:
    """With samples from 11:50:14 on the past ends at 11:50, and with samples of all of it the past is empty."""
    cluster = MemoryLogs({0: minutes_ago(*range(1, 61))})
    first = known_past(cluster, until=NOON - timedelta(minutes=9, seconds=46))
    assert first[-1].sampled_at == NOON - timedelta(minutes=10)
    assert known_past(cluster, until=first[0].sampled_at) == []


def test_what_came_after_known_samples_is_requested_on_demand_and_what_is_known_is_not() -> None:
    """Samples from 40 to 20 minutes ago: the ten minutes before them, and the nineteen since, no minute twice."""
    cluster = MemoryLogs({0: minutes_ago(*range(51))})
    kafka = cluster.requests()
    plan = plan_backfill(
        kafka,
        cluster.present(),
        since=NOON - timedelta(days=1),
        known_from={"orders": NOON - timedelta(minutes=40)},
        known_until={"orders": NOON - timedelta(minutes=20)},
    )
    chunks = list(past_samples(kafka, plan, PastCommits()))
    ago = [round((NOON - sample.sampled_at) / timedelta(minutes=1)) for chunk in chunks for sample in chunk]
    assert ago == [*range(1, 20), *range(41, 50)]
    assert plan.samples == len(ago) == len(plan.minutes)


def test_compacted_topics_are_left_out() -> None:
    """A compacted topic is left out, as its offsets do not count the messages that were produced."""
    cluster = MemoryLogs({0: minutes_ago(9, 5)}, policy="compact,delete")
    plan = plan_backfill(cluster.requests(), cluster.present(), since=NOON - timedelta(days=1), known_from={})
    assert (plan.left_out, plan.samples, len(plan.minutes)) == (frozenset({"orders-in"}), 0, 0)


def test_chunks_come_newest_first_and_each_minute_is_one_request() -> None:
    """Two and a half days are 3 chunks, read by one request for each minute and one for the oldest message."""
    cluster = MemoryLogs({0: minutes_ago(*range(1, 3600, 60))})
    kafka = cluster.requests()
    plan = plan_backfill(kafka, cluster.present(), since=NOON - timedelta(days=7), known_from={})
    chunks = list(past_samples(kafka, plan, PastCommits()))
    assert [len(chunk) for chunk in chunks] == [CHUNK_MINUTES, CHUNK_MINUTES, len(plan.minutes) - 2 * CHUNK_MINUTES]
    assert chunks[0][0].sampled_at == NOON - timedelta(minutes=1)
    assert chunks[0][0].sampled_at > chunks[1][0].sampled_at > chunks[2][0].sampled_at
    assert cluster.request_count == len(plan.minutes) + 1


def test_a_partition_without_an_answer_is_left_out_and_a_topic_without_any_is_an_error() -> None:
    """With one leader down the other partition has its samples; with all down an error is raised."""
    cluster = MemoryLogs({0: minutes_ago(9, 5), 1: minutes_ago(8, 4)})
    kafka = cluster.requests()
    plan = plan_backfill(kafka, cluster.present(), since=NOON - timedelta(days=1), known_from={})
    cluster.away = {1}
    assert {sample.partition for chunk in past_samples(kafka, plan, PastCommits()) for sample in chunk} == {0}
    cluster.away = {0, 1}
    with pytest.raises(UnavailableError, match="the offset of 2026-01-05T11:5"):
        list(past_samples(kafka, plan, PastCommits()))


def test_requests_are_in_flight_together_only_while_every_partition_answers() -> None:
    """The client's process may end where requests for leaders that it does not know meet: those are sent alone."""
    cluster = MemoryLogs({0: minutes_ago(*range(1, 200))})
    kafka = cluster.requests()
    plan = plan_backfill(kafka, cluster.present(), since=NOON - timedelta(days=1), known_from={})
    cluster.in_flight.clear()
    for _ in past_samples(kafka, plan, PastCommits()):
        pass
    assert cluster.in_flight[:3] == [1, 1, 2]
    assert max(cluster.in_flight) == 20

    cluster.in_flight.clear()
    cluster.away = {0}
    answers = kafka.offsets_at([("orders-in", 0)], [NOON] * 50)
    assert [len(each.failed) for _, each in answers] == [1] * 50
    assert set(cluster.in_flight) == {1}


@settings(max_examples=40)
@given(st.lists(st.lists(st.floats(1.0, 90.0), max_size=40), min_size=1, max_size=4), st.data())
def test_differences_of_offsets_are_the_messages_produced_in_between(
    ages: list[list[float]], data: st.DataObject
) -> None:
    """Offsets of successive minutes differ by the kept messages that were produced then, whatever has expired."""
    logs = {partition: minutes_ago(*each) for partition, each in enumerate(ages)}
    gone = {partition: data.draw(st.integers(0, len(log))) for partition, log in logs.items()}
    past = known_past(MemoryLogs(logs, gone=gone))
    for partition, log in logs.items():
        known = [sample for sample in past if sample.partition == partition]
        for before, after in pairwise(known):
            made = sum(before.sampled_at <= made_at < after.sampled_at for made_at in log[gone[partition] :])
            assert after.end_offset - before.end_offset == made
