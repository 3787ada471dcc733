"""Consumer groups on a server of Prometheus' API: their exporter, groups, topics and clusters."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from collector.errors import RejectedError
from collector.prometheus_dialects import Dialect, Selector, Spoken, detect
from collector.prometheus_http import PrometheusRequests, RangeQuery
from collector.prometheus_rows import STEP_SECONDS
from collector.sample import Owns, every_group

HOUR_SECONDS = 3600
_FULLEST_SECONDS = 600.0
# Labels by which clusters are distinguished where the exporter has no label for them.
_CLUSTER_LABELS = ("cluster", "kafka_cluster", "cluster_name", "job")


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """The groups known to a server: their topics, and how many partitions these have.

    `where`: the label and value that identify the cluster. `every_hour`: seconds between two scrapes, for each
    hour that has any, by its end. `newest_age_seconds`: None where nothing came in the last five minutes.
    """

    spoken: Spoken
    where: Mapping[str, str]
    topics: Mapping[str, frozenset[str]]
    partitions: Mapping[str, int]
    since_seconds: int
    now_seconds: int
    every_hour: Mapping[int, float]
    newest_age_seconds: float | None


def discover(
    prometheus: PrometheusRequests,
    *,
    cluster: str,
    groups: Sequence[str] | None,
    since: datetime,
    now: datetime,
    owns: Owns = every_group,
) -> Discovered:
    """The groups found (None: all of them) between two instants, in five or six small queries; of them the own ones.

    Errors: RejectedError for no known dialect, an unknown group, several clusters none of which is `cluster`, or
    clients that do not name their group while `groups` is not one name; AdapterError where the server does not answer.
    """
    first = -(int(-since.timestamp()) // STEP_SECONDS) * STEP_SECONDS
    last = int(now.timestamp()) // STEP_SECONDS * STEP_SECONDS
    spoken = detect(prometheus.metric_names(first_seconds=first, last_seconds=last))
    dialect = spoken.dialect
    queries = {} if groups is None or dialect.owners else {dialect.group: groups}
    label_sets = prometheus.label_sets(spoken.progress.text(queries), first_seconds=first, last_seconds=last)
    where = _cluster_of(dialect, label_sets, cluster)
    topics = _topics(dialect, [labels for labels in label_sets if where.items() <= labels.items()], groups)
    missing = sorted(set(groups or ()) - topics.keys())
    if missing:
        every_set = prometheus.label_sets(spoken.progress.text(), first_seconds=first, last_seconds=last)
        raise _unknown(prometheus.where, missing[0], sorted(_topics(dialect, every_set, None)))
    topics = {group: read for group, read in topics.items() if owns(cluster, group)}
    read = frozenset().union(*topics.values())
    ends = spoken.ends.text({label: [value] for label, value in where.items()}, like=_topic_patterns(dialect, read))
    places = {
        (labels.get(dialect.topic, ""), labels.get(dialect.partition, ""))
        for labels in prometheus.label_sets(ends, first_seconds=first, last_seconds=last)
    }
    if dialect.owners:
        topics = dict.fromkeys(topics, frozenset(topic for topic, _ in places))
    discovered = Discovered(
        spoken=spoken,
        where=where,
        topics=topics,
        partitions=Counter(topic for topic, _ in places),
        since_seconds=first,
        now_seconds=last,
        every_hour={},
        newest_age_seconds=None,
    )
    age = prometheus.now(
        f"time() - max(timestamp({of_topics(discovered, spoken.ends)}))", at_seconds=int(now.timestamp())
    )
    return replace(discovered, every_hour=_every_hour(prometheus, discovered), newest_age_seconds=age)


def discover_present(
    prometheus: PrometheusRequests,
    *,
    cluster: str,
    groups: Sequence[str] | None,
    since: datetime,
    now: datetime,
    owns: Owns = every_group,
) -> tuple[Discovered, tuple[RejectedError, ...]]:
    """`discover` for those of the groups that the server knows, and the error of each of the others.

    Errors: those of `discover`; the first group's error where the server knows none of them.
    """
    unknown: list[RejectedError] = []
    while True:
        missing = {error.group for error in unknown}
        present = None if groups is None else [group for group in groups if group not in missing]
        if present == []:
            raise unknown[0]
        try:
            found = discover(prometheus, cluster=cluster, groups=present, owns=owns, since=since, now=now)
            return found, tuple(unknown)
        except RejectedError as error:
            if error.group is None:
                raise
            unknown.append(error)


def of_topics(discovered: Discovered, metric: Selector, **labels: Sequence[str]) -> str:
    """The selector of a metric for all topics that the groups read, with these values of other labels."""
    read = sorted(frozenset().union(*discovered.topics.values()))
    where = {label: [value] for label, value in discovered.where.items()}
    return metric.text({**where, discovered.spoken.dialect.topic: read, **labels})


def _every_hour(prometheus: PrometheusRequests, discovered: Discovered) -> dict[int, float]:
    """Seconds between two scrapes of the first partitions, at most, for each hour that has any, by the hour's end.

    From the ten minutes of the hour with the most scrapes, so that an outage does not look like slow scrapes: 40
    scrapes are 39 gaps in 600 s, 15.4 s each at most.
    """
    dialect, last = discovered.spoken.dialect, discovered.now_seconds
    labels = {dialect.partition: ["0"]} if dialect.counts == "offsets" else {}
    counts = f"count_over_time({of_topics(discovered, discovered.spoken.ends, **labels)}[10m])"
    query = RangeQuery(
        # At every minute, so that a source that began five minutes ago counts for five minutes and not for one.
        expression=f"max(max_over_time({counts}[1h:1m]))",
        first_seconds=last - (last - discovered.since_seconds) // HOUR_SECONDS * HOUR_SECONDS,
        last_seconds=last,
        step_seconds=HOUR_SECONDS,
    )
    (answer,) = prometheus.ranges([query])
    counted = [point for series in answer for point in zip(series.at_seconds, series.values, strict=True)]
    return {int(at): _FULLEST_SECONDS / (count - 1) for at, count in counted if count > 1}


def _cluster_of(dialect: Dialect, label_sets: Sequence[Mapping[str, str]], cluster: str) -> dict[str, str]:
    """The label and value by which the cluster's series are identified; empty if there is only one cluster."""
    # Clients and brokers are scraped by separate jobs, so a job does not identify a cluster there.
    shared = [label for label in _CLUSTER_LABELS if not (dialect.owners and label == "job")]
    for label in (dialect.cluster,) if dialect.cluster else shared:
        values = sorted({labels[label] for labels in label_sets if labels.get(label)})
        if len(values) > 1 and cluster in values:
            return {label: cluster}
        if len(values) > 1:
            message = (
                f"there are {len(values)} clusters, by the label {label}: {', '.join(values)}; name one of them with "
                "--cluster, and run it for each that you want"
            )
            raise RejectedError(message)
    return {}


