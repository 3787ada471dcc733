# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast collect`: what a real Kafka says about its consumer groups, written down every 15 s. Reads only."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cli.errors import ExitCode
from cli.instants import read_clock
from cli.logs import log_to_stderr
from cli.progress import Talk

# The options of every command that talks to Kafka.
Bootstrap = Annotated[str, typer.Option(metavar="HOST:PORT", help="Kafka brokers, separated by commas.")]
Cluster = Annotated[str, typer.Option(help="What to call the cluster in every row.")]
Groups = Annotated[list[str] | None, typer.Option(help="Only this group; may be given several times.")]
ReadCommitted = Annotated[
    list[str] | None,
    typer.Option(metavar="GROUP", help="A group that reads committed data only, or `*` for all; several times."),
]
ClientConfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="librdkafka settings, one key=value a line, for TLS and SASL.")
]


def collect(
    *,
    bootstrap: Bootstrap,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where samples are appended as parquet files.")],
    cluster: Cluster = "default",
    group: Groups = None,
    read_committed: ReadCommitted = None,
    client_config: ClientConfig = None,
) -> int:
    """Write offsets, group states and member counts every 15 s until Ctrl-C. Needs Describe on groups and topics."""
    from cli.wiring import stopped_by_signals
    from collector.isolated import IsolatedCollector
    from collector.kafka_admin import KafkaAdminCollector
    from collector.run import collect_forever
    from collector.sinks import write_samples

    log_to_stderr()
    make = partial(
        KafkaAdminCollector,
        bootstrap,
        cluster=cluster,
        client_config=client_settings(client_config),
        read_committed=tuple(read_committed or ()),
    )
    with stopped_by_signals() as stop, IsolatedCollector(make) as collector:
        Talk().line(f"lagcast reads {bootstrap} every 15 s and writes to {out} once a minute; Ctrl-C stops")
        collect_forever(
            collector, lambda samples: write_samples(samples, out), groups=group, clock=read_clock, wait=stop.wait
        )
    return ExitCode.OK


def client_settings(path: Path | None) -> dict[str, str]:
    """The Kafka client's settings in the file of `--client-config`, none without one; secrets are looked up."""
    from collector.client_config import read_client_config

    return {} if path is None else read_client_config(path, environment=os.environ)
