"""A topic that a group no longer consumes has no samples, though its commits stay for days."""

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


def test_a_topic_without_a_member_is_left_out(collector: KafkaAdminCollector) -> None:
    """The 8,960 messages of a topic that no member is assigned are not counted as lag."""
    assert topics(collector, NOON) == {"orders-in"}


def test_a_topic_counts_as_consumed_for_ten_minutes_after_its_last_assignment(
    collector: KafkaAdminCollector, cluster: MemoryCluster
) -> None:
    """A topic stays in the samples between the two rebalances of a cooperative move, in which no member reads it."""
    cluster.groups["orders"] = group(assigned=BOTH)
    assert topics(collector, NOON) == {"orders-in", "old"}
    cluster.groups["orders"] = group()
    assert topics(collector, NOON + 10 * MINUTE) == {"orders-in", "old"}
    assert topics(collector, NOON + 11 * MINUTE) == {"orders-in"}


@pytest.mark.parametrize("state", ["PREPARING_REBALANCING", "COMPLETING_REBALANCING", "EMPTY"])
def test_a_group_without_assignment_keeps_the_topics_it_had_when_stable(
    collector: KafkaAdminCollector, cluster: MemoryCluster, state: str
) -> None:
    """In a rebalance, and while the group is empty, the topics are those of its last assignment."""
    assert topics(collector, NOON) == {"orders-in"}
    cluster.groups["orders"] = group(state=state, assigned=())
    assert topics(collector, NOON + MINUTE) == {"orders-in"}


def test_every_commit_counts_of_a_group_that_was_never_seen_stable(
    collector: KafkaAdminCollector, cluster: MemoryCluster
) -> None:
    """A stopped group that was never seen with members may resume all topics that it has commits on."""
    cluster.groups["orders"] = group(state="EMPTY", assigned=())
    assert topics(collector, NOON) == {"orders-in", "old"}


def test_a_topic_that_is_assigned_again_is_sampled_at_once(
    collector: KafkaAdminCollector, cluster: MemoryCluster
) -> None:
    """The first sample after the assignment has the topic."""
    assert topics(collector, NOON) == {"orders-in"}
    cluster.groups["orders"] = group(assigned=BOTH)
    assert topics(collector, NOON + MINUTE) == {"orders-in", "old"}


def test_a_group_that_was_empty_for_a_week_is_treated_as_new(
    collector: KafkaAdminCollector, cluster: MemoryCluster
) -> None:
    """The assignments of a group that was empty for a week are forgotten, as Kafka has forgotten the group by then."""
    assert topics(collector, NOON) == {"orders-in"}
    cluster.groups["orders"] = group(state="EMPTY", assigned=())
    assert topics(collector, NOON + timedelta(days=7)) == {"orders-in"}
    assert topics(collector, NOON + timedelta(days=7, seconds=15)) == {"orders-in", "old"}
