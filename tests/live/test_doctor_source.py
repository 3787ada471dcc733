"""`lagcast doctor --bootstrap` on a broker with an authorizer: each missing right is a line with its grant."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from collector.kafka_admin import KafkaAdminCollector
from collector.offsets_topic import OFFSETS_TOPIC
from tests.live.harness.clients import commit, create_topic, fresh_name, has_members, member, produce, read_until
from tests.live.harness.secured import PASSWORD, Secured

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Lagcast = Callable[..., tuple[int, str, str]]
USER = "doctor"


@pytest.fixture
def newer(secured: Secured) -> Iterator[str]:
    """A group of the newer protocol with a member, and Describe on it."""
    superuser, group, topic = secured.address("PLAINTEXT"), fresh_name("newer"), fresh_name("t")
    create_topic(superuser, topic, partitions=1)
    commit(superuser, group, TopicPartition(topic, 0, 0))
    secured.grant(USER, group=group, topic=topic)
    with member(superuser, group, topic, **{"group.protocol": "consumer"}):
        read_until(KafkaAdminCollector(superuser, cluster="live"), group, has_members(1))
        yield group


def test_rights_that_are_missing_are_named_and_then_granted(
    secured: Secured, newer: str, lagcast_process: Lagcast, tmp_path: Path
) -> None:
    """With Describe on two groups alone, one of the newer protocol; then with all that `lagcast up` uses."""
    superuser, group, topic = secured.address("PLAINTEXT"), fresh_name("orders"), fresh_name("t")
    create_topic(superuser, topic, partitions=2)
    produce(superuser, topic, {0: 3})
    commit(superuser, group, TopicPartition(topic, 0, 1))
    secured.grant(USER, group=group, topic=topic)
    login = tmp_path / "client.properties"
    login.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=PLAIN\nsasl.username={USER}\nsasl.password={PASSWORD}\n"
    )
    where, prefix = secured.address("PLAIN"), fresh_name("advice")

    def findings(*words: str, code: int = 0) -> dict[str, list[tuple[str, str, str]]]:
        given = (
            "--bootstrap",
            where,
            "--client-config",
            login,
            "--group",
            group,
            "--group",
            newer,
            "--publish",
            prefix,
        )
        result = lagcast_process("doctor", *given, "-o", "json", *words)
        assert result[0] == code, result
        seen: dict[str, list[tuple[str, str, str]]] = {"ok": [], "note": [], "problem": [], "unknown": []}
        for each in json.loads(result[1]):
            seen[each["state"]].append((each["check"], each["sentence"], each["remedy"] or ""))
        return seen

    acl = f"kafka-acls.sh --bootstrap-server {where} --add --allow-principal User:NAME --operation"
    hidden = fresh_name("hidden")
    seen = findings("--group", hidden, "--strict", code=3)
    assert f"grant this user Describe on Group {hidden!r}" in {remedy for _, _, remedy in seen["problem"]}
    sentences = {sentence: remedy for _, sentence, remedy in (*seen["note"], *seen["problem"])}
    assert sentences[f"No Create and Write on Topic {prefix}: `lagcast up` could not publish there."] == (
        f"{acl} Create --operation Write --operation Describe --topic {prefix}; or --publish ''"
    )
    read = f"No Read on Topic {OFFSETS_TOPIC}: the past has produce rates alone, and time-outs of groups are assumed."
    assert sentences[read] == f"{acl} Read --topic {OFFSETS_TOPIC}"
    assert any(f"{acl} Describe --cluster" == remedy for remedy in sentences.values())
    ok = {check: sentence for check, sentence, _ in seen["ok"]}
    assert ok.keys() == {"Java", "Spark", "source", "clock"}
    assert ok["source"] == "Kafka answers: 2 groups, 2 partitions."
    hidden_settings = f"No DescribeConfigs on Group {newer!r}: sessions and heartbeats of their members are assumed."
    assert sentences[hidden_settings] == f"{acl} DescribeConfigs --group {newer}"
    assert " starts in " in ok["Spark"]

    secured.grant_read(USER, topic=OFFSETS_TOPIC)
    secured.grant_settings(USER, group=newer)
    secured.grant(USER, cluster=True)
    for name in (prefix, f"{prefix}.latest"):
        create_topic(superuser, name, partitions=1)
        secured.grant_write(USER, topic=name)
    seen = findings("--strict")
    assert seen["problem"] == []
    assert ("rights", "This user has every right that `lagcast up` uses.", "") in seen["ok"]
