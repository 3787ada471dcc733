# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""What the doctor finds at the source of samples, Kafka or Prometheus: names, ages, clocks and rights. Reads only."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from shlex import quote
from typing import TYPE_CHECKING

from cli.instants import read_clock

if TYPE_CHECKING:
    from collector.kafka_admin import Collected
    from collector.kafka_requests import KafkaRequests
    from collector.prometheus_found import Discovered
    from recommender.cluster.doctor import Diagnosis, State

# The time of day is used after two days, the day of the week after two weeks.
DAILY_HOURS, WEEKLY_HOURS = 48.0, 336.0
# A server tells its time in whole seconds; samples count as future ones beyond 30 s, and are late by what is less.
MOST_SKEW_SECONDS = 5.0


def prometheus_findings(
    url: str, *, cluster: str, groups: Sequence[str] | None, days: int, settings: Mapping[str, str]
) -> "Iterator[Diagnosis]":
    """The exporter, the names that it lacks, its scrapes, its past, and the server's clock."""
    from collector.errors import AdapterError
    from collector.prometheus_found import discover_present
    from collector.prometheus_http import PrometheusRequests

    now = read_clock()
    with PrometheusRequests(url, settings=settings) as prometheus:
        try:
            found, unknown = discover_present(
                prometheus, cluster=cluster, groups=groups, since=now - timedelta(days=days), now=now
            )
        except AdapterError as error:
            yield _failed("source", url, error)
            return
        for each in unknown:
            yield _failed("source", url, each)
        dialect = found.spoken.dialect.name
        counts = f"{len(found.topics):,} groups, {sum(found.partitions.values()):,} partitions"
        yield _finding("source", url, "ok", f"The exporter is {dialect}: {counts}.")
        yield from _names(url, found)
        yield from _scrapes(url, found)
        if prometheus.answered_at is not None:
            yield _skew(url, (prometheus.answered_at - read_clock()).total_seconds())


def kafka_findings(
    bootstrap: str, *, cluster: str, groups: Sequence[str] | None, days: int, settings: Mapping[str, str], publish: str
) -> "Iterator[Diagnosis]":
    """The groups that can be read, how far back messages reach, the clocks that stamp them, and the user's rights."""
    from functools import partial

    from collector.errors import AdapterError, UnsupportedError
    from collector.isolated import IsolatedCollector
    from collector.kafka_admin import KafkaAdminCollector
    from collector.kafka_requests import KafkaRequests
    from collector.timeouts import NEWER_PROTOCOL

    make = partial(KafkaAdminCollector, bootstrap, cluster=cluster, client_config=settings)
    try:
        with IsolatedCollector(make) as collector:
            collected = collector.collect(groups, now=read_clock())
    except AdapterError as error:
        yield _failed("source", bootstrap, error)
        return
    read = {sample.group for sample in collected.samples}
    partitions = {(sample.topic, sample.partition) for sample in collected.samples}
    sentence = f"Kafka answers: {len(read):,} groups, {len(partitions):,} partitions."
    yield _finding("source", bootstrap, "ok", sentence)
    for each in collected.errors:
        if isinstance(each, UnsupportedError):
            yield _finding("source", bootstrap, "note", f"{each}.", each.remedy)
        else:
            yield _failed("source", bootstrap, each)
    kafka = KafkaRequests(bootstrap, cluster=cluster, client_config=settings)
    try:
        yield from _past(kafka, collected, bootstrap, days=days)
        newer = {each.group for each in collected.samples if each.group_protocol == NEWER_PROTOCOL}
        yield from _rights(kafka, bootstrap, newer=sorted(newer), publish=publish)
    except AdapterError as error:
        yield _failed("source", bootstrap, error)


