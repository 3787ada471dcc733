"""The rows of a cycle, in as few reads as there may be."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from forecasting.history import GroupInterval
from recommender.newest_rows import READ_TOGETHER, NewestRows
from tests.recommender.loop import Rows

SECOND = timedelta(seconds=1)
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
A, B, C = (("c", name) for name in "abc")


@pytest.fixture(name="rows")
def rows_fixture(row: Callable[..., GroupInterval]) -> Rows:
    """Three groups, a row each 15 s for three minutes."""
    ends = [NOW - 15 * number * SECOND for number in reversed(range(12))]
    return Rows([row(end, 5.0, group=group) for end in ends for group in ("a", "b", "c")])


def test_one_read_is_enough_for_all_groups(rows: Rows) -> None:
    """Groups that were seen at different instants get the rows after their own."""
    newest = NewestRows(rows, seen={A: NOW - 15 * SECOND, B: NOW - 30 * SECOND}, until=NOW)
    assert [each.interval_end_at for each in newest.of(("c", "a"), since=NOW - 15 * SECOND)] == [NOW]
    assert len(newest.of(("c", "b"), since=NOW - 30 * SECOND)) == 2
    assert len(rows.asked_since) == 1
    assert newest.of(("c", "gone"), since=NOW - 15 * SECOND) == []


def test_groups_that_are_behind_are_read_apart_from_the_others_and_together(rows: Rows) -> None:
    """Their old rows are not read of all others, and a thousand groups of a late collector are one read, or two."""
    behind = NOW - READ_TOGETHER - 30 * SECOND
    newest = NewestRows(rows, seen={A: NOW - 15 * SECOND, B: behind, C: behind + 15 * SECOND}, until=NOW)
    assert [len(newest.of(group, since=behind)) for group in (B, C)] == [6, 6]
    assert len(newest.of(A, since=NOW - 15 * SECOND)) == 1
    assert rows.asked_since == [behind, NOW - 15 * SECOND]


def test_a_group_that_is_far_behind_costs_the_others_nothing(rows: Rows) -> None:
    """None is read for more than twice the time since its newest row, and a minute."""
    seen = {("c", str(number)): NOW - number * 7 * SECOND for number in range(100)}
    newest = NewestRows(rows, seen=seen, until=NOW)
    for group, at in seen.items():
        newest.of(group, since=at)
        assert NOW - min(since for since in rows.asked_since if since is not None) <= 2 * (NOW - at) + READ_TOGETHER
    assert len(rows.asked_since) < 6


def test_groups_that_are_all_behind_are_read_together(rows: Rows) -> None:
    """After a cycle of two minutes, as the first one of a large fleet, none is read alone."""
    behind = NOW - 2 * READ_TOGETHER
    newest = NewestRows(rows, seen={A: behind, B: behind + 15 * SECOND, C: NOW + SECOND}, until=NOW)
    assert [len(newest.of(group, since=behind)) for group in (A, B)] == [8, 8]
    assert rows.asked_since == [behind]


def test_p17_where_one_group_cannot_be_read_the_others_are_read_alone(rows: Rows) -> None:
    """The error is that of its own read."""
    rows.poisoned["b"] = OSError("no such row")
    newest = NewestRows(rows, seen={A: NOW - 15 * SECOND, B: NOW - 15 * SECOND}, until=NOW)
    assert len(newest.of(A, since=NOW - 15 * SECOND)) == 1
    with pytest.raises(OSError, match="no such row"):
        newest.of(B, since=NOW - 15 * SECOND)
