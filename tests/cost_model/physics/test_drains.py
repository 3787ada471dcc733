"""Drains: backlogs of a minute or two that show what replicas do, from base rows of 15 s."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cost_model.physics.calibrate import capacity_seen
from cost_model.physics.drains import Drain, Drains
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.history import GroupInterval, HistoryBuffer
from forecasting.units import MessagesPerSecond, Partitions, Seconds

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
PROFILE = GroupProfile(
    cluster="east", group="alerts", partitions=Partitions(4), capacity=None, commit_interval_seconds=Seconds(1.0)
)
# Two replicas of 19 messages/s each; 17.6 messages/s are produced.
PRODUCED, BOTH = 17.6, 38.0
FEW, MANY = 10.0, 2000.0


def rows(
    *, consumed: Sequence[float], lags: Sequence[float], members: Sequence[int], rebalancing: Iterable[int] = ()
) -> list[GroupInterval]:
    """Rows of 15 s from noon on."""
    return [
        GroupInterval(
            cluster="east",
            group="alerts",
            topics="alerts",
            interval_end_at=NOON + timedelta(seconds=15 * number),
            interval_seconds=15,
            produce_messages_per_second=PRODUCED,
            consume_messages_per_second=rate,
            lag_messages=lag,
            lag_seconds=None,
            partitions=4,
            sampled_partitions=4,
            members=count,
            in_rebalance=number in rebalancing,
        )
        for number, (rate, lag, count) in enumerate(zip(consumed, lags, members, strict=True), start=1)
    ]


def drained(*, lags: Sequence[float], rebalancing: Iterable[int] = (), profile: GroupProfile = PROFILE) -> list[Drain]:
    """The drains of two steady members that do what they can in all rows but the last."""
    drains = Drains(profile)
    consumed = [BOTH] * (len(lags) - 1) + [PRODUCED]
    for row in rows(consumed=consumed, lags=lags, members=[2] * len(lags), rebalancing=rebalancing):
        drains.observe(row)
    return list(drains.over)


def rollout() -> list[GroupInterval]:
    """Half an hour that is kept up with, two minutes without a replica, and the backlog that two new ones work off.

    It begins in the middle of a minute that has a change of members, and ends in the middle of the next one.
    """
    before, gone, after = 120, 8, 40
    consumed, lags = [PRODUCED] * before + [0.0] * gone + [20.0], [FEW] * before
    lags += [FEW + 15.0 * PRODUCED * number for number in range(1, gone + 1)]
    lags.append(lags[-1] + 15.0 * (PRODUCED - 20.0))
    while len(lags) < before + gone + after:
        left = lags[-1] + 15.0 * (PRODUCED - BOTH)
        consumed.append(BOTH if left > FEW else PRODUCED)
        lags.append(max(left, FEW))
    return rows(consumed=consumed, lags=lags, members=[2] * before + [0] * gone + [2] * after)


def seen(of: Iterable[GroupInterval], *, with_drains: bool = True) -> Capacity | None:
    buffer, drains = HistoryBuffer("east", "alerts"), Drains(PROFILE)
    for row in of:
        buffer.append(row)
        drains.observe(row)
    history = buffer.history()
    return None if history is None else capacity_seen(history, PROFILE, drains=drains.over if with_drains else ())


def test_the_backlog_after_a_rollout_shows_the_capacity_though_no_whole_minute_does() -> None:
    """2,100 messages at 38/s, of which 17.6/s are new, last 90 s: no minute of them is steady and behind at its end."""
    minutes, with_drains = seen(rollout(), with_drains=False), seen(rollout())
    assert minutes is not None
    assert minutes.source == "lower_bound"
    assert with_drains is not None
    assert with_drains.source == "saturated_windows"
    assert with_drains.p50 == pytest.approx(19.0, rel=0.03)
    assert with_drains.age_seconds == 33 * 15.0


def test_a_drain_has_the_rate_and_the_length_of_its_rows() -> None:
    """Three rows between four looks at a backlog: 45 s, from 12:00:15 to 12:01:00."""
    (found,) = drained(lags=[MANY, 1700.0, 1400.0, 1100.0, FEW])
    assert (found.members, found.messages_per_second, found.seconds) == (2, BOTH, 45.0)
    assert found.began_at == NOON + timedelta(seconds=15)


@pytest.mark.parametrize(
    ("lags", "rebalancing"),
    [
        ([MANY, 1700.0, 1400.0, FEW], ()),
        ([MANY, 2100.0, 2200.0, 2300.0, FEW], ()),
        ([MANY, 1700.0, 1400.0, 1100.0, FEW], (1,)),
        ([MANY, 1700.0, 1400.0, 1100.0, FEW], (3,)),
        ([MANY, 1700.0, 1400.0, 1.9 * BOTH, FEW], ()),
    ],
    ids=[
        "too short",
        "falling further behind",
        "after a rebalance",
        "around a rebalance",
        "uncommitted work at its end",
    ],
)
def test_what_shows_no_limit_is_no_drain(lags: list[float], rebalancing: tuple[int, ...]) -> None:
    """A drain is 45 s of a steady group that is behind all the time, and less so at its end."""
    assert drained(lags=lags, rebalancing=rebalancing) == []


def test_a_row_that_is_missing_ends_a_drain() -> None:
    """Two rows before it and two after it are 30 s each."""
    drains = Drains(PROFILE)
    lags = [MANY, 1700.0, 1400.0, 1100.0, 800.0, 500.0, FEW]
    for number, row in enumerate(rows(consumed=[BOTH] * 7, lags=lags, members=[2] * 7)):
        if number != 3:
            drains.observe(row)
    assert drains.over == ()


def test_a_drain_lasts_for_five_commit_intervals_at_least() -> None:
    """Commits each 20 s show no rate in 90 s, and one in 105 s."""
    slow = replace(PROFILE, commit_interval_seconds=Seconds(20.0))
    lags = [8000.0 - 300.0 * number for number in range(8)]
    assert drained(lags=[*lags[:7], FEW], profile=slow) == []
    (found,) = drained(lags=[*lags, FEW], profile=slow)
    assert found.seconds == 105.0


def test_a_backlog_that_is_committed_batch_by_batch_is_no_drain() -> None:
    """Two replicas of 30/s, each with a commit after 500 messages: the first minute shows 48/s for each of them."""
    consumed = [70.3, 173.9, 18.1, 119.9, 0.0, 69.4, 37.2, 108.2, 23.7, 66.5]
    lags = [5783.0]
    for rate in consumed:
        lags.append(lags[-1] + 15.0 * (44.0 - rate))
    drains = Drains(PROFILE)
    for row in rows(consumed=[0.0, *consumed, 44.0], lags=[*lags, FEW], members=[2] * 12):
        drains.observe(row)
    assert drains.over == ()


def test_a_row_before_the_first_commit_is_no_part_of_a_drain() -> None:
    """New replicas have to fetch their first messages."""
    drains = Drains(PROFILE)
    lags = [MANY, 2264.0, 1958.0, 1652.0, 1346.0, FEW]
    for row in rows(consumed=[0.0, 0.0, BOTH, BOTH, BOTH, PRODUCED], lags=lags, members=[2] * 6):
        drains.observe(row)
    (found,) = drains.over
    assert (found.messages_per_second, found.seconds) == (BOTH, 45.0)


def test_drains_are_forgotten_after_a_day() -> None:
    """The replicas may run other code by then."""
    drains = Drains(PROFILE)
    for row in rows(consumed=[BOTH] * 5, lags=[MANY, 1700.0, 1400.0, 1100.0, FEW], members=[2] * 5):
        drains.observe(row)
    ended_at = drains.over[0].ended_at
    for hours, kept in ((23, 1), (24, 0)):
        drains.observe(replace(row, interval_end_at=ended_at + timedelta(hours=hours)))
        assert len(drains.over) == kept


def test_a_drain_with_a_saturated_minute_in_it_counts_once() -> None:
    """Its minutes have counted already."""
    lags = [MANY - 15.0 * number for number in range(60)]
    long = rows(consumed=[BOTH] * 60, lags=lags, members=[2] * 60)
    buffer = HistoryBuffer("east", "alerts")
    for row in long:
        buffer.append(row)
    history = buffer.history()
    assert history is not None
    whole = Drain(
        began_at=long[0].interval_end_at,
        ended_at=long[-1].interval_end_at,
        members=2,
        messages_per_second=MessagesPerSecond(100.0),
    )
    assert capacity_seen(history, PROFILE, drains=(whole,)) == capacity_seen(history, PROFILE)
