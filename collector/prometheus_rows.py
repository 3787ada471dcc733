"""Prometheus' answers for a stretch of minutes, as rows of the samples table. Pure: no requests, no writes.

A gap is missing, not zero: without a value of the source for a partition, or for a group, there is no row.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

from collector.errors import MalformedError
from collector.prometheus_dialects import CLIENT_GROUP, RESTORED_CLIENT, RESTORING_THREAD, TARGET, Dialect
from collector.prometheus_http import Series
from collector.sinks import arrow_schema
from forecasting.units import AnyArray, FloatArray, IntArray

STEP_SECONDS = 60
Partition = tuple[str, int]
_Thread = tuple[str, str]
# Kafka Streams names the threads that restore PROCESS-StateUpdater-NUMBER, and their clients after them; before 4.0
# these had the name of the thread that processes.
_STATE_UPDATER, _STREAM_THREAD, _RESTORE_CONSUMER = "-StateUpdater-", "-StreamThread-", "-restore-consumer"
_UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """All series of one stretch: every `STEP_SECONDS` from the first of `minutes`, seconds since 1970, to the last."""

    minutes: IntArray
    ends: tuple[Series, ...]
    progress: tuple[Series, ...]
    starts: tuple[Series, ...] = ()
    members: tuple[Series, ...] = ()
    states: tuple[Series, ...] = ()
    idle: tuple[Series, ...] = ()
    idle_clients: tuple[Series, ...] = ()
    restored: tuple[Series, ...] = ()
    restoring: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPast:
    """A group whose past is requested: its topics, and the minutes to return (one boolean each)."""

    group: str
    topics: frozenset[str]
    wanted: AnyArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A group's progress at each minute: commits or lags by partition, and its members; NaN where unknown.

    In topics that clients report, dots are underscores.
    """

    of: Mapping[Partition, FloatArray]
    members: FloatArray

    @property
    def sums(self) -> FloatArray:
        """The sum over the partitions, of lags in messages; NaN where a partition is missing."""
        return np.sum(list(self.of.values()), axis=0) if self.of else np.full_like(self.members, np.nan)


def sample_rows(dialect: Dialect, readings: Readings, groups: Sequence[GroupPast], *, cluster: str) -> pa.Table:
    """The samples of these groups, in the schema of `forecasting.columns.SAMPLES`.

    A partition with any commit in this stretch has rows where its commit is known. Any other partition has rows where
    its end is known, with members only where the group had any progress: there it had committed nothing, and elsewhere
    the group was not scraped. Errors: MalformedError for a label that is no partition.
    """
    ends = _ends(dialect, readings)
    pieces = [piece for past in groups for piece in _group_rows(dialect, readings, past, ends, cluster)]
    return pa.concat_tables([arrow_schema().empty_table(), *pieces])


def progress_of(dialect: Dialect, readings: Readings, group: str) -> Progress:
    """A group's progress as its sources report it; if clients report it, each partition as its owner reports it.

    If two clients report a lag of the same partition, the owner is the client that began later: a client may go on
    reporting a partition that it has lost. Members are the clients that own a partition.
    """
    candidates_of: dict[Partition, list[tuple[str, FloatArray]]] = {}
    for series in readings.progress:
        if dialect.owners or series.labels.get(dialect.group) == group:
            owner = "/".join(series.labels.get(label, "") for label in dialect.owners)
            candidates_of.setdefault(_key(dialect, series), []).append((owner, _on_grid(readings.minutes, series)))
    owned = {key: _by_owner(candidates) for key, candidates in candidates_of.items()}
    members = np.full(len(readings.minutes), np.nan)
    if dialect.owners and owned:
        columns = zip(*(owners for _, owners in owned.values()), strict=True)
        members = np.array([float(len(set(column) - {""})) for column in columns])
    return Progress(of={key: values for key, (values, _) in owned.items()}, members=members)


def _group_rows(
    dialect: Dialect, readings: Readings, past: GroupPast, ends: Mapping[Partition, FloatArray], cluster: str
) -> Iterator[pa.Table]:
    progress = progress_of(dialect, readings, past.group)
    wanted = past.wanted
    if dialect.counts == "messages":
        # Sums of messages restart with each stretch: one minute is dropped at either side of the requested ones, so
        # that no rate spans a restart, because the next row is 120 s away and rates cover 60 s at most.
        wanted = wanted & np.append(wanted[1:], False) & np.append(False, wanted[:-1])
    seen = np.isfinite([np.full(len(wanted), np.nan), *progress.of.values()]).any(axis=0)
    states, members = _states_and_members(dialect, readings, past.group, progress)
    busy, streams = _busy(readings, past.group, members), _streams(readings, past.group)
    starts = {_partition(dialect, series): _on_grid(readings.minutes, series) for series in readings.starts}
    for (topic, number), end in sorted(ends.items()):
        if topic not in past.topics:
            continue
        commit = progress.of.get((_spelt(dialect, topic), number))
        # A partition with end 0 had no message: none can have been removed from its start.
        start = starts.get((topic, number), np.where(end == 0, 0.0, np.nan))
        if commit is None or np.isnan(commit).all():
            yield _rows(
                (cluster, past.group, topic, number),
                readings.minutes,
                wanted & np.isfinite(end),
                start=start,
                end=end,
                commit=np.full(len(end), np.nan),
                members=np.where(seen, members, np.nan),
                states=states,
                busy=busy,
                streams=streams,
            )
        else:
            commit = commit if dialect.commits else end - commit
            yield _rows(
                (cluster, past.group, topic, number),
                readings.minutes,
                wanted & np.isfinite(end) & np.isfinite(commit),
                start=start,
                end=end,
                commit=np.where(commit < 0, np.nan, commit),  # -1: never committed
                members=members,
                states=states,
                busy=busy,
                streams=streams,
            )


