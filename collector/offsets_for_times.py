"""Past produce rates from Kafka itself: the end offset of each partition at each minute, without reading a record.

A broker finds the first message of a minute by its time index; the difference of two such offsets is the number of
messages produced in between. Commits and members of the past are those of Kafka's own topic of offsets, where it was
read (`collector.offsets_topic`); otherwise those columns stay empty.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from collector.kafka_requests import Answers, FirstMessage, KafkaRequests, Partition
from collector.offsets_topic import EPOCH, MINUTE, PastCommits, minute_number
from collector.sample import CLOCK_TOLERANCE, OffsetSample

# Minutes that are requested and passed on at a time, the newest first: 400,000 rows of 300 partitions.
CHUNK_MINUTES = 1440
# History begins at the instant that partitions with this share of the kept messages reach back to: a partition with
# one message a week has no older ones, and must not shorten the history of the others.
KNOWN_SHARE = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The first and the last minute to read, both included."""

    first: datetime
    last: datetime

    @property
    def minutes(self) -> int:
        """The number of minutes."""
        return round((self.last - self.first) / MINUTE) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """The readable past of the groups in `present`, a reading of each of their partitions.

    Groups without a readable past are not in it. `left_out`: compacted topics, where Kafka removes old messages by key.
    """

    present: tuple[OffsetSample, ...]
    spans: Mapping[str, tuple[Span, ...]]
    left_out: frozenset[str]

    @property
    def minutes(self) -> Sequence[int]:
        """The minutes to request, counted from 1970, the newest first: each is a request to every broker concerned."""
        spans = {span for own in self.spans.values() for span in own}
        wanted = {minute for span in spans for minute in range(minute_number(span.first), minute_number(span.last) + 1)}
        return sorted(wanted, reverse=True)

    @property
    def samples(self) -> int:
        """The number of rows if every partition answers."""
        return sum(span.minutes for sample in self.present for span in self.spans[sample.group])


def plan_backfill(
    kafka: KafkaRequests,
    present: Sequence[OffsetSample],
    *,
    since: datetime,
    known_from: Mapping[str, datetime],
    known_until: Mapping[str, datetime] | None = None,
) -> Backfill:
    """The past in Kafka from `since` until now, or until a group's own samples begin (`known_from`).

    With `known_until`, the last of those samples, also what came after them.

    Errors: AdapterError if the brokers do not answer.
    """
    left_out = kafka.compacted({sample.topic for sample in present})
    wanted = [sample for sample in present if sample.topic not in left_out]
    oldest: Mapping[Partition, FirstMessage | None] = {}
    for _, answers in kafka.offsets_at({_key(sample) for sample in wanted}, [EPOCH]):
        oldest = _answered(answers)
    spans: dict[str, tuple[Span, ...]] = {}
    for group in sorted({sample.group for sample in wanted}):
        own = [sample for sample in wanted if sample.group == group]
        began = _began(own, oldest)
        if began is None:
            continue
        now = min(sample.sampled_at for sample in own)
        begins = [(max(since, began), min(known_from.get(group, now), now))]
        if known_until is not None and group in known_until:
            begins.append((max(since, began, known_until[group]), now))
        found = tuple(span for span in (_span(after, before) for after, before in begins) if span is not None)
        if found:
            spans[group] = found
    kept = tuple(sample for sample in wanted if sample.group in spans)
    return Backfill(present=kept, spans=spans, left_out=left_out)


def _span(after: datetime, before: datetime) -> Span | None:
    """The whole minutes between two instants; None where there are fewer than two."""
    first, last = _minute(minute_number(after) + 1), _minute(minute_number(before - timedelta(microseconds=1)))
    return Span(first=first, last=last) if first < last else None


def stamped_ahead(kafka: KafkaRequests, present: Sequence[OffsetSample], *, now: datetime) -> dict[str, float]:
    """The topics with messages whose time stamps are in the future, and by how many seconds at least the first is.

    Differences up to CLOCK_TOLERANCE do not count. The clock of the producers or of the brokers differs from this one.
    """
    ahead: dict[str, float] = {}
    for _, answers in kafka.offsets_at({_key(sample) for sample in present}, [now + CLOCK_TOLERANCE]):
        for (topic, _), message in answers.got.items():
            if message is not None:
                stamped_at = EPOCH + timedelta(milliseconds=message.timestamp_milliseconds)
                ahead[topic] = max(ahead.get(topic, 0.0), (stamped_at - now).total_seconds())
    return ahead


