"""Capacity and sink limits, estimated from a group's own minutes."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from cost_model.physics.calibrate import capacity_seen, quiet_seconds, shown_by_replica, windows_of
from cost_model.physics.downstream import downstream_limit
from cost_model.physics.profile import GroupProfile, StreamsProfile
from forecasting.history import History
from forecasting.units import FloatArray, Partitions, Seconds

PROFILE = GroupProfile(cluster="east", group="orders", partitions=Partitions(40), capacity=None)
MINUTES = 240


def _history(
    consumed: FloatArray,
    *,
    behind: FloatArray,
    members: FloatArray,
    rebalance: FloatArray | None = None,
    busy: FloatArray | None = None,
) -> History:
    """Minutes at these rates, with a minute's worth of lag where the group is behind (1) and none where not (0)."""
    return History(
        cluster="east",
        group="orders",
        end_at=datetime(2026, 1, 5, 12, tzinfo=UTC),
        produce_messages_per_second=consumed,
        consume_messages_per_second=consumed,
        lag_messages=60.0 * consumed * behind,
        members=members,
        in_rebalance=np.zeros(consumed.size) if rebalance is None else rebalance,
        busy_ratio=np.full(consumed.size, np.nan) if busy is None else busy,
        recent=(),
    )


def _noise(seed: int = 3) -> FloatArray:
    noise: FloatArray = np.exp(np.random.default_rng(seed).normal(0.0, 0.04, MINUTES))
    return noise


def test_capacity_is_the_rate_of_one_replica_while_the_group_was_behind() -> None:
    """8 replicas at 500 messages/s that do 800 through 40 minutes of backlog have about 100 each, 20 min ago."""
    behind = np.zeros(MINUTES)
    behind[180:220] = 1.0
    consumed = np.where(behind > 0.0, 800.0, 500.0) * _noise()
    found = capacity_seen(_history(consumed, behind=behind, members=np.full(MINUTES, 8.0)), PROFILE)
    assert found is not None
    assert found.p20 < found.p50 < found.p90
    assert found.p50 == pytest.approx(100.0, rel=0.05)
    assert found.age_seconds == 20 * 60.0


def test_uncommitted_work_of_a_streams_application_is_no_backlog() -> None:
    """It commits each 30 s: 20 s of its rate are lag without a backlog, and 40 s are a backlog."""
    streams = replace(PROFILE, streams=StreamsProfile(stateful=False, tasks=40))
    history = _history(800.0 * _noise(), behind=np.ones(MINUTES), members=np.full(MINUTES, 8.0))
    of_seconds = {
        seconds: replace(history, lag_messages=seconds * history.consume_messages_per_second) for seconds in (20, 40)
    }
    assert _seen(of_seconds[20], streams)[1] == "lower_bound"
    assert _seen(of_seconds[40], streams)[1] == "saturated_windows"
    assert _seen(of_seconds[20])[1] == "saturated_windows"


# Commits that come each 40 s fall twice into one minute and once into the next one.
SELDOM = replace(PROFILE, streams=StreamsProfile(stateful=False, tasks=40, commit_interval_seconds=Seconds(40.0)))
LUMPS = np.array([4.0, 2.0, 4.0, 2.0]) / 3.0


@pytest.mark.parametrize("minutes", [1, 2, 3])
def test_lumps_of_seldom_commits_are_a_bound_until_they_make_a_mean(minutes: int) -> None:
    """After 40 min at 500 messages/s, 8 replicas of 100 messages/s seem to do 133 each, and then 67, while behind."""
    consumed = np.concatenate([np.full(40, 500.0), 800.0 * LUMPS[:minutes]])
    behind = np.where(np.arange(consumed.size) >= 39, 3.0, 0.0)
    history = _history(consumed, behind=behind, members=np.full(consumed.size, 8.0))
    assert _seen(history, SELDOM) == (62.5, "lower_bound")


def test_lumps_of_seldom_commits_show_the_capacity_by_their_mean() -> None:
    """An hour at 600 messages/s, seen as 800 and 400, and four minutes behind: 100 messages/s each, and not 133."""
    consumed = np.concatenate([np.tile(600.0 * LUMPS, 15), 800.0 * LUMPS])
    behind = np.where(np.arange(consumed.size) >= 59, 3.0, 0.0)
    found = capacity_seen(_history(consumed, behind=behind, members=np.full(consumed.size, 8.0)), SELDOM)
    assert found is not None
    assert found.source == "saturated_windows"
    assert found.p50 == pytest.approx(100.0, rel=0.06)
    assert found.p20 < 98.0


