"""The parts of `lagcast up` that need no Kafka: its options, its end, how errors and interruptions are passed on."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from cli.parts import parts_until
from cli.up import look_at_members, note, obstacles_of, raise_of
from collector.errors import RejectedError, UnsupportedError
from collector.meter import Interruption, PartitionStop
from recommender.adapters.metrics import Metrics
from recommender.borders import Borders
from recommender.ports import Obstacle, UnavailableError
from recommender.stops import MeasuredStops

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_the_error_of_a_failed_thread_is_raised() -> None:
    """A thread that is still at work and one that has ended do not delay the error."""
    working, over, failed = Future[None](), Future[None](), Future[None]()
    over.set_result(None)
    failed.set_exception(OSError("no space left on device"))
    raise_of((working, over))
    with pytest.raises(OSError, match="no space left"):
        raise_of((working, over, failed))


@pytest.mark.parametrize("error", [None, UnavailableError("no answer"), ZeroDivisionError()])
def test_the_first_look_at_members_comes_before_the_first_decision(error: Exception | None) -> None:
    """When it returns one look is over, also one that failed: nobody waits for a source that is away."""
    stop, seen = threading.Event(), list[int]()

    def see() -> None:
        seen.append(1)
        if error is not None:
            raise error

    with parts_until(stop, Borders()) as parts:
        look_at_members(see, parts, stop)
        assert seen
        parts.raise_failure()


def test_groups_that_could_not_be_read_are_refused_with_the_sentence_of_their_error() -> None:
    """A share group is refused as unsupported, and an unknown one as unreachable."""
    unread = {
        "clicks": UnsupportedError("a share group is not supported", group="clicks"),
        "odrers": RejectedError("no group 'odrers'", group="odrers"),
    }
    assert obstacles_of("prod-eu", unread) == {
        ("prod-eu", "clicks"): Obstacle(
            "unsupported", "a share group is not supported", "Leave it out, or scale it by another signal."
        ),
        ("prod-eu", "odrers"): Obstacle(
            "source_unreachable",
            "no group 'odrers'",
            "Correct what the sentence names; the request is repeated every 15 s.",
        ),
    }


class Counted:
    """Metrics that keep the interruptions they receive."""

    def __init__(self) -> None:
        self.interruptions: list[tuple[str, float | None]] = []

    def interrupted(
        self, _cluster: str, _group: str, *, kind: str, rebalance_pause_seconds: float | None, **_: int
    ) -> None:
        """Keep kind and rebalance pause."""
        self.interruptions.append((kind, rebalance_pause_seconds))


def test_a_measured_rebalance_is_kept_for_the_move_that_caused_it() -> None:
    """Two of four partitions that stop for 3 s are 1.5 s of the group, returned once; a stall is counted, not kept.

    A standby keeps what it measures, and counts nothing: the leader has measured the same.
    """
    rebalance = Interruption(
        cluster="prod-eu",
        group="orders",
        kind="rebalance",
        began_at=NOON,
        ended_at=NOON + timedelta(seconds=5),
        members_before=2,
        members_after=3,
        rebalancing_seconds=3.0,
        partitions=4,
        stops=tuple(PartitionStop(topic="orders", partition=number, seconds=3.0) for number in range(2)),
        standing_partitions=0,
        repeated_messages_least=0,
        repeated_messages_most=20,
        resolution_seconds=0.8,
    )
    metrics, stops = Counted(), MeasuredStops()
    for found in (rebalance, replace(rebalance, kind="stall"), replace(rebalance, stops=())):
        note(found, cast("Metrics", metrics), stops, leads=True)
    assert metrics.interruptions == [("rebalance", 3.0), ("stall", 3.0), ("rebalance", None)]
    (kept,) = stops.taken(("prod-eu", "orders"))
    assert (kept.lost_seconds, kept.resolution_seconds) == (1.5, 0.8)
    assert stops.taken(("prod-eu", "orders")) == ()
    note(rebalance, cast("Metrics", metrics), stops, leads=False)
    assert (len(metrics.interruptions), len(stops.taken(("prod-eu", "orders")))) == (3, 1)


def test_discovery_needs_a_namespace(lagcast: Callable[..., tuple[int, str, str]]) -> None:
    """Without one nothing could be found, and the command says so before it reads anything."""
    code, out, err = lagcast("up", "--bootstrap", "nowhere:9092", "--discover")
    assert (code, out) == (2, "")
    assert err == "lagcast: --discover looks for workloads in no namespace; add --kubernetes NAMESPACE\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "up needs one source: give --bootstrap HOST:PORT for Kafka, or --prometheus URL, not both"),
        (("--bootstrap", "127.0.0.1:1", "--prometheus", "http://127.0.0.1:1"), "up needs one source"),
        (("--prometheus", "http://127.0.0.1:1", "--read-committed", "orders"), "--read-committed needs --bootstrap"),
        (("--prometheus", "http://127.0.0.1:1", "--discover"), "--discover needs --bootstrap"),
        (("--prometheus", "localhost"), "--prometheus localhost is no address; write it as http://prometheus:9090"),
    ],
)
def test_a_source_that_cannot_be_meant_is_one_sentence(
    lagcast: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    """No source, two of them, an option that only Kafka has, or no address: a sentence, before anything is started."""

    def started(*_: object, **__: object) -> None:
        message = "a service was started"
        raise AssertionError(message)

    monkeypatch.setattr("cli.service.running_service", started)
    code, _, err = lagcast("up", *words)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