def past_samples(kafka: KafkaRequests, plan: Backfill, past: PastCommits) -> Iterator[tuple[OffsetSample, ...]]:
    """The samples of the past, a day at a time, the newest day first; with commits and members as far as `past` tells.

    A partition that does not answer for a minute has no sample of it, and that minute no sum.
    Errors: AdapterError if the brokers stop answering; the days that were returned before are complete.
    """
    ends = {_key(sample): sample.end_offset for sample in plan.present}
    minutes = plan.minutes
    for begin in range(0, len(minutes), CHUNK_MINUTES):
        instants = map(_minute, minutes[begin : begin + CHUNK_MINUTES])
        yield tuple(
            sample
            for instant, answers in kafka.offsets_at(ends, instants)
            for sample in _samples(plan, past, ends, instant, _answered(answers))
        )


def _samples(
    plan: Backfill,
    past: PastCommits,
    ends: Mapping[Partition, int],
    instant: datetime,
    found: Mapping[Partition, FirstMessage | None],
) -> Iterator[OffsetSample]:
    for now in plan.present:
        key = _key(now)
        if key not in found or not any(span.first <= instant <= span.last for span in plan.spans[now.group]):
            continue
        message = found[key]
        # Without a later message, the end offset was the same as now.
        end = ends[key] if message is None else message.offset
        committed = past.committed_at(now.group, *key, instant)
        yield replace(
            now,
            sampled_at=instant,
            end_offset=end,
            # Messages count when they were stamped: a commit may be of some that are stamped a little later.
            committed_offset=None if committed is None else min(committed, end),
            log_start_offset=None,
            group_state=_state(past, now.group, instant),
            group_protocol=None,
            group_assignor=None,
            members=past.members_at(now.group, instant),
            static_members=None,
            clients=None,
            streams=None,
            commit_interval_seconds=None,
            busy_ratio=None,
            session_timeout_seconds=None,
            rebalance_timeout_seconds=None,
            consumer_heartbeat_seconds=None,
        )


def _state(past: PastCommits, group: str, instant: datetime) -> str:
    """Kafka's word for the group then; a minute with a rebalance in it is one of it."""
    members = past.members_at(group, instant)
    if members is None:
        return "UNKNOWN"
    if members == 0:
        return "EMPTY"
    return "PREPARING_REBALANCING" if past.rebalanced_before(group, instant) else "STABLE"


def _began(samples: Iterable[OffsetSample], oldest: Mapping[Partition, FirstMessage | None]) -> datetime | None:
    """Start of the known produce rate of the group; None if no message is kept or a partition did not answer."""
    reaching: list[tuple[int, int]] = []  # how far back, in milliseconds since 1970, and how many messages are kept
    first = None
    for sample in samples:
        if _key(sample) not in oldest:
            return None
        message = oldest[_key(sample)]
        if message is None:
            continue
        first = message.timestamp_milliseconds if first is None else min(first, message.timestamp_milliseconds)
        # A log that still has its first message is known completely: there was nothing before.
        reach = 0 if message.offset == 0 else message.timestamp_milliseconds
        reaching.append((reach, sample.end_offset - message.offset))
    if first is None:
        return None
    wanted = KNOWN_SHARE * sum(messages for _, messages in reaching)
    known = 0
    for reach, messages in sorted(reaching):
        known += messages
        if known >= wanted:
            return EPOCH + timedelta(milliseconds=max(first, reach))
    return None


def _answered(answers: Answers[Partition, FirstMessage | None]) -> Mapping[Partition, FirstMessage | None]:
    """The answers. Errors: the first failure if there is no answer."""
    if answers.failed and not answers.got:
        raise next(iter(answers.failed.values()))
    return answers.got


def _key(sample: OffsetSample) -> Partition:
    return sample.topic, sample.partition


def _minute(number: int) -> datetime:
    return EPOCH + number * MINUTE
