"""What incidents of Kafka, of its collector and of clocks leave in samples: each takes clean samples and returns those.

All happen at minute 45 of an hour. None changes what is produced, so that every rate beyond the clean one is invented.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import groupby

from collector.sample import OffsetSample
from tests.spark_features.conftest import START_AT

HOUR_SECONDS = 3600
INCIDENT_SECOND = 45 * 60
SET_BACK = 12_000
# Two partitions on each of three replicas that do 300/s.
MOST_PER_PARTITION = 150.0
SPARE_PER_PARTITION = 5.0

Round = list[OffsetSample]
Incident = Callable[[list[OffsetSample]], list[OffsetSample]]


def second_of(sample: OffsetSample) -> int:
    """Seconds since the clean hour began."""
    return round((sample.sampled_at - START_AT).total_seconds())


def _since(samples: list[OffsetSample], begin: int = 0, seconds: int = HOUR_SECONDS) -> Iterator[tuple[int, Round]]:
    """Every round, and its seconds since the incident, None outside of `begin` to `begin + seconds`."""
    for second, found in groupby(samples, key=second_of):
        after = second - INCIDENT_SECOND
        yield (after if begin <= after < begin + seconds else -1), list(found)


def _changed(change: Callable[[int, OffsetSample], OffsetSample | None], **span: int) -> Incident:
    """An incident that changes, or with None removes, each sample of its span."""

    def happens(samples: list[OffsetSample]) -> list[OffsetSample]:
        rows = (
            sample if after < 0 else change(after, sample) for after, row in _since(samples, **span) for sample in row
        )
        return [row for row in rows if row is not None]

    return happens


def _frozen(samples: list[OffsetSample], *, seconds: int, state: str | None = None) -> list[OffsetSample]:
    """Nobody consumes for so long; then each partition as fast as its replica can, until it has caught up."""
    commits: dict[int, int] = {}
    made: list[OffsetSample] = []
    for after, found in _since(samples):
        for sample in found:
            clean = sample.committed_offset or 0
            if 0 <= after < seconds:
                stands = replace(sample, committed_offset=commits[sample.partition])
                if state is not None:
                    members = 0 if state == "EMPTY" else sample.members
                    stands = replace(stands, group_state=state, group_assignor=None, members=members)
                made.append(stands)
                continue
            caught_up = commits.get(sample.partition, clean) + round(15 * MOST_PER_PARTITION)
            commits[sample.partition] = min(clean, caught_up) if after >= 0 else clean
            made.append(replace(sample, committed_offset=commits[sample.partition]))
    return made


def _broker_restart(samples: list[OffsetSample]) -> list[OffsetSample]:
    """No round for 90 s; producers have kept what they could not send, and consumers catch up."""
    behind = _frozen(samples, seconds=90)
    return [sample for sample in behind if not 0 <= second_of(sample) - INCIDENT_SECOND < 90]


def _coordinator_moves(samples: list[OffsetSample]) -> list[OffsetSample]:
    """Two rounds without the group, then its members rejoin for half a minute with commits that stand."""
    joining = _frozen(samples, seconds=60, state="PREPARING_REBALANCING")
    return [sample for sample in joining if not 0 <= second_of(sample) - INCIDENT_SECOND < 30]


def _partitions_added(samples: list[OffsetSample]) -> list[OffsetSample]:
    """Two new partitions, at first without a commit, take no messages from the others yet."""
    made: list[OffsetSample] = []
    for after, found in _since(samples):
        made += found
        committed = None if 0 <= after < 60 else 0
        if after >= 0:
            made += [replace(found[0], partition=6 + new, end_offset=0, committed_offset=committed) for new in (0, 1)]
    return made


def _made_anew(samples: list[OffsetSample]) -> list[OffsetSample]:
    """The topic is deleted and created again: its offsets begin at 0, and the commits with them."""
    before = {row.partition: row.end_offset for row in samples if second_of(row) <= INCIDENT_SECOND}

    def begins_at_zero(_: int, sample: OffsetSample) -> OffsetSample:
        lost = before[sample.partition]
        end = sample.end_offset - lost
        return replace(sample, end_offset=end, committed_offset=max(0, (sample.committed_offset or 0) - lost))

    return _changed(begins_at_zero)(samples)


def _reset_back(samples: list[OffsetSample]) -> list[OffsetSample]:
    """The owner sets every commit back by 12,000 messages, which the group consumes again beside those that come."""

    def back(after: int, sample: OffsetSample) -> OffsetSample:
        left = SET_BACK - round(after * SPARE_PER_PARTITION)
        return replace(sample, committed_offset=(sample.committed_offset or 0) - max(0, left))

    return _changed(back)(samples)


def _clock(steps_seconds: int, *, for_seconds: int = HOUR_SECONDS) -> Incident:
    """The collector's clock is set ahead or back, and for good or until it is set right.

    As `collect_forever` does it: after a step back nothing is read until a minute after the next round of the old time.
    """

    def steps(samples: list[OffsetSample]) -> list[OffsetSample]:
        made: list[OffsetSample] = []
        newest, rests_until = 0, 0
        for after, found in _since(samples, seconds=for_seconds):
            second = second_of(found[0]) + (0 if after < 0 else steps_seconds)
            if second <= newest:
                rests_until = newest + 75
            if second >= rests_until:
                made += [replace(row, sampled_at=START_AT + timedelta(seconds=second)) for row in found]
                newest = second
        return made

    return steps


def _torn(after: int, sample: OffsetSample) -> OffsetSample | None:
    """Of each round only two partitions arrive, others in each."""
    return sample if sample.partition % 3 == after // 15 % 3 else None


def _twice(samples: list[OffsetSample]) -> list[OffsetSample]:
    """Each round of five minutes is there twice, and a third time under an instant 3 s later."""
    made: list[OffsetSample] = []
    for after, found in _since(samples, seconds=300):
        made += found
        if after >= 0:
            made += found + [replace(row, sampled_at=row.sampled_at + timedelta(seconds=3)) for row in found]
    return made


def _reordered(samples: list[OffsetSample]) -> list[OffsetSample]:
    """The rounds of five minutes stand in the file from the last to the first."""
    inside = [row for row in samples if 0 <= second_of(row) - INCIDENT_SECOND < 300]
    first = samples.index(inside[0])
    return [*samples[:first], *reversed(inside), *samples[first + len(inside) :]]


def _unclean_election(_: int, sample: OffsetSample) -> OffsetSample:
    """A replica that was behind becomes the leader of one partition: its last 12,000 messages are gone."""
    if sample.partition != 2:
        return sample
    return replace(
        sample,
        end_offset=sample.end_offset - SET_BACK,
        committed_offset=(sample.committed_offset or 0) - SET_BACK,
    )


def _one_end_too_low(after: int, sample: OffsetSample) -> OffsetSample:
    """The end of one partition is answered once as it was hours ago."""
    return replace(sample, end_offset=sample.end_offset // 10) if after == 0 and sample.partition == 2 else sample


def _retention(_: int, sample: OffsetSample) -> OffsetSample:
    """Messages were deleted that the group has not read: the log of one partition begins behind its commit."""
    return replace(sample, log_start_offset=sample.end_offset if sample.partition == 4 else 0)


def _markers(_: int, sample: OffsetSample) -> OffsetSample:
    """A marker of a transaction ends each partition; it is never consumed."""
    return replace(sample, committed_offset=min(sample.committed_offset or 0, sample.end_offset - 1))


def _raced(after: int, sample: OffsetSample) -> OffsetSample:
    """Commits that were read after ends, and are beyond them, in every other round."""
    return replace(sample, committed_offset=sample.end_offset + 40) if after // 15 % 2 else sample


INCIDENTS: dict[str, Incident] = {
    "broker restart": _broker_restart,
    "coordinator move": _coordinator_moves,
    "partitions added": _partitions_added,
    "topic made anew": _made_anew,
    "offsets reset back": _reset_back,
    "group deleted": _changed(lambda _after, _sample: None),
    "group deleted and back": _changed(lambda _after, _sample: None, seconds=240),
    "clock five minutes ahead": _clock(300),
    "clock five minutes ahead for two": _clock(300, for_seconds=120),
    "clock five minutes back": _clock(-300),
    "clock five minutes back for two": _clock(-300, for_seconds=120),
    "retention": _changed(_retention, seconds=300),
    "transactions": _changed(_markers),
    "torn rounds": _changed(_torn, seconds=300),
    "duplicates": _twice,
    "reordered": _reordered,
    "unclean election": _changed(_unclean_election),
    "one end too low": _changed(_one_end_too_low),
    "commits beyond the end": _changed(_raced, seconds=300),
    "no commit": _changed(lambda _, sample: replace(sample, committed_offset=None), seconds=60),
    "commit of -1": _changed(lambda _, sample: replace(sample, committed_offset=-1), seconds=60),
    "every member gone for a minute": lambda samples: _frozen(samples, seconds=60, state="EMPTY"),
}
