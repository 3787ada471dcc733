"""Instants as people type them."""

from threading import Event, Timer

import pytest

from cli.errors import InputError
from cli.instants import each_cycle, parse_instant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-05-12T08:40:00Z", "2026-05-12T08:40:00+00:00"),
        ("2026-05-12 08:40:00+00:00", "2026-05-12T08:40:00+00:00"),
        ("2026-05-12", "2026-05-12T00:00:00+00:00"),
    ],
)
def test_instants_are_read_as_utc(text: str, meant: str) -> None:
    """RFC 3339 and plain dates are understood; what comes out is in UTC."""
    assert parse_instant(text, option="--now").isoformat() == meant


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "2026-05-12T08:40:00"])
def test_what_is_no_instant_is_refused_with_the_form_to_use(text: str) -> None:
    """The sentence names option, value and form; without a zone an instant could be hours off."""
    with pytest.raises(InputError, match=r"^--now '.*' .*; write it as 2026-05-12T08:40:00Z$"):
        parse_instant(text, option="--now")


def test_cycles_end_when_asked_to() -> None:
    """A cycle that is stopped while it waits does not come round again."""
    stop = Event()
    for count, now in enumerate(each_cycle(3600.0, stop=stop)):
        assert now.tzinfo is not None
        assert count == 0
        stop.set()


def test_a_cycle_comes_early_when_it_is_called_for() -> None:
    """Whoever begins to lead does not wait for an hour; what was called for while a cycle ran counts too."""
    stop, early = Event(), Event()
    for count, _ in enumerate(each_cycle(3600.0, stop=stop, early=early)):
        if count == 2:
            stop.set()
        elif count == 1:
            Timer(0.3, early.set).start()
        else:
            early.set()
    assert count == 2
