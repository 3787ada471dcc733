"""Failures of a real Kafka, and the recommender's response: advice, or a refusal with its reason."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from collector.isolated import IsolatedCollector
from collector.kafka_admin import KafkaAdminCollector
from forecasting.refusal import Refusal
from recommender.deciding.recommendation import Recommendation
from tests.live.harness.broker import running_brokers
from tests.live.harness.clients import commit, create_topic, fresh_name, has_members, member, read_until
from tests.live.harness.watched import MESSAGES_PER_LOOK, Watched
from tests.live.test_incidents import QUICK, coordinators, one_group_for_each

pytestmark = pytest.mark.kafka

PARTITIONS = 3
# Commits come so often that a test need not wait for them.
PROMPT = {"auto.commit.interval.ms": "100", "session.timeout.ms": "6000"}


@pytest.fixture
def orders(bootstrap: str) -> str:
    """A fresh topic of three partitions and a group of the same name, with commits at the start of each."""
    name = fresh_name("orders")
    create_topic(bootstrap, name, partitions=PARTITIONS)
    commit(bootstrap, name, *[TopicPartition(name, number, 0) for number in range(PARTITIONS)])
    return name


def caught_up(lags: Mapping[int, int]) -> bool:
    return not any(lags.values())


def refused(watched: Watched) -> Refusal:
    decision = watched.decision()
    assert isinstance(decision, Refusal), decision
    return decision


def advised(watched: Watched) -> Recommendation:
    decision = watched.decision()
    assert isinstance(decision, Recommendation), decision
    return decision


def test_a_coordinator_that_moves_costs_readings_and_no_figure(jars: Path, tmp_path: Path) -> None:
    """While the group has no coordinator it is refused as unreachable; then advice goes on with the same commits."""
    replicated = {"offsets.topic.num.partitions": "10", "offsets.topic.replication.factor": "2"}
    with ExitStack() as stops:
        first, second = stops.enter_context(running_brokers(jars, tmp_path, count=2, properties=replicated))
        _, group = one_group_for_each(first.address)
        admin = AdminClient({"bootstrap.servers": first.address})
        topic = NewTopic(group, PARTITIONS, replica_assignment=[[1]] * PARTITIONS)
        admin.create_topics([topic])[group].result()
        commit(first.address, group, *[TopicPartition(group, number, 0) for number in range(PARTITIONS)])
        make = partial(KafkaAdminCollector, first.address, cluster="live", client_config=QUICK)
        collector = stops.enter_context(IsolatedCollector(make))
        watched = Watched(collector, first.address, group, group, partitions=PARTITIONS, members=1)
        stops.enter_context(member(f"{first.address},{second.address}", group, group, **PROMPT))
        for _ in range(3):
            watched.arrive()
            watched.look_when(caught_up)
        before = advised(watched)
        second.stop()
        until, unread = time.monotonic() + 40, []
        while time.monotonic() < until:
            watched.look()
            if watched.obstacle is None and not watched.rows[-1].in_rebalance and watched.rows[-1].members == 1:
                break
            unread.append(watched.obstacle)
            time.sleep(0.5)
        assert coordinators(first.address, [group]) == {group: 1}
        for _ in range(3):
            watched.arrive()
            watched.look_when(caught_up)
        after = advised(watched)
    assert all(obstacle is None or obstacle.reason == "source_unreachable" for obstacle in unread)
    assert sum(row.offset_reset_count for row in watched.rows) == 0
    assert watched.rows[-1].lag_messages == 0.0
    assert (after.current_replicas, after.desired_replicas) == (before.current_replicas, before.desired_replicas)


def test_transactions_are_arrivals_when_they_are_committed(bootstrap: str, orders: str) -> None:
    """Messages of an open transaction are neither lag nor arrivals; markers and aborted messages need no replica."""
    collector = KafkaAdminCollector(bootstrap, cluster="live", read_committed=[orders])
    watched = Watched(collector, bootstrap, orders, orders, partitions=PARTITIONS, members=1)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": orders})
    producer.init_transactions(30)

    def begin() -> None:
        producer.begin_transaction()
        for number in range(PARTITIONS * MESSAGES_PER_LOOK):
            producer.produce(orders, b"m", partition=number % PARTITIONS)
        assert producer.flush(10) == 0

    def ended(transactions: int) -> None:
        # The client gets its answer when the coordinator has it; the markers reach the partitions a moment later.
        end_offset = transactions * (MESSAGES_PER_LOOK + 1)
        read_until(collector, orders, lambda rows: {row.end_offset for row in rows} == {end_offset})

    with member(bootstrap, orders, orders, **PROMPT, **{"isolation.level": "read_committed"}):
        read_until(collector, orders, has_members(1))
        for transactions in (1, 2):
            begin()
            producer.commit_transaction(10)
            ended(transactions)
            watched.look_when(caught_up)
        begin()
        for _ in range(3):
            watched.look_when(caught_up)
        assert {row.produce_messages_per_second for row in watched.rows[-3:]} == {0.0}
        assert {row.lag_messages for row in watched.rows[-3:]} == {0.0}
        producer.commit_transaction(10)
        ended(3)
        watched.look_when(caught_up)
        # 60 messages and a marker in each partition, in 15 s.
        assert watched.rows[-1].produce_messages_per_second == pytest.approx(PARTITIONS * (MESSAGES_PER_LOOK + 1) / 15)
        begin()
        producer.abort_transaction(10)
        ended(4)
        watched.look_when(caught_up)
        decision = advised(watched)
    assert watched.rows[-1].lag_messages == 0.0
    assert decision.observed.lag_messages == 0.0
    assert decision.action != "scale_out"


def test_b21_a_rolling_restart_is_waited_for(bootstrap: str, orders: str, collector: KafkaAdminCollector) -> None:
    """Three members replaced one by one are a rollout, and two minutes after the last of them advice is back."""
    # Three are what 12 messages/s need: with more room, advice to do with fewer would explain the rebalances.
    watched = Watched(collector, bootstrap, orders, orders, partitions=PARTITIONS, members=3, capacity=6.0)
    with ExitStack() as stops:
        pods = [ExitStack() for _ in range(3)]
        for pod in pods:
            stops.push(pod)
            pod.enter_context(member(bootstrap, orders, orders, **PROMPT))
        read_until(collector, orders, has_members(3))
        for _ in range(2):
            watched.arrive()
            watched.look_when(caught_up)
        assert advised(watched).current_replicas == 3
        for pod in pods:
            pod.close()
            read_until(collector, orders, has_members(2))
            watched.arrive()
            watched.look()
            pod.enter_context(member(bootstrap, orders, orders, **PROMPT))
            read_until(collector, orders, has_members(3))
            watched.arrive()
            watched.look_when(caught_up)
        during = refused(watched)
        for _ in range(20):
            watched.arrive()
            watched.look_when(caught_up)
        after = advised(watched)
    assert during.reason == "rollout_in_progress"
    assert "and still 3 members: pods are being replaced." in during.sentence
    assert during.hold_replicas == 3
    assert after.current_replicas == 3


@contextmanager
def poisoned(bootstrap: str, group: str, *, partition: int) -> Iterator[None]:
    """A member that fails at each message of one partition, goes back to it, and works on all others."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.offset.store": False,
            **PROMPT,
        }
    )
    consumer.subscribe([group])
    stopping = threading.Event()

    def work() -> None:
        while not stopping.is_set():
            message = consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            place = TopicPartition(group, message.partition() or 0, message.offset() or 0)
            if place.partition == partition:
                consumer.seek(place)
            else:
                consumer.store_offsets(message)
        consumer.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def test_a_poison_message_is_reported_with_its_partition(
    bootstrap: str, orders: str, collector: KafkaAdminCollector
) -> None:
    """One partition stands still while two go on: no replica is added, and the remedy names where to look."""
    watched = Watched(collector, bootstrap, orders, orders, partitions=PARTITIONS, members=1)
    with poisoned(bootstrap, orders, partition=1):
        read_until(collector, orders, has_members(1))
        for _ in range(24):  # six minutes
            watched.arrive()
            watched.look_when(lambda lags: not lags[0] and not lags[2])
        decision = refused(watched)
    assert watched.rows[-1].worst_partition == f"{orders}-1"
    assert decision.reason == "livelock_suspected"
    assert f"partition {orders}-1 was not consumed" in decision.sentence
    assert decision.remedy == (
        "Look at the next message of this partition, and at the consumer that reads it; further replicas would "
        "hang at it too."
    )
    assert dict(decision.evidence)["partition_silent_seconds"] > 300