def test_a_group_that_always_keeps_up_shows_no_limit() -> None:
    """What it has done is a lower bound; a history of a minute, and one of unknown minutes, show nothing at all."""
    keeping_up = _history(500.0 * _noise(), behind=np.zeros(MINUTES), members=np.full(MINUTES, 8.0))
    assert _seen(keeping_up)[1] == "lower_bound"
    one = _history(np.array([800.0]), behind=np.ones(1), members=np.array([8.0]))
    assert capacity_seen(one, PROFILE) is None
    unknown = _history(np.full(5, np.nan), behind=np.ones(5), members=np.full(5, np.nan))
    assert capacity_seen(unknown, PROFILE) is None


DAY_MINUTES = 1440


def _day(consumed: FloatArray, *, behind: FloatArray | None = None) -> History:
    """A day and more of minutes in which 8 replicas consumed that much."""
    quiet = np.zeros(consumed.size)
    return _history(consumed, behind=quiet if behind is None else behind, members=np.full(consumed.size, 8.0))


def _seen(history: History, profile: GroupProfile = PROFILE) -> tuple[float, str]:
    found = capacity_seen(history, profile)
    assert found is not None
    return found.p20, found.source


def test_a_day_without_backlog_shows_the_highest_rate_sustained_for_some_minutes() -> None:
    """An hour at 800 messages/s is 100 each, planned as 106; one minute at 2,400 is no sustained rate."""
    consumed = np.full(DAY_MINUTES, 400.0)
    consumed[600:660] = 800.0
    calm = capacity_seen(_day(consumed), PROFILE)
    consumed[300] = 2400.0
    odd = capacity_seen(_day(consumed), PROFILE)
    assert calm == odd
    assert calm is not None
    assert (calm.p20, calm.p50, calm.p90) == pytest.approx((106.0, 115.0, 132.25))
    assert calm.source == "unsaturated_windows"


def _days(*levels: float, behind_at: int | None = None, behind_rate: float = 0.0) -> History:
    """Days of 8 replicas at these rates; in two minutes of the last one, from `behind_at` on, at another, behind."""
    consumed = np.repeat(np.array(levels), DAY_MINUTES)
    behind = np.zeros(consumed.size)
    if behind_at is not None:
        two = slice(consumed.size - DAY_MINUTES + behind_at, consumed.size - DAY_MINUTES + behind_at + 2)
        consumed[two], behind[two] = behind_rate, 1.0
    return _day(consumed, behind=behind)


def test_what_replicas_have_shown_is_known_for_a_week() -> None:
    """A Friday at 100 messages/s of each replica, and a weekend at 60: on Monday each can do 100 at least."""
    found = capacity_seen(_days(800.0, 480.0, 480.0), PROFILE)
    assert found is not None
    assert shown_by_replica(found) == pytest.approx(100.0)
    after_a_week = capacity_seen(_days(800.0, *8 * [480.0]), PROFILE)
    assert after_a_week is not None
    assert shown_by_replica(after_a_week) == pytest.approx(60.0)


def test_what_replicas_have_shown_counts_no_more_once_they_fall_behind_with_less() -> None:
    """100 before the weekend, and on Monday behind with 80: a new version may be slower."""
    slower = capacity_seen(_days(800.0, 480.0, 480.0, behind_at=700, behind_rate=640.0), PROFILE)
    assert slower is not None
    assert shown_by_replica(slower) == pytest.approx(80.0)
    as_before = capacity_seen(_days(800.0, 480.0, 480.0, behind_at=700, behind_rate=760.0), PROFILE)
    assert as_before is not None
    assert shown_by_replica(as_before) == pytest.approx(100.0)
    assert as_before.p20 == pytest.approx(100.0)  # that is its limit: no step beyond it


def test_commits_that_come_every_ten_minutes_are_no_tenfold_capacity() -> None:
    """400 messages/s that are seen as 4,000 in one minute of ten: 50 for each of 8, over two commits together."""
    consumed = np.where(np.arange(DAY_MINUTES) % 10 == 0, 4000.0, 0.0)
    seldom = replace(PROFILE, commit_interval_seconds=Seconds(600.0))
    assert _seen(_day(consumed), seldom)[0] == pytest.approx(1.06 * 50.0)
    assert _seen(_day(consumed))[0] > 150.0


