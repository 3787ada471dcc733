"""Live samples from Prometheus: each scrape of an exporter once, stamped with the time of the scrape.

A round is one query. What it finds is written only if every partition of the group was scraped again since the last
time, so that no rate is computed from repeated values. A group whose scrapes have stopped is an error, not a zero.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

import numpy as np
import structlog

from collector.errors import AdapterError, UnavailableError
from collector.kafka_admin import Collected
from collector.prometheus_dialects import CLIENT_GROUP, Dialect
from collector.prometheus_found import Discovered, discover_present
from collector.prometheus_http import PrometheusRequests, Series
from collector.prometheus_past import SLOWEST_SECONDS
from collector.prometheus_queries import ENDS_AT, FIELD, PROGRESS_AT, at_once
from collector.prometheus_rows import STEP_SECONDS, GroupPast, Readings, sample_rows
from collector.sample import OffsetSample, Owns, every_group
from forecasting.columns import BASE_INTERVAL_SECONDS

# Groups and topics are looked for once a minute, in six small queries, among what was scraped in so many seconds.
DISCOVER_EVERY = timedelta(seconds=60)
DISCOVER_SECONDS = 600
TIMEOUT_SECONDS = 10.0
# A group is in error once its newest scrape is older than two scrapes and a round: one scrape in a row may fail.
_SCRAPES_MISSED = 2
_INTERVAL = timedelta(seconds=BASE_INTERVAL_SECONDS)
# A scrape has the instant of its beginning, and is stored once it is over. It is looked for so many seconds after its
# beginning; half as many more once most were not there yet, a hundredth fewer each time they were.
_LEAST_STORED_SECONDS, _MOST_STORED_SECONDS = 1.0, 8.0
_LATER, _SOONER = 1.5, 0.99
# Sums of messages begin here, so that no commit, a sum less a lag, is below 0.
_FIRST_SUM = 1e12
# A sum begins anew with each process: the first two minutes are not written, so that the next row is 120 s after the
# last one of the process before, and no rate spans both.
_UNWRITTEN_MINUTES = 2
_UNKNOWN_STATE = "UNKNOWN"
_OF_TOPICS = frozenset({"ends", "starts", ENDS_AT})
_OF_CLIENTS = frozenset({"idle", "idle_clients", "restored", "restoring"})
_READ = ("ends", "progress", "starts", "members", "states", *sorted(_OF_CLIENTS))
_KINDS = (*_READ, ENDS_AT, PROGRESS_AT)

_Place = tuple[str, ...]
_log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class _Known:
    """What was seen of one group: its newest scrape, the seconds between the last two, and what was last written.

    `scraped` are the instants of all series, by their labels, of what was last written or found to repeat it, and
    `next_at` is when all of them are expected to be scraped again.
    """

    scraped: Mapping[_Place, float] = field(default_factory=dict)
    seen_at: datetime | None = None
    next_at: float = math.inf
    every_seconds: float = float(BASE_INTERVAL_SECONDS)
    written: tuple[OffsetSample, ...] = ()
    progressed: set[tuple[str, int]] = field(default_factory=set)
    is_slow: bool = False


class PrometheusCollector:
    """A `collector.run.Collector` of one cluster's groups on a server of Prometheus' API; a context manager.

    `settings` are those of `PrometheusRequests`; `owns` chooses among the groups. No request is sent yet.
    Errors: ClientConfigError for an address or settings that cannot be used.
    """

    def __init__(self, url: str, *, cluster: str, settings: Mapping[str, str], owns: Owns = every_group) -> None:
        self._prometheus = PrometheusRequests(url, settings=settings, timeout_seconds=TIMEOUT_SECONDS)
        self._cluster = cluster
        self._owns = owns
        self._found: Discovered | None = None
        self._unknown: tuple[AdapterError, ...] = ()
        self._found_at: datetime | None = None
        self._groups: dict[str, _Known] = {}
        self._began: dict[_Place, datetime] = {}
        self._sums = _Sums()
        self._stored_seconds = _LEAST_STORED_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._prometheus.__exit__(kind, error, trace)

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        """The samples of every group (None: all of them) of which there is a new scrape, oldest first.

        A round without a new scrape has none, and no error while the next one is due. Where scrapes are more than 15 s
        apart, samples on the straight line between them are added, each 15 s. Errors: AdapterError if the server does
        not answer, or knows no exporter or none of the groups.
        """
        found = self._discovered(groups, now=now)
        answer = self._prometheus.instant(at_once(found), at=now)
        fields: dict[str, list[Series]] = {name: [] for name in _KINDS}
        for series in answer:
            labels = dict(series.labels)
            fields[labels.pop(FIELD)].append(replace(series, labels=labels))
        dialect = found.spoken.dialect
        if dialect.counts == "messages":
            dialect, fields = self._sums.as_offsets(dialect, fields)
        if dialect.owners:
            fields = self._of_newest_owners(dialect, fields, now=now)
        scrapes = _Scrapes(dialect, fields)
        samples: list[OffsetSample] = []
        errors: list[AdapterError] = []
        expected: list[bool] = []
        for group, topics in sorted(found.topics.items()):
            known = self._groups.setdefault(group, _Known())
            seen_at = known.seen_at
            samples += self._new_samples(dialect, scrapes.of(group, topics), known)
            overdue_seconds = now.timestamp() - known.next_at - self._stored_seconds
            # Once it is overdue by a whole round it has failed.
            if -0.5 <= overdue_seconds < BASE_INTERVAL_SECONDS - 0.5:
                expected.append(False)
            elif known.seen_at != seen_at:
                expected.append(True)
            error = self._silence(group, known, now=now)
            errors += [] if error is None else [error]
        self._learn_storing(expected)
        return Collected(samples=tuple(samples), errors=(*self._unknown, *errors), due_at=self._due_at(found.topics))

    def _learn_storing(self, expected: Sequence[bool]) -> None:
        """Learn how long scrapes take to be stored, of those that were expected in this round: which of them came."""
        if expected:
            factor = _SOONER if 2 * sum(expected) > len(expected) else _LATER
            self._stored_seconds = min(max(factor * self._stored_seconds, _LEAST_STORED_SECONDS), _MOST_STORED_SECONDS)

    def _due_at(self, groups: Iterable[str]) -> datetime | None:
        """When a round finds scrapes youngest, in the mean of these groups, to 0.5 s; None before two scrapes of one.

        >>> ours = PrometheusCollector("http://prometheus:9090", cluster="prod", settings={})
        >>> ours._groups = {f"group-{second}": _Known(next_at=second) for second in (3.0, 3.5, 12.0)}
        >>> due_at = ours._due_at(ours._groups)
        >>> due_at.second, due_at.microsecond
        (4, 500000)
        """
        next_at = np.array([self._groups[group].next_at for group in groups])
        next_at = next_at[np.isfinite(next_at)]
        if not len(next_at):
            return None
        due = np.arange(0.0, BASE_INTERVAL_SECONDS, 0.5)
        ages = ((due[:, None] - next_at) % BASE_INTERVAL_SECONDS).mean(axis=1)
        return datetime.fromtimestamp(float(due[np.argmin(ages)]) + self._stored_seconds, tz=UTC)

    def _discovered(self, groups: Sequence[str] | None, *, now: datetime) -> Discovered:
        """The groups and topics, looked for again once a minute; those known last while nothing is scraped."""
        is_first = self._found is None
        if self._found is None or self._found_at is None or now >= self._found_at + DISCOVER_EVERY:
            since = now - timedelta(seconds=DISCOVER_SECONDS)
            # The search is by whole minutes: until the end of this one, so that the newest scrape is in it.
            until = now + timedelta(seconds=STEP_SECONDS)
            try:
                self._found, self._unknown = discover_present(
                    self._prometheus, cluster=self._cluster, groups=groups, owns=self._owns, since=since, now=until
                )
            except UnavailableError:
                raise
            except AdapterError as error:
                if self._found is None:
                    raise
                _log.debug("nothing_found", error=str(error))  # each group's silence is its error
            self._found_at = now
            if is_first:
                _log_exporter(self._found)
        return self._found

    def _of_newest_owners(
        self, dialect: Dialect, fields: Mapping[str, list[Series]], *, now: datetime
    ) -> dict[str, list[Series]]:
        """The fields without lags of clients that another one has succeeded: it began to report that partition later.

        A client may go on reporting a partition that it has lost.
        """
        began = {key: self._began.get(key, now) for key in map(_place, fields["progress"])}
        self._began = began
        newest: dict[_Place, datetime] = {}
        for series in fields["progress"]:
            partition = _labels(series, dialect.topic, dialect.partition)
            newest[partition] = max(newest.get(partition, began[_place(series)]), began[_place(series)])

        def is_owned(series: Series) -> bool:
            return began[_place(series)] == newest[_labels(series, dialect.topic, dialect.partition)]

        owned = [series for series in fields["progress"] if is_owned(series)]
        places = set(map(_place, owned))
        scraped = [series for series in fields[PROGRESS_AT] if _place(series) in places]
        return {**fields, "progress": owned, PROGRESS_AT: scraped}

    def _new_samples(self, dialect: Dialect, scrape: "_Scrape", known: _Known) -> list[OffsetSample]:
        """The samples of the group's newest scrape, and those between it and the last one; none if it is not new."""
        at = scrape.at
        if at is None or any(when <= known.scraped.get(key, -math.inf) for key, when in scrape.instants.items()):
            return []
        if known.seen_at is not None:
            if at <= known.seen_at:
                return []
            known.every_seconds = (at - known.seen_at).total_seconds()
            known.next_at = max(scrape.instants.values()) + known.every_seconds
        rows = self._rows(dialect, scrape, at, known)
        if not rows:
            return []
        known.scraped, known.seen_at = scrape.instants, at
        before = known.written
        if before and (_interval(at) == _interval(before[0].sampled_at) or _may_wait(known, at, rows)):
            return []
        known.written = rows
        if before:
            _note_pace(scrape.group, known)
        return [*_between(before, rows), *rows]

    def _rows(self, dialect: Dialect, scrape: "_Scrape", at: datetime, known: _Known) -> tuple[OffsetSample, ...]:
        """The samples of one scrape of the group; a partition without progress that had some before has none."""
        second = int(at.timestamp())
        series = {
            name: tuple(replace(one, at_seconds=np.array([second])) for one in scrape.fields[name]) for name in _READ
        }
        readings = Readings(minutes=np.array([second]), **series)
        past = GroupPast(group=scrape.group, topics=scrape.topics, wanted=np.array([True]))
        table = sample_rows(dialect, readings, [past], cluster=self._cluster)
        rows = [OffsetSample(**{**row, "sampled_at": at}) for row in table.to_pylist()]
        known.progressed |= {(row.topic, row.partition) for row in rows if row.committed_offset is not None}
        # Clients report the partitions that they own: one without a lag has no owner now, and its commit is unknown.
        return tuple(
            row
            for row in rows
            if row.committed_offset is not None
            or not (dialect.owners or (row.topic, row.partition) in known.progressed)
        )

    def _silence(self, group: str, known: _Known, *, now: datetime) -> AdapterError | None:
        """The error of a group whose scrapes have stopped, or in which something is missing since then."""
        where = self._prometheus.where
        step = "look at the exporter, and at its target on the page /targets of Prometheus"
        if known.seen_at is None:
            return UnavailableError(f"{where} has no whole scrape of group {group!r} now; {step}", group=group)
        age = (now - known.seen_at).total_seconds()
        if age <= _SCRAPES_MISSED * min(known.every_seconds, SLOWEST_SECONDS) + BASE_INTERVAL_SECONDS:
            return None
        since = f"{known.seen_at:%H:%M:%S} UTC"
        return UnavailableError(f"{where} has no whole scrape of group {group!r} since {since}; {step}", group=group)