def too_slow(bootstrap: str, group: str, stopping: threading.Event) -> None:
    """A member whose batch takes too long: it is removed in the middle, cannot commit, and begins again."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 1000,
        "heartbeat.interval.ms": 200,
        "max.poll.interval.ms": 1000,
    }
    consumer = Consumer(settings)
    consumer.subscribe([group])
    while not stopping.is_set():
        batch = consumer.consume(500, timeout=0.2)
        worked = [message for message in batch if message.error() is None]
        if worked and not stopping.wait(3.0):
            try:
                consumer.commit(message=worked[-1], asynchronous=False)
            except KafkaException:
                continue  # not a member any more
    consumer.close()


def test_members_thrown_out_again_and_again_are_a_livelock(jars: Path, tmp_path: Path) -> None:
    """As in KEDA's endless loop, no batch fits max.poll.interval.ms, nothing is committed, and no replica is added."""
    with running_brokers(jars, tmp_path, properties={"group.min.session.timeout.ms": "500"}) as (broker,):
        group = fresh_name("orders")
        create_topic(broker.address, group, partitions=PARTITIONS)
        commit(broker.address, group, *[TopicPartition(group, number, 0) for number in range(PARTITIONS)])
        collector = KafkaAdminCollector(broker.address, cluster="live")
        watched = Watched(collector, broker.address, group, group, partitions=PARTITIONS, members=3)
        watched.arrive(300)
        stopping = threading.Event()
        members = [threading.Thread(target=too_slow, args=(broker.address, group, stopping)) for _ in range(3)]
        for thread in members:
            thread.start()
        try:
            read_until(collector, group, lambda rows: bool(rows) and bool(rows[0].members))
            decisions = []
            for _ in range(40):  # ten minutes by the clock of the test
                time.sleep(0.4)
                watched.arrive(MESSAGES_PER_LOOK)
                watched.look()
                decisions.append(watched.decision())
        finally:
            stopping.set()
            for thread in members:
                thread.join()
    assert not any(row.consume_messages_per_second for row in watched.rows)
    # Three minutes are twelve looks; the first two have no rate yet, or show members that are still joining.
    assert not any(isinstance(decision, Recommendation) for decision in decisions[14:])
    livelocks = [d for d in decisions if isinstance(d, Refusal) and d.reason == "livelock_suspected"]
    assert livelocks
    assert livelocks[-1].sentence.startswith("Nothing was committed in ")
    assert livelocks[-1].remedy.endswith("replicas only add churn.")
    assert dict(livelocks[-1].evidence)["rebalances"] >= 3
