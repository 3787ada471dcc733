# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast history`: weeks of past arrivals out of Kafka itself, so that advice need not wait for them. Reads only."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from cli.collect import Bootstrap, ClientConfig, Cluster, Groups, client_settings
from cli.errors import ExitCode
from cli.instants import read_clock
from cli.logs import log_to_stderr
from cli.progress import Talk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DAYS = 14


def history(
    *,
    bootstrap: Bootstrap,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder that `lagcast collect` writes to.")],
    cluster: Cluster = "default",
    group: Groups = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="How far back to look at most.")] = DAYS,
    client_config: ClientConfig = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Say what it would ask of Kafka, and stop there.")] = (
        False
    ),
) -> int:
    """Write past arrivals, minute by minute as far back as Kafka keeps messages, and not one message is read.

    A second run goes on where the first one stopped. Needs Describe on groups and topics.
    """
    log_to_stderr()
    talk = Talk()
    with talk.running():
        backfill(
            bootstrap,
            out,
            cluster=cluster,
            groups=group,
            days=days,
            settings=client_settings(client_config),
            talk=talk,
            only_estimate=estimate,
        )
    return ExitCode.OK


def backfill(
    bootstrap: str,
    out: Path,
    *,
    cluster: str,
    groups: "Sequence[str] | None",
    days: int,
    settings: "Mapping[str, str]",
    talk: Talk,
    only_estimate: bool = False,
    stop: Event | None = None,
) -> int:
    """Write what Kafka still knows of the time before the samples in `out`: so many rows.

    `stop` ends it after a day of minutes.
    """
    from collector.isolated import IsolatedCollector
    from collector.kafka_admin import KafkaAdminCollector
    from collector.kafka_requests import KafkaRequests
    from collector.offsets_for_times import past_samples, plan_backfill
    from collector.sinks import first_samples, write_samples

    now = read_clock()
    with talk.stage("history", f"asking {bootstrap} how far back its messages reach") as stage:
        make = partial(KafkaAdminCollector, bootstrap, cluster=cluster, client_config=settings)
        with IsolatedCollector(make) as collector:
            collected = collector.collect(groups, now=now)
        for error in collected.errors:
            talk.line(f"    {error}")
        kafka = KafkaRequests(bootstrap, cluster=cluster, client_config=settings)
        watched = frozenset(sample.group for sample in collected.samples)
        known_from = first_samples(out, cluster=cluster, groups=watched)
        plan = plan_backfill(kafka, collected.samples, since=now - timedelta(days=days), known_from=known_from)
        for topic in sorted(plan.left_out):
            talk.line(f"    topic {topic} is compacted: old messages vanish by key, so its past cannot be counted")
        asked = f"{len(plan.spans)} groups, {len(plan.minutes):,} minutes"
        if only_estimate:
            stage.note = f"{asked}: a request each to every broker concerned, {plan.samples:,} rows"
            return 0
        rows = 0
        for samples in past_samples(kafka, plan):
            write_samples(samples, out)
            rows += len(samples)
            if stop is not None and stop.is_set():
                break
        stage.note = f"{asked}, {rows:,} rows"
    return rows
