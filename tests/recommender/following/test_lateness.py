"""Standstills: what is late while a group whose members stay does nothing, or the same again, is nobody's fault."""

from dataclasses import replace

import pytest

from cost_model.physics.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.units import Seconds
from recommender.following.lateness import Standstill
from tests.recommender.following.by_the_row import PROFILE, RATE, row

# Eight members carry 8,000/s, of which 6,000/s are asked.
CARRIED = 8 * RATE
SETTLED = 20  # rows until a change of members is over


def excused(
    rows: list[GroupInterval], *, late: float = 1.0, pause_seconds: float = 5.0, profile: GroupProfile = PROFILE
) -> list[bool]:
    """Whether each row's late messages are excused, of a group that was seen at eight members for five minutes."""
    standstill, found = Standstill(profile), []
    for each in [*(row(place) for place in range(SETTLED)), *rows]:
        members, lag = each.members or 0, each.lag_messages or 0.0
        standstill.see(each, members=members, lag=lag, carried=CARRIED, pause_seconds=pause_seconds)
        found.append(standstill.excuses(late=late))
    return found[SETTLED:]


def behind(lags_seconds: list[float], *, members: int = 8) -> list[GroupInterval]:
    """The next rows, with so many seconds of lag at their ends."""
    return [row(SETTLED + place, members=members, lag_seconds=lag) for place, lag in enumerate(lags_seconds)]


def test_a_group_that_did_nothing_for_a_minute_is_excused_until_it_has_caught_up() -> None:
    """From the second row on: the first may be a burst at its end. In each row of 15 s it catches up 5 s.

    The excuse ends in the row in which it has caught up.
    """
    stands = [17.5, 32.5, 47.5, 62.5]
    catches_up = [62.5 - 5.0 * place for place in range(1, 14)]
    assert excused(behind(stands + catches_up)) == [False, *[True] * 14, False, False]


def test_what_is_on_time_again_ends_the_excuse() -> None:
    """Messages that are late after that have another reason."""
    standstill, excuses = Standstill(PROFILE), []
    for each in (row(place) for place in range(SETTLED)):
        standstill.see(each, members=8, lag=each.lag_messages or 0.0, carried=CARRIED, pause_seconds=5.0)
    stopped = behind([17.5, 32.5, 22.5, 12.5, 12.5])
    for each, late in zip(stopped, [0.0, 9.0, 9.0, 0.0, 9.0], strict=True):
        standstill.see(each, members=8, lag=each.lag_messages or 0.0, carried=CARRIED, pause_seconds=5.0)
        excuses.append(standstill.excuses(late=late))
    assert excuses == [False, True, True, False, False]


def test_a_burst_at_the_end_of_a_row_excuses_nothing() -> None:
    """In its row nothing seems to be consumed; in the next one the group works at all it carries."""
    assert not any(excused(behind([15.0, 12.0, 9.0, 6.0, 2.5])))


def test_a_group_that_is_too_small_is_not_excused() -> None:
    """It consumes 5,000/s of 6,000/s: another count would have helped."""
    assert not any(excused(behind([2.5 + 2.5 * place for place in range(40)])))


@pytest.mark.parametrize(("rows_ago", "excuses"), [(0, False), (4, False), (12, True)])
def test_a_stop_soon_after_members_changed_is_the_moves(rows_ago: int, *, excuses: bool) -> None:
    """Two minutes later it is not."""
    moved = [row(SETTLED + place, members=9) for place in range(rows_ago)]
    stands = [row(SETTLED + rows_ago + place, members=9, lag_seconds=17.5 + 15.0 * place) for place in range(3)]
    assert any(excused(moved + stands)) == excuses


def test_a_stop_may_be_the_moves_for_twice_the_longest_pause() -> None:
    """State of ten minutes is restored: a stop in the fifteenth minute after a move can be part of it."""
    moved = [row(SETTLED + place, members=9) for place in range(60)]
    stands = [row(SETTLED + 60 + place, members=9, lag_seconds=17.5 + 15.0 * place) for place in range(3)]
    assert not any(excused(moved + stands, pause_seconds=600.0))
    assert any(excused(moved + stands, pause_seconds=5.0))


@pytest.mark.parametrize("gap_rows", [3, 6, 40])
def test_a_gap_in_which_nothing_was_consumed_is_a_standstill(gap_rows: int) -> None:
    """No broker answered; the row after it has no rate, and shows what waits less what was done since."""
    waits = 2.5 + 15.0 * (gap_rows + 1) - 15.0 * 8 / 6
    resumed = replace(row(SETTLED + gap_rows, lag_seconds=waits), produce_messages_per_second=None)
    assert excused([resumed, row(SETTLED + gap_rows + 1, lag_seconds=waits - 5.0)]) == [True, True]


def test_a_gap_in_which_the_group_worked_is_none() -> None:
    """Rounds were missing, and the lag is what it was."""
    assert excused([row(SETTLED + 6)]) == [False]


def test_commits_set_back_are_work_that_nobody_could_foresee() -> None:
    """The owner sets two minutes back: that row consumes less than nothing."""
    assert excused(behind([122.5, 117.5, 112.5])) == [True, True, True]


def test_commits_that_are_not_due_yet_are_no_standstill() -> None:
    """Streams commits each 30 s: in two rows of three nothing is committed."""
    streams = replace(PROFILE, commit_interval_seconds=Seconds(30.0))
    assert not any(excused(behind([15.0 * (place % 3) for place in range(60)]), profile=streams))
