"""Names of Kafka's offsets in Prometheus by exporter: one frozen value for each exporter, and its detection.

Metrics that a source lacks are left out of its value: nothing is assumed in their place. Names and labels are those of
the exporters' documentation; nothing in here sends a request.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from collector.errors import RejectedError

# Google's Cloud Monitoring answers PromQL as well, and puts a prefix for the source before a metric's name.
_PREFIX = r"(?:custom_googleapis_com:|external_googleapis_com:prometheus[_:])?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: a pattern for its whole name, and the labels that distinguish it from others of that name."""

    name: str
    where: tuple[tuple[str, str], ...] = ()

    def found_in(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names that match this metric, in their order.

        >>> Metric(name="kafka_log_[Ll]og_[Vv]alue").found_in(["up", "kafka_log_Log_Value"])
        ('kafka_log_Log_Value',)
        """
        pattern = re.compile(f"{_PREFIX}(?:{self.name})")
        return tuple(name for name in names if pattern.fullmatch(name))

    def __str__(self) -> str:
        labels = ",".join(f'{label}="{value}"' for label, value in self.where)
        return f"{self.name}{{{labels}}}" if labels else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The metrics that one kind of exporter publishes, and their labels.

    `ends` and the metrics of progress, `commits` or else `lags`, are alternatives: the first that is present counts,
    and without one of each no sample can be made. Where only `lags` are published, a commit is the end less the lag.
    `counts`: the content of `ends`, offsets of partitions, or the messages of the last minute of a topic. `starts`:
    log start offsets. `members` is a metric of its own, or the distinct values of `member_label` on the progress.
    `states`: the group's state, as `state_codes` of a number or as `state_label`, beside which older exporters publish
    the number of members as the label `state_member_count`. `owners`: labels of the client that reports a lag, which
    does not name its group. `cluster`: the label that names the cluster. `switch_on`: the remedy where ends or
    progress are missing.
    """

    name: str
    ends: tuple[Metric, ...]
    topic: str = "topic"
    partition: str = "partition"
    counts: Literal["offsets", "messages"] = "offsets"
    starts: tuple[Metric, ...] = ()
    commits: tuple[Metric, ...] = ()
    lags: tuple[Metric, ...] = ()
    group: str = "group"
    owners: tuple[str, ...] = ()
    members: tuple[Metric, ...] = ()
    member_label: str = ""
    states: tuple[Metric, ...] = ()
    state_codes: Mapping[int, str] = field(default_factory=dict)
    state_label: str = ""
    state_member_count: str = ""
    cluster: str = ""
    switch_on: str = ""


_LOG_START = (
    Metric(name="kafka_log_[Ll]og_[Vv]alue", where=(("name", "LogStartOffset"),)),
    Metric(name="kafka_log_log_logstartoffset"),
)
_LOG_END = (
    Metric(name="kafka_log_[Ll]og_[Vv]alue", where=(("name", "LogEndOffset"),)),
    Metric(name="kafka_log_log_logendoffset"),
)

# The share of its time in which a Java client waits for messages in `poll`, as the JMX exporter, Micrometer and
# OpenTelemetry publish it, and the label of the client that reports it.
IDLE = Metric(name="kafka_consumer_(?:.+_)?poll_idle_ratio_avg")
IDLE_CLIENT = "client_id"
# The bytes that a thread of Kafka Streams has read from changelogs, by topic, as its restore consumer counts them; and
# the tasks that it restores before they run, which copies that follow are not among (KIP-869). Their names by the JMX
# exporter and by Micrometer, and the labels of the thread that reports them.
RESTORED = Metric(name="kafka_consumer_(?:.+_)?bytes_consumed(?:_total)?")
RESTORED_CLIENT, RESTORED_TOPIC = "client_id", "topic"
RESTORING = Metric(name="kafka_streams?_(?:.+_)?active_restoring_tasks")
RESTORING_THREAD = "thread_id"
# The label that Prometheus adds to all that it scrapes from one target.
TARGET = "instance"
# The label that queries add to them: the client's group, which it does not report.
CLIENT_GROUP = "lagcast_group"

# In the order of detection; if two are present, the first one is read.
DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        name="kafka_exporter",  # also the Strimzi Kafka Exporter and the one of Amazon's recipe for MSK
        ends=(Metric(name="kafka_topic_partition_current_offset"),),
        starts=(Metric(name="kafka_topic_partition_oldest_offset"),),
        commits=(Metric(name="kafka_consumergroup_current_offset"),),  # -1: never committed
        group="consumergroup",
        members=(Metric(name="kafka_consumergroup_members"),),
    ),
    Dialect(
        name="kminion",
        ends=(Metric(name="kminion_kafka_topic_partition_high_water_mark"),),
        starts=(Metric(name="kminion_kafka_topic_partition_low_water_mark"),),
        lags=(Metric(name="kminion_kafka_consumer_group_topic_partition_lag"),),
        group="group_id",
        topic="topic_name",
        partition="partition_id",
        members=(Metric(name="kminion_kafka_consumer_group_members"),),
        states=(Metric(name="kminion_kafka_consumer_group_info"),),
        state_label="state",
        state_member_count="member_count",
        switch_on="set the granularity of topics and of consumer groups to `partition` in kminion",
    ),
    Dialect(
        name="kafka-lag-exporter",  # also klag-exporter, which uses the same names
        ends=(Metric(name="kafka_partition_latest_offset"),),
        starts=(Metric(name="kafka_partition_earliest_offset"),),
        commits=(Metric(name="kafka_consumergroup_group_offset"),),
        member_label="consumer_id",
        states=(Metric(name="kafka_consumergroup_group_state"),),
        state_codes={
            1: "PREPARING_REBALANCING",
            2: "COMPLETING_REBALANCING",
            3: "STABLE",
            4: "DEAD",
            5: "EMPTY",
            6: "ASSIGNING",
            7: "RECONCILING",
        },
        cluster="cluster_name",
        switch_on='klag-exporter reports offsets of groups with `granularity = "partition"` only',
    ),
    Dialect(
        name="opentelemetry",  # the kafkametrics receiver; the unit "1" adds `_ratio` to a name
        ends=(Metric(name="kafka_partition_current_offset(_ratio)?"),),
        starts=(Metric(name="kafka_partition_oldest_offset(_ratio)?"),),
        commits=(Metric(name="kafka_consumer_group_offset(_ratio)?"),),
        members=(Metric(name="kafka_consumer_group_members(_ratio)?"),),
        switch_on="the receiver needs the scrapers `topics` and `consumers`",
    ),
    Dialect(
        name="redpanda",
        ends=(Metric(name="redpanda_kafka_max_offset"),),
        commits=(Metric(name="redpanda_kafka_consumer_group_committed_offset"),),
        group="redpanda_group",
        topic="redpanda_topic",
        partition="redpanda_partition",
        members=(Metric(name="redpanda_kafka_consumer_group_consumers"),),
        switch_on="add `group` and `partition` to enable_consumer_group_metrics of Redpanda",
    ),
    Dialect(
        name="burrow",
        ends=(Metric(name="burrow_kafka_topic_partition_offset"),),
        commits=(Metric(name="burrow_kafka_consumer_current_offset"),),
        group="consumer_group",
        cluster="cluster",
    ),
    Dialect(
        name="confluent-cloud",
        ends=(Metric(name="confluent_kafka_server_received_records"),),
        counts="messages",
        lags=(Metric(name="confluent_kafka_server_consumer_lag_offsets"),),
        group="consumer_group_id",
        cluster="kafka_id",
    ),
    Dialect(
        name="msk",  # open monitoring: the brokers' JMX, with an MBean that Amazon adds
        ends=_LOG_END,
        starts=_LOG_START,
        lags=(
            Metric(name="kafka_consumer_group_[Cc]onsumer[Ll]ag[Mm]etrics_[Vv]alue", where=(("name", "OffsetLag"),)),
        ),
        group="groupId",
    ),
    Dialect(
        name="jmx",  # the JMX exporter on brokers and on Java clients
        ends=_LOG_END,
        starts=_LOG_START,
        lags=(
            Metric(name="consumer_lag_.+", where=(("metric", "records-lag"),)),
            Metric(name=".*_records_lag"),
        ),
        owners=("client_id", "client"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Names of metrics and required values of their labels, from which a PromQL selector is made."""

    names: tuple[str, ...]
    where: tuple[tuple[str, str], ...] = ()

    def text(
        self,
        labels: Mapping[str, Sequence[str]] | None = None,
        *,
        like: Mapping[str, Sequence[str]] | None = None,
        present: str = "",
    ) -> str:
        r"""The selector of series whose labels have one of the values each, or match one of the patterns of `like`.

        `present` is a label that the series have, with any value.

        >>> Selector(names=("lag",), where=(("name", "Sum"),)).text({"group": ["a.b", "c"]}, present="client")
        'lag{name="Sum",group=~"a\\\\.b|c",client!=""}'
        """
        matchers = [f"{label}={quoted(value)}" for label, value in self.where]
        matchers += [_one_of(label, values) for label, values in (labels or {}).items()]
        matchers += [f"{label}=~{quoted('|'.join(patterns))}" for label, patterns in (like or {}).items()]
        matchers += [f'{present}!=""'] if present else []
        if len(self.names) == 1:
            return f"{self.names[0]}{{{','.join(matchers)}}}"
        return f"{{{','.join([_one_of('__name__', self.names), *matchers])}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """The metrics of a dialect that a server has; None for those that it lacks."""

    dialect: Dialect
    ends: Selector
    commits: Selector | None
    lags: Selector | None
    starts: Selector | None
    members: Selector | None
    states: Selector | None
    idle: Selector | None
    restored: Selector | None
    restoring: Selector | None

    @property
    def progress(self) -> Selector:
        """The metric of the groups' progress."""
        progress = self.commits or self.lags
        assert progress is not None  # noqa: S101  # `detect` answers with one of them
        return progress


def detect(names: Collection[str]) -> Spoken:
    """The first dialect with both ends and progress among these names of metrics.

    Errors: RejectedError; it names the metrics that were searched, and the missing part of an incomplete dialect.
    """
    in_order = sorted(names)
    halves: list[str] = []
    for dialect in DIALECTS:
        ends = _first(dialect.ends, in_order)
        commits, lags = _first(dialect.commits, in_order), _first(dialect.lags, in_order)
        if ends is not None and (commits is not None or lags is not None):
            return Spoken(
                dialect=dialect,
                ends=ends,
                commits=commits,
                lags=lags,
                starts=_first(dialect.starts, in_order),
                members=_first(dialect.members, in_order),
                states=_first(dialect.states, in_order),
                idle=_first((IDLE,), in_order),
                restored=_first((RESTORED,), in_order),
                restoring=_first((RESTORING,), in_order),
            )
        if ends is not None or commits is not None or lags is not None:
            halves.append(_half(dialect, has_ends=ends is not None))
    looked_for = ", ".join(f"{dialect.ends[0]} ({dialect.name})" for dialect in DIALECTS)
    what = "; ".join(halves) if halves else f"none of {looked_for} is there"
    step = "let Prometheus scrape an exporter of Kafka's offsets, or read from Kafka itself with --bootstrap"
    message = f"no known exporter among the {len(in_order):,} metric names: {what}; {step}"
    raise RejectedError(message)


def _half(dialect: Dialect, *, has_ends: bool) -> str:
    there, missing = (dialect.ends, dialect.commits or dialect.lags) if has_ends else (dialect.lags, dialect.ends)
    there = there or dialect.commits
    hint = f" ({dialect.switch_on})" if dialect.switch_on else ""
    return f"of {dialect.name} there is {there[0]}, without {' or '.join(map(str, missing))}{hint}"


def _first(alternatives: Sequence[Metric], names: Iterable[str]) -> Selector | None:
    found = ((metric, metric.found_in(names)) for metric in alternatives)
    return next((Selector(names=named, where=metric.where) for metric, named in found if named), None)


def _one_of(label: str, values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"{label}={quoted(values[0])}"
    return f"{label}=~{quoted('|'.join(map(re.escape, values)))}"


def quoted(text: str) -> str:
    """The text as a string of PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
