"""The connection errors that the client reports, and how long they explain failed requests."""

from collections.abc import Sequence
from itertools import permutations

import pytest
from confluent_kafka import KafkaError, KafkaException

from collector.kafka_errors import Complaints, Question, in_our_words

REFUSED = "127.0.0.1:1/bootstrap: Connect failed: Connection refused"
TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT))

DISCONNECTED = KafkaError(KafkaError._TRANSPORT, "ssl://127.0.0.1:1/bootstrap: Disconnected: connection reset by peer")
# All errors that the client reports within a few seconds for a listener without TLS.
TLS_AGAINST_PLAINTEXT = (
    KafkaError(
        KafkaError._TRANSPORT,
        "ssl://127.0.0.1:1/bootstrap: SSL handshake failed: Disconnected: connection reset by peer: "
        "connecting to a PLAINTEXT broker listener? (after 5ms in state SSL_HANDSHAKE)",
    ),
    KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
    DISCONNECTED,
    KafkaError(KafkaError._TRANSPORT, f"{DISCONNECTED.str()} (after 0ms in state SSL_HANDSHAKE)"),
)


@pytest.fixture
def complaints() -> Complaints:
    return Complaints(lambda text: text.replace("sesame", "***"))


def error_message(complaints: Complaints) -> str:
    return str(in_our_words("cluster 'c' at 127.0.0.1:1", Question(words="its list of groups"), TIMED_OUT, complaints))


@pytest.mark.parametrize(
    "passed", ["", " (after 0ms in state CONNECT)", " (after 3ms in state CONNECT, 1 identical error(s) suppressed)"]
)
def test_the_reason_is_the_same_in_every_round(complaints: Complaints, passed: str) -> None:
    """Times and counts are left out of the error, which would otherwise be a new one every 15 s."""
    complaints.note(KafkaError(KafkaError._TRANSPORT, f"{REFUSED}{passed}"))
    assert error_message(complaints) == (
        "request to cluster 'c' at 127.0.0.1:1 for its list of groups failed: Local: Timed out [_TIMED_OUT] "
        f"({REFUSED}); check host and port, and that the broker runs"
    )


def test_all_brokers_down_hides_no_reason(complaints: Complaints) -> None:
    """The reason why one broker is down is kept, whether the report that all are down comes before or after it."""
    complaints.note(KafkaError(KafkaError._TRANSPORT, REFUSED))
    complaints.note(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert REFUSED in error_message(complaints)


@pytest.mark.parametrize("order", list(permutations(TLS_AGAINST_PLAINTEXT)))
def test_the_error_with_a_next_step_is_kept(complaints: Complaints, order: Sequence[KafkaError]) -> None:
    """An error that has a next step is kept over one that has none, whichever comes last."""
    for complaint in order:
        complaints.note(complaint)
    sentence = error_message(complaints)
    assert "connecting to a PLAINTEXT broker listener?" in sentence
    assert sentence.endswith("this listener does not use TLS: name another port, or another security.protocol")


def test_of_two_errors_with_a_next_step_the_newer_is_kept(complaints: Complaints) -> None:
    """When a broker is up again and refuses the password, that error replaces the refused connection."""
    complaints.note(KafkaError(KafkaError._TRANSPORT, REFUSED))
    complaints.note(KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: no such user"))
    assert error_message(complaints).endswith(
        "check user, password or token, and that sasl.mechanisms is the user's own"
    )


def test_an_error_that_is_over_explains_no_later_one(complaints: Complaints) -> None:
    """After a call of `forget` an earlier error with a next step no longer hides a later one without."""
    complaints.note(KafkaError(KafkaError._TRANSPORT, REFUSED))
    error_message(complaints)
    complaints.forget()
    complaints.note(DISCONNECTED)
    assert "Disconnected" in error_message(complaints)


def test_a_reason_is_kept_as_long_as_it_explains_errors(complaints: Complaints) -> None:
    """An error that the client reports once is kept while rounds fail, and dropped after a round without an error."""
    complaints.note(KafkaError(KafkaError._TRANSPORT, REFUSED))
    for _ in range(3):
        assert REFUSED in error_message(complaints)
        complaints.begin_round()
    complaints.begin_round()
    assert error_message(complaints).endswith("Local: Timed out [_TIMED_OUT]")


def test_a_secret_is_not_repeated(complaints: Complaints) -> None:
    """The client's messages pass the filter for secrets."""
    complaints.note(KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: no user sesame"))
    assert "no user ***" in error_message(complaints)
    assert "sesame" not in error_message(complaints)
