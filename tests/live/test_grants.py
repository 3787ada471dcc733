"""The rights that a user needs on a real broker: Describe on groups and topics; a sentence names a missing one."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import TopicPartition
from structlog.testing import capture_logs

from collector.errors import RejectedError
from collector.kafka_admin import Collected, KafkaAdminCollector
from collector.offsets_topic import OFFSETS_TOPIC, PastCommits, read_past_commits
from tests.live.harness.clients import NOON, commit, create_topic, fresh_name, has_members, member, read_until
from tests.live.harness.secured import PASSWORD, Secured

pytestmark = pytest.mark.kafka


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Two groups that members read, by the older and by the newer protocol, and their topics."""

    older: str
    older_topic: str
    newer: str
    newer_topic: str


@pytest.fixture(scope="module")
def watched(secured: Secured) -> Iterator[Watched]:
    """Both groups stable, with one member each and one commit each."""
    address = secured.address("PLAINTEXT")
    names = Watched(
        older=fresh_name("older"), older_topic=fresh_name("t"), newer=fresh_name("newer"), newer_topic=fresh_name("t")
    )
    superuser = KafkaAdminCollector(address, cluster="live")
    for group, topic in ((names.older, names.older_topic), (names.newer, names.newer_topic)):
        create_topic(address, topic, partitions=2)
        commit(address, group, TopicPartition(topic, 0, 0))
    with (
        member(address, names.older, names.older_topic),
        member(address, names.newer, names.newer_topic, **{"group.protocol": "consumer"}),
    ):
        for group in (names.older, names.newer):
            read_until(superuser, group, has_members(1))
        yield names


def collected_by(secured: Secured, user: str, groups: list[str] | None) -> Collected:
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }
    return KafkaAdminCollector(secured.address("PLAIN"), cluster="live", client_config=login).collect(groups, now=NOON)


def sentences_of(collected: Collected) -> dict[str | None, str]:
    assert all(isinstance(error, RejectedError) for error in collected.errors)
    return {error.group: str(error) for error in collected.errors}


def test_describe_is_enough(secured: Secured, watched: Watched) -> None:
    """Describe on the groups and on their topics collects all of them, named or not; other groups stay out of sight."""
    secured.grant("describer", group=watched.older, topic=watched.older_topic)
    secured.grant("describer", group=watched.newer, topic=watched.newer_topic)
    hidden = fresh_name("hidden")
    commit(secured.address("PLAINTEXT"), hidden, TopicPartition(watched.older_topic, 0, 0))
    everything = collected_by(secured, "describer", None)
    named = collected_by(secured, "describer", [watched.older, watched.newer])
    for collected in (everything, named):
        seen = {(row.group, row.partition, row.members) for row in collected.samples}
        assert {(group, number, 1) for group in (watched.older, watched.newer) for number in (0, 1)} <= seen
        assert collected.errors == ()
    assert hidden not in {row.group for row in everything.samples}


def test_a_group_without_a_grant_is_named(secured: Secured, watched: Watched) -> None:
    """A group that may not be described is one sentence with the grant, and the other group is sampled."""
    secured.grant("topics-only", group=watched.newer, topic=watched.newer_topic)
    secured.grant("topics-only", topic=watched.older_topic)
    collected = collected_by(secured, "topics-only", [watched.older, watched.newer])
    assert {row.group for row in collected.samples} == {watched.newer}
    assert sentences_of(collected).keys() == {watched.older}
    assert sentences_of(collected)[watched.older].endswith(f"grant this user Describe on Group {watched.older!r}")


def test_a_topic_without_a_grant_is_named(secured: Secured, watched: Watched) -> None:
    """A topic that may not be described is named if the broker names it, and counted as missing otherwise."""
    empty, both = fresh_name("empty"), fresh_name("both")
    commit(secured.address("PLAINTEXT"), empty, TopicPartition(watched.older_topic, 0, 0))
    seen_topic = fresh_name("t")
    create_topic(secured.address("PLAINTEXT"), seen_topic, partitions=1)
    commit(secured.address("PLAINTEXT"), both, TopicPartition(seen_topic, 0, 0))
    for group in (watched.older, watched.newer, empty):
        secured.grant("groups-only", group=group)
    secured.grant("groups-only", group=both, topic=seen_topic)
    collected = collected_by(secured, "groups-only", None)
    assert {row.group for row in collected.samples} == {both}
    sentences = sentences_of(collected)
    assert sentences.keys() == {watched.older, watched.newer, empty}
    assert sentences[watched.older].endswith(f"grant this user Describe on Topic {watched.older_topic!r}")
    for group in (watched.newer, empty):
        assert sentences[group].endswith("grant this user Describe on Topic of each topic that the group reads")


def test_without_any_grant_nothing_is_listed(secured: Secured, watched: Watched) -> None:
    """Kafka lists no group to a user without grants and calls that no error; named groups get their sentence."""
    nothing = collected_by(secured, "nobody", None)
    assert (nothing.samples, nothing.errors) == ((), ())
    assert sentences_of(collected_by(secured, "nobody", [watched.older])).keys() == {watched.older}


def commits_seen_by(secured: Secured, user: str, watched: Watched) -> PastCommits:
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }
    groups = [watched.older, watched.newer]
    return read_past_commits(secured.address("PLAIN"), cluster="live", client_config=login, groups=groups)


def test_commits_and_members_of_the_past_take_read_on_kafkas_own_topic(secured: Secured, watched: Watched) -> None:
    """Members of both protocols and the commit of each are in it; without the grant the error names it."""
    with pytest.raises(RejectedError, match=r"grant this user Read on Topic '__consumer_offsets' to know commits"):
        commits_seen_by(secured, "nobody", watched)
    secured.grant_read("reader", topic=OFFSETS_TOPIC)
    past = commits_seen_by(secured, "reader", watched)
    later = datetime.now(UTC) + timedelta(minutes=1)  # noqa: TID251  # brokers live by the clock
    for group, topic in ((watched.older, watched.older_topic), (watched.newer, watched.newer_topic)):
        assert past.members_at(group, later) == 1
        assert past.committed_at(group, topic, 0, later) == 0
        assert past.committed_at(group, topic, 1, later) is None
        assert past.members_at(group, later - timedelta(days=1)) is None


def test_timeouts_take_read_on_kafkas_own_topic_and_the_settings_of_groups(secured: Secured, watched: Watched) -> None:
    """With Describe alone the samples have all but these; with each right they have its figure."""
    user, groups = "settings-reader", [watched.older, watched.newer]

    def seen() -> dict[str, tuple[float | None, float | None, float | None]]:
        return {
            row.group: (row.session_timeout_seconds, row.rebalance_timeout_seconds, row.consumer_heartbeat_seconds)
            for row in collected_by(secured, user, groups).samples
        }

    for group, topic in ((watched.older, watched.older_topic), (watched.newer, watched.newer_topic)):
        secured.grant(user, group=group, topic=topic)
    with capture_logs() as lines:
        assert seen() == dict.fromkeys(groups, (None, None, None))
    said = [line["error"] for line in lines if line["event"] == "timeouts_unknown"]
    assert said[0] == "grant this user Read on Topic '__consumer_offsets' to know the sessions of its groups"
    assert said[1].endswith(f"grant this user DescribeConfigs on Group {watched.newer!r}")
    secured.grant_read(user, topic=OFFSETS_TOPIC)
    assert seen() == {watched.older: (45.0, 300.0, None), watched.newer: (None, 300.0, None)}
    secured.grant_settings(user, group=watched.newer)
    assert seen() == {watched.older: (45.0, 300.0, None), watched.newer: (45.0, 300.0, 5.0)}
