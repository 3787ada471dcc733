"""Decisions on a real broker: both topics, their headers, and the settings of compaction."""

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]  # documented, not in __all__

from forecasting.refusal import Refusal
from recommender.adapters.publish_kafka import KafkaPublisher
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.ports import decision_id
from tests.live.harness.clients import fresh_name

pytestmark = pytest.mark.kafka

MakeAdvice = Callable[..., Recommendation]
MakeRefusal = Callable[..., Refusal]


@pytest.fixture
def publishing(bootstrap: str) -> KafkaPublisher:
    """A publisher onto two topics of its own, whose body is the decision's id."""
    return KafkaPublisher(bootstrap, prefix=fresh_name("advice"), body_of=body)


def body(decision: Decision) -> bytes:
    return json.dumps({"recommendation_id": decision_id(decision)}).encode()


def read(bootstrap: str, topic: str, count: int) -> list[Message]:
    """The first messages of the topic's only partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": fresh_name("reader"), "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return consumer.consume(count, timeout=10.0)
    finally:
        consumer.close()


def attributes(message: Message) -> dict[str, str]:
    """The message's headers as text."""
    found = message.headers()
    assert isinstance(found, list)
    return {name: str(value, "utf-8") for name, value in found if isinstance(value, bytes)}


def settings_of(bootstrap: str, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})  # its answers end with it
    answer = admin.describe_configs([resource])[resource].result()
    return {name: entry.value for name, entry in answer.items()}


def test_each_decision_arrives_on_both_topics_as_a_cloudevent(
    bootstrap: str, publishing: KafkaPublisher, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """Advice, then a refusal of the same group: the same two messages, in this order, on the history and on latest."""
    publishing.create_topics()
    decisions: list[Decision] = [advice(), refusal()]
    for decision in decisions:
        publishing.publish(decision)
    publishing.close()
    for topic in publishing.topics:
        messages = read(bootstrap, topic, 2)
        assert [json.loads(message.value() or b"") for message in messages] == [
            {"recommendation_id": decision_id(decision)} for decision in decisions
        ]
        kinds = []
        for message, decision in zip(messages, decisions, strict=True):
            headers = attributes(message)
            assert message.key() == b"prod-eu/orders"
            assert headers["ce_partitionkey"] == "prod-eu/orders"
            assert headers["ce_specversion"] == "1.0"
            assert headers["content-type"] == "application/json"
            assert headers["ce_id"] == decision_id(decision)
            assert headers["ce_source"] == "/prod-eu/lagcast"
            assert headers["ce_subject"] == "consumergroups/orders"
            assert headers["ce_time"].endswith("+00:00")
            kinds.append(headers["ce_type"])
        assert kinds == ["io.lagcast.recommendation.changed.v1", "io.lagcast.recommendation.refused.v1"]


def test_latest_is_compacted_history_is_kept_for_30_days_and_topics_that_are_there_stay(
    bootstrap: str, publishing: KafkaPublisher
) -> None:
    """Topics are made twice without an error: the settings of the first time stay."""
    publishing.create_topics()
    publishing.create_topics()
    history, latest = publishing.topics
    assert settings_of(bootstrap, latest)["cleanup.policy"] == "compact"
    kept = settings_of(bootstrap, history)
    assert (kept["cleanup.policy"], kept["retention.ms"]) == ("delete", str(30 * 24 * 3600 * 1000))