def _log_exporter(found: Discovered) -> None:
    """Log once which exporter is read, and what of a group it does not tell."""
    spoken = found.spoken
    _log.info("exporter_found", exporter=spoken.dialect.name, groups=len(found.topics))
    if spoken.states is None:
        effect = "a rebalance is seen only as a change of the number of members"
        _log.info("group_states_unknown", exporter=spoken.dialect.name, effect=effect)
    if spoken.members is None and not (spoken.dialect.member_label or spoken.dialect.owners):
        next_step = "without the number of members nothing can be advised; let Prometheus scrape another exporter"
        _log.warning("members_unknown", exporter=spoken.dialect.name, next_step=next_step)


class _Sums:
    """Messages of each minute of a topic, summed up as offsets of one partition, for a source that counts messages."""

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._minutes: dict[str, tuple[float, int]] = {}  # the newest minute of each topic, and how many there were

    def as_offsets(
        self, dialect: Dialect, fields: Mapping[str, list[Series]]
    ) -> tuple[Dialect, dict[str, list[Series]]]:
        """The dialect and its fields as if the source exported offsets of partition 0; a new process begins anew."""
        partition = {dialect.partition: "0"}
        scraped = {_labels(one, dialect.topic)[0]: float(one.values[0]) for one in fields[ENDS_AT]}
        ends = []
        for series in fields["ends"]:
            (topic,) = _labels(series, dialect.topic)
            at, count = self._minutes.get(topic, (-math.inf, 0))
            if scraped.get(topic, -math.inf) > at:
                self._totals[topic] = self._totals.get(topic, _FIRST_SUM) + float(series.values[0])
                count += 1
                self._minutes[topic] = scraped[topic], count
            if count > _UNWRITTEN_MINUTES:
                ends.append(replace(series, values=np.array([self._totals[topic]])))
        fields = {**fields, "ends": ends}
        return replace(dialect, counts="offsets"), {
            name: [replace(one, labels={**one.labels, **partition}) for one in series]
            if name in ("ends", "progress", ENDS_AT, PROGRESS_AT)
            else series
            for name, series in fields.items()
        }