def test_backlogs_that_contradict_each_other_leave_the_sustained_rate() -> None:
    """Minutes behind at 100 and at 300 messages/s of 8 replicas, after an hour at 800: at least 100 each is known."""
    consumed, behind = np.full(DAY_MINUTES, 400.0), np.zeros(DAY_MINUTES)
    consumed[600:660] = 800.0
    behind[900:906] = behind[1000:1006] = 1.0
    consumed[900:906], consumed[1000:1006] = 100.0, 300.0
    carried, source = _seen(_day(consumed, behind=behind))
    assert carried == pytest.approx(106.0)
    assert source == "unsaturated_windows"


def test_hours_without_samples_keep_the_capacity() -> None:
    """After a day at 800 messages/s of 8 replicas collection stops for a night; then there are ten quiet minutes."""
    night, after = np.full(600, np.nan), np.full(10, 80.0)
    assert _seen(_day(np.concatenate([np.full(DAY_MINUTES, 800.0), night, after])))[0] == pytest.approx(106.0)


def test_two_minutes_without_backlog_show_no_capacity() -> None:
    """One rate between them may be any."""
    assert capacity_seen(_day(np.full(2, 800.0)), PROFILE) is None


@pytest.mark.parametrize("lumps_begin", range(4))
def test_the_first_minutes_show_no_more_than_was_produced_in_them(lumps_begin: int) -> None:
    """Commits that come every four minutes seem to be 3,200/s in three; 800/s were produced, 100 for each of 8."""
    lumpy = np.where((np.arange(5) + lumps_begin) % 4 == 0, 3200.0, 0.0)
    history = replace(_day(lumpy), produce_messages_per_second=np.full(5, 800.0))
    for minutes in (3, 4, 5):
        found = capacity_seen(history.until(minutes - 1), PROFILE)
        assert found is None or found.p50 <= 100.0 + 1e-9


def test_in_the_first_half_hour_a_drained_backlog_is_no_capacity_beyond_what_was_produced() -> None:
    """800/s are committed while 400/s come, from a backlog that is gone: the group has kept up with 50 each."""
    history = replace(_day(np.full(10, 800.0)), produce_messages_per_second=np.full(10, 400.0))
    assert _seen(history) == (50.0, "lower_bound")
    # Produce rates are known for longer than the rest.
    longer = np.concatenate([np.full(20, 4000.0), history.produce_messages_per_second])
    assert _seen(replace(history, produce_messages_per_second=longer)) == (50.0, "lower_bound")


@pytest.mark.parametrize("minutes", [3, 29, 30, 1300])
def test_less_than_a_day_without_backlog_shows_a_lower_bound(minutes: int) -> None:
    """The busiest hours may be missing: what each of 8 replicas has shown is all that is known, and no band."""
    found = capacity_seen(_day(np.full(minutes, 800.0)), PROFILE)
    assert found is not None
    assert (found.p20, found.p50, found.p90, found.source) == (100.0, 100.0, 100.0, "lower_bound")


def test_a_lower_bound_rests_on_ten_minutes_together() -> None:
    """Commits that come every four minutes, while five seconds are assumed, are no fourfold capacity."""
    consumed = np.where(np.arange(120) % 4 == 0, 3200.0, 0.0)
    found = capacity_seen(_day(consumed), PROFILE)
    assert found is not None
    assert found.p50 <= 1.2 * 100.0
    consumed = np.full(120, 400.0)
    consumed[50:58] = 4000.0
    odd = capacity_seen(_day(consumed), PROFILE)
    assert odd is not None
    assert odd.p50 < 500.0


def test_a_day_of_nothing_shows_no_capacity() -> None:
    """Its last minutes show none either, if all others were idle."""
    consumed = np.zeros(DAY_MINUTES)
    assert capacity_seen(_day(consumed), PROFILE) is None
    consumed[-2:] = 800.0
    assert capacity_seen(_day(consumed), PROFILE) is None


def test_b21_minutes_of_change_are_left_out() -> None:
    """A minute in which members changed or a rebalance lay, and the one after a rebalance, have no rate."""
    members, rebalance = np.array([8.0, 8.0, 10.0, 10.0, 10.0, 10.0]), np.zeros(6)
    rebalance[4] = 0.5
    windows = windows_of(_history(np.full(6, 800.0), behind=np.ones(6), members=members, rebalance=rebalance), PROFILE)
    assert np.isfinite(windows.rates).tolist() == [True, False, True, False, False]
    assert windows.saturated.tolist() == [True, False, True, False, False]
    assert windows.replicas.tolist() == [8, 10, 10, 10, 10]


