# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast land`: samples of collectors from a Kafka topic, as files like those of `lagcast collect --out`."""

from pathlib import Path
from typing import Annotated

import typer

from cli.collect import Bootstrap, ClientConfig, client_settings
from cli.errors import ExitCode
from cli.instants import read_clock
from cli.keeping import KEPT_DAYS, KeepDays, keeping
from cli.logs import log_to_stderr
from cli.progress import Talk


def land(
    *,
    bootstrap: Bootstrap,
    topic: Annotated[str, typer.Option(metavar="NAME", help="The topic of `lagcast collect --topic`.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for samples, to which parquet files are added.")],
    client_config: ClientConfig = None,
    keep_days: KeepDays = KEPT_DAYS,
) -> int:
    """Write the samples of a topic into files until Ctrl-C, each batch exactly once. Needs Read on the topic.

    Its position is stored beside the files: after any end it resumes there.
    """
    from cli.stopping import stopped_by_signals
    from collector.topic import land_forever

    log_to_stderr()
    talk = Talk()
    with stopped_by_signals() as stop, keeping(out, kept_days=keep_days, stop=stop):
        done = land_forever(
            bootstrap,
            topic,
            out,
            client_config=client_settings(client_config),
            clock=read_clock,
            stop=stop,
            begun=lambda: talk.line(f"lagcast lands topic {topic} of {bootstrap} in {out}; Ctrl-C stops"),
        )
    talk.line(
        f"{done.messages:,} batches landed, {done.parked:,} set aside, {done.expired:,} expired before they were read"
    )
    return ExitCode.OK
