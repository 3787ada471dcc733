"""The week ahead of a fleet: the feature table's minutes to fits and long forecasts, one issue at a time.

    OUT/long_forecasts/date=2026-05-04/issued-20260504T120000Z.parquet    forecasts
    OUT/fleet_fits/date=2026-05-04/issued-20260504T120000Z.parquet        parameters, scores and refusals

Issues are added beside each other, and each file is written whole and renamed into its place: a reader finds a complete
issue or none, and an issue that is made again replaces the first. Days that are too old are removed with the next
issue. Files that a killed run left in OUT/.unfinished are no issue, and the next run removes them.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (Spark's own convention)

from forecasting.columns import (
    FLEET_FITS,
    FLEET_FITS_FOLDER,
    FLEET_ISSUE,
    ISSUE_DAY,
    ISSUE_FILE,
    LONG_FORECASTS,
    LONG_FORECASTS_FOLDER,
)
from spark_features.fleet import FLEET_INTERVAL_SECONDS, fit_fleet
from spark_features.pinned import parts_of, pinned, scratch
from spark_features.samples import FeaturesError
from spark_features.schema import GROUP_INTERVALS_SCHEMA, spark_schema
from spark_features.table import writing

_UNFINISHED = ".unfinished"

# A group's week is about 130 kB: fifty groups share a row group, and a reader of one group skips the other row groups.
_ROW_GROUP_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedGroup:
    """One group of an issue: it is forecast, or refused with the reason and a sentence.

    `band_coverage_fraction` is the share of its `scored_steps` between p05 and p95; None where none was scored.
    """

    cluster: str
    group: str
    model: str
    refusal_reason: str | None
    refusal_sentence: str | None
    scored_steps: int
    band_coverage_fraction: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastIssue:
    """The result of one run: its groups, by cluster and name."""

    groups: tuple[IssuedGroup, ...]

    @property
    def refused_groups(self) -> int:
        """How many are refused."""
        return sum(each.refusal_reason is not None for each in self.groups)

    @property
    def forecast_groups(self) -> int:
        """How many are forecast."""
        return len(self.groups) - self.refused_groups


def issue_forecasts(
    spark: SparkSession,
    features_dir: Path,
    out_dir: Path,
    issue_one: Callable[[pd.DataFrame], pd.DataFrame],
    *,
    since: datetime,
    issued_at: datetime,
    kept_days: int,
) -> ForecastIssue:
    """Fit and forecast every group that has rows after `since`, up to `issued_at`, and write both tables.

    Issues of days that are more than `kept_days` before the day of `issued_at` are removed.
    `issue_one` runs for each group, see `fit_fleet`; it returns rows of `columns.FLEET_ISSUE`.
    Errors: FeaturesError if no row lies in that span, and if another run is writing.
    """
    days = (since.date().isoformat(), issued_at.date().isoformat())
    parts = parts_of(features_dir, days, interval_seconds=FLEET_INTERVAL_SECONDS)
    if not parts:
        span = f"between {since.isoformat()} and {issued_at.isoformat()}"
        message = (
            f"{features_dir} holds no minutes {span}; run `lagcast features` for these days, or choose another --at"
        )
        raise FeaturesError(message)
    with writing(out_dir), scratch(out_dir / _UNFINISHED) as unfinished:
        files = pinned(features_dir, unfinished / "minutes", days, interval_seconds=FLEET_INTERVAL_SECONDS)
        ends_at = F.col("interval_end_at")
        minutes = spark.read.schema(GROUP_INTERVALS_SCHEMA).parquet(str(files))
        minutes = minutes.where((ends_at > F.lit(since)) & (ends_at <= F.lit(issued_at)))
        # Written once, because both tables are made from it and fits take long.
        issue = unfinished / "issue"
        listed = sum(part.rows for part in parts)
        fit_fleet(minutes, issue_one, columns=FLEET_ISSUE, rows=listed).write.parquet(str(issue))
        rows = spark.read.schema(spark_schema(FLEET_ISSUE)).parquet(str(issue))
        is_step = F.col("step_ends_at").isNotNull()
        fits = rows.where(~is_step).select([column.name for column in FLEET_FITS])
        steps = rows.where(is_step).select([column.name for column in LONG_FORECASTS])
        # Fits first: a reader that finds a forecast also finds its fit.
        for folder, table, order in (
            (FLEET_FITS_FOLDER, fits, "horizon_seconds"),
            (LONG_FORECASTS_FOLDER, steps, "step_ends_at"),
        ):
            _publish(
                table,
                out_dir / folder / issued_at.strftime(f"{ISSUE_DAY}/{ISSUE_FILE}"),
                order=order,
                scratch=unfinished / folder,
            )
            _forget(out_dir / folder, before=issued_at.date() - timedelta(days=kept_days))
        return ForecastIssue(groups=_summed_up(fits))


def _summed_up(fits: DataFrame) -> tuple[IssuedGroup, ...]:
    """One value for each group of FLEET_FITS: what its rows repeat, and its scores over all horizons."""
    scored = F.sum("scored_steps")
    covered = F.sum(F.col("scored_steps") * F.col("band_coverage_fraction"))
    groups = fits.groupBy("cluster", "group").agg(
        *(F.first(name).alias(name) for name in ("model", "refusal_reason", "refusal_sentence")),
        scored.alias("scored_steps"),
        F.when(scored > 0, covered / scored).alias("band_coverage_fraction"),
    )
    return tuple(IssuedGroup(**row.asDict()) for row in groups.orderBy("cluster", "group").collect())


def _forget(folder: Path, *, before: date) -> None:
    """Remove the days of a table before `before`; other folders stay."""
    for day in folder.glob("date=*"):
        try:
            is_old = datetime.strptime(day.name, ISSUE_DAY).date() < before  # noqa: DTZ007  # a day has no zone
        except ValueError:
            continue
        if is_old:
            shutil.rmtree(day)


def _publish(rows: DataFrame, file: Path, *, order: str, scratch: Path) -> None:
    """Write `rows` as one sorted file, and rename it to `file` when it is on the disk; without rows, no file."""
    sorted_rows = rows.coalesce(1).sortWithinPartitions("cluster", "group", order)
    sorted_rows.write.option("parquet.block.size", _ROW_GROUP_BYTES).parquet(str(scratch))
    written = list(scratch.glob("*.parquet"))
    if not written:
        file.unlink(missing_ok=True)
        return
    (part,) = written
    with part.open("rb") as content:
        os.fsync(content.fileno())
    file.parent.mkdir(parents=True, exist_ok=True)
    part.replace(file)
