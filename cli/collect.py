# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast collect`: samples of the consumer groups of a Kafka cluster, written every 15 s. Reads only."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import ExitCode, InputError
from cli.instants import read_clock
from cli.keeping import KEPT_DAYS, KeepDays, keeping
from cli.logs import log_to_stderr
from cli.progress import Talk

if TYPE_CHECKING:
    from collector.sample import OffsetSample
    from recommender.shards import Shard

# The options of every command that connects to Kafka.
Bootstrap = Annotated[str, typer.Option(metavar="HOST:PORT", help="Kafka brokers, separated by commas.")]
Cluster = Annotated[str, typer.Option(help="Name of the cluster in every row.")]
Groups = Annotated[list[str] | None, typer.Option(help="Only this group; may be given several times.")]
ShardGiven = Annotated[
    str,
    typer.Option(
        "--shard", metavar="K/N", help="Only the groups of shard K of N, such as 2/3; each is in exactly one."
    ),
]
WHOLE = "1/1"
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
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for samples, to which parquet files are added.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="NAME", help="Kafka topic for samples, read by `lagcast land`.")
    ] = None,
    cluster: Cluster = "default",
    group: Groups = None,
    shard: ShardGiven = WHOLE,
    read_committed: ReadCommitted = None,
    client_config: ClientConfig = None,
    keep_days: KeepDays = KEPT_DAYS,
) -> int:
    """Write offsets, group states and member counts every 15 s until Ctrl-C, into files, onto a topic, or both.

    Needs Describe on groups and topics, and Write on the topic of --topic.
    """
    from cli.stopping import stopped_by_signals
    from collector.errors import UnavailableError
    from collector.isolated import IsolatedCollector
    from collector.kafka_admin import KafkaAdminCollector
    from collector.run import collect_forever

    if out is None and topic is None:
        message = "samples have no destination; give --out DIR, --topic NAME, or both"
        raise InputError(message)
    owns = shard_of_option(shard).owns
    log_to_stderr()
    settings = client_settings(client_config)
    make = partial(
        KafkaAdminCollector,
        bootstrap,
        cluster=cluster,
        client_config=settings,
        read_committed=tuple(read_committed or ()),
        owns=owns,
    )
    with ExitStack() as ends:
        stop = ends.enter_context(stopped_by_signals())
        collector = ends.enter_context(IsolatedCollector(make, is_stopped=stop.is_set))
        if out is not None:
            ends.enter_context(keeping(out, kept_days=keep_days, stop=stop))
        sinks = _sinks(ends, bootstrap, out, topic, settings)
        places = " and ".join([*([str(out)] if out else []), *([f"topic {topic}"] if topic else [])])
        Talk().line(f"lagcast reads {bootstrap} every 15 s and writes to {places} once a minute; Ctrl-C stops")

        def keep(samples: "Sequence[OffsetSample]") -> None:
            for sink in sinks:
                sink(samples)

        try:
            collect_forever(collector, keep, groups=group, clock=read_clock, wait=stop.wait)
        except UnavailableError:
            if not stop.is_set():  # a stop in the first round, which is not waited for
                raise
    return ExitCode.OK


def _sinks(
    ends: ExitStack, bootstrap: str, out: Path | None, topic: str | None, settings: "Mapping[str, str]"
) -> "list[Callable[[Sequence[OffsetSample]], object]]":
    """Destinations of samples: files first, since they are always reachable."""
    from collector.sinks import write_samples
    from collector.topic import SamplePublisher

    sinks: list[Callable[[Sequence[OffsetSample]], object]] = []
    if out is not None:
        sinks.append(partial(write_samples, directory=out))
    if topic is not None:
        sinks.append(ends.enter_context(SamplePublisher(bootstrap, topic, client_config=settings)))
    return sinks


def shard_of_option(text: str) -> "Shard":
    """The shard of `--shard`. Errors: InputError where there is none of that name."""
    from recommender.shards import Shard

    try:
        return Shard.of(text)
    except ValueError as error:
        message = f"--shard: {error}"
        raise InputError(message) from error


def client_settings(path: Path | None) -> dict[str, str]:
    """The Kafka client's settings in the file of `--client-config`, empty without one; secrets are resolved."""
    from collector.client_config import read_client_config

    return {} if path is None else read_client_config(path, environment=os.environ)
