# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast recommend`: the decision, once."""

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import ExitCode, InputError
from cli.explain import plan_table, shown_of, wire_document
from cli.instants import parse_instant, read_clock
from cli.logs import log_to_stderr
from cli.output import Answer, Output, OutputFile, OutputFormat, write_answer
from cli.progress import Stage, Talk
from cli.service import Config
from cli.spark import Master

if TYPE_CHECKING:
    from recommender.adapters.feature_table import FeatureTable
    from recommender.configuring.settings import Settings
    from recommender.deciding.recommendation import Decision

Features = Annotated[Path, typer.Option(metavar="DIR", help="The feature table that `lagcast features` writes.")]
StateDir = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for decisions.")]


def recommend(
    *,
    features: Features,
    config: Config = None,
    state_dir: StateDir = None,
    now: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Decide as of this instant; `latest`: as of the newest row.")
    ] = None,
    on_spark: Annotated[
        bool,
        typer.Option(
            "--on-spark", help="Decide on Spark, for thousands of groups; decisions are kept in DIR/decisions."
        ),
    ] = False,
    samples: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --on-spark: make the rows of these samples first, in the same job."),
    ] = None,
    master: Master = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 if any group is refused.")] = False,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
) -> int:
    """Recommend a replica count and its time for each group, with the price of every alternative.

    Without --now it decides as of the present: rows older than the freshness limit (10 min) are refused as stale. With
    --on-spark the same decisions are made on all cores, or on the cluster --master, and the next run on Spark goes on
    from them. There --samples adds rows to the table before, as `lagcast features` does, from its newest day on.
    """
    from cli.fleet import decided_on_spark
    from cli.wiring import settings_of
    from forecasting.refusal import Refusal
    from recommender.adapters.feature_table import FeatureTable

    log_to_stderr(logging.WARNING)
    if master is not None and not on_spark:
        message = f"--master {master}: only a run with --on-spark has a cluster; add it"
        raise InputError(message)
    if samples is not None and not on_spark:
        message = f"--samples {samples}: only a run with --on-spark makes rows; add it, or run `lagcast features`"
        raise InputError(message)
    settings = settings_of(config, state_dir=state_dir)
    decisions: Sequence[Decision]
    if on_spark:
        as_of, decisions = decided_on_spark(
            features, settings, samples=samples, instant=partial(instant_of, now), master=master
        )
    else:
        table = FeatureTable(features)
        as_of = instant_of(now, table)
        decisions = decide_once(table, settings, now=as_of, talk=Talk(), searches=inf)
    answer = Answer(
        title="Decisions",
        document=[wire_document(decision, settings=settings, now=as_of) for decision in decisions],
        records=plan_table(decisions),
        shown=[part for decision in decisions for part in shown_of(decision)],
    )
    write_answer(answer, output, output_file)
    refused = any(isinstance(decision, Refusal) for decision in decisions)
    return ExitCode.STRICT if strict and refused else ExitCode.OK


def decide_once(
    table: "FeatureTable", settings: "Settings", *, now: datetime, talk: Talk, searches: float
) -> "tuple[Decision, ...]":
    """A decision on each group of the table, kept in the store; a terminal sees how many there are so far.

    What would reverse it is searched for in the first `searches` of them.
    Errors: those of a table that cannot be read, which is not the refusal of every group.
    """
    from cli.wiring import open_store, recommender

    groups = len(table.groups(now=now))
    with talk.bar("decisions") as stage:
        counting = Counting(stage, groups)
        loop = recommender(table, settings, open_store(settings), publishers=[counting])
        loop.searches_per_cycle = searches
        return loop.run_once(now=now)


class Counting:
    """A publisher that shows how many of so many groups are decided on."""

    def __init__(self, stage: Stage, groups: int) -> None:
        self._stage, self._groups, self._decided = stage, groups, 0

    def publish(self, _: "Decision") -> None:
        """Count it."""
        self._decided += 1
        self._stage.show(self._decided, self._groups, "groups")


def instant_of(text: str | None, table: "FeatureTable", *, option: str = "--now") -> datetime:
    """The instant of `option`: the present if it is not given, the end of the data for `latest`, else as written.

    Errors: InputError for a text that is no instant, and for `latest` of a table without rows.
    """
    if text is None:
        return read_clock()
    if text != "latest":
        return parse_instant(text, option=option)
    latest = table.newest_interval_end_at()
    if latest is None:
        message = (
            f"{option} latest: the feature table {table.path} has no rows; give an instant or run `lagcast features`"
        )
        raise InputError(message)
    return latest