class _Scrapes:
    """The series of one answer, by topic and by group."""

    def __init__(self, dialect: Dialect, fields: Mapping[str, Sequence[Series]]) -> None:
        self._labels = {
            **dict.fromkeys(_KINDS, "" if dialect.owners else dialect.group),
            **dict.fromkeys(_OF_TOPICS, dialect.topic),
            **dict.fromkeys(_OF_CLIENTS, CLIENT_GROUP),
        }
        self._by_name: dict[tuple[str, str], list[Series]] = {}
        for kind, series in fields.items():
            for one in series:
                name = one.labels.get(self._labels[kind], "")
                self._by_name.setdefault((kind, name), []).append(one)

    def of(self, group: str, topics: frozenset[str]) -> "_Scrape":
        """The series of one group; if clients do not name their group, all that they report."""
        fields = {
            kind: [
                one
                for name in (sorted(topics) if kind in _OF_TOPICS else (group if self._labels[kind] else "",))
                for one in self._by_name.get((kind, name), ())
            ]
            for kind in _KINDS
        }
        return _Scrape(group, topics, fields)


class _Scrape:
    """The newest scrapes of one group: its series by field, and the instant of each of those that count offsets."""

    def __init__(self, group: str, topics: frozenset[str], fields: Mapping[str, Sequence[Series]]) -> None:
        self.group, self.topics, self.fields = group, topics, fields
        self.instants: dict[_Place, float] = {
            (kind, *_place(one)): float(one.values[0]) for kind in (ENDS_AT, PROGRESS_AT) for one in fields[kind]
        }

    @property
    def at(self) -> datetime | None:
        """The instant by which all of it was so, as targets are scraped one after the other; None while a half lacks.

        A target that is scraped later than another one is so in each of its scrapes: rates are right.
        """
        if not self.fields["ends"] or not self.fields[PROGRESS_AT]:
            return None
        return datetime.fromtimestamp(min(self.instants.values()), tz=UTC)


