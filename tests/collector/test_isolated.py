"""A collector in a process of its own: when that process dies, the collector's own process goes on."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

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
    """All rounds are read by one child process, which is kept from round to round."""
    assert process_of(collector) == process_of(collector) != os.getpid()


@pytest.mark.parametrize(("group", "end"), [("dies", "SIGABRT"), ("killed", "SIGKILL")])
def test_a_child_that_dies_costs_one_round(collector: IsolatedCollector, group: str, end: str) -> None:
    """The round in which the child dies raises one error that names the signal; a new child reads the next round."""
    first = process_of(collector)
    with pytest.raises(UnavailableError, match=rf"Kafka's client died \({end}\) during a request; the next round"):
        collector.collect([group], now=NOON)
    assert process_of(collector) != first


@pytest.mark.parametrize("deaths", [1, 2, 3])
def test_where_no_other_round_follows_a_client_that_dies_is_asked_again(
    collector: IsolatedCollector, tmp_path: Path, deaths: int
) -> None:
    """Three times in all: `lagcast up` ended when Kafka's client died while it read the past."""
    file = tmp_path / "deaths"
    file.touch()
    groups = [f"dies until {file}", str(deaths)]
    if deaths < 3:
        assert collector.collect_once(groups, now=NOON).errors[0].group == "process"
    else:
        with pytest.raises(UnavailableError, match=r"Kafka's client died \(SIGABRT\)"):
            collector.collect_once(groups, now=NOON)
    assert len(file.read_text()) == deaths


def test_a_source_that_does_not_answer_is_not_asked_again(collector: IsolatedCollector) -> None:
    """Its error comes at once, however the client has died before."""
    with pytest.raises(UnavailableError, match="died"):
        collector.collect(["dies"], now=NOON)
    with pytest.raises(UnavailableError, match="no answer"):
        collector.collect_once(["away"], now=NOON)


def test_a_child_that_dies_between_rounds_costs_none(collector: IsolatedCollector) -> None:
    """A child that is killed between two rounds is replaced before the next one, and no error is raised."""
    first = process_of(collector)
    os.kill(first, signal.SIGKILL)
    until = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < until:
        time.sleep(0.02)
    assert process_of(collector) != first


def test_a_child_that_hangs_costs_one_round(collector: IsolatedCollector, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen child gave no round and no log line any more."""
    monkeypatch.setattr("collector.isolated.HUNG_AFTER_SECONDS", 0.5)
    first = process_of(collector)
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(UnavailableError, match=r"did not answer for 0\.5 s during a request; the next round starts"):
        collector.collect(["orders"], now=NOON)
    assert process_of(collector) != first


def test_a_stop_does_not_wait_for_a_child_that_hangs() -> None:
    """Neither the round nor the end of the block is longer than a few looks."""
    stop = threading.Event()
    with IsolatedCollector(MortalCollector, is_stopped=stop.is_set) as collector:
        child = process_of(collector)
        os.kill(child, signal.SIGSTOP)
        stop.set()
        with pytest.raises(UnavailableError, match="was stopped during a request"):
            collector.collect(["orders"], now=NOON)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_errors_come_as_they_are(collector: IsolatedCollector) -> None:
    """An error of Kafka reaches the caller with its type and its group, and the child process stays."""
    first = process_of(collector)
    with pytest.raises(RejectedError, match="denied") as caught:
        collector.collect(["denied"], now=NOON)
    assert caught.value.group == "denied"
    assert process_of(collector) == first


def test_after_a_round_without_an_answer_the_client_is_new(collector: IsolatedCollector) -> None:
    """After a round without any answer a new client is made, because late answers may kill the old one."""
    first = process_of(collector)
    with pytest.raises(UnavailableError, match="no answer"):
        collector.collect(["away"], now=NOON)
    assert process_of(collector) != first


def test_what_the_child_logs_is_no_data(capfd: pytest.CaptureFixture[str]) -> None:
    """A line of its log made the JSON of `lagcast doctor` unreadable."""
    with IsolatedCollector(MortalCollector) as collector:
        collector.collect(["logs"], now=NOON)
    out, err = capfd.readouterr()
    assert (out, "round" in err) == ("", True)


def test_a_bug_is_no_outage(collector: IsolatedCollector) -> None:
    """A child that ends because of a bug in lagcast stops the collector instead of being started again."""
    with pytest.raises(RuntimeError, match="ended by itself"):
        collector.collect(["bug"], now=NOON)


def test_settings_are_refused_before_the_first_request() -> None:
    """An exception from the constructor of the collector is raised where the block begins, not in the first round."""
    with (
        pytest.raises(RejectedError, match="does not accept its settings"),
        IsolatedCollector(Unmakeable),
    ):
        pytest.fail("the block began")


def test_the_child_ends_with_the_block() -> None:
    """The child process has ended when the block ends."""
    with IsolatedCollector(MortalCollector) as collector:
        child = process_of(collector)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