def _busy(readings: Readings, group: str, members: FloatArray) -> FloatArray:
    """The mean share of their time in which the group's members work; NaN where not every member reports it."""
    idle, clients = (
        next(
            (_on_grid(readings.minutes, each) for each in series if each.labels.get(CLIENT_GROUP) == group),
            np.full(len(readings.minutes), np.nan),
        )
        for series in (readings.idle, readings.idle_clients)
    )
    return np.where(clients == members, np.clip(1.0 - idle, 0.0, 1.0), np.nan)


def _streams(readings: Readings, group: str) -> AnyArray:
    """What restores show of a Kafka Streams application, as JSON under the names of its settings; None without any."""
    told = np.full(len(readings.minutes), None, dtype=object)
    rates = _restore_rates(readings, group)
    for minute in np.flatnonzero(np.isfinite(rates)):
        told[minute] = json.dumps({"restore_bytes_per_second": float(round(rates[minute])), "stateful": True})
    return told


def _restore_rates(readings: Readings, group: str) -> FloatArray:
    """Bytes/s of the group's process that restores the most; NaN where no thread restored tasks all the time.

    Threads of a process restore side by side. Where owners name clients, only the target tells two processes apart.
    """
    is_restoring: dict[_Thread, AnyArray] = {}
    for series in readings.restoring:
        if series.labels.get(CLIENT_GROUP) == group:
            is_restoring[_thread(series, RESTORING_THREAD)] = np.isfinite(_on_grid(readings.minutes, series))
    silent = np.full(len(readings.minutes), np.nan)
    processes: dict[_Thread, FloatArray] = {}
    for series in readings.restored:
        thread = _thread(series, RESTORED_CLIENT)
        if series.labels.get(CLIENT_GROUP) == group and thread in is_restoring:
            rate = np.where(is_restoring[thread], _on_grid(readings.minutes, series), np.nan)
            target, name = thread
            process = target, name.rpartition(_STATE_UPDATER)[0]
            processes[process] = _sum_of_known(processes.get(process, silent), rate)
    return reduce(np.fmax, processes.values(), silent)


def _thread(series: Series, label: str) -> _Thread:
    """The target and the name of the thread that reports a series."""
    name = series.labels.get(label, "").removesuffix(_RESTORE_CONSUMER).replace(_STREAM_THREAD, _STATE_UPDATER)
    return series.labels.get(TARGET, ""), name


def _sum_of_known(one: FloatArray, other: FloatArray) -> FloatArray:
    """The sum at each minute of what is known; NaN where neither is."""
    known: FloatArray = np.where(
        np.isfinite(one) | np.isfinite(other), np.nan_to_num(one) + np.nan_to_num(other), np.nan
    )
    return known


def _rows(
    names: tuple[str, str, str, int],
    minutes: IntArray,
    kept: AnyArray,
    *,
    start: FloatArray,
    end: FloatArray,
    commit: FloatArray,
    members: FloatArray,
    states: AnyArray,
    busy: FloatArray,
    streams: AnyArray,
) -> pa.Table:
    count = int(kept.sum())
    cluster, group, topic, number = names
    columns = {
        "cluster": pa.repeat(cluster, count),
        "group": pa.repeat(group, count),
        "topic": pa.repeat(topic, count),
        "partition": pa.repeat(number, count),
        "sampled_at": pa.array(minutes[kept] * 1_000_000).cast(pa.timestamp("us", tz="UTC")),
        "end_offset": _whole(end[kept]),
        "committed_offset": _whole(commit[kept]),
        "log_start_offset": _whole(start[kept]),
        "group_state": pa.array(states[kept], pa.string()),
        "members": _whole(members[kept]),
        "busy_ratio": pa.array(busy[kept], from_pandas=True),
        "streams": pa.array(streams[kept], pa.string()),
    }
    schema = arrow_schema()
    arrays = [columns.get(name, pa.nulls(count)) for name in schema.names]
    return pa.Table.from_arrays(
        [array.cast(kind) for array, kind in zip(arrays, schema.types, strict=True)], schema=schema
    )


