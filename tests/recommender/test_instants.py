"""The instants at which the loop decides: as rows come, each cycle, on request, and until it is stopped."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from recommender import instants
from recommender.instants import as_rows_come

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


class Table:
    """A feature table with only a number of rows and the end of its newest row."""

    def __init__(self, newest: datetime) -> None:
        self.row_count, self._newest = 1, newest

    def newest_interval_end_at(self, *, until: datetime | None = None) -> datetime:  # noqa: ARG002  # none is later
        """The instant at which its newest row ends."""
        return self._newest


def clock() -> datetime:
    """The present instant."""
    return datetime.now(UTC)  # noqa: TID251  # what a process entry point hands over


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instants, "TABLE_LOOK_SECONDS", 0.001)


def instants_of(table: Table, stop: threading.Event, *, cycle: float = 60.0) -> Iterator[datetime]:
    """The instants of that table."""
    return as_rows_come(table, cycle, clock=clock, stop=stop)


def test_new_rows_are_decided_on_once() -> None:
    """One row and two rows are decided on once each, and nothing in between, at any time."""
    stop, table = threading.Event(), Table(NOON)
    decision_times = instants_of(table, stop)
    assert next(decision_times) > NOON
    table.row_count = 2
    assert next(decision_times) > NOON
    stop.set()
    assert next(decision_times, None) is None


def test_without_new_rows_there_is_a_decision_each_cycle() -> None:
    """Stale data must be refused, so the loop goes on while the collector is down."""
    decision_times = instants_of(Table(NOON), threading.Event(), cycle=0.01)
    assert len([next(decision_times) for _ in range(3)]) == 3


def test_rows_of_an_interval_that_is_not_over_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is read a second before 12:00:15 is decided on at 12:00:15."""
    stop, waited = threading.Event(), list[float]()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return False

    monkeypatch.setattr(stop, "wait", wait)
    table, now = Table(NOON + timedelta(seconds=15)), NOON + timedelta(seconds=14.2)
    next(as_rows_come(table, 60.0, clock=lambda: now, stop=stop))
    assert waited == [pytest.approx(0.8)]


def test_a_row_of_a_wrong_clock_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row that is two hours ahead silenced all groups for two hours; rows of the right clocks are waited for."""
    stop, waited = threading.Event(), list[float]()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return False

    monkeypatch.setattr(stop, "wait", wait)
    now, newest = NOON + timedelta(seconds=14.2), [NOON + timedelta(hours=2), NOON + timedelta(seconds=15)]
    table = Mock(row_count=1, newest_interval_end_at=lambda until: max(each for each in newest if each <= until))
    next(as_rows_come(table, 60.0, clock=lambda: now, stop=stop))
    assert waited == [pytest.approx(0.8)]


class Unreadable:
    """A table whose folder is away."""

    @property
    def row_count(self) -> int:
        """Its number cannot be read."""
        message = "the folder is away"
        raise OSError(message)

    def newest_interval_end_at(self, *, until: datetime | None = None) -> datetime | None:
        """Nor can its rows."""
        raise OSError(until)


def test_while_the_table_cannot_be_read_there_is_an_instant_each_cycle() -> None:
    """At which the reason is told; the loop does not end."""
    decision_times = as_rows_come(Unreadable(), 0.01, clock=clock, stop=threading.Event())
    assert len([next(decision_times) for _ in range(3)]) == 3


def test_a_cycle_starts_early_on_request() -> None:
    """A new leader does not wait for an hour; a request during a cycle counts too, and each counts once."""
    stop, early = threading.Event(), threading.Event()
    instants = as_rows_come(Table(NOON), 3600.0, clock=clock, stop=stop, early=early)
    next(instants)
    early.set()
    next(instants)
    threading.Timer(0.3, early.set).start()
    next(instants)
    threading.Timer(0.3, stop.set).start()
    assert next(instants, None) is None


def test_a_loop_that_shows_no_sign_of_life_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it has begun it does not: the past of a large cluster may be read first."""
    monkeypatch.setattr(instants, "HANGS_AFTER_SECONDS", 0.05)
    pulse = instants.Pulse()
    assert not pulse.hangs()
    decision_times = as_rows_come(Table(NOON), 60.0, clock=clock, stop=threading.Event(), pulse=pulse)
    next(decision_times)
    threading.Event().wait(0.1)  # a decision that never ends
    assert pulse.hangs()
