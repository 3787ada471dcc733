"""The meter: the interruptions that it reports, from readings of a consumer whose every stop is known."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.meter import LONGEST_SECONDS, Interruption, Meter
from collector.sample import OffsetSample

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MESSAGES_PER_SECOND = 40.0
STATES = {"stable": "STABLE", "preparing": "PREPARING_REBALANCING", "empty": "EMPTY"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One partition's consumer: reads all that comes, commits at an interval, and does neither in its `stops`.

    A stop is its begin and end in seconds. `commits_in_poll`: it commits its position as soon as a stop is over, as
    Java's consumer does, else at the next tick. `commits_before`: it commits as it stops, as a revoked member does.
    """

    commit_seconds: float
    stops: tuple[tuple[float, float], ...] = ()
    commits_in_poll: bool = False
    commits_before: bool = False

    def position(self, at: float) -> int:
        """Its position at an instant."""
        began = next((begin for begin, end in self.stops if begin <= at < end), at)
        return int(began * MESSAGES_PER_SECOND)

    def committed(self, at: float) -> int:
        """The newest commit at an instant."""
        ticks = int(at / self.commit_seconds)
        instants = [tick * self.commit_seconds for tick in range(max(0, ticks - 200), ticks + 1)]
        instants = [instant for instant in instants if not any(begin < instant < end for begin, end in self.stops)]
        instants += [begin // self.commit_seconds * self.commit_seconds for begin, _ in self.stops if begin <= at]
        instants += [end for _, end in self.stops if self.commits_in_poll and end <= at]
        offsets = [self.position(instant) for instant in instants]
        offsets += [int(begin * MESSAGES_PER_SECOND) for begin, _ in self.stops if self.commits_before and begin <= at]
        return max(offsets, default=0)


def reading(
    at: float, committed: Sequence[int | None], *, state: str = "stable", members: int = 2, end: int | None = None
) -> list[OffsetSample]:
    """All partitions of the group at an instant; the end is what was produced until then."""
    return [
        OffsetSample(
            cluster="c",
            group="orders",
            topic="orders",
            partition=number,
            sampled_at=NOON + timedelta(seconds=at),
            end_offset=int(at * MESSAGES_PER_SECOND) if end is None else end,
            committed_offset=offset,
            log_start_offset=0,
            group_state=STATES[state],
            group_protocol="classic",
            group_assignor="range",
            members=members,
        )
        for number, offset in enumerate(committed)
    ]


def interruptions(readings: Iterable[Sequence[OffsetSample]]) -> list[Interruption]:
    meter = Meter()
    return [found for found in (meter.observe(rows) for rows in readings) if found is not None]


def looks(*workers: Worker, until: float, every: float = 0.25, begin: float = 0.0) -> list[list[OffsetSample]]:
    instants = (begin + every * n for n in range(1, int(until / every)))
    return [reading(at, [worker.committed(at) for worker in workers]) for at in instants]


@settings(max_examples=40, deadline=None)
@given(
    commit_seconds=st.sampled_from([0.2, 0.5, 1.0, 5.0]),
    seconds=st.floats(1.0, 30.0),
    begin=st.floats(0.0, 5.0),
    commits_in_poll=st.booleans(),
    every=st.sampled_from([0.25, 1.0]),
)
def test_a_stop_is_measured_within_the_resolution_of_its_commits(
    *, commit_seconds: float, seconds: float, begin: float, commits_in_poll: bool, every: float
) -> None:
    """A stop that is long enough is seen, and its measured length is off by the resolution at most."""
    begins = 12 * max(commit_seconds, every) + begin
    stopped = Worker(
        commit_seconds=commit_seconds, stops=((begins, begins + seconds),), commits_in_poll=commits_in_poll
    )
    found = interruptions(looks(stopped, Worker(commit_seconds=commit_seconds), until=begins + 80, every=every))
    if seconds > 4.0 * commit_seconds + 4.0 * every + 1.0:
        assert len(found) == 1
    for interruption in found:
        assert interruption.kind == "stall"
        assert [stop.partition for stop in interruption.stops] == [0]
        assert abs(interruption.rebalance_pause_seconds - seconds) <= interruption.resolution_seconds
        assert interruption.repeated_messages_most == 0


@settings(max_examples=25, deadline=None)
@given(commit_seconds=st.floats(0.2, 5.0), every=st.sampled_from([0.25, 1.0, 15.0]))
def test_a_consumer_without_stops_is_never_reported(commit_seconds: float, every: float) -> None:
    """A consumer that goes on is not reported as interrupted, whenever commits and readings fall."""
    assert (
        interruptions(looks(Worker(commit_seconds=commit_seconds), until=40 * max(every, commit_seconds), every=every))
        == []
    )


def test_partitions_without_messages_do_not_stand_still() -> None:
    """A partition without a message for an hour does not stand still, nor when a message then comes and is consumed."""
    readings = [reading(at, [100], end=100) for at in range(1, 3_600)]
    readings += [reading(3_600, [100], end=101), reading(3_601, [101], end=101)]
    assert interruptions(readings) == []


def rebalanced(*, members: Sequence[int], state: str = "preparing") -> list[Interruption]:
    """Commits each half a second; from 20 to 26 s two of three partitions are handed over, in readings of `members`."""
    moved = Worker(commit_seconds=0.5, stops=((20.0, 26.0),), commits_before=True)
    workers = (moved, moved, Worker(commit_seconds=0.5))
    readings = []
    for look in range(1, 160):
        at = 0.25 * look
        during = 20.0 <= at < 26.0
        count = members[0] if at < 20.0 else members[1] if during else members[2]
        offsets = [worker.committed(at) for worker in workers]
        readings.append(reading(at, offsets, state=state if during else "stable", members=count))
    return interruptions(readings)


def test_a_rebalance_is_reported_with_its_members_and_its_stops() -> None:
    """A third member joins in a rebalance of 6 s: two partitions stop for 6 s, and one goes on."""
    (found,) = rebalanced(members=(2, 3, 3))
    assert (found.kind, found.members_before, found.members_after) == ("rebalance", 2, 3)
    assert found.rebalancing_seconds == pytest.approx(6.0, abs=0.25)
    assert [stop.partition for stop in found.stops] == [0, 1]
    assert found.rebalance_pause_seconds == pytest.approx(6.0, abs=0.6)
    assert found.lost_partition_seconds == pytest.approx(12.0, abs=1.2)
    assert found.began_at <= NOON + timedelta(seconds=20.5)
    # Commits come each half a second: 20 messages of each partition that stopped may have been done again.
    assert (found.repeated_messages_least, found.repeated_messages_most) == (0, 40)


def behind(*, stop: tuple[float, float] = (0.0, 0.0)) -> Interruption:
    """The interruption from 70 to 74 s of a group that consumes 20 messages a second; 40 are produced from 30 s on.

    From then on it has batches of 8 s, commits after each, and consumes nothing in its `stop`.
    """
    done, at, commits = 0, 0.0, [(0.0, 0)]
    while at < 130.0:
        begin, at = at, at + (5.0 if at < 30.0 else 8.0)
        at += stop[1] - stop[0] if begin <= stop[0] < at else 0.0
        done += round(20.0 * (5.0 if begin < 30.0 else 8.0))
        commits.append((at, done))
    readings = []
    for look in range(1, 480):
        now = 0.25 * look
        committed = max(offset for instant, offset in commits if instant <= now)
        end = int(20.0 * now + 20.0 * max(0.0, now - 30.0))
        state = "preparing" if 70.0 <= now < 74.0 else "stable"
        readings.append(reading(now, [committed], state=state, end=max(end, committed)))
    (found,) = interruptions(readings)
    return found


def test_long_batches_of_a_group_that_is_behind_are_no_stops() -> None:
    """Commits that are 8 s apart instead of 5 s under a backlog are work and no stop, in a rebalance or not."""
    assert behind().stops == ()


def test_a_stop_of_a_group_that_is_behind_is_measured_without_its_batch() -> None:
    """A gap of 28 s in which one batch of 8 s was processed is a pause of 20 s."""
    found = behind(stop=(70.0, 90.0))
    assert found.rebalance_pause_seconds == pytest.approx(20.0, abs=2.0)


def test_members_that_come_back_before_consumption_goes_on_are_a_restart() -> None:
    """When both members leave and two join before consumption goes on, the interruption is a restart."""
    (found,) = rebalanced(members=(2, 0, 2), state="empty")
    assert (found.kind, found.members_before, found.members_after) == ("restart", 2, 2)


def test_commits_that_are_set_back_are_repeated() -> None:
    """A late commit in a rebalance that sets the partition from 400 back to 340 repeats at least 60 messages."""
    readings = [reading(0.25 * look, [int(10 * look)]) for look in range(1, 41)]
    readings += [reading(10.25, [340], state="preparing"), reading(10.5, [400]), reading(10.75, [430])]
    (found,) = interruptions(readings)
    assert found.repeated_messages_least == 60


def test_a_group_that_is_reset_by_hand_repeats_nothing() -> None:
    """Offsets that are reset while the group has no member are set back on purpose, and no interruption is reported."""
    readings = [reading(at, [40 * at], members=0, state="empty", end=40 * at) for at in range(1, 20)]
    readings += [reading(20, [0], members=0, state="empty"), reading(21, [840], members=0, state="empty", end=840)]
    assert [found.repeated_messages_least for found in interruptions(readings)] == []


def test_a_stall_without_an_end_is_reported_while_it_lasts() -> None:
    """A consumer that hangs is reported as a standing partition after a quarter of an hour, and again after another."""
    hangs = Worker(commit_seconds=1.0, stops=((30.0, 1e9),))
    found = interruptions(looks(hangs, Worker(commit_seconds=1.0), until=30.0 + 2.2 * LONGEST_SECONDS, every=1.0))
    assert [(each.kind, each.standing_partitions) for each in found] == [("stall", 1), ("stall", 1)]
    assert found[0].rebalance_pause_seconds == pytest.approx(LONGEST_SECONDS, abs=10.0)


def test_a_group_that_is_down_for_hours_does_not_stand_still() -> None:
    """A group that has no members for three hours is reported when they leave and, without a pause, when they join."""
    readings = [reading(at, [40 * at - 1]) for at in range(1, 30)]
    readings += [reading(at, [1_200], members=0, state="empty") for at in range(30, 10_800)]
    readings += [reading(at, [40 * at - 1]) for at in range(10_800, 10_830)]
    left, came = interruptions(readings)
    assert (left.members_before, left.members_after, left.standing_partitions) == (2, 0, 1)
    assert (came.members_before, came.members_after, came.rebalance_pause_seconds) == (0, 2, 0.0)


def test_a_topic_made_anew_is_no_interruption() -> None:
    """Offsets of a topic that was deleted and made again begin at 0, and the old ones are not compared with them."""
    readings = [reading(at, [40 * at]) for at in range(1, 20)]
    readings += [
        reading(20, [None], end=0),
        *(reading(at, [40 * (at - 20)], end=40 * (at - 20)) for at in range(21, 40)),
    ]
    assert interruptions(readings) == []


@pytest.mark.parametrize("at", [4.0, 5.0])
def test_readings_come_in_order(at: float) -> None:
    """A reading that is not newer than the last one is refused, naming both."""
    meter = Meter()
    meter.observe(reading(5.0, [0]))
    with pytest.raises(ValueError, match="of group 'orders' comes after one at 2026-01-05 12:00:05"):
        meter.observe(reading(at, [0]))


def test_a_reading_is_of_one_instant() -> None:
    """A reading with rows of two instants is refused, and an empty reading reports nothing."""
    meter = Meter()
    assert meter.observe([]) is None
    with pytest.raises(ValueError, match="several groups or instants"):
        meter.observe([*reading(1.0, [0]), *reading(2.0, [0])])


def commit_interval(readings: Iterable[Sequence[OffsetSample]]) -> float | None:
    meter = Meter()
    for rows in readings:
        meter.observe(rows)
    return meter.commit_interval_seconds


@settings(max_examples=40, deadline=None)
@given(
    commit_seconds=st.floats(1.0, 40.0),
    every=st.sampled_from([0.25, 0.5]),
    stop=st.floats(0.0, 60.0),
    commits_in_poll=st.booleans(),
)
def test_the_commit_interval_is_learnt_from_commits_while_messages_wait(
    *, commit_seconds: float, every: float, stop: float, commits_in_poll: bool
) -> None:
    """A dozen commits show it to a tenth of it, a stop of up to a minute among them or not."""
    begins = 6.3 * commit_seconds
    stopped = Worker(commit_seconds=commit_seconds, stops=((begins, begins + stop),), commits_in_poll=commits_in_poll)
    until = 13 * commit_seconds + stop
    workers = (stopped, Worker(commit_seconds=commit_seconds))
    # Readings never fall on a commit: a message that came since then waits.
    found = commit_interval(looks(*workers, until=until, every=every, begin=0.07))
    assert found == pytest.approx(commit_seconds, rel=0.1, abs=every / 2.0)


@settings(max_examples=40, deadline=None)
@given(commit_seconds=st.floats(0.5, 1.0), commits_in_poll=st.booleans())
def test_a_commit_interval_of_less_than_two_readings_is_known_to_a_reading(
    *, commit_seconds: float, commits_in_poll: bool
) -> None:
    """Read twice a second, commits each 0.875 s are 0.5 or 1.0 s apart, as those of 0.5 s with longer batches are."""
    worker = Worker(commit_seconds=commit_seconds, commits_in_poll=commits_in_poll)
    found = commit_interval(looks(worker, worker, until=30 * commit_seconds, every=0.5, begin=0.07))
    assert found == pytest.approx(commit_seconds, abs=0.5)


def test_commits_that_come_more_often_than_readings_are_as_far_apart_as_those() -> None:
    """Five commits a second, read twice a second."""
    assert commit_interval(looks(Worker(commit_seconds=0.2), until=60.0, every=0.5, begin=0.07)) == 0.5


@settings(max_examples=15, deadline=None)
@given(commit_seconds=st.floats(0.9, 6.0), late=st.lists(st.floats(0.9, 2.5), min_size=60, max_size=60))
def test_readings_that_come_late_leave_the_commit_interval_as_it_was_learnt(
    commit_seconds: float, late: list[float]
) -> None:
    """Two commits between two readings look like one: commits each second were told as 1.3 s."""
    workers = [Worker(commit_seconds=commit_seconds)] * 2
    meter, at = Meter(), 12 * commit_seconds
    for rows in looks(*workers, until=at, every=0.25, begin=0.07):
        meter.observe(rows)
    learnt = meter.commit_interval_seconds
    assert learnt is not None
    for seconds in late:
        at += seconds
        meter.observe(reading(at, [worker.committed(at) for worker in workers]))
    assert meter.commit_interval_seconds == pytest.approx(commit_seconds, rel=0.1, abs=0.25)


def test_a_commit_interval_that_grows_is_learnt_anew() -> None:
    """Its long gaps look like stalls at first, for which readings come closer; then they are the usual ones."""
    meter = Meter()
    for rows in looks(Worker(commit_seconds=1.0), Worker(commit_seconds=1.0), until=20.0, every=0.5, begin=0.07):
        meter.observe(rows)
    assert meter.commit_interval_seconds == 1.0
    changed, at = Worker(commit_seconds=5.0), 20.07
    while at < 300.0:
        at += 0.5 if meter.restless else 1.0
        meter.observe(reading(at, [changed.committed(at)] * 2))
    assert meter.commit_interval_seconds == pytest.approx(5.0, rel=0.1)


def test_a_commit_interval_is_not_told_from_a_few_commits() -> None:
    """Nine intervals of 5 s are not enough, ten are."""
    worker = Worker(commit_seconds=5.0)
    assert [commit_interval(looks(worker, until=ticks * 5.0 + 1.0, begin=0.07)) for ticks in (10, 11)] == [None, 5.0]


def test_where_no_message_waits_a_commit_interval_is_not_told() -> None:
    """A message each 7 s, committed within 5 s: the next commit waits for a message, and not for its time."""
    committed = [(at, int((at // 5.0) * 5.0 / 7.0)) for at in (0.5 * number for number in range(1, 1200))]
    assert commit_interval(reading(at, [seen], end=int(at / 7.0)) for at, seen in committed) is None


def test_a_group_that_is_behind_shows_its_batches_and_not_its_commit_interval() -> None:
    """Commits each 5 s while it keeps up; an hour of backlog is done in batches of 25 s, and then it keeps up again."""
    keeps_up = Worker(commit_seconds=5.0)
    meter = Meter()
    for rows in looks(keeps_up, until=120.0, every=0.5, begin=0.07):
        meter.observe(rows)
    behind = 3600 * 40
    for number in range(240, 2400):
        at = 0.5 * number + 0.07
        done = int(at / 25.0) * 25 * 44 - 120 * 44 + 120 * 40
        meter.observe(reading(at, [max(done, 4800)], end=int(at * MESSAGES_PER_SECOND) + behind))
    assert meter.commit_interval_seconds == 5.0


def test_the_end_of_a_backlog_shows_no_commit_interval() -> None:
    """Batches of 20 s, 16 s, 13 s, ... are each what came during the last one, and commits come after each of them.

    A meter that begins to look then tells nothing until the group keeps up, and 5 s from then on.
    """
    came = [1_000 + int(MESSAGES_PER_SECOND * 0.1 * tenth) for tenth in range(2_600)]
    at, position, commits = 0.0, 0, [(0.0, 0)]
    while at < 240.0:
        if at - commits[-1][0] >= 5.0:
            commits.append((at, position))
        polled = came[int(10.0 * at)] - position
        at, position = at + max(polled / (1.25 * MESSAGES_PER_SECOND), 0.1), position + polled
    meter, told = Meter(), set[float]()
    for number in range(1, 480):
        now = 0.5 * number + 0.07
        committed = max(offset for instant, offset in commits if instant <= now)
        meter.observe(reading(now, [committed] * 4, end=came[int(10.0 * now)]))
        told |= {meter.commit_interval_seconds or 5.0}
    assert meter.commit_interval_seconds is not None
    assert sorted(told) == pytest.approx([5.0] * len(told), rel=0.1)


def test_batches_that_are_done_after_the_interval_do_not_lengthen_it() -> None:
    """kafka-python commits in its next poll: after 5 s, and two times in three as soon as its batch of 2 s is done."""
    instants, at = [0.0], 0.0
    for number in range(60):
        at += 5.0 if number % 3 == 0 else 7.0
        instants.append(at)
    meter = Meter()
    for number in range(1, 700):
        now = 0.5 * number + 0.07
        committed = max(int(instant * MESSAGES_PER_SECOND) for instant in instants if instant <= now)
        meter.observe(reading(now, [committed]))
    assert meter.commit_interval_seconds == pytest.approx(5.0, rel=0.1)


def test_commits_of_a_rebalance_teach_no_interval() -> None:
    """A group that is rebalancing all the time commits each second, because members are revoked."""
    worker = Worker(commit_seconds=1.0)
    restless = (reading(at, [worker.committed(at)], state="preparing") for at in (0.5 * n for n in range(1, 400)))
    assert commit_interval(restless) is None
