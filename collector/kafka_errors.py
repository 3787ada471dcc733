"""Kafka's errors as sentences: the request, its receiver, the answer, and the remedy."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException

from collector.errors import AdapterError, RejectedError, UnavailableError

# Codes after which a retry may help; in admin answers the client does not mark them as retriable.
_PASSING = frozenset(
    {
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_TIMED_OUT",
        "_TRANSPORT",
        "BROKER_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_COORDINATOR",
        "NOT_LEADER_FOR_PARTITION",
        "REPLICA_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
    }
)

# The client's message for a connection that failed, and the next step for the user. The first match counts.
_NEXT_STEPS: tuple[tuple[str, str], ...] = (
    ("sasl authentication error", "check user, password or token, and that sasl.mechanisms is the user's own"),
    ("unsupported sasl mechanism", "set sasl.mechanisms to one that the broker supports"),
    ("current sasl state", "this listener does not accept SASL: name another port, or another security.protocol"),
    ("certificate verify failed", "set ssl.ca.location to the CA that signed the broker's certificate"),
    ("connecting to a plaintext", "this listener does not use TLS: name another port, or another security.protocol"),
    ("ssl/tls alert", "name a certificate that the broker trusts: ssl.keystore.location, or ssl.certificate.location"),
    ("brokers are down", "check that the broker runs and that security.protocol is that of this port, such as SSL"),
    ("failed to resolve", "check the name of the host"),
    ("connection refused", "check host and port, and that the broker runs"),
)
# The time that a connection took to fail changes each time: with it the same failure would be logged in every round.
_PASSED_TIME = re.compile(r" \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request to Kafka, described in words, and its resource: permissions are granted on a group or a topic.

    `group_right` is the operation that a group has to be granted for.
    """

    words: str
    group: str | None = None
    topic: str | None = None
    group_right: str = "Describe"


class Complaints:
    """The client's messages about its connections; the most specific is kept, and of two such messages the newer.

    The client rarely repeats a message: a message that explained an error in one round is kept for the next one.
    `unshown` removes secrets from the messages.
    """

    def __init__(self, unshown: Callable[[str], str]) -> None:
        self._unshown = unshown
        self._words, self._rank, self._has_explained = "", 0, False

    def note(self, complaint: KafkaError) -> None:
        """Note a message. The reason comes once; later messages of the same failure may only be "Disconnected"."""
        words = self._unshown(_PASSED_TIME.sub("", complaint.str()))
        rank = _rank(complaint, words)
        if rank >= self._rank:
            self._words, self._rank = words, rank

    def begin_round(self) -> None:
        """Drop the message if it explained no error in the round before."""
        if not self._has_explained:
            self.forget()
        self._has_explained = False

    def forget(self) -> None:
        """Drop the message, because the failure is over."""
        self._words, self._rank = "", 0

    def explain(self) -> str:
        """The most specific message, for an error of this round; empty where there is none."""
        self._has_explained = True
        return self._words


def _rank(complaint: KafkaError, words: str) -> int:
    """2 for a message with a next step, 1 for any other, 0 for "all brokers are down", which gives no reason."""
    if complaint.name() == "_ALL_BROKERS_DOWN":
        return 0
    return 2 if _next_step(words) else 1


def in_our_words(where: str, question: Question, cause: KafkaException, complaints: Complaints) -> AdapterError:
    """The error as one sentence, returned and not raised; raised later, it still shows its cause."""
    answer: KafkaError = cause.args[0]
    passing = answer.name() in _PASSING or answer.retriable()
    complaint = complaints.explain() if passing else ""
    detail = f" ({complaint})" if complaint else ""
    step = _grant(answer, question) or _next_step(complaint)
    message = f"request to {where} for {question.words} failed: {said(answer)}{detail}{step}"
    error = UnavailableError(message) if passing else RejectedError(message)
    error.__cause__ = cause
    return error


def said(answer: KafkaError) -> str:
    """Text and code of an answer: some texts are only "ConsumerGroupDescribe: ", and the code names the fault."""
    return f"{answer.str().rstrip(' :')} [{answer.name()}]"


def _next_step(complaint: str) -> str:
    lowered = complaint.lower()
    return next((f"; {step}" for words, step in _NEXT_STEPS if words in lowered), "")


def _grant(answer: KafkaError, question: Question) -> str:
    """The missing permission, as an operation on a resource; empty if no permission is missing."""
    code = answer.name()
    if code == "GROUP_AUTHORIZATION_FAILED":
        return f"; grant this user {question.group_right} on Group {question.group!r}"
    if code == "TOPIC_AUTHORIZATION_FAILED":
        topic = repr(question.topic) if question.topic is not None else "of each topic that the group reads"
        return f"; grant this user Describe on Topic {topic}"
    if code == "CLUSTER_AUTHORIZATION_FAILED":
        return "; grant this user Describe on Cluster 'kafka-cluster'"
    return ""
