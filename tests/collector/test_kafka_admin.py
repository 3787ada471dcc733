"""The samples and errors that the collector makes of Kafka's answers."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from collector.errors import MalformedError, RejectedError, UnavailableError
from collector.kafka_admin import KafkaAdminCollector
from tests.collector.memory_cluster import COMMITS, NOON, MemoryCluster, failure, group


def test_every_partition_of_the_group_is_sampled(collector: KafkaAdminCollector) -> None:
    """A partition without a commit has a sample whose committed offset is None rather than -1 or 0."""
    collected = collector.collect(["orders"], now=NOON)
    rows = [(row.topic, row.partition, row.end_offset, row.committed_offset) for row in collected.samples]
    assert rows == [("orders-in", 0, 100, 90), ("orders-in", 1, 250, 200), ("orders-in", 2, 7, None)]
    assert collected.errors == ()


def test_the_group_stands_on_each_of_its_rows(collector: KafkaAdminCollector) -> None:
    """State, protocol, assignor, members, cluster and instant are repeated on every row."""
    collected = collector.collect(None, now=NOON)
    assert {
        (row.cluster, row.group, row.group_state, row.group_protocol, row.group_assignor, row.members, row.sampled_at)
        for row in collected.samples
    } == {("prod-eu", "orders", "STABLE", "classic", "range", 2, NOON)}
    assert {row.log_start_offset for row in collected.samples} == {5}


def test_static_members_are_counted(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """Members with an instance id are counted beside all members; an empty id is none."""
    thirds = ((("orders-in", 0),), (("orders-in", 1),), (("orders-in", 2),))
    cluster.groups["orders"] = group(assigned=thirds, instance_ids=("pod-0", None, ""))
    rows = collector.collect(["orders"], now=NOON).samples
    assert {(row.members, row.static_members) for row in rows} == {(3, 1)}


def test_the_libraries_of_all_members_are_named(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """Several in one group, and members whose application has chosen their ids, are told apart."""
    cluster.groups["orders"] = group(client_ids=("rdkafka", "orders-pod-7"))
    rows = collector.collect(["orders"], now=NOON).samples
    assert {(row.clients, row.streams) for row in rows} == {("librdkafka,unknown", None)}


def test_commits_are_read_before_ends(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """Commits come before end offsets, each offset table in one request, so that no race makes lag negative."""
    cluster.groups["billing"], cluster.commits["billing"] = group(), COMMITS
    collector.collect(["orders", "billing"], now=NOON)
    assert cluster.requests == ["groups", "commits", "commits", "ends", "starts"]


def test_negative_commits_are_unknown(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """The offsets -1 and -1001, by which Kafka means "nothing committed", become None."""
    cluster.commits["orders"] = {("orders-in", 0): -1, ("orders-in", 1): -1001, ("orders-in", 2): 0}
    assert [row.committed_offset for row in collector.collect(["orders"], now=NOON).samples] == [None, None, 0]


@pytest.mark.parametrize(
    ("state", "protocol", "expected"),
    [
        ("UNKNOWN", "CONSUMER", "RECONCILING"),  # the client's blind spot for ASSIGNING and RECONCILING
        ("UNKNOWN", "CLASSIC", "UNKNOWN"),
        ("PREPARING_REBALANCING", "CLASSIC", "PREPARING_REBALANCING"),
        ("EMPTY", "CONSUMER", "EMPTY"),
    ],
)
def test_states(
    collector: KafkaAdminCollector, cluster: MemoryCluster, state: str, protocol: str, expected: str
) -> None:
    """States keep Kafka's names; UNKNOWN under the newer protocol is a rebalance that the client cannot name."""
    cluster.groups["orders"] = group(state=state, protocol=protocol)
    assert {row.group_state for row in collector.collect(["orders"], now=NOON).samples} == {expected}


