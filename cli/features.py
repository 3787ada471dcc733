# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast features`: the PySpark job alone, from samples to the feature table."""

from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import ExitCode, InputError
from cli.instants import parse_date
from cli.keeping import KeepRows, first_kept_day
from cli.logs import log_to_stderr
from cli.progress import Talk

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pyspark.sql import SparkSession


def features(
    *,
    samples: Annotated[Path, typer.Option(metavar="DIR", help="Offset samples, as `lagcast collect` writes them.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The feature table; created if it does not exist.")],
    first: Annotated[str | None, typer.Option("--from", metavar="DATE", help="First day to write anew (UTC).")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DATE", help="Last day to write anew (UTC).")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Add rows as samples come, until Ctrl-C.")] = False,
    keep_rows: KeepRows = None,
) -> int:
    """Turn offset samples into the feature table with Spark: one row per group and 15 s, and longer rollups.

    Readers see the old table or the new one, never half. Prints the folder of the table. The same job runs on a
    cluster: `spark-submit spark_features/batch.py --samples DIR --out DIR`. With --follow rows are added a few seconds
    after their samples, and rows that are there never change.
    """
    if follow:
        return _follow(samples, out, has_span=first is not None or last is not None, keep_rows=keep_rows)
    from cli.spark import spark_beside
    from cli.wiring import settings_of
    from spark_features.samples import find_samples

    first_day = parse_date(first, option="--from") if first is not None else None
    last_day = parse_date(last, option="--to") if last is not None else None
    talk = Talk()
    # A fault of the samples is reported at once, not after the start of the JVM.
    find_samples(samples, first=first_day, last=last_day)
    with talk.running(), spark_beside(talk, log_path=settings_of().state_dir / "spark.log") as starting:
        make_features(starting, samples, out, talk=talk, first=first_day, last=last_day, keep_rows=keep_rows)
    typer.echo(out)
    return ExitCode.OK


def _follow(samples: Path, out: Path, *, has_span: bool, keep_rows: int | None) -> int:
    from cli.spark import spark_beside
    from cli.stopping import stopped_by_signals
    from cli.wiring import settings_of
    from spark_features.samples import require_folder

    if has_span:
        message = "--follow continues from the end of the table; give it without --from and --to"
        raise InputError(message)
    require_folder(samples)
    log_to_stderr()
    talk = Talk()
    with (
        talk.running(),
        stopped_by_signals() as stop,
        spark_beside(talk, log_path=settings_of().state_dir / "spark.log", is_lasting=True) as starting,
    ):
        spark = starting.result()
        from spark_features.stream import follow_features

        talk.line(f"lagcast adds rows to {out} as sample files come into {samples}; Ctrl-C stops")
        run = follow_features(spark, samples, out, stop=stop, oldest=partial(first_kept_day, keep_rows))
        talk.line(
            f"{run.files:,} sample files -> {run.rows:,} rows; "
            f"{run.set_aside_files:,} files set aside, {run.late_samples:,} samples too late"
        )
    typer.echo(out)
    return ExitCode.OK


def make_features(
    starting: "Future[SparkSession]",
    samples: Path,
    out: Path,
    *,
    talk: Talk,
    first: date | None = None,
    last: date | None = None,
    keep_rows: int | None = None,
) -> None:
    """Run the job as soon as Spark is up, and print the result. Rows older than `keep_rows` days are removed."""
    spark = starting.result()
    from cli.spark import tasks_shown

    said = "the Spark job: offsets to rates and lag, and rollups"
    with talk.stage("features", said) as stage, tasks_shown(spark, stage):
        from spark_features.batch import build_features

        oldest = first_kept_day(keep_rows)
        run = build_features(spark, samples, out, first=first, last=last, oldest=oldest)
        rows = ", ".join(f"{rows:,} of {seconds} s" for seconds, rows in run.rows)
        aside = f"; {run.set_aside_files:,} files set aside" if run.set_aside_files else ""
        stage.note = f"{run.sample_rows:,} samples -> {rows}{aside}"