def _may_wait(known: _Known, at: datetime, rows: Iterable[OffsetSample]) -> bool:
    """True if the scrape repeats what was last written, and the next one comes in time for a rate since then.

    An exporter that reads Kafka less often than it is scraped repeats its values; so does an idle topic.
    """
    waited = (at - known.written[0].sampled_at).total_seconds()
    repeats = [_state(row) for row in known.written] == [_state(row) for row in rows]
    return repeats and waited + known.every_seconds < SLOWEST_SECONDS


def _note_pace(group: str, known: _Known) -> None:
    """Log once that a group is scraped too seldom for rates."""
    is_slow = known.every_seconds > SLOWEST_SECONDS
    if is_slow and not known.is_slow:
        next_step = "a rate needs a scrape each minute: set scrape_interval to 60s or less"
        _log.warning("scraped_slowly", group=group, seconds=round(known.every_seconds), next_step=next_step)
    known.is_slow = is_slow


def _place(series: Series) -> _Place:
    return tuple(f"{name}={value}" for name, value in sorted(series.labels.items()))


def _labels(series: Series, *names: str) -> _Place:
    return tuple(series.labels.get(name, "") for name in names)


def _interval(at: datetime) -> int:
    """The number of the base interval that contains an instant; an instant on a boundary belongs to the earlier one."""
    return math.ceil(at.timestamp() / BASE_INTERVAL_SECONDS)