def _names(url: str, found: "Discovered") -> "Iterator[Diagnosis]":
    """Metrics without which advice is less, or none."""
    spoken = found.spoken
    dialect = spoken.dialect
    lost = []
    if spoken.members is None and not (dialect.member_label or dialect.owners):
        sentence = f"{dialect.name} has no metric of the number of members: rates and forecasts, and no advice."
        remedy = "let Prometheus scrape an exporter that has it, such as kafka_exporter, or give --bootstrap"
        yield _finding("metric names", url, "problem", sentence, remedy)
    if spoken.states is None:
        lost.append("of the state of groups (a rebalance is seen as a change of the number of members alone)")
    if spoken.starts is None:
        lost.append("of the oldest offsets (messages that expired unread are not told from read ones)")
    if lost:
        sentence = f"{dialect.name} has no metric {', and none '.join(lost)}."
        remedy = dialect.switch_on or "klag-exporter has all names; without them advice goes on"
        yield _finding("metric names", url, "note", sentence, remedy)
    elif spoken.members is not None or dialect.member_label or dialect.owners:
        yield _finding("metric names", url, "ok", "No metric name is missing.")


def _scrapes(url: str, found: "Discovered") -> "Iterator[Diagnosis]":
    """How often Kafka's offsets are scraped, how old the newest are, and how far back they reach."""
    from collector.prometheus_past import SLOWEST_SECONDS

    age = found.newest_age_seconds
    if age is None:
        remedy = "check that the exporter runs, and that /targets of the server shows it as up"
        yield _finding("scrapes", url, "problem", "No offset came in the last 5 minutes.", remedy)
    if not found.every_hour:
        return
    every_seconds = found.every_hour[max(found.every_hour)]
    if every_seconds > SLOWEST_SECONDS:
        sentence = f"Offsets are scraped each {every_seconds:.0f} s: rates need {SLOWEST_SECONDS:.0f} s or less."
        yield _finding("scrapes", url, "problem", sentence, "set scrape_interval of the exporter's job to 15s")
    elif age is not None:
        sentence = f"Offsets are scraped at least each {every_seconds:.0f} s; the newest are {age:.0f} s old."
        yield _finding("scrapes", url, "ok", sentence)
    hours = len(found.every_hour) - 1.0  # of the oldest one only a part is known to be there
    yield _reach(url, hours, "Offsets", remedy="raise --storage.tsdb.retention.time where it is shorter")


def _past(kafka: "KafkaRequests", collected: "Collected", where: str, *, days: int) -> "Iterator[Diagnosis]":
    """How far back messages of the groups reach, and stamps that are ahead of this machine's clock."""
    from collector.offsets_for_times import plan_backfill, stamped_ahead

    now = read_clock()
    plan = plan_backfill(kafka, collected.samples, since=now - timedelta(days=days), known_from={})
    if plan.minutes:
        remedy = "raise retention.ms of topics that keep less"
        yield _reach(where, len(plan.minutes) / 60.0, "Messages", remedy=remedy)
    for topic in sorted(plan.left_out):
        sentence = f"Topic {topic} is compacted: its past cannot be counted."
        yield _finding("past", where, "note", sentence, "nothing; its rates begin with the first samples")
    ahead = stamped_ahead(kafka, collected.samples, now=now)
    for topic, seconds in sorted(ahead.items()):
        sentence = f"Messages of topic {topic} are stamped {seconds:,.0f} s after now."
        yield _finding("clock", where, "problem", sentence, "set this machine's clock and the producers' by NTP")
    if not ahead:
        yield _finding("clock", where, "ok", "No message is stamped after now.")