def _ends(dialect: Dialect, readings: Readings) -> dict[Partition, FloatArray]:
    """The end offset of each partition, by the topic's own name; NaN where unknown."""
    reported = [(_partition(dialect, series), _on_grid(readings.minutes, series)) for series in readings.ends]
    if dialect.counts == "offsets":
        return dict(reported)
    # No commit may be below 0: the sum begins at the largest lag of all groups.
    begin = np.ceil(max((series.values.max(initial=0.0) for series in readings.progress), default=0.0))
    return {key: np.where(np.isnan(counts), np.nan, begin + np.nancumsum(counts)) for key, counts in reported}


def _states_and_members(
    dialect: Dialect, readings: Readings, group: str, progress: Progress
) -> tuple[AnyArray, FloatArray]:
    """The group's state in Kafka's terms, and its number of members, at each minute."""
    silent = np.full(len(readings.minutes), np.nan)
    reported = [
        (series.labels, _on_grid(readings.minutes, series))
        for series in readings.states
        if series.labels.get(dialect.group) == group
    ]
    states = np.full(len(silent), _UNKNOWN, dtype=object)
    members = progress.members
    if dialect.state_codes:
        for _, codes in reported:
            states = np.array(
                [dialect.state_codes.get(int(code), _UNKNOWN) for code in np.nan_to_num(codes)], dtype=object
            )
    elif reported:
        _, states = _by_owner([(_kafka_word(labels.get(dialect.state_label, "")), line) for labels, line in reported])
        states = np.where(states == "", _UNKNOWN, states)
        counts = [(labels.get(dialect.state_member_count, ""), line) for labels, line in reported]
        if all(count for count, _ in counts):
            members = np.array([float(count or "nan") for count in _by_owner(counts)[1]])
    for series in readings.members:
        if series.labels.get(dialect.group) == group:
            members = _on_grid(readings.minutes, series)
    # A group without members is in state EMPTY, for which some sources report no number.
    return states, np.where(np.isnan(members) & (states == "EMPTY"), 0.0, members)


def _by_owner(candidates: Sequence[tuple[str, FloatArray]]) -> tuple[FloatArray, AnyArray]:
    """The values of the candidate that began last, and its name, at each minute; NaN and "" where all have no value.

    Of candidates that began together the largest value counts, so that a lag is never understated.
    """
    values = np.array([line for _, line in candidates])
    names = np.array([name for name, _ in candidates], dtype=object)
    known = np.isfinite(values)
    before = np.concatenate([np.zeros((len(values), 1), dtype=bool), known[:, :-1]], axis=1)
    began = np.maximum.accumulate(np.where(known & ~before, np.arange(values.shape[1]), -1), axis=1)
    # A value's share of the largest value is at most 1; halved, it never outweighs a minute.
    share = np.nan_to_num(values / np.maximum(np.nanmax(np.abs(np.append(values, 1.0))), 1.0))
    chosen = np.argmax(np.where(known, began + share / 2.0, -np.inf), axis=0)
    minutes = np.arange(values.shape[1])
    return values[chosen, minutes], np.where(known.any(axis=0), names[chosen], "")


def _kafka_word(state: str) -> str:
    """A state as Kafka's admin client spells it.

    >>> _kafka_word("PreparingRebalance")
    'PREPARING_REBALANCE'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", state).upper()


def _on_grid(minutes: IntArray, series: Series) -> FloatArray:
    """The values of a series at each of the minutes, NaN where it has none."""
    values = np.full(len(minutes), np.nan)
    places = (series.at_seconds - minutes[0]) // STEP_SECONDS
    inside = (places >= 0) & (places < len(minutes))
    values[places[inside]] = series.values[inside]
    return values


def _partition(dialect: Dialect, series: Series) -> Partition:
    topic = series.labels.get(dialect.topic, "")
    if dialect.counts == "messages":
        return topic, 0
    number = series.labels.get(dialect.partition, "")
    try:
        return topic, int(number)
    except ValueError as error:
        message = f"the label {dialect.partition} of a series of {dialect.name} is {number!r}; it must be a number"
        raise MalformedError(message) from error


def _key(dialect: Dialect, series: Series) -> Partition:
    topic, number = _partition(dialect, series)
    return _spelt(dialect, topic), number


def _spelt(dialect: Dialect, topic: str) -> str:
    """The topic as the source of progress spells it: clients write underscores for the dots in its name."""
    return topic.replace(".", "_") if dialect.owners else topic


def _whole(values: FloatArray) -> pa.Array:
    """The values as whole numbers, null where a value is NaN."""
    unknown = np.isnan(values)
    return pa.array(np.where(unknown, 0.0, values).round().astype(np.int64), mask=unknown)