def _topics(
    dialect: Dialect, label_sets: Sequence[Mapping[str, str]], groups: Sequence[str] | None
) -> dict[str, frozenset[str]]:
    """The topics of each group; if clients do not name their group, all topics belong to the one group requested."""
    if dialect.owners and groups is not None and len(groups) == 1:
        return {groups[0]: frozenset(labels.get(dialect.topic, "") for labels in label_sets)}
    if dialect.owners:
        message = "clients report a lag here without their group; name it with one --group"
        raise RejectedError(message)
    topics: dict[str, set[str]] = {}
    for labels in label_sets:
        topics.setdefault(labels.get(dialect.group, ""), set()).add(labels.get(dialect.topic, ""))
    return {group: frozenset(own) for group, own in topics.items()}


def _topic_patterns(dialect: Dialect, topics: Collection[str]) -> dict[str, list[str]]:
    """The topics as patterns; clients write underscores for the dots in a name, and brokers keep the dots."""
    patterns = [re.escape(topic) for topic in sorted(topics)]
    return {dialect.topic: [pattern.replace("_", "[._]") if dialect.owners else pattern for pattern in patterns]}


def _unknown(where: str, group: str, groups: Sequence[str]) -> RejectedError:
    some = ", ".join(groups[:5])
    rest = f" and {len(groups) - 5} more" if len(groups) > 5 else ""
    return RejectedError(
        f"{where} has no group {group!r} in that time, but has {some}{rest}; check its name", group=group
    )
