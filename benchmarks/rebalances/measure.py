"""Measures a change of a group's size from its batches: stops of partitions, and messages processed twice or never."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

Window = tuple[float, float]

# A shorter gap is no stop: a busy machine has many of them.
LEAST_STOP_SECONDS = 0.3
# The time before a change from which the usual gap between two batches is taken.
USUAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessedBatch:
    """A partition's part of one finished batch, offsets `first` to `last`; instants in seconds since 1970.

    `produced_at` is the first message's.
    """

    member: str
    group: str
    partition: int
    begin_at: float
    end_at: float
    first: int
    last: int
    produced_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One change of one group: the stop of each partition (0 for one that did not stop), and messages."""

    stops: tuple[float, ...]
    duplicates: int
    lost: int

    @property
    def lost_seconds(self) -> float:
        """Per partition of the group, those that did not stop included."""
        return sum(self.stops) / len(self.stops)

    @property
    def stopped(self) -> tuple[float, ...]:
        """The stops of the partitions that stopped."""
        return tuple(stop for stop in self.stops if stop > 0.0)

    @property
    def rebalance_pause_seconds(self) -> float:
        """The mean of the partitions that stopped."""
        return sum(self.stopped) / len(self.stopped) if self.stopped else 0.0


def batches_of(lines: Iterable[str]) -> list[ProcessedBatch]:
    """The log of members; a last line that a kill left incomplete is left out."""
    found = []
    for line in lines:
        if not line.endswith("\n"):
            continue
        member, group, begin, end, *parts = line.split()
        for part in parts:
            partition, first, last, produced = map(int, part.split(":"))
            found.append(
                ProcessedBatch(
                    member=member,
                    group=group,
                    partition=partition,
                    begin_at=int(begin) / 1e3,
                    end_at=int(end) / 1e3,
                    first=first,
                    last=last,
                    produced_at=produced / 1e3,
                )
            )
    return found


def measured(batches: Sequence[ProcessedBatch], windows: Sequence[Window], *, partitions: int) -> list[Measured]:
    """The effect on one group in each window of time, begin and end; `batches` are all of that group.

    A partition's stop is from the end of one batch to the beginning of the next one, of any member, minus the usual
    gap between two of its batches; a batch that was killed does not count. A message is lost if no member has ever
    processed it though later ones were processed.
    """
    by_partition: list[list[ProcessedBatch]] = [[] for _ in range(partitions)]
    for batch in batches:
        by_partition[batch.partition].append(batch)
    gaps = [_gaps(own) for own in by_partition]
    deeds = [deed for own in by_partition for deed in _done_again_or_never(own)]
    return [
        Measured(
            stops=tuple(_stop(own, begin_at, end_at) for own in gaps),
            duplicates=sum(deed.again for deed in deeds if begin_at <= deed.at < end_at),
            lost=sum(deed.never for deed in deeds if begin_at <= deed.at < end_at),
        )
        for begin_at, end_at in windows
    ]


def _gaps(batches: Sequence[ProcessedBatch]) -> list[tuple[float, float]]:
    """The end and the length of each gap between two batches of a partition."""
    in_order = sorted(batches, key=lambda batch: batch.begin_at)
    return [(after.begin_at, after.begin_at - before.end_at) for before, after in pairwise(in_order)]


def _stop(gaps: Sequence[tuple[float, float]], begin_at: float, end_at: float) -> float:
    usual = [seconds for over_at, seconds in gaps if begin_at - USUAL_SECONDS <= over_at < begin_at]
    each = max(0.0, median(usual)) if usual else 0.0
    inside = [seconds - each for over_at, seconds in gaps if begin_at <= over_at < end_at]
    return sum(seconds for seconds in inside if seconds >= LEAST_STOP_SECONDS)


@dataclass(slots=True)
class _Deed:
    """Messages that a batch repeated, or that it skipped and no later batch processed."""

    at: float
    again: int
    never: int


def _done_again_or_never(batches: Sequence[ProcessedBatch]) -> list[_Deed]:
    """The messages of one partition that were repeated or lost; an offset is processed when its batch is over."""
    deeds: list[_Deed] = []
    holes: dict[int, _Deed] = {}  # by offset: the batch that skipped it
    reached: int | None = None
    for batch in sorted(batches, key=lambda batch: batch.end_at):
        if reached is None or batch.first == reached + 1:
            reached = batch.last
            continue
        deed = _Deed(batch.end_at, again=0, never=0)
        deeds.append(deed)
        for offset in range(reached + 1, batch.first):
            holes[offset] = deed
            deed.never += 1
        for offset in range(batch.first, min(batch.last, reached) + 1):
            passed_by = holes.pop(offset, None)
            if passed_by is None:
                deed.again += 1
            else:
                passed_by.never -= 1
        reached = max(reached, batch.last)
    return deeds
