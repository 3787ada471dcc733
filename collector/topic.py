"""The samples topic on a real Kafka: `SamplePublisher` writes it, `land_forever` reads it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from collector.batches import batches_of
from collector.client_config import without_secrets
from collector.errors import RejectedError
from collector.kafka_errors import Complaints, Question, in_our_words, said
from collector.landing import Arrived, Landed, landing
from collector.sample import OffsetSample

# Batches wait this long for a broker that is unavailable; then they are dropped, and the drop is logged.
_DELIVERED_WITHIN_MILLISECONDS = 15 * 60 * 1000
_LAST_WAIT_SECONDS = 30.0
_ASK_SECONDS = 10.0
# A hundred batches of a minute are written before the offsets: a backlog of a day is 15 times that.
_MESSAGES_AT_ONCE = 100
_LOOK_SECONDS = 0.5
# Partitions may be added to a topic, and batches then go to them.
_PARTITIONS_EVERY_LOOKS = 120
_PUBLISHER = {
    "client.id": "lagcast",
    # A batch that is sent again is stored once, and the order is kept.
    "enable.idempotence": True,
    "message.timeout.ms": _DELIVERED_WITHIN_MILLISECONDS,
    "linger.ms": 5,
}
_READER = {
    "client.id": "lagcast",
    "group.id": "lagcast-land",  # required by the client; partitions are assigned, and offsets are kept with the files
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
}
# The client's messages appear in errors, and some of them show secrets.
_client_log = logging.getLogger("confluent_kafka")
_client_log.addHandler(logging.NullHandler())
_client_log.propagate = False

_log = structlog.get_logger(__name__)


class Stop(Protocol):
    """An event that requests a stop, such as `threading.Event`."""

    def is_set(self) -> bool:
        """True if the process should stop."""
        ...


class _Topic(NamedTuple):
    kafka: str
    partitions: frozenset[int]


class _Absence:
    """Logs once that no broker is reachable, and once that messages arrive again; before `begin` it logs nothing."""

    def __init__(self, where: str, complaints: Complaints) -> None:
        self._where = where
        self._complaints = complaints
        self._has_begun, self._is_told = False, False

    def begin(self) -> None:
        """The topic was found."""
        self._has_begun = True

    def note(self, complaint: KafkaError) -> None:
        """Receive the client's message about its connections."""
        self._complaints.note(complaint)
        if complaint.name() == "_ALL_BROKERS_DOWN" and self._has_begun and not self._is_told:
            _log.warning("brokers_unreachable", where=self._where, error=self._complaints.explain())
            self._is_told = True

    def end(self) -> None:
        """A message arrived."""
        if self._is_told:
            _log.info("brokers_reachable", where=self._where)
            self._is_told = False
            self._complaints.forget()


class SamplePublisher:
    """Publishes batches of samples to an existing topic. Sending does not wait.

    A failure to deliver is logged once when it begins and once when it is over. A context manager: at the end it waits
    for the messages in flight.
    Errors: AdapterError for settings that the client does not accept, if no broker answers and if there is no such
    topic.
    """

    def __init__(self, bootstrap: str, topic: str, *, client_config: Mapping[str, str]) -> None:
        self._topic = topic
        self._where = f"Kafka at {bootstrap}"
        self._undelivered = 0
        complaints = Complaints(lambda words: without_secrets(words, client_config))
        settings = {**_PUBLISHER, **client_config, "bootstrap.servers": bootstrap, "error_cb": complaints.note}
        self._producer: Producer = _made(Producer, settings, self._where, client_config)
        _ask(self._producer, topic, self._where, complaints)

    def __call__(self, samples: Sequence[OffsetSample]) -> None:
        """Send the samples, usually one message for each cluster."""
        for batch in batches_of(samples):
            headers: list[tuple[str, str | bytes | None]] = [*batch.headers.items()]
            self._producer.produce(self._topic, batch.value, batch.key, headers=headers, on_delivery=self._delivered)
        self._producer.poll(0)

    def close(self) -> None:
        """Wait until everything is delivered, half a minute at most; undelivered messages are logged."""
        left = self._producer.flush(_LAST_WAIT_SECONDS)
        if left:
            _log.warning("samples_not_published", where=self._where, topic=self._topic, messages=left)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            if not self._undelivered:
                grant = f"; grant this user Write on Topic {self._topic!r}" if _is_denied(error) else ""
                _log.warning(
                    "publishing_samples_failed", where=self._where, topic=self._topic, error=said(error) + grant
                )
            self._undelivered += 1
        elif self._undelivered:
            _log.info("publishing_samples_resumed", where=self._where, undelivered_messages=self._undelivered)
            self._undelivered = 0


