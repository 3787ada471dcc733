"""The parts of `lagcast up` that need no Kafka: when it decides, what ends it, and which groups it refuses unread."""

import threading
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import cli.up
from cli.up import Source, news, threads_until
from collector.errors import RejectedError, UnavailableError, UnsupportedError
from collector.kafka_admin import Collected
from collector.meter import Interruption, PartitionStop
from collector.sample import OffsetSample
from collector.watch import Attention
from recommender.adapters.feature_table import FeatureTable
from recommender.adapters.metrics import Metrics

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


class Table:
    """A feature table that is only a number and the end of its newest row."""

    def __init__(self, newest: datetime) -> None:
        self.version, self._newest = 1, newest

    def newest_interval_end_at(self) -> datetime:
        """When its newest row ends."""
        return self._newest


@pytest.fixture
def running() -> "tuple[Future[None], threading.Event]":
    """A thread of the command that is still at work, and the event that ends it."""
    return Future(), threading.Event()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """What is read of a broker that nobody asks."""
    return Source(
        bootstrap="127.0.0.1:9092",
        cluster="prod-eu",
        groups=None,
        read_committed=(),
        connection={},
        folder=tmp_path,
        attention=Attention(),
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.up, "LOOK_SECONDS", 0.001)


def instants(table: Table, threads: "list[Future[None]]", stop: threading.Event, *, cycle: float = 60.0) -> Any:  # noqa: ANN401  # an iterator of instants
    return news(cast("FeatureTable", table), cycle, threads=threads, stop=stop)


def test_each_version_of_the_table_is_decided_on_once(running: "tuple[Future[None], threading.Event]") -> None:
    """Version 1, then version 2; in between nothing, whatever the time."""
    thread, stop = running
    table = Table(NOON)
    told = instants(table, [thread], stop)
    assert next(told) > NOON
    table.version = 2
    assert next(told) > NOON
    stop.set()
    assert next(told, None) is None


def test_without_new_rows_there_is_a_decision_each_cycle(running: "tuple[Future[None], threading.Event]") -> None:
    """What grows stale has to be refused, so the loop goes on where the collector is deaf."""
    thread, stop = running
    told = instants(Table(NOON), [thread], stop, cycle=0.01)
    assert len([next(told) for _ in range(3)]) == 3


def test_rows_of_an_interval_that_is_not_over_are_waited_for(
    running: "tuple[Future[None], threading.Event]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read a second before 12:00:15, usable from 12:00:15 on."""
    thread, stop = running
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return False

    monkeypatch.setattr(cli.up, "read_clock", lambda: NOON + timedelta(seconds=14.2))
    monkeypatch.setattr(stop, "wait", wait)
    next(instants(Table(NOON + timedelta(seconds=15)), [thread], stop))
    assert waited == [pytest.approx(0.8)]


def test_a_thread_that_fails_ends_the_loop_with_its_error(running: "tuple[Future[None], threading.Event]") -> None:
    """A disk that is full under the collector is not waited for until somebody looks."""
    thread, stop = running
    thread.set_exception(OSError("no space left on device"))
    with pytest.raises(OSError, match="no space left"):
        next(instants(Table(NOON), [thread], stop))


def test_the_threads_are_told_to_stop_however_the_block_ends() -> None:
    """An error in the loop does not leave the collector running."""
    stop, message = threading.Event(), "the loop failed"
    threads: list[Future[bool]] = []

    def loop() -> None:
        with threads_until(stop) as pool:
            threads.append(pool.submit(stop.wait))
            raise LookupError(message)

    with pytest.raises(LookupError, match=message):
        loop()
    assert threads[0].result(timeout=5)


def test_groups_that_brought_an_error_and_no_sample_are_refused_with_its_sentence(source: Source) -> None:
    """One partition without a leader is no reason; a share group is unsupported; an unknown one cannot be reached."""
    sample = OffsetSample(
        cluster="prod-eu",
        group="orders",
        topic="orders",
        partition=0,
        sampled_at=NOON,
        end_offset=10,
        committed_offset=5,
        log_start_offset=0,
        group_state="STABLE",
        group_protocol="classic",
        group_assignor="range",
        members=1,
        static_members=0,
    )
    errors = (
        UnavailableError("no leader of partition 1", group="orders"),
        UnsupportedError("a share group is not supported", group="clicks"),
        RejectedError("no group 'odrers'", group="odrers"),
        UnavailableError("one broker did not list its groups"),
    )
    source._hear(Collected(samples=(sample,), errors=errors))
    found = {group: (obstacle.reason, obstacle.sentence) for (_, group), obstacle in source.obstacles.items()}
    assert found == {
        "clicks": ("unsupported", "a share group is not supported"),
        "odrers": ("source_unreachable", "no group 'odrers'"),
    }
    source._hear(Collected(samples=(sample,), errors=()))
    assert source.obstacles == {}
    assert source.attention.groups == ("orders",)


class Counted:
    """Metrics that only remember."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float | None]] = []

    def interrupted(
        self, _cluster: str, _group: str, *, kind: str, rebalance_pause_seconds: float | None, **_: int
    ) -> None:
        """Remember kind and pause."""
        self.told.append((kind, rebalance_pause_seconds))


def test_a_measured_rebalance_is_kept_for_the_move_that_caused_it(source: Source) -> None:
    """Two of four partitions stopped for 3 s: 1.5 s of the group, handed out once; a stall is counted and not kept."""
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
    metrics = Counted()
    for found in (rebalance, replace(rebalance, kind="stall"), replace(rebalance, stops=())):
        source.note(found, cast("Metrics", metrics))
    assert metrics.told == [("rebalance", 3.0), ("stall", 3.0), ("rebalance", None)]
    (kept,) = source.drained_stops(("prod-eu", "orders"))
    assert (kept.lost_seconds, kept.resolution_seconds) == (1.5, 0.8)
    assert source.drained_stops(("prod-eu", "orders")) == ()
