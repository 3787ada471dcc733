"""A collector in a process of its own: it may die, and nothing else does."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from collector.errors import RejectedError, UnavailableError
from collector.isolated import IsolatedCollector
from tests.collector.mortal_collector import MortalCollector, Unmakeable

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def collector() -> Iterator[IsolatedCollector]:
    with IsolatedCollector(MortalCollector) as collector:
        yield collector


def process_of(collector: IsolatedCollector) -> int:
    (error,) = collector.collect(["orders"], now=NOON).errors
    assert (type(error), error.group) == (RejectedError, "process")
    return int(str(error))


def test_rounds_share_one_other_process(collector: IsolatedCollector) -> None:
    """Answers come whole out of one child, which is kept from round to round."""
    assert process_of(collector) == process_of(collector) != os.getpid()


@pytest.mark.parametrize(("group", "end"), [("dies", "SIGABRT"), ("killed", "SIGKILL")])
def test_a_child_that_dies_costs_one_round(collector: IsolatedCollector, group: str, end: str) -> None:
    """The round in which it dies is one error that says how; the next one is answered by a new child."""
    first = process_of(collector)
    with pytest.raises(UnavailableError, match=rf"Kafka's client died \({end}\) while it was asked; the next round"):
        collector.collect([group], now=NOON)
    assert process_of(collector) != first


def test_a_child_that_dies_between_rounds_costs_none(collector: IsolatedCollector) -> None:
    """Nobody was waiting for it: the next round is answered by a new child."""
    first = process_of(collector)
    os.kill(first, signal.SIGKILL)
    until = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < until:
        time.sleep(0.02)
    assert process_of(collector) != first


def test_errors_come_as_they_are(collector: IsolatedCollector) -> None:
    """A clear no is the same error with the same group, and the child lives on."""
    first = process_of(collector)
    with pytest.raises(RejectedError, match="denied") as caught:
        collector.collect(["denied"], now=NOON)
    assert caught.value.group == "denied"
    assert process_of(collector) == first


def test_a_client_that_nobody_answered_is_not_asked_again(collector: IsolatedCollector) -> None:
    """After a round without any answer the next one begins with a new client: the old one may die of late answers."""
    first = process_of(collector)
    with pytest.raises(UnavailableError, match="no answer"):
        collector.collect(["away"], now=NOON)
    assert process_of(collector) != first


def test_a_bug_is_no_outage(collector: IsolatedCollector) -> None:
    """A child that ends over a bug of ours stops the collector: asking again would hide it."""
    with pytest.raises(RuntimeError, match="ended by itself"):
        collector.collect(["bug"], now=NOON)


def test_settings_are_refused_before_anything_is_asked() -> None:
    """An exception from the making of a collector is raised where the block begins, not a round later."""
    with (
        pytest.raises(RejectedError, match="does not take its settings"),
        IsolatedCollector(Unmakeable),
    ):
        pytest.fail("the block began")


def test_the_child_ends_with_the_block() -> None:
    """No process is left behind."""
    with IsolatedCollector(MortalCollector) as collector:
        child = process_of(collector)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
