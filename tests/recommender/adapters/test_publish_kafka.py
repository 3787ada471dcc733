"""The Kafka publisher without a Kafka: it never delays the loop, and logs once that nothing is delivered."""

import socket
from collections.abc import Callable, Iterator

import pytest
from structlog.testing import capture_logs

from forecasting.refusal import Refusal
from recommender.adapters.publish_kafka import KafkaPublisher
from recommender.deciding.recommendation import Recommendation
from recommender.ports import RejectedError, UnavailableError

MakeAdvice = Callable[..., Recommendation]
MakeRefusal = Callable[..., Refusal]


@pytest.fixture
def no_listener() -> Iterator[str]:
    """An address without a listener."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def publisher(bootstrap: str, **client_config: str) -> KafkaPublisher:
    return limited(bootstrap, client_config, within_seconds=None)


def limited(bootstrap: str, client_config: dict[str, str], *, within_seconds: float | None) -> KafkaPublisher:
    return KafkaPublisher(
        bootstrap,
        prefix="lagcast.recommendations",
        body_of=lambda _: b"{}",
        client_config=client_config,
        unshown=lambda words: words.replace("sesame", "***"),
        within_seconds=within_seconds,
    )


def test_a_broker_that_is_away_does_not_delay_the_loop_and_is_logged_once(
    no_listener: str, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """Two decisions are accepted while nothing is delivered; when their four messages expire, one line is logged."""
    publishing = publisher(no_listener, **{"message.timeout.ms": "2000"})
    with capture_logs() as logs:
        publishing.publish(advice())
        publishing.publish(refusal())
        assert (publishing._waiting, logs) == (4, [])
        publishing.close()
    (line,) = [line for line in logs if line["event"] == "publishing_failed"]
    assert line["where"] == f"Kafka at {no_listener}"
    assert "_MSG_TIMED_OUT" in line["error"]


def test_a_late_decision_is_dropped_under_any_client_settings(no_listener: str, advice: MakeAdvice) -> None:
    """A leader's decision is delivered before another may lead, or never."""
    publishing = limited(no_listener, {"delivery.timeout.ms": "60000"}, within_seconds=0.3)
    with capture_logs() as logs:
        publishing.publish(advice())
        assert publishing._producer.flush(10) == 0
    assert [line["event"] for line in logs] == ["publishing_failed"]


def test_more_than_can_wait_is_refused_with_how_much_waits(no_listener: str, advice: MakeAdvice) -> None:
    """A queue of two messages holds one decision; the second one is an error at once."""
    publishing = publisher(no_listener, **{"queue.buffering.max.messages": "2", "message.timeout.ms": "2000"})
    publishing.publish(advice())
    with pytest.raises(UnavailableError, match="2 messages wait to be delivered"):
        publishing.publish(advice(recommendation_id="r-2"))
    publishing.close()


def test_settings_that_the_client_does_not_take_are_named() -> None:
    """A misspelt key stops the start, and the error names the key."""
    with pytest.raises(RejectedError, match=r"sasl\.pasword"):
        publisher("127.0.0.1:9092", **{"sasl.pasword": "x"})


def test_a_value_that_the_client_does_not_take_is_not_repeated() -> None:
    """Librdkafka's own message has the value, so it is not the cause of the error either."""
    with pytest.raises(RejectedError, match=r"\*\*\*") as refused:
        publisher("127.0.0.1:9092", **{"security.protocol": "sesame"})
    assert "sesame" not in str(refused.value)
    assert refused.value.__cause__ is None