def land_forever(
    bootstrap: str,
    topic: str,
    out: Path,
    *,
    client_config: Mapping[str, str],
    clock: Callable[[], datetime],
    stop: Stop,
    begun: Callable[[], object] = lambda: None,
) -> Landed:
    """Write the samples of the topic into `out` as files, each batch exactly once, until `stop`; returns the counts.

    `begun` is called when the topic was found. Errors: AdapterError if no broker answers at the beginning, for a
    topic that does not exist or may not be read, and for a batch of a later schema; LandingError for a folder that
    cannot be written to.
    """
    where = f"Kafka at {bootstrap}"
    complaints = Complaints(lambda words: without_secrets(words, client_config))
    absence = _Absence(where, complaints)
    settings = {**_READER, **client_config, "bootstrap.servers": bootstrap, "error_cb": absence.note}
    consumer: Consumer = _made(Consumer, settings, where, client_config)
    try:
        found = _ask(consumer, topic, where, complaints)
        with landing(out, kafka=found.kafka, topic=topic, clock=clock) as folder:
            begun()
            absence.begin()
            assigned: frozenset[int] = frozenset()
            looks = 0
            while not stop.is_set():
                if found.partitions != assigned:
                    assigned = found.partitions
                    consumer.assign(
                        [TopicPartition(topic, p, folder.next_offsets.get(p, OFFSET_BEGINNING)) for p in assigned]
                    )
                messages = _messages(consumer, topic, where)
                if messages:
                    absence.end()
                folder.land([_arrived(message) for message in messages])
                looks += 1
                if looks % _PARTITIONS_EVERY_LOOKS == 0:
                    found = _asked_again(consumer, topic, found)
            return folder.done
    finally:
        consumer.close()


def _made(make: Callable[..., Any], settings: dict[str, Any], where: str, client_config: Mapping[str, str]) -> Any:  # noqa: ANN401  # a producer or a consumer
    try:
        return make(settings, logger=_client_log)
    except KafkaException as cause:
        words = said(cause.args[0])
        complaint = without_secrets(words, client_config)
        message = f"the Kafka client of {where} does not accept its settings: {complaint}"
        # The client's message repeats the rejected value: a cause with a secret is left out of the traceback.
        raise RejectedError(message) from (cause if complaint == words else None)


def _ask(client: Producer | Consumer, topic: str, where: str, complaints: Complaints) -> _Topic:
    question = Question(words=f"the partitions of topic {topic!r}", topic=topic)
    try:
        answer = client.list_topics(topic, timeout=_ASK_SECONDS)
    except KafkaException as cause:
        client.poll(0)  # lets the client report what happened to its connections
        raise in_our_words(where, question, cause, complaints) from cause
    failure = answer.topics[topic].error
    if failure is not None:
        error = in_our_words(where, question, KafkaException(failure), complaints)
        if failure.name() in ("UNKNOWN_TOPIC_OR_PART", "LEADER_NOT_AVAILABLE"):
            message = f"{error}; make the topic with a retention that outlasts any pause of `lagcast land`"
            error = RejectedError(message)
        raise error
    return _Topic(kafka=str(answer.cluster_id), partitions=frozenset(answer.topics[topic].partitions))


def _asked_again(consumer: Consumer, topic: str, found: _Topic) -> _Topic:
    """The topic as it is now; the given one if no broker answers."""
    try:
        answer = consumer.list_topics(topic, timeout=_LOOK_SECONDS)
    except KafkaException:
        return found
    partitions = frozenset(answer.topics[topic].partitions) if answer.topics[topic].error is None else frozenset()
    return found._replace(partitions=found.partitions | partitions)


def _messages(consumer: Consumer, topic: str, where: str) -> list[Message]:
    """The next messages, without the client's temporary errors, which it retries itself. Errors: RejectedError."""
    messages = []
    for message in consumer.consume(_MESSAGES_AT_ONCE, timeout=_LOOK_SECONDS):
        error = message.error()
        if error is None:
            messages.append(message)
        elif _is_denied(error):
            sentence = f"{where} denies reading topic {topic!r}: {said(error)}; grant this user Read on Topic {topic!r}"
            raise RejectedError(sentence)
        elif not error.retriable() and error.name() not in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_MAX_POLL_EXCEEDED"):
            _log.warning("reading_failed", where=where, topic=topic, error=said(error))
    return messages


def _arrived(message: Message) -> Arrived:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return Arrived(
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        headers={name: str(value, "utf-8", "replace") for name, value in pairs if isinstance(value, bytes)},
        value=message.value() or b"",
    )


def _is_denied(error: KafkaError) -> bool:
    return str(error.name()) == "TOPIC_AUTHORIZATION_FAILED"
