"""Publisher of decisions to two Kafka topics, as CloudEvents in binary mode: all in order, and the last per group.

    PREFIX           each decision, kept for 30 days unless the topic is configured otherwise
    PREFIX.latest    compacted: a new reader gets the last decision of every group, and then the changes

Key and `ce_partitionkey` are `cluster/group`: one group's decisions stay in order. The body is that of the REST answer.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any
from urllib.parse import quote

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

# Documented as public, but missing from the `__all__` that the type checker reads.
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from recommender.deciding.recommendation import Decision, Recommendation
from recommender.ports import RejectedError, UnavailableError, decision_id, issued_at

RETENTION_MILLISECONDS = 30 * 24 * 3600 * 1000
LATEST = ".latest"
DATA_SCHEMA = "urn:lagcast:recommendation:v1"
# A decision is a few kilobytes; within this time it is delivered, or reported as lost: the next one comes in a minute.
_DELIVERED_WITHIN_SECONDS = 30.0
_ADMIN_SECONDS = 10.0
_SETTINGS: dict[str, Any] = {
    "client.id": "lagcast",
    "acks": "all",
    # One request at a time keeps the order after a retry; a second copy of a decision does no harm.
    "max.in.flight.requests.per.connection": 1,
    "message.timeout.ms": round(1000 * _DELIVERED_WITHIN_SECONDS),
    "compression.type": "zstd",
    "linger.ms": 5,
}

_log = structlog.get_logger()
# librdkafka writes to standard error unless it has a logger; its errors are also returned with each message.
_client_log = logging.getLogger("confluent_kafka")
_client_log.addHandler(logging.NullHandler())
# Some of it shows values of settings, secrets among them.
_client_log.propagate = False


class KafkaPublisher:
    """A `Publisher` onto `prefix` and `prefix.latest`; `body_of` gives a decision's bytes on the wire.

    `unshown` removes the secrets of `client_config` from the client's messages. A message that is not delivered
    `within_seconds` is lost, even where `client_config` has another limit: a leader's sending has to end before another
    may lead. Sending does not wait: a failed delivery is logged once when failures begin and once when they are over.
    Errors: RejectedError for settings that the client does not take. No request is sent yet.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        prefix: str,
        body_of: Callable[[Decision], bytes],
        client_config: Mapping[str, str] | None = None,
        unshown: Callable[[str], str] = str,
        within_seconds: float | None = None,
    ) -> None:
        self.topics = (prefix, prefix + LATEST)
        self._where = f"Kafka at {bootstrap}"
        self._body_of = body_of
        self._waiting = self._undelivered = 0
        self._within_seconds = within_seconds or _DELIVERED_WITHIN_SECONDS
        connection: dict[str, Any] = {**(client_config or {}), "bootstrap.servers": bootstrap}
        settings = {**_SETTINGS, **connection}
        if within_seconds is not None:
            settings.pop("delivery.timeout.ms", None)  # another name of the same
            settings["message.timeout.ms"] = round(1000 * within_seconds)
        try:
            self._producer = Producer(settings, logger=_client_log)
            self._admin = AdminClient(connection, logger=_client_log)
        except KafkaException as cause:
            complaint = unshown(cause.args[0].str())
            message = f"the Kafka client of {self._where} does not accept its settings: {complaint}"
            # The client's error repeats a rejected value: without its message, no traceback shows a secret.
            raise RejectedError(message) from (cause if complaint == cause.args[0].str() else None)

    def create_topics(self) -> None:
        """Create those of the two topics that do not exist, with the broker's default number of replicas.

        Errors: UnavailableError, RejectedError (without the right to Create, for one): topics must be created by hand.
        """
        history, latest = self.topics
        wanted = [
            NewTopic(history, 1, -1, config={"retention.ms": str(RETENTION_MILLISECONDS)}),
            NewTopic(latest, 1, -1, config={"cleanup.policy": "compact"}),
        ]
        for name, future in self._admin.create_topics(wanted, request_timeout=_ADMIN_SECONDS).items():
            try:
                future.result()
            except KafkaException as cause:
                answer: KafkaError = cause.args[0]
                if answer.name() == "TOPIC_ALREADY_EXISTS":
                    continue
                message = (
                    f"topic {name!r} could not be made on {self._where}: {answer.str()} [{answer.name()}]; make it "
                    f"({'compacted' if name == latest else 'with a retention'}), or grant Create on it"
                )
                passing = answer.retriable() or answer.name() in ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN")
                raise (UnavailableError if passing else RejectedError)(message) from cause

    def publish(self, decision: Decision) -> None:
        """Send the decision to both topics.

        Errors: UnavailableError where the queue of undelivered messages is full.
        """
        key = f"{decision.cluster}/{decision.group}"
        body, headers = self._body_of(decision), _headers(decision, key)
        try:
            for topic in self.topics:
                self._producer.produce(topic, body, key, headers=headers, on_delivery=self._delivered)
                self._waiting += 1
        except BufferError as cause:
            message = f"{self._where} accepts no more decisions: {self._waiting} messages wait to be delivered"
            raise UnavailableError(message) from cause
        finally:
            self._producer.poll(0)

    def close(self) -> None:
        """Wait until every message is delivered or given up."""
        self._producer.flush(self._within_seconds)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._waiting -= 1
        if error is not None:
            if not self._undelivered:
                _log.warning(
                    "publishing_failed",
                    where=self._where,
                    topic=message.topic(),
                    error=f"{error.str()} [{error.name()}]",
                )
            self._undelivered += 1
        elif self._undelivered:
            _log.info("publishing_resumed", where=self._where, undelivered_messages=self._undelivered)
            self._undelivered = 0


def _headers(decision: Decision, key: str) -> list[tuple[str, str | bytes | None]]:
    """The attributes of the CloudEvent. Source: Kafka Protocol Binding for CloudEvents 1.0.2, section 3.2."""
    what = "changed" if isinstance(decision, Recommendation) else "refused"
    return [
        ("content-type", "application/json"),
        ("ce_specversion", "1.0"),
        ("ce_id", decision_id(decision)),
        ("ce_type", f"io.lagcast.recommendation.{what}.v1"),
        ("ce_source", f"/{quote(decision.cluster, safe='')}/lagcast"),
        ("ce_subject", f"consumergroups/{decision.group}"),
        ("ce_time", issued_at(decision).astimezone(UTC).isoformat()),
        ("ce_dataschema", DATA_SCHEMA),
        ("ce_partitionkey", key),
    ]
