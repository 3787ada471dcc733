"""Client libraries on a real broker that are neither Kafka's own nor librdkafka."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from collector.kafka_admin import KafkaAdminCollector
from cost_model.physics.detected import observed_in
from cost_model.physics.rebalance import move_effect
from forecasting.units import Partitions, Replicas
from recommender.configuring.settings_group import GroupSettings
from tests.live.harness.clients import NOON, create_topic, fresh_name, has_members, read_until, wait_until
from tests.live.harness.watched import interval_of

pytestmark = pytest.mark.kafka

PARTITIONS, MEMBERS, MESSAGES = 4, 2, 200
MODULE = "tests.live.harness.kafka_python"


@contextmanager
def running(*words: str) -> Iterator[None]:
    """A program of kafka-python, ended by SIGTERM with the block."""
    process = subprocess.Popen([sys.executable, "-m", MODULE, *words])
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def test_b24_a_group_of_kafka_python_is_recognised_and_its_producer_counted(
    bootstrap: str, collector: KafkaAdminCollector
) -> None:
    """Two members are told by their ids; what another kafka-python has produced shows in end offsets and is consumed.

    Of this library no rebalance was measured: it is taken to answer at its next poll, as Java's does.
    """
    group, topic = fresh_name("group"), fresh_name("topic")
    create_topic(bootstrap, topic, partitions=PARTITIONS)
    with ExitStack() as members:
        for _ in range(MEMBERS):
            members.enter_context(running(bootstrap, topic, "consume", group))
        rows = read_until(collector, group, has_members(MEMBERS))[-1]
        assert (rows[0].clients, rows[0].group_assignor, len(rows)) == ("kafka-python", "range", PARTITIONS)
        subprocess.run(
            [sys.executable, "-m", MODULE, bootstrap, topic, "produce", str(MESSAGES)], check=True, timeout=60
        )

        def consumed() -> bool:
            read = collector.collect([group], now=NOON).samples
            ends, commits = (
                sum(values)
                for values in zip(*((row.end_offset, row.committed_offset or 0) for row in read), strict=True)
            )
            return bool(ends == commits == MESSAGES)

        wait_until(consumed)
    profile = GroupSettings().profile("live", group, observed_in([interval_of(rows)]))
    assert (profile.client, profile.source_of("client")) == ("kafka-python", "detected")
    assert (profile.protocol, profile.partitions) == ("eager", Partitions(PARTITIONS))
    as_java = GroupSettings(client="java").profile("live", group, observed_in([interval_of(rows)]))
    moves = [move_effect(each, from_replicas=Replicas(2), to_replicas=Replicas(4)) for each in (profile, as_java)]
    assert moves[0] == moves[1]
