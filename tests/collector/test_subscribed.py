"""A topic that a group has given up is not its work, though its commits stay for days."""

from datetime import datetime, timedelta

import pytest

from collector.kafka_admin import KafkaAdminCollector
from tests.collector.memory_cluster import COMMITS, NOON, MemoryCluster, group

BOTH = ((("orders-in", 0), ("orders-in", 1), ("old", 0)), (("orders-in", 2),))
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _given_up(cluster: MemoryCluster) -> None:
    """`orders` has commits on `old`, a topic of one partition that none of its members has been assigned."""
    cluster.topics["old"] = 1
    cluster.commits["orders"] = {**COMMITS, ("old", 0): 40}
    for table in (cluster.ends, cluster.stable_ends):
        table["old", 0] = 9_000
    cluster.starts["old", 0] = 0


def topics(collector: KafkaAdminCollector, now: datetime) -> set[str]:
    """The topics in the samples of that instant."""
    collected = collector.collect(["orders"], now=now)
    assert collected.errors == ()
    return {row.topic for row in collected.samples}


def test_a_topic_that_no_member_reads_is_left_out(collector: KafkaAdminCollector) -> None:
    """8,960 messages lie there, and would be lag for ever."""
    assert topics(collector, NOON) == {"orders-in"}


def test_a_topic_counts_as_read_for_ten_minutes_after_the_last_member_gave_it_up(
    collector: KafkaAdminCollector, cluster: MemoryCluster
) -> None:
    """Between the two rebalances of a cooperative move a partition is nobody's."""
    cluster.groups["orders"] = group(assigned=BOTH)
    assert topics(collector, NOON) == {"orders-in", "old"}
    cluster.groups["orders"] = group()
    assert topics(collector, NOON + 10 * MINUTE) == {"orders-in", "old"}
    assert topics(collector, NOON + 11 * MINUTE) == {"orders-in"}


@pytest.mark.parametrize("state", ["PREPARING_REBALANCING", "COMPLETING_REBALANCING", "EMPTY"])
def test_a_group_without_assignment_reads_what_it_read_at_rest(
    collector: KafkaAdminCollector, cluster: MemoryCluster, state: str
) -> None:
    """Otherwise each rebalance would bring the old topic back for a moment, and its partitions would be missed then."""
    assert topics(collector, NOON) == {"orders-in"}
    cluster.groups["orders"] = group(state=state, assigned=())
    assert topics(collector, NOON + MINUTE) == {"orders-in"}


def test_of_a_group_that_was_never_seen_at_rest_every_commit_counts(
    collector: KafkaAdminCollector, cluster: MemoryCluster
) -> None:
    """A group that is stopped may take up all that it left: nobody knows better."""
    cluster.groups["orders"] = group(state="EMPTY", assigned=())
    assert topics(collector, NOON) == {"orders-in", "old"}


def test_a_topic_that_is_taken_up_again_is_there_at_once(
    collector: KafkaAdminCollector, cluster: MemoryCluster
) -> None:
    """The sample after the assignment has it."""
    assert topics(collector, NOON) == {"orders-in"}
    cluster.groups["orders"] = group(assigned=BOTH)
    assert topics(collector, NOON + MINUTE) == {"orders-in", "old"}


def test_a_group_that_was_gone_for_a_week_is_met_as_a_new_one(
    collector: KafkaAdminCollector, cluster: MemoryCluster
) -> None:
    """Kafka has forgotten it by then, and groups of a minute do not pile up here."""
    assert topics(collector, NOON) == {"orders-in"}
    cluster.groups["orders"] = group(state="EMPTY", assigned=())
    assert topics(collector, NOON + timedelta(days=7)) == {"orders-in"}
    assert topics(collector, NOON + timedelta(days=7, seconds=15)) == {"orders-in", "old"}
