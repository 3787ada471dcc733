"""Interruptions of a group, measured from its samples alone: rebalances, restarts and stalls, and repeated messages.

A fold over readings at any spacing: each second from the watch, each 15 s from stored files. Consumers need no change:
a partition is stopped while messages wait and its committed offset does not move.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from statistics import fmean, median
from typing import Literal

from collector.sample import OffsetSample
from forecasting.columns import REBALANCING_STATES

Kind = Literal["rebalance", "restart", "stall"]

# The assumed commit interval of a partition until three commits were seen: Kafka's auto.commit.interval.ms.
COMMIT_SECONDS = 5.0
LEAST_GAPS = 3
# The commit interval is the median of this many: one long stop among 21 changes nothing.
GAPS_KEPT = 21
# A partition is interrupted, in any state of the group, when it stood still for twice its usual commit interval plus
# this time: 10.5 s at commits each 5 s, 0.9 s at commits each 0.2 s; plus the time between two readings.
STALL_SECONDS = 0.5
# The commit interval is learnt from the first readings, which are therefore taken soon after each other.
LEARNING_READINGS = 40
# A commit interval is known from so many commits, of each of its partitions LEAST_GAPS at least. A client commits
# when its interval is over and its batch is done, so that the shorter times between two commits show the interval: the
# mean of those near the lowest fifth, by a share and by what readings half a second apart may be off.
LEAST_COMMITS = 10
SHORTER_QUANTILE = 0.2
NEAR_SHARE, NEAR_SECONDS = 0.15, 0.5
# Two commits between two readings look like one, which comes after twice the time, and commits each 2.5 s that are read
# each second are 2 or 3 s apart. Once an interval is known, it is told only from readings that are no further apart
# than this share of it, or hardly further than the closest ones.
CLOSE_SHARE, HARDLY_FURTHER = 0.2, 1.5
# An interruption that lasts this long is reported before its end, so that it does not hide the next one.
LONGEST_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStop:
    """Time for which one partition was not consumed."""

    topic: str
    partition: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """One time that a group, or some of its partitions, did not consume; it is over unless partitions still stand.

    A `restart`: members left, and as many were back before all partitions resumed; a `stall`: neither the state nor the
    members of the group changed. `stops` are the partitions that stood still for longer than their commit interval.
    The position of a consumer is known at its commits only: each stop may be off by `resolution_seconds`, one and a
    half commit intervals plus the time between two readings. `rebalancing_seconds` is how long the group reported that
    partitions were changing owners. `repeated_messages_least` were committed and then taken back;
    `repeated_messages_most` adds the messages that every stopped partition usually processes between two commits,
    which its next owner may have processed again.
    """

    cluster: str
    group: str
    kind: Kind
    began_at: datetime
    ended_at: datetime
    members_before: int | None
    members_after: int | None
    rebalancing_seconds: float
    partitions: int
    stops: tuple[PartitionStop, ...]
    standing_partitions: int
    repeated_messages_least: int
    repeated_messages_most: int
    resolution_seconds: float

    @property
    def lost_partition_seconds(self) -> float:
        """The sum of the pauses of all partitions."""
        return sum(stop.seconds for stop in self.stops)

    @property
    def lost_seconds(self) -> float:
        """The mean pause of a partition, those that did not stop included."""
        return self.lost_partition_seconds / self.partitions

    @property
    def rebalance_pause_seconds(self) -> float:
        """The mean over the partitions that stopped; 0 where none was seen to."""
        return self.lost_partition_seconds / len(self.stops) if self.stops else 0.0


@dataclass(slots=True, kw_only=True)
class _Track:
    """One partition: its offsets, since when its oldest uncommitted message waits, and its usual progress."""

    end: int
    committed: int
    waits_since: datetime | None
    gaps: deque[float] = field(default_factory=lambda: deque(maxlen=GAPS_KEPT))
    steps: deque[int] = field(default_factory=lambda: deque(maxlen=GAPS_KEPT))
    # When the last commit was made, if messages waited then: the next one comes as soon as it may.
    committed_at: datetime | None = None
    between: deque[float] = field(default_factory=lambda: deque(maxlen=GAPS_KEPT))
    backlog: int = 0
    stopped_seconds: float = 0.0
    stopped_since: datetime | None = None
    taken_back: int = 0

    @property
    def usual_seconds(self) -> float:
        return median(self.gaps) if len(self.gaps) >= LEAST_GAPS else COMMIT_SECONDS

    def stood_seconds(self, at: datetime) -> float:
        return 0.0 if self.waits_since is None else (at - self.waits_since).total_seconds()

    def idle_seconds(self, gap: float, step: int, spacing: float) -> float:
        """The idle part of a gap between two commits, in which `step` messages were processed.

        The last commit came up to a commit interval before a stop, and the next one up to another after it, or the stop
        began and ended at once after one: on average a gap is half an interval too long. A consumer with a backlog of
        more than one and a half times what a commit interval and a reading leave works as fast as it can: its time of
        processing `step` messages was work. With batches of 8 s commits are 8 s apart, and nothing stops.
        """
        worked, known = self.usual_seconds / 2.0, sum(self.gaps)
        if known > 0.0:
            rate = sum(self.steps) / known
            if self.backlog > 1.5 * rate * (self.usual_seconds + spacing):
                worked = max(worked, step / rate)
        return gap - worked

    @property
    def known_between(self) -> Sequence[float]:
        """Seconds between two commits, of LEAST_GAPS of them or more."""
        return self.between if len(self.between) >= LEAST_GAPS else ()

    def note_commit(self, at: datetime, *, waiting: bool, calm: bool, closely_read: bool) -> None:
        """Note the time since the last commit, if messages waited, few of them, and nothing disturbed the group.

        Who is behind commits when a batch is done, which is later than the interval, and meanwhile more has come than
        half of what that batch was: with 0.8 of it, batches of 20 s take eight to be shorter than 5 s. Who keeps up has
        next to nothing left at its commit.
        """
        if self.committed_at is not None and calm and closely_read:
            self.between.append((at - self.committed_at).total_seconds())
        self.committed_at = at if waiting and calm else None

    def stop(self, seconds: float) -> None:
        self.stopped_since = self.stopped_since or self.waits_since
        self.stopped_seconds += seconds

    def forget_stop(self) -> None:
        self.stopped_seconds, self.stopped_since, self.taken_back = 0.0, None, 0


@dataclass(slots=True, kw_only=True)
class _Unrest:
    """An interruption while it lasts; `disturbed_at` is when the group was last seen unsettled."""

    opened_at: datetime
    members_before: int | None
    disturbed_at: datetime
    spacing_seconds: float
    fewest_members: int | None
    is_told: bool = False  # the state or the members of the group changed
    rebalancing_seconds: float = 0.0


class Meter:
    """Takes one group's readings, oldest first, and returns each interruption when it is over."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[str, int], _Track] = {}
        self._read_at: datetime | None = None
        self._was_rebalancing = False
        self._members: int | None = None
        self._readings = 0
        self._closest_seconds = inf
        self._unrest: _Unrest | None = None

    @property
    def restless(self) -> bool:
        """True if closer readings help: a partition stands still, or the group's usual progress is not known yet."""
        return self._unrest is not None or self._readings < LEARNING_READINGS

    @property
    def commit_interval_seconds(self) -> float | None:
        """The time between two commits of partitions in which messages wait, to a tenth; None before it is known.

        One of less than two readings is known to a reading, and none is told shorter than that.
        """
        known = sorted(seconds for track in self._tracks.values() for seconds in track.known_between)
        if len(known) < LEAST_COMMITS:
            return None
        shorter = known[int(SHORTER_QUANTILE * len(known))]
        near = max(NEAR_SHARE * shorter, min(NEAR_SECONDS, shorter / 2.0))
        return round(fmean(each for each in known if abs(each - shorter) <= near), 1)

    def observe(self, reading: Sequence[OffsetSample]) -> Interruption | None:
        """Take all samples of the group of one instant; returns the interruption that ends with it, else None.

        Errors: ValueError on a reading of two groups or instants, or one that is not newer than the last.
        """
        if not reading:
            return None
        newest = reading[0]
        at = newest.sampled_at
        if {(row.cluster, row.group, row.sampled_at) for row in reading} != {(newest.cluster, newest.group, at)}:
            message = f"a reading at {at} holds samples of several groups or instants"
            raise ValueError(message)
        if self._read_at is not None and at <= self._read_at:
            message = f"a reading at {at} of group {newest.group!r} comes after one at {self._read_at}"
            raise ValueError(message)
        since_last = 0.0 if self._read_at is None else (at - self._read_at).total_seconds()
        self._look_at_group(newest, since_last)
        self._look_for_stalls(at, since_last)
        closely_read = self._is_close(since_last)
        for row in reading:
            self._follow(row, since_last, closely_read=closely_read)
        self._read_at, self._readings = at, self._readings + 1
        return self._closed(newest, since_last)

    def _is_close(self, since_last: float) -> bool:
        """True if a reading comes soon enough after the last one to tell two commits from one."""
        if since_last > 0.0:
            self._closest_seconds = min(self._closest_seconds, since_last)
        interval = self.commit_interval_seconds
        return interval is None or since_last <= max(CLOSE_SHARE * interval, HARDLY_FURTHER * self._closest_seconds)

    def _look_at_group(self, newest: OffsetSample, since_last: float) -> None:
        at, rebalancing = newest.sampled_at, newest.group_state in REBALANCING_STATES
        members = newest.members if newest.members is not None else self._members
        changed = self._members is not None and members != self._members
        if (rebalancing or changed) and self._read_at is not None:
            unrest = self._unrest or self._opened(self._read_at, since_last)
            unrest.is_told, unrest.disturbed_at = True, at
            if members is not None:
                unrest.fewest_members = min(
                    members, members if unrest.fewest_members is None else unrest.fewest_members
                )
        if self._unrest is not None and self._was_rebalancing:
            self._unrest.rebalancing_seconds += since_last
        self._was_rebalancing, self._members = rebalancing, members

    def _look_for_stalls(self, at: datetime, since_last: float) -> None:
        if self._members == 0:
            return  # no members, no stall: their leaving was reported already
        # A suspicion only: whether it was a stop is decided when the partition resumes.
        suspects = (t for t in self._tracks.values() if t.stood_seconds(at) > 1.5 * t.usual_seconds + since_last)
        if self._unrest is None and any(suspects):
            self._opened(at, since_last)

    def _opened(self, at: datetime, since_last: float) -> _Unrest:
        self._unrest = _Unrest(
            opened_at=at,
            members_before=self._members,
            disturbed_at=at,
            spacing_seconds=since_last,
            fewest_members=self._members,
        )
        return self._unrest

    def _follow(self, row: OffsetSample, since_last: float, *, closely_read: bool) -> None:
        # A change happened since the last reading: in the middle between the two readings, as an estimate.
        key, at = (row.topic, row.partition), row.sampled_at - timedelta(seconds=since_last / 2.0)
        committed = row.committed_offset if row.committed_offset is not None else row.log_start_offset
        if committed is None:
            return
        track = self._tracks.get(key)
        if track is None or row.end_offset < track.end:  # first seen, or created again
            waits_since = at if row.end_offset > committed else None
            self._tracks[key] = _Track(end=row.end_offset, committed=committed, waits_since=waits_since)
            return
        came, track.end = row.end_offset - track.end, row.end_offset
        step, track.committed = committed - track.committed, committed
        if step > 0:
            calm = self._unrest is None or not self._unrest.is_told
            waiting = row.end_offset - committed
            # What has come since the last reading waits in any case.
            few = waiting - came <= (step + 1) // 2
            track.note_commit(at, waiting=waiting > 0 and few, calm=calm, closely_read=closely_read)
            self._went_on(track, step, track.stood_seconds(at), since_last)
        elif step < 0 and row.members:  # without members, offsets were reset by hand, and the repeats are intended
            track.taken_back -= step
        nobody_is_missed = self._members == 0 and self._unrest is None
        if step != 0 or track.waits_since is None or nobody_is_missed:
            track.waits_since = at if row.end_offset > committed else None
            track.backlog = row.end_offset - committed

    def _went_on(self, track: _Track, step: int, gap: float, since_last: float) -> None:
        usual, is_told = track.usual_seconds, self._unrest is not None and self._unrest.is_told
        idle = track.idle_seconds(gap, step, since_last)
        least = usual if is_told else 1.5 * usual + STALL_SECONDS
        if self._unrest is not None and idle > least + since_last:
            track.stop(idle)
        # A gap of one reading shows only that commits come at least as often, which is known already.
        elif not is_told and (len(track.gaps) < LEAST_GAPS or gap > since_last):
            track.gaps.append(gap)
            track.steps.append(step)

    def _closed(self, newest: OffsetSample, since_last: float) -> Interruption | None:
        unrest, at = self._unrest, newest.sampled_at
        if unrest is None:
            return None
        standing = [
            track
            for track in self._tracks.values()
            if track.waits_since is not None and (track.waits_since <= unrest.disturbed_at or self._members == 0)
        ]
        is_over = not standing and not self._was_rebalancing and self._members != 0
        if not is_over and (at - unrest.opened_at).total_seconds() < LONGEST_SECONDS:
            return None
        for track in standing:
            track.stop(track.idle_seconds(track.stood_seconds(at), 0, since_last))
            track.waits_since = at
        interruption = self._told(newest, unrest, since_last, standing_partitions=len(standing))
        for track in self._tracks.values():
            track.forget_stop()
        self._unrest = None
        is_nothing = not unrest.is_told and not interruption.stops
        return None if is_nothing else interruption

    def _told(
        self, newest: OffsetSample, unrest: _Unrest, since_last: float, *, standing_partitions: int
    ) -> Interruption:
        stopped = {key: track for key, track in sorted(self._tracks.items()) if track.stopped_since is not None}
        least = sum(track.taken_back for track in self._tracks.values())
        again = _usual_steps(stopped.values()) if unrest.is_told else 0
        begins = [track.stopped_since for track in stopped.values() if track.stopped_since is not None]
        usual = median(track.usual_seconds for track in self._tracks.values()) if self._tracks else COMMIT_SECONDS
        return Interruption(
            cluster=newest.cluster,
            group=newest.group,
            kind=_kind(unrest, self._members),
            began_at=min([unrest.opened_at, *begins]),
            ended_at=newest.sampled_at,
            members_before=unrest.members_before,
            members_after=self._members,
            rebalancing_seconds=unrest.rebalancing_seconds,
            partitions=len(self._tracks),
            stops=tuple(
                PartitionStop(topic=topic, partition=number, seconds=track.stopped_seconds)
                for (topic, number), track in stopped.items()
            ),
            standing_partitions=standing_partitions,
            repeated_messages_least=least,
            repeated_messages_most=least + again,
            resolution_seconds=1.5 * usual + max(since_last, unrest.spacing_seconds),
        )


def _kind(unrest: _Unrest, members: int | None) -> Kind:
    if not unrest.is_told:
        return "stall"
    before, fewest = unrest.members_before, unrest.fewest_members
    is_back = before is not None and fewest is not None and fewest < before == members
    return "restart" if is_back else "rebalance"


def _usual_steps(tracks: Iterable[_Track]) -> int:
    """The messages that partitions process between two commits."""
    return round(sum(median(track.steps) for track in tracks if track.steps))
