"""Borders: an error of one unit ends there, is counted each time, and logged when something about it changes."""

import pytest
from structlog.testing import capture_logs

from recommender import borders as module
from recommender.borders import Borders, Unit


def test_each_failure_is_counted_and_only_changes_are_logged() -> None:
    """Ten equal failures are one line, another error is another, and so is their end."""
    counted: list[Unit] = []
    borders = Borders(counted.append)
    with capture_logs() as lines:
        for error in [*[ValueError("no cluster")] * 10, OSError("disk full"), None, None]:
            with borders.around("step", "report"):
                if error is not None:
                    raise error
    assert counted == ["step"] * 11
    assert [(line["event"], line["name"]) for line in lines] == [
        ("step_failed", "report"),
        ("step_failed", "report"),
        ("step_works_again", "report"),
    ]
    assert [line["error"] for line in lines[:2]] == ["ValueError: no cluster", "OSError: disk full"]


def test_an_expected_error_has_no_traceback_and_a_bug_has_one() -> None:
    """An operator looks for the outage, and we for the line of code."""
    with capture_logs() as lines:
        for error in (OSError("disk full"), KeyError("spec")):
            with Borders().around("object", "shop/orders", expected=(OSError,)):
                raise error
    assert [line["exc_info"] is not None for line in lines] == [False, True]


def test_an_error_that_passes_the_border_is_neither_counted_nor_swallowed() -> None:
    """To have lost the lead ends the whole cycle, and is no failure of its steps."""
    counted: list[Unit] = []
    with pytest.raises(LookupError), Borders(counted.append).around("step", "publish", passing=(LookupError,)):
        raise LookupError
    assert counted == []


def test_names_that_never_pass_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as those of files, of which a year has millions."""
    monkeypatch.setattr(module, "MOST_REMEMBERED", 2)
    borders = Borders()
    for name in "abc":
        borders.failed("file", name, OSError("truncated"), is_expected=True)
    with capture_logs() as lines:
        for name in "abc":
            borders.passed("file", name)
    assert [line["name"] for line in lines] == ["b", "c"]
