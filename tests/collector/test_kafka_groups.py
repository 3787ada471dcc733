"""Groups of other kinds, groups that read committed data only, and groups that the user may not see."""

import pytest
from confluent_kafka import KafkaError

from collector.errors import RejectedError, UnavailableError, UnsupportedError
from collector.kafka_admin import EVERY_GROUP, KafkaAdminCollector
from tests.collector.memory_cluster import COMMITS, NOON, MemoryCluster, failure, group


def test_other_kinds_of_groups_are_errors_of_their_own(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """Each share, Streams and Connect group is one error in every round, and consumer groups are sampled."""
    cluster.other_groups = {"clicks": "", "flow": "", "connect-cluster": "connect"}
    cluster.commits["flow"] = {("orders-in", 0): 3}
    collected = collector.collect(None, now=NOON)
    assert {row.group for row in collected.samples} == {"orders"}
    assert [(type(error), error.group) for error in collected.errors] == [
        (UnsupportedError, "clicks"),
        (UnsupportedError, "connect-cluster"),
        (UnsupportedError, "flow"),
    ]
    clicks, connect, flow = map(str, collected.errors)
    assert clicks.startswith("group 'clicks': a share group (KIP-932), or a Kafka Streams group (KIP-1071) that has")
    assert connect.startswith("group 'connect-cluster': a 'connect' group is not supported")
    assert flow.startswith("group 'flow': a Kafka Streams group of the newer protocol (KIP-1071) is not supported")


def test_groups_of_another_shard_are_neither_read_nor_errors(cluster: MemoryCluster) -> None:
    """Listed or named: the others are not described, and those of other kinds are no errors here."""
    cluster.other_groups = {"clicks": "", "ours-clicks": ""}
    cluster.groups["ours"], cluster.commits["ours"] = group(), COMMITS
    collector = KafkaAdminCollector(
        "127.0.0.1:9092", cluster="prod-eu", owns=lambda where, name: (where, name[:4]) == ("prod-eu", "ours")
    )
    for names in (None, ["orders", "ours", "clicks", "ours-clicks"]):
        collected = collector.collect(names, now=NOON)
        assert {row.group for row in collected.samples} == {"ours"}
        assert [error.group for error in collected.errors] == ["ours-clicks"]


def test_a_named_share_group_is_not_called_unknown(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """A share group, which the client reports as dead, is recognised by one request for groups of every kind."""
    cluster.other_groups = {"clicks": ""}
    collected = collector.collect(["orders", "clicks", "odrers"], now=NOON)
    assert {row.group for row in collected.samples} == {"orders"}
    clicks, misspelt = map(str, collected.errors)
    assert "a share group (KIP-932)" in clicks
    assert "has no group 'odrers'" in misspelt


def test_without_the_list_of_every_kind(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """Consumer groups are still sampled when that list fails, and a dead group is not called unknown."""
    cluster.kinds_error = failure(KafkaError._TIMED_OUT)
    everything, named = collector.collect(None, now=NOON), collector.collect(["orders", "clicks"], now=NOON)
    assert len(everything.samples) == len(named.samples) == 3
    assert [(type(error), error.group) for error in (*everything.errors, *named.errors)] == [
        (UnavailableError, None),
        (UnavailableError, "clicks"),
    ]
    assert "for its list of groups of every kind failed: Local: Timed out" in str(everything.errors[0])


def test_a_group_without_any_partition_is_an_error(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """The error of an empty group without commits names the grant without which Kafka hides its commits."""
    cluster.groups["idle"], cluster.commits["idle"] = group(state="EMPTY", assigned=()), {}
    collected = collector.collect(None, now=NOON)
    assert {row.group for row in collected.samples} == {"orders"}
    (error,) = collected.errors
    assert (type(error), error.group) == (RejectedError, "idle")
    assert str(error).endswith("grant this user Describe on Topic of each topic that the group reads")


def test_read_committed_groups_end_at_the_last_stable_offset(cluster: MemoryCluster) -> None:
    """Messages of an open transaction are no lag of the groups that read committed data only, and are of the others."""
    cluster.groups["audit"], cluster.commits["audit"] = group(), COMMITS
    cluster.stable_ends["orders-in", 1] = 210
    collected = KafkaAdminCollector("127.0.0.1:9092", cluster="c", read_committed=["audit"]).collect(None, now=NOON)
    ends = {(row.group, row.partition): row.end_offset for row in collected.samples}
    assert (ends["orders", 1], ends["audit", 1]) == (250, 210)
    assert cluster.requests == ["groups", "commits", "commits", "ends", "stable ends", "starts"]


def test_every_group_reads_committed(cluster: MemoryCluster) -> None:
    """With the star for every group the uncommitted end offsets are not requested."""
    collected = KafkaAdminCollector("127.0.0.1:9092", cluster="c", read_committed=[EVERY_GROUP]).collect(None, now=NOON)
    assert len(collected.samples) == 3
    assert cluster.requests == ["groups", "commits", "stable ends", "starts"]


@pytest.mark.parametrize(
    ("code", "grant"),
    [
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "grant this user Describe on Group 'orders'"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "grant this user Describe on Topic of each topic that the group reads"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "grant this user Describe on Cluster 'kafka-cluster'"),
    ],
)
def test_a_missing_grant_is_named(
    collector: KafkaAdminCollector, cluster: MemoryCluster, code: int, grant: str
) -> None:
    """An authorization error ends with the operation and the resource to grant."""
    cluster.groups["orders"] = failure(code)
    (error,) = collector.collect(["orders"], now=NOON).errors
    assert str(error).endswith(f"; {grant}")


def test_a_topic_without_a_grant_is_named(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """The error names the topic where one topic may not be described."""
    cluster.topics["orders-in"] = failure(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    (error,) = collector.collect(["orders"], now=NOON).errors
    assert "; grant this user Describe on Topic 'orders-in'" in str(error)