def _rights(kafka: "KafkaRequests", where: str, *, newer: Sequence[str], publish: str) -> "Iterator[Diagnosis]":
    """What this user may do beyond Describe on groups and topics, which reading them has shown.

    Groups of the `newer` protocol, KIP-848, have settings of their own, on the brokers.
    """
    from collector.offsets_topic import OFFSETS_TOPIC

    cluster = kafka.cluster_rights()
    missing = 0
    unknown = kafka.group_settings(newer).failed
    grant = "grant this user DescribeConfigs on Group"
    hidden = sorted(group for group, error in unknown.items() if str(error).endswith(f"{grant} {group!r}"))
    failed = sorted(unknown.keys() - set(hidden))
    if hidden:
        missing += 1
        sentence = f"No DescribeConfigs on {_groups(hidden)}: sessions and heartbeats of their members are assumed."
        granted = f"--group {quote(hidden[0])}" if len(hidden) == 1 else "--group '*'"
        yield _finding("rights", where, "note", sentence, _grant(where, "DescribeConfigs", granted))
    if failed:
        missing += 1
        sentence = f"The settings of {_groups(failed)} are not known: sessions and heartbeats are assumed."
        remedy = "run it again; brokers before Kafka 4.0 have no such settings"
        yield _finding("rights", where, "note", sentence, remedy)
    if "READ" not in kafka.topic_rights([OFFSETS_TOPIC]).got.get(OFFSETS_TOPIC, frozenset()):
        missing += 1
        sentence = (
            f"No Read on Topic {OFFSETS_TOPIC}: the past has produce rates alone, and time-outs of groups are assumed."
        )
        yield _finding("rights", where, "note", sentence, _grant(where, "Read", f"--topic {OFFSETS_TOPIC}"))
    if "DESCRIBE" not in cluster:
        missing += 1
        sentence = "No Describe on Cluster: the size of Kafka Streams' state is not seen."
        yield _finding("rights", where, "note", sentence, _grant(where, "Describe", "--cluster"))
    known = {topic for topic, _ in kafka.topic_leaders().leaders}
    for topic in (publish, f"{publish}.latest") if publish else ():
        rights = kafka.topic_rights([topic]).got.get(topic, frozenset()) if topic in known else frozenset[str]()
        if "WRITE" in rights or (topic not in known and "CREATE" in cluster):
            continue
        missing += 1
        operations = ("Write",) if topic in known else ("Create", "Write", "Describe")
        sentence = f"No {' and '.join(operations[:2])} on Topic {topic}: `lagcast up` could not publish there."
        remedy = f"{_grant(where, ' --operation '.join(operations), f'--topic {topic}')}; or --publish ''"
        yield _finding("rights", where, "problem", sentence, remedy)
    if not missing:
        yield _finding("rights", where, "ok", "This user has every right that `lagcast up` uses.")


def _groups(names: Sequence[str]) -> str:
    """The first of these groups by name, and how many more there are.

    >>> _groups(["orders", "billing"])
    "Group 'orders' and 1 more"
    """
    return f"Group {names[0]!r}{f' and {len(names) - 1:,} more' if len(names) > 1 else ''}"


def _reach(where: str, hours: float, what: str, *, remedy: str) -> "Diagnosis":
    """How far the past reaches, and what it is enough for."""
    words = f"{what} reach back {_in_words(hours)}"
    if hours >= WEEKLY_HOURS:
        return _finding("past", where, "ok", f"{words}: the day of the week can be used.")
    if hours >= DAILY_HOURS:
        return _finding(
            "past", where, "ok", f"{words}: the time of day can be used, the day of the week after 14 days."
        )
    sentence = f"{words}: the time of day can be used after two days."
    return _finding("past", where, "note", sentence, f"wait, or {remedy}; until then advice follows the load of now")


def _in_words(hours: float) -> str:
    return f"{hours / 24.0:.0f} days" if hours >= DAILY_HOURS else f"{hours:.0f} h" if hours >= 1.0 else "less than 1 h"


def _skew(where: str, seconds: float) -> "Diagnosis":
    if abs(seconds) <= MOST_SKEW_SECONDS:
        return _finding("clock", where, "ok", "The server's clock agrees with this machine's.")
    way = "ahead of" if seconds > 0 else "behind"
    sentence = (
        f"The server's clock is {abs(seconds):,.0f} s {way} this machine's: samples look older or newer than they are."
    )
    return _finding("clock", where, "problem", sentence, "set both clocks by NTP")


def _grant(where: str, operation: str, resource: str) -> str:
    return (
        f"kafka-acls.sh --bootstrap-server {where} --add --allow-principal User:NAME --operation {operation} {resource}"
    )


def _failed(check: str, where: str, error: Exception) -> "Diagnosis":
    """An error of an adapter, whose sentence ends with the next step."""
    what, separator, step = str(error).rpartition("; ")
    if not separator:
        return _finding(check, where, "problem", f"{error}.", "correct what the sentence names, and run it again")
    return _finding(check, where, "problem", f"{what}.", step)


def _finding(check: str, where: str, state: "State", sentence: str, remedy: str | None = None) -> "Diagnosis":
    from recommender.cluster.doctor import Diagnosis

    return Diagnosis(check=check, where=where, state=state, sentence=sentence, remedy=remedy)
