# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast history`: weeks of the past from Kafka or Prometheus, so that advice can start at once. Reads only."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from cli.collect import Cluster, Groups, client_settings
from cli.errors import ExitCode, InputError
from cli.instants import read_clock
from cli.logs import log_to_stderr
from cli.progress import Talk
from collector.sample import Owns, every_group

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from collector.offsets_topic import PastCommits

DAYS = 14
Prometheus = Annotated[
    str,
    typer.Option(metavar="URL", help="A server that scrapes an exporter: produce rates, commits, lag and members."),
]


def history(
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder that `lagcast collect` writes to.")],
    bootstrap: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Kafka brokers, separated by commas: produce rates as far back as kept."
        ),
    ] = "",
    prometheus: Prometheus = "",
    cluster: Cluster = "default",
    group: Groups = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="Days of the past to read, at most.")] = DAYS,
    client_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="One key=value a line, for TLS and passwords: librdkafka's settings, or for Prometheus bearer.token, "
            "basic.username, basic.password, ssl.ca.location and header.NAME.",
        ),
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Print the planned requests, and stop.")] = False,
) -> int:
    """Write past samples, one a minute, from Kafka (reads no message) or from Prometheus: name one of them.

    A second run resumes where the first one stopped. From Kafka it needs Describe on groups and topics.
    """
    require_one_source("history", bootstrap, prometheus)
    log_to_stderr()
    talk = Talk()
    read = partial(backfill, bootstrap) if bootstrap else partial(backfill_from_prometheus, prometheus)
    with talk.running():
        read(
            out,
            cluster=cluster,
            groups=group,
            days=days,
            settings=client_settings(client_config),
            talk=talk,
            only_estimate=estimate,
        )
    return ExitCode.OK


def require_one_source(command: str, bootstrap: str, prometheus: str) -> None:
    """Errors: InputError unless exactly one of the two sources is named."""
    if bool(bootstrap) == bool(prometheus):
        message = f"{command} needs one source: give --bootstrap HOST:PORT for Kafka, or --prometheus URL, not both"
        raise InputError(message)


def backfill(
    bootstrap: str,
    out: Path,
    *,
    cluster: str,
    groups: "Sequence[str] | None",
    days: int,
    settings: "Mapping[str, str]",
    talk: Talk,
    owns: Owns = every_group,
    only_estimate: bool = False,
    to_now: bool = False,
    stop: Event | None = None,
) -> int:
    """Write the past before the samples in `out`, as far as Kafka keeps it; returns the number of rows.

    With `to_now`, also what came after them, and a reading of now with commits and members: nobody else collects.
    `stop` ends the run after a day of minutes.
    """
    from collector.isolated import IsolatedCollector
    from collector.kafka_admin import KafkaAdminCollector
    from collector.kafka_requests import KafkaRequests
    from collector.offsets_for_times import past_samples, plan_backfill, stamped_ahead
    from collector.sinks import first_samples, last_samples, write_samples

    def stopped() -> bool:
        return stop is not None and stop.is_set()

    now = read_clock()
    with talk.stage("history", f"reading from {bootstrap} how far back its messages reach") as stage:
        make = partial(KafkaAdminCollector, bootstrap, cluster=cluster, client_config=settings, owns=owns)
        with IsolatedCollector(make) as collector:
            collected = collector.collect_once(groups, now=now)
        for error in collected.errors:
            talk.line(f"    {error}")
        kafka = KafkaRequests(bootstrap, cluster=cluster, client_config=settings)
        watched = frozenset(sample.group for sample in collected.samples)
        known_from = first_samples(out, cluster=cluster, groups=watched)
        plan = plan_backfill(
            kafka,
            collected.samples,
            since=now - timedelta(days=days),
            known_from=known_from,
            known_until=last_samples(out, cluster=cluster, groups=watched) if to_now else None,
        )
        for topic in sorted(plan.left_out):
            talk.line(
                f"    topic {topic} is compacted: Kafka removes old messages by key, so its past cannot be counted"
            )
        for topic, seconds in sorted(stamped_ahead(kafka, plan.present, now=now).items()):
            talk.line(
                f"    messages of topic {topic} are stamped {seconds:,.0f} s after now: set this machine's clock and "
                "theirs by NTP; until then produce rates count when they are stamped"
            )
        requested = f"{len(plan.spans)} groups, {len(plan.minutes):,} minutes"
        if only_estimate:
            stage.note = f"{requested}: a request each to every broker concerned, {plan.samples:,} rows"
            return 0
        past = _past_commits(
            bootstrap, cluster=cluster, groups=plan.spans, settings=settings, talk=talk, stopped=stopped
        )
        rows = 0
        for samples in past_samples(kafka, plan, past):
            write_samples(samples, out)
            rows += len(samples)
            stage.show(rows, plan.samples, "rows")
            if stopped():
                break
        if to_now:
            write_samples(collected.samples, out)
            rows += len(collected.samples)
        stage.note = f"{requested}, {rows:,} rows"
    return rows