def test_idle_members_do_not_share_the_rate() -> None:
    """50 members on 40 partitions: 4,000 messages/s are 100 for each of the 40 that hold one."""
    history = _history(4000.0 * _noise(), behind=np.ones(MINUTES), members=np.full(MINUTES, 50.0))
    found = capacity_seen(history, PROFILE)
    assert found is not None
    assert found.p50 == pytest.approx(100.0, rel=0.05)


def test_minutes_at_two_counts_show_a_capped_sink() -> None:
    """From 8 to 20 replicas a capped group stays at 800 messages/s."""
    members = np.where(np.arange(MINUTES) < 120, 8.0, 20.0)
    windows = windows_of(_history(800.0 * _noise(), behind=np.ones(MINUTES), members=members), PROFILE)
    found = downstream_limit(PROFILE, replicas=windows.replicas, rates=windows.rates, saturated=windows.saturated)
    assert found is not None
    assert found.replicas_seen == (8, 20)
    assert found.limit_messages_per_second == pytest.approx(800.0, rel=0.02)


def test_quiet_time_is_counted_from_the_last_rebalance_to_the_octave() -> None:
    """Members that change 100 minutes ago, then a rebalance 5 minutes ago: 64 and 4 minutes; neither: unknown."""
    members = np.where(np.arange(MINUTES) < MINUTES - 101, 8.0, 10.0)
    rates, never = np.full(MINUTES, 500.0), np.zeros(MINUTES)
    moved = _history(rates, behind=never, members=members)
    assert quiet_seconds(moved) == 64 * 60.0
    rebalance = never.copy()
    rebalance[-6] = 0.5
    assert quiet_seconds(replace(moved, in_rebalance=rebalance)) == 4 * 60.0
    assert quiet_seconds(_history(rates, behind=never, members=np.full(MINUTES, 8.0))) is None
    assert quiet_seconds(_history(rates, behind=never, members=np.full(MINUTES, np.nan))) is None


def test_two_minutes_at_whose_end_the_group_was_behind_show_what_was_done_in_them() -> None:
    """At 1,200 messages/s of 8 replicas it fell behind twice, for a minute each: at least 150 each; one may be odd."""
    consumed, behind = np.full(DAY_MINUTES, 400.0), np.zeros(DAY_MINUTES)
    consumed[600:660] = 800.0
    consumed[900], behind[900] = 1200.0, 1.0
    once = capacity_seen(_day(consumed, behind=behind), PROFILE)
    consumed[1000], behind[1000] = 1200.0, 1.0
    twice = capacity_seen(_day(consumed, behind=behind), PROFILE)
    assert once is not None
    assert twice is not None
    assert [shown_by_replica(found) for found in (once, twice)] == pytest.approx([100.0, 150.0])
    assert (twice.p20, twice.p50) == pytest.approx((150.0, 154.5))
    assert twice.source == "unsaturated_windows"


def test_a_group_that_was_behind_below_what_it_has_shown_is_planned_a_step_beyond_it() -> None:
    """Two minutes behind at 50 each, after an hour at 100 each: something else was wrong, and 100 are no limit."""
    consumed, behind = np.full(DAY_MINUTES, 400.0), np.zeros(DAY_MINUTES)
    consumed[600:660] = 800.0
    behind[900] = behind[1000] = 1.0
    assert _seen(_day(consumed, behind=behind))[0] == pytest.approx(106.0)


def test_one_saturated_minute_of_a_day_is_a_limit_less_its_spread_until_there_are_more() -> None:
    """A minute in backlog at 200 each, in a day at 100: no belief of two minutes, and more than minutes have shown."""
    consumed, behind = np.full(DAY_MINUTES, 800.0), np.zeros(DAY_MINUTES)
    consumed[99], consumed[100], behind[99:101] = 400.0, 1600.0, 1.0
    found = capacity_seen(_day(consumed, behind=behind), PROFILE)
    assert found is not None
    assert found.source == "unsaturated_windows"
    assert (found.p20, found.p50) == pytest.approx((0.92 * 200.0, 200.0))
    assert shown_by_replica(found) == pytest.approx(0.92 * 200.0)
    # In backlog it did less than without: something else was wrong, and the limit lies higher.
    consumed[100] = 400.0
    assert _seen(_day(consumed, behind=behind))[0] == pytest.approx(106.0)


