"""The rows of a cycle, in as few reads as there may be."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from forecasting.history import GroupInterval
from recommender.newest_rows import READ_TOGETHER, NewestRows
from tests.recommender.loop import Rows

SECOND = timedelta(seconds=1)
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture(name="rows")
def rows_fixture(row: Callable[..., GroupInterval]) -> Rows:
    """Three groups, a row each 15 s for three minutes."""
    ends = [NOW - 15 * number * SECOND for number in reversed(range(12))]
    return Rows([row(end, 5.0, group=group) for end in ends for group in ("a", "b", "c")])


def test_one_read_is_enough_for_all_groups(rows: Rows) -> None:
    """Groups that were seen at different instants get the rows after their own."""
    newest = NewestRows(rows, seen=[NOW - 15 * SECOND, NOW - 30 * SECOND], until=NOW)
    assert [each.interval_end_at for each in newest.of(("c", "a"), since=NOW - 15 * SECOND)] == [NOW]
    assert len(newest.of(("c", "b"), since=NOW - 30 * SECOND)) == 2
    assert newest.of(("c", "gone"), since=NOW - 15 * SECOND) == []
    assert len(rows.asked_since) == 1


def test_a_group_that_is_behind_is_read_alone(rows: Rows) -> None:
    """Its old rows are not read of all others."""
    behind = NOW - READ_TOGETHER - 30 * SECOND
    newest = NewestRows(rows, seen=[NOW - 15 * SECOND, behind], until=NOW)
    assert len(newest.of(("c", "b"), since=behind)) == 6
    assert rows.asked_since == [NOW - 15 * SECOND, behind]


def test_groups_that_are_all_behind_are_read_together(rows: Rows) -> None:
    """After a cycle of two minutes, as the first one of a large fleet, none is read alone."""
    behind = NOW - 2 * READ_TOGETHER
    newest = NewestRows(rows, seen=[behind, behind + 15 * SECOND, NOW + SECOND], until=NOW)
    assert [len(newest.of(("c", group), since=behind)) for group in ("a", "b")] == [8, 8]
    assert rows.asked_since == [behind]


def test_p17_where_one_group_cannot_be_read_the_others_are_read_alone(rows: Rows) -> None:
    """The error is that of its own read."""
    rows.poisoned["b"] = OSError("no such row")
    newest = NewestRows(rows, seen=[NOW - 15 * SECOND], until=NOW)
    assert len(newest.of(("c", "a"), since=NOW - 15 * SECOND)) == 1
    with pytest.raises(OSError, match="no such row"):
        newest.of(("c", "b"), since=NOW - 15 * SECOND)