def _past_commits(
    bootstrap: str,
    *,
    cluster: str,
    groups: "Collection[str]",
    settings: "Mapping[str, str]",
    talk: Talk,
    stopped: "Callable[[], bool]",
) -> "PastCommits":
    """Commits and members of these groups, as Kafka's own topic has them; none where it may not be read, which is said.

    It is read only where there is a past to fill.
    """
    from collector.errors import AdapterError
    from collector.offsets_topic import PastCommits, read_past_commits

    if not groups:
        return PastCommits()
    try:
        past = read_past_commits(bootstrap, cluster=cluster, client_config=settings, groups=groups, stopped=stopped)
    except AdapterError as error:
        talk.line(f"    the past has produce rates alone, no commits and members: {error}")
        return PastCommits()
    talk.line(f"    {past.records:,} commits and changes of members in Kafka's topic of offsets")
    return past


def backfill_from_prometheus(
    url: str,
    out: Path,
    *,
    cluster: str,
    groups: "Sequence[str] | None",
    days: int,
    settings: "Mapping[str, str]",
    talk: Talk,
    owns: Owns = every_group,
    only_estimate: bool = False,
    stop: Event | None = None,
) -> int:
    """Write the past before and after the samples in `out` from Prometheus; returns the number of rows.

    Rows of the last day that come after a group's samples are left out of the number: a stream of features reads them.
    `stop` ends the run after a stretch.
    """
    from collector.prometheus_found import discover_present
    from collector.prometheus_http import PrometheusRequests
    from collector.prometheus_past import past_tables, plan_past
    from collector.sinks import first_samples, last_samples, write_table

    now = read_clock()
    with (
        talk.stage("history", f"reading the consumer groups of {url}") as stage,
        PrometheusRequests(url, settings=settings) as prometheus,
    ):
        since = now - timedelta(days=days)
        found, unknown = discover_present(prometheus, cluster=cluster, groups=groups, owns=owns, since=since, now=now)
        for error in unknown:
            talk.line(f"    {error}")
        names = frozenset(found.topics)
        first = first_samples(out, cluster=cluster, groups=names)
        last = last_samples(out, cluster=cluster, groups=names)
        plan = plan_past(found, known={group: (first[group], last[group]) for group in first})
        age = found.newest_age_seconds
        newest = "no sample in the last 5 minutes" if age is None else f"newest sample {age:.0f} s old"
        talk.line(f"    {found.spoken.dialect.name}: {len(names)} groups, {newest}")
        if found.spoken.dialect.owners:
            topics = ", ".join(sorted(*found.topics.values()))
            talk.line(f"    clients do not name their group: a group that reads {topics} may be it")
        if plan.slow_minutes:
            talk.line(
                f"    {plan.slow_minutes:,} minutes are left out: scraped less than once a minute, they have no rates"
            )
        if only_estimate:
            stage.note = f"{plan.queries} queries of {plan.points:,} points at most, {plan.rows:,} rows at most"
            return 0
        rows, streamed = 0, 0
        yesterday = now - timedelta(days=1)
        for stretch, table in zip(plan.stretches, past_tables(prometheus, plan, cluster=cluster), strict=False):
            write_table(table, out)
            rows += table.num_rows
            stage.show(rows, plan.rows, "rows at most")
            if stretch.is_news and stretch.first_seconds > yesterday.timestamp():
                streamed += table.num_rows
            if stop is not None and stop.is_set():
                break
        stage.note = f"{len(names)} groups, {prometheus.requests} requests, {rows:,} rows"
    return rows - streamed