def _busy(rates: FloatArray, *, capacity: float, members: int = 8) -> FloatArray:
    """The share of its time that a replica of this capacity works, a tenth more or less by chance."""
    chance = np.random.default_rng(5).uniform(0.9, 1.1, rates.size)
    return np.clip(rates / (capacity * members) * chance, 0.0, 1.0)


def test_the_time_in_which_members_work_shows_their_capacity_without_any_backlog() -> None:
    """8 replicas that do 300 to 500/s together while they work 38 to 62 % of their time do 100/s each."""
    rates = np.linspace(300.0, 500.0, 30)
    history = _history(rates, behind=np.zeros(30), members=np.full(30, 8.0), busy=_busy(rates, capacity=100.0))
    found = capacity_seen(history, PROFILE)
    assert found is not None
    assert found.source == "busy_time"
    assert found.p50 == pytest.approx(100.0, rel=0.03)
    assert found.p20 <= 0.9 * found.p50
    assert found.p90 >= 1.1 * found.p50


def test_no_more_than_twice_of_what_replicas_have_shown_is_taken_from_the_time_they_work() -> None:
    """An application that hands its messages to threads of its own looks idle for nine tenths of its time."""
    rates = np.full(60, 400.0)
    history = _history(rates, behind=np.zeros(60), members=np.full(60, 8.0), busy=np.full(60, 0.1))
    found = capacity_seen(history, PROFILE)
    assert found is not None
    assert (found.p20, found.p50, found.p90) == pytest.approx((100.0, 100.0, 100.0))


def test_what_replicas_have_shown_is_the_least_that_is_taken_from_the_time_they_work() -> None:
    """Ten minutes at 400/s with members that work all the time, and an hour at 800/s in which they say the same."""
    rates = np.concatenate([np.full(60, 800.0), np.full(600, 400.0)])
    history = _history(rates, behind=np.zeros(660), members=np.full(660, 8.0), busy=np.ones(660))
    found = capacity_seen(history, PROFILE)
    assert found is not None
    assert found.source == "busy_time"
    assert found.p20 == pytest.approx(100.0)


def test_members_without_a_partition_do_not_make_the_others_look_idle() -> None:
    """Eighty members of 40 partitions work for two fifths of their time: the forty that have one for four fifths."""
    rates = np.full(60, 2000.0)
    history = _history(rates, behind=np.zeros(60), members=np.full(60, 80.0), busy=np.full(60, 0.4))
    found = capacity_seen(history, PROFILE)
    assert found is not None
    assert found.source == "busy_time"
    assert found.p50 == pytest.approx(62.5)


@pytest.mark.parametrize("busy", [0.05, np.nan])
def test_a_group_that_hardly_works_or_does_not_say_shows_no_capacity_by_its_time(busy: float) -> None:
    """A poll itself takes a few per cent."""
    rates = np.full(60, 400.0)
    history = _history(rates, behind=np.zeros(60), members=np.full(60, 8.0), busy=np.full(60, busy))
    found = capacity_seen(history, PROFILE)
    assert found is not None
    assert found.source == "lower_bound"


def test_a_group_that_is_behind_while_it_looks_idle_waits_for_something_else() -> None:
    """Three odd minutes behind at 400/s of the 800/s that its time would allow: the time is not believed."""
    rates, behind = np.full(60, 400.0), np.zeros(60)
    behind[[20, 30, 40]] = 1.0
    history = _history(rates, behind=behind, members=np.full(60, 8.0), busy=np.full(60, 0.5))
    found = capacity_seen(history, PROFILE)
    assert found is not None
    assert found.source == "lower_bound"


def test_what_a_group_does_at_its_limit_counts_before_the_time_in_which_it_works() -> None:
    """Forty minutes of a backlog at 800/s, in which members say that they work half of their time."""
    behind = np.zeros(MINUTES)
    behind[180:220] = 1.0
    consumed = np.where(behind > 0.0, 800.0, 500.0) * _noise()
    members = np.full(MINUTES, 8.0)
    found = capacity_seen(_history(consumed, behind=behind, members=members, busy=np.full(MINUTES, 0.5)), PROFILE)
    assert found is not None
    assert found.source == "saturated_windows"