def _state(row: OffsetSample) -> tuple[object, ...]:
    return (row.topic, row.partition, row.end_offset, row.committed_offset, row.group_state, row.members)


def _between(before: Sequence[OffsetSample], after: Sequence[OffsetSample]) -> Iterator[OffsetSample]:
    """Samples on the line between two scrapes, 15 s apart: a rate between them is a rate of each of those 15 s.

    None if they are further apart than rates may span, or an offset went back, or a partition or commit is new. State
    and members are those that were known then.
    """
    pairs = list(zip(before, after, strict=False))
    if not pairs or [_key(row) for row in before] != [_key(row) for row in after]:
        return
    begin, end = before[0].sampled_at, after[0].sampled_at
    whole = (end - begin).total_seconds()
    if whole > SLOWEST_SECONDS or not all(_goes_on(*pair) for pair in pairs):
        return
    missing = _interval(end) - _interval(begin) - 1
    for back in range(missing, 0, -1):
        at = end - back * _INTERVAL
        share = (at - begin).total_seconds() / whole
        for earlier, later in pairs:
            yield replace(
                earlier,
                sampled_at=at,
                end_offset=_on_line(earlier.end_offset, later.end_offset, share),
                committed_offset=None
                if earlier.committed_offset is None or later.committed_offset is None
                else _on_line(earlier.committed_offset, later.committed_offset, share),
                group_state=earlier.group_state if earlier.group_state == later.group_state else _UNKNOWN_STATE,
            )


def _key(row: OffsetSample) -> tuple[str, int, bool]:
    return row.topic, row.partition, row.committed_offset is None


def _goes_on(earlier: OffsetSample, later: OffsetSample) -> bool:
    return later.end_offset >= earlier.end_offset and (later.committed_offset or 0) >= (earlier.committed_offset or 0)


def _on_line(earlier: int, later: int, share: float) -> int:
    """A whole offset between two.

    >>> _on_line(100, 160, 0.25)
    115
    """
    return earlier + round((later - earlier) * share)
