# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast forecast`: the week ahead of every group, once a day, on Spark."""

from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.words import code_in_words
from cli.errors import ExitCode
from cli.keeping import KEPT_DAYS
from cli.output import Answer, Field, Output, OutputFile, OutputFormat, Table, write_answer
from cli.progress import Talk
from cli.spark import Master, spark_beside

if TYPE_CHECKING:
    from spark_features.forecasts import ForecastIssue

FIELDS = (
    Field(key="group", heading="Group", left=True),
    Field(key="cluster", heading="Cluster", left=True),
    Field(key="model", heading="Model", left=True, wide=True),
    Field(key="scored_steps", heading="Steps scored", show=lambda steps: f"{steps:,}"),
    Field(key="band_coverage_fraction", heading="Between p05 and p95", show=lambda share: f"{share:.0%}"),
    Field(key="refusal_reason", heading="Not forecast, because of", show=code_in_words, left=True),
    Field(key="refusal_sentence", heading="Why", left=True, wide=True),
)


def forecast(
    *,
    features: Annotated[Path, typer.Option(metavar="DIR", help="The feature table that `lagcast features` writes.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Long forecasts and fits; created if it does not exist.")],
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings file (YAML): holidays.")] = None,
    at: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Forecast as of this instant; the newest row unless set.")
    ] = None,
    keep_days: Annotated[
        int, typer.Option(min=2, metavar="DAYS", help="Days that issues are kept; older ones are deleted.")
    ] = KEPT_DAYS,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
    master: Master = None,
) -> int:
    """Forecast the week ahead of every group, in steps of five minutes, and score the model on its last eight days.

    Adds one issue to the existing ones; the same instant again replaces its issue. Readers see an issue whole
    or not at all. Prints a row for each group, that of one which cannot be forecast with the reason. Once a day is
    enough.
    """
    from cli.advise import instant_of
    from cli.spark import tasks_shown
    from cli.wiring import settings_of
    from forecasting.fleet import HISTORY_DAYS
    from forecasting.issue import ISSUE_SECONDS, issue_group
    from recommender.adapters.feature_table import FeatureTable

    settings = settings_of(config)
    issued_at = _on_the_clock(instant_of(at or "latest", FeatureTable(features), option="--at"), seconds=ISSUE_SECONDS)
    since = issued_at - timedelta(days=HISTORY_DAYS)
    # The week ahead ends on the eighth day.
    holidays_of = settings.holidays(since.date(), (issued_at + timedelta(days=8)).date())
    talk = Talk()
    log_path = settings.state_dir / "spark.log"
    with talk.running(), spark_beside(talk, log_path=log_path, master=master) as starting:
        spark = starting.result()
        waiting_for = "the Spark job: a fit, its scores and the week ahead of every group"
        with talk.stage("forecast", waiting_for) as stage, tasks_shown(spark, stage):
            from spark_features.forecasts import issue_forecasts

            issue_one = partial(issue_group, issued_at=issued_at, holidays_of=holidays_of)
            issue = issue_forecasts(
                spark, features, out, issue_one, since=since, issued_at=issued_at, kept_days=keep_days
            )
            said = f"{issue.forecast_groups:,} groups forecast, {issue.refused_groups:,} refused"
            stage.note = f"{said}, as of {issued_at:%Y-%m-%d %H:%M} UTC"
    write_answer(_answer(issue, out, issued_at), output, output_file)
    return ExitCode.OK


def _answer(issue: "ForecastIssue", out: Path, issued_at: datetime) -> Answer:
    """A row for each group; a document has the folder and the instant of the issue, too."""
    groups = Table(fields=FIELDS, records=[asdict(each) for each in issue.groups])
    document = {"folder": str(out), "issued_at": issued_at.isoformat(), "groups": groups.records}
    return Answer(title="Forecasts of the week ahead", document=document, records=groups, shown=(groups,))


def _on_the_clock(instant: datetime, *, seconds: int) -> datetime:
    """The last multiple of `seconds` that is not after `instant`.

    >>> from datetime import UTC
    >>> _on_the_clock(datetime(2026, 5, 4, 12, 7, 45, tzinfo=UTC), seconds=300).isoformat()
    '2026-05-04T12:05:00+00:00'
    """
    return instant - timedelta(seconds=instant.timestamp() % seconds)
