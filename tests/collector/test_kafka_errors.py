"""The client's reports on its connections, and the time for which they are held to be true."""

from collections.abc import Sequence
from itertools import permutations

import pytest
from confluent_kafka import KafkaError, KafkaException

from collector.kafka_errors import Complaints, Question, in_our_words

REFUSED = "127.0.0.1:1/bootstrap: Connect failed: Connection refused"
TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT))

DISCONNECTED = KafkaError(KafkaError._TRANSPORT, "ssl://127.0.0.1:1/bootstrap: Disconnected: connection reset by peer")
# Everything that the client says of a listener without TLS, within a few seconds.
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
    return Complaints(lambda words: words.replace("sesame", "***"))


def told(complaints: Complaints) -> str:
    return str(in_our_words("cluster 'c' at 127.0.0.1:1", Question(words="its list of groups"), TIMED_OUT, complaints))


@pytest.mark.parametrize(
    "passed", ["", " (after 0ms in state CONNECT)", " (after 3ms in state CONNECT, 1 identical error(s) suppressed)"]
)
def test_the_reason_is_the_same_in_every_round(complaints: Complaints, passed: str) -> None:
    """Times and counts are left out: with them the same trouble would be news every 15 s."""
    complaints.hear(KafkaError(KafkaError._TRANSPORT, f"{REFUSED}{passed}"))
    assert told(complaints) == (
        "asked cluster 'c' at 127.0.0.1:1 for its list of groups; what came back: Local: Timed out [_TIMED_OUT] "
        f"({REFUSED}); check host and port, and that the broker runs"
    )


def test_all_brokers_down_hides_no_reason(complaints: Complaints) -> None:
    """The reason why one broker is down is kept over the report that all are, whichever comes last."""
    complaints.hear(KafkaError(KafkaError._TRANSPORT, REFUSED))
    complaints.hear(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert REFUSED in told(complaints)


@pytest.mark.parametrize("order", list(permutations(TLS_AGAINST_PLAINTEXT)))
def test_the_most_telling_word_is_kept(complaints: Complaints, order: Sequence[KafkaError]) -> None:
    """A word with a next step says more than one without, whichever comes last."""
    for complaint in order:
        complaints.hear(complaint)
    sentence = told(complaints)
    assert "connecting to a PLAINTEXT broker listener?" in sentence
    assert sentence.endswith("this listener speaks no TLS: name another port, or another security.protocol")


def test_of_two_words_that_say_as_much_the_newer_is_kept(complaints: Complaints) -> None:
    """A broker that comes back and wants a password is no longer one that does not run."""
    complaints.hear(KafkaError(KafkaError._TRANSPORT, REFUSED))
    complaints.hear(KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: no such user"))
    assert told(complaints).endswith("check user, password or token, and that sasl.mechanisms is the user's own")


def test_what_is_over_explains_nothing_later(complaints: Complaints) -> None:
    """A lesser word of the next trouble is not hidden by a telling one of a trouble that is over."""
    complaints.hear(KafkaError(KafkaError._TRANSPORT, REFUSED))
    told(complaints)
    complaints.forget()
    complaints.hear(DISCONNECTED)
    assert "Disconnected" in told(complaints)


def test_a_reason_is_kept_as_long_as_it_explains_errors(complaints: Complaints) -> None:
    """The client says it once: rounds that go on failing keep it, a round without an error lets it go."""
    complaints.hear(KafkaError(KafkaError._TRANSPORT, REFUSED))
    for _ in range(3):
        assert REFUSED in told(complaints)
        complaints.begin_round()
    complaints.begin_round()
    assert told(complaints).endswith("Local: Timed out [_TIMED_OUT]")


def test_a_secret_is_not_repeated(complaints: Complaints) -> None:
    """The client's messages pass the filter for secrets."""
    complaints.hear(KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: no user sesame"))
    assert "no user ***" in told(complaints)
    assert "sesame" not in told(complaints)