def test_absent_protocol_and_assignor_are_unknown(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """An absent protocol type and an empty assignor become None, not the texts UNKNOWN and ''."""
    cluster.groups["orders"] = group(state="EMPTY", protocol="UNKNOWN", assignor="", assigned=())
    row = collector.collect(["orders"], now=NOON).samples[0]
    assert (row.group_protocol, row.group_assignor, row.members) == (None, None, 0)


def test_offsets_stored_by_hand_do_not_claim_the_topic(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """A group that never had a member is sampled on the partitions it committed to, not on the rest of the topic."""
    cluster.groups["orders"] = group(state="EMPTY", is_simple=True, assigned=())
    assert [row.partition for row in collector.collect(["orders"], now=NOON).samples] == [0, 1]


def test_one_group_denied_leaves_the_others(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """A group that may not be read is one error with its name and cause; all samples of the others are there."""
    cause = failure(KafkaError.GROUP_AUTHORIZATION_FAILED)
    cluster.groups["secret"] = cause
    cluster.groups["halting"], cluster.commits["halting"] = group(), failure(KafkaError.NOT_COORDINATOR)
    collected = collector.collect(None, now=NOON)
    assert [row.group for row in collected.samples] == ["orders"] * 3
    halting, secret = collected.errors
    assert (type(secret), secret.group, secret.__cause__) == (RejectedError, "secret", cause)
    assert str(secret) == (
        "group 'secret': request to cluster 'prod-eu' at 127.0.0.1:9092 for the state of group 'secret' "
        "failed: Broker: Group authorization failed [GROUP_AUTHORIZATION_FAILED]; "
        "grant this user Describe on Group 'secret'"
    )
    assert (type(halting), halting.group) == (UnavailableError, "halting")


def test_unknown_group_is_named(collector: KafkaAdminCollector) -> None:
    """A group that the cluster does not know is an error with its name, not an empty answer."""
    collected = collector.collect(["orders", "odrers"], now=NOON)
    assert [(type(error), error.group, str(error)) for error in collected.errors] == [
        (
            RejectedError,
            "odrers",
            "group 'odrers': cluster 'prod-eu' at 127.0.0.1:9092 has no group 'odrers'; check its name",
        )
    ]


def test_partitions_without_a_leader_are_one_error(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """Partitions without an end offset have no row, one error of the group counts them, and the rest is sampled."""
    cluster.ends["orders-in", 0] = cluster.ends["orders-in", 2] = failure(KafkaError.LEADER_NOT_AVAILABLE)
    collected = collector.collect(["orders"], now=NOON)
    assert [row.partition for row in collected.samples] == [1]
    (error,) = collected.errors
    assert isinstance(error, UnavailableError)
    assert "the end offset of partition orders-in-0" in str(error)
    assert str(error).endswith("(and 1 more such answers)")


def test_unknown_log_start_is_none(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """A partition whose log start is not given keeps its row, without a log start."""
    cluster.starts["orders-in", 1] = failure(KafkaError.REQUEST_TIMED_OUT)
    collected = collector.collect(["orders"], now=NOON)
    assert [row.log_start_offset for row in collected.samples] == [5, None, 5]
    assert len(collected.errors) == 1


def test_the_start_of_a_partition_without_a_known_end_is_not_requested(
    collector: KafkaAdminCollector, cluster: MemoryCluster
) -> None:
    """A leader that is down costs one timeout: its partitions are not asked for again."""
    cluster.ends = dict.fromkeys(cluster.ends, failure(KafkaError._TIMED_OUT))
    (error,) = collector.collect(["orders"], now=NOON).errors
    assert "the end offset of partition orders-in-0" in str(error)
    assert cluster.requests == ["groups", "commits", "ends"]


def test_an_impossible_offset_is_malformed(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """A partition whose end offset is -1 has no row, and the error quotes that offset."""
    cluster.ends["orders-in", 1] = -1
    collected = collector.collect(["orders"], now=NOON)
    assert [row.partition for row in collected.samples] == [0, 2]
    assert [type(error) for error in collected.errors] == [MalformedError]
    assert "returned -1 as the end offset of partition orders-in-1" in str(collected.errors[0])


def test_a_missing_leader_is_not_a_malformed_answer(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """The client returns -1001 for a partition without a reachable leader, which is an error that may pass."""
    cluster.ends["orders-in", 1] = cluster.starts["orders-in", 1] = -1001
    collected = collector.collect(["orders"], now=NOON)
    assert [row.partition for row in collected.samples] == [0, 2]
    (error,) = collected.errors
    assert isinstance(error, UnavailableError)
    assert str(error).endswith("for the end offset of partition orders-in-1 got no answer; is its leader down?")


def test_a_deleted_topic_is_an_error_of_its_group(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """Commits of a stopped group on a deleted topic are one error, and its other topics are sampled."""
    gone = failure(KafkaError.UNKNOWN_TOPIC_OR_PART)
    cluster.groups["orders"] = group(state="EMPTY", assigned=())
    cluster.commits["orders"] = {**COMMITS, ("old-in", 0): 3}
    cluster.topics["old-in"], cluster.ends["old-in", 0], cluster.starts["old-in", 0] = gone, gone, gone
    collected = collector.collect(["orders"], now=NOON)
    assert {row.topic for row in collected.samples} == {"orders-in"}
    assert "the partitions of topic 'old-in'" in str(collected.errors[0])


def test_no_answer_for_any_group_is_raised(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """When no group gets an answer, one error for the cluster is raised instead of one for each group."""
    cluster.groups = dict.fromkeys(["orders", "billing"], failure(KafkaError._TIMED_OUT))
    with pytest.raises(UnavailableError, match="Local: Timed out"):
        collector.collect(["orders", "billing"], now=NOON)


def test_an_error_without_text_shows_its_code(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """When a broker sends an error with an empty text, the error names its code."""
    cluster.groups = {"orders": KafkaException(KafkaError(KafkaError.NOT_COORDINATOR, "ConsumerGroupDescribe: "))}
    with pytest.raises(UnavailableError, match=r"failed: ConsumerGroupDescribe \[NOT_COORDINATOR\]$"):
        collector.collect(["orders"], now=NOON)


def test_a_list_of_groups_that_fails_is_raised(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """Without the list of groups the round raises an error."""
    cluster.list_errors = [KafkaError(KafkaError._TRANSPORT)]
    with pytest.raises(UnavailableError, match="for its list of groups"):
        collector.collect(None, now=NOON)


def test_groups_named_twice_are_read_once(collector: KafkaAdminCollector) -> None:
    """Naming a group twice does not double its rows."""
    assert len(collector.collect(["orders", "orders"], now=NOON).samples) == 3


def test_no_groups_no_requests(collector: KafkaAdminCollector, cluster: MemoryCluster) -> None:
    """For a cluster without groups the result is empty, and no request for offsets is made."""
    cluster.groups = {}
    collected = collector.collect(None, now=NOON)
    assert (collected.samples, collected.errors, cluster.requests) == ((), (), [])


def test_settings_the_client_does_not_take() -> None:
    """A misspelt client setting is refused by its name before the first request to the cluster."""
    with pytest.raises(RejectedError, match=r'No such configuration property: "sasl.user"'):
        KafkaAdminCollector("127.0.0.1:9092", cluster="prod-eu", client_config={"sasl.user": "me"})
