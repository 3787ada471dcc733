"""C15, P16: a fleet's week ahead, issued by Spark: the rows of the function, whole and once."""

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
from pyspark.sql import SparkSession

from forecasting.columns import (
    FLEET_FITS,
    FLEET_FITS_FOLDER,
    GROUP_INTERVALS,
    ISSUE_DAY,
    ISSUE_FILE,
    LONG_FORECASTS,
    LONG_FORECASTS_FOLDER,
)
from forecasting.issue import issue_group
from forecasting.long_term import WEEK_STEPS
from spark_features.fleet import fit_fleet
from spark_features.forecasts import ForecastIssue, issue_forecasts
from spark_features.samples import FeaturesError
from spark_features.table import fresh_folder, parts_in, read_manifest, swap, writing

# The session's own filter, which pytest replaces.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

_KINDS = {"timestamp": pa.timestamp("us", tz="UTC"), "int": pa.int32(), "long": pa.int64(), "double": pa.float64()}
SCHEMA = pa.schema(
    [
        (column.name, (_KINDS | {"string": pa.string(), "boolean": pa.bool_()})[column.kind])
        for column in GROUP_INTERVALS
    ]
)
END_AT = datetime(2026, 1, 5, tzinfo=UTC)
DAYS = {"a": 1, "b": 3, "c": 4, "d": 3}
# No group has holidays, and a lookup of those of `d` fails.
HOLIDAYS_OF: Callable[[str], tuple[date, ...]] = dict.fromkeys(("a", "b", "c"), ()).__getitem__
KEPT_DAYS = 3
Issue = Callable[..., ForecastIssue]


def rows_of(group: str, days: int) -> pd.DataFrame:
    time = np.arange(days * 1440)
    noise = np.random.default_rng(days).normal(0.0, 0.1, len(time))
    return pd.DataFrame(
        {
            "cluster": "c",
            "group": group,
            "interval_end_at": pd.date_range(end=END_AT, periods=len(time), freq="1min"),
            "interval_seconds": 60,
            "produce_messages_per_second": 500.0 * (1.5 + np.sin(2.0 * np.pi * time / 1440.0)) * np.exp(noise),
        }
    )


@pytest.fixture
def issue(spark: SparkSession, folder: Path) -> Issue:
    """`issue(issued_at=...)`: issue the fleet of `DAYS` into `folder / "out"`, from a table as the job writes it."""
    features = folder / "features"
    rows = pd.concat([rows_of(*group) for group in DAYS.items()], ignore_index=True)
    with writing(features):
        written = fresh_folder(features, version=1)
        days = (rows["interval_end_at"] - timedelta(microseconds=1)).dt.date
        for day, of_day in rows.groupby(days):
            part = written / "interval_seconds=60" / f"date={day}"
            part.mkdir(parents=True)
            pq.write_table(pa.Table.from_pandas(of_day.reindex(columns=SCHEMA.names), SCHEMA), part / "part-0.parquet")
        swap(
            features,
            before=read_manifest(features),
            after=read_manifest(features).replaced_by(parts_in(features, written)),
        )

    def run(*, issued_at: datetime = END_AT) -> ForecastIssue:
        issue_one = partial(issue_group, issued_at=issued_at, holidays_of=HOLIDAYS_OF)
        since = issued_at - timedelta(days=36)
        return issue_forecasts(
            spark, features, folder / "out", issue_one, since=since, issued_at=issued_at, kept_days=KEPT_DAYS
        )

    return run


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The same values as objects, with None for missing ones, which files and frames express differently."""
    return frame.astype(object).where(frame.notna(), None).reset_index(drop=True)


def file_of(folder: Path, table: str, issued_at: datetime = END_AT) -> Path:
    return folder / "out" / table / issued_at.strftime(f"{ISSUE_DAY}/{ISSUE_FILE}")


def test_an_issue_has_the_rows_of_the_function_for_each_group(issue: Issue, folder: Path) -> None:
    """Both tables hold, sorted, the rows of four groups made by hand: two forecast, one too young, one that failed."""
    issued = issue()
    by_hand = pd.concat(
        [issue_group(rows_of(*group), issued_at=END_AT, holidays_of=HOLIDAYS_OF) for group in DAYS.items()],
        ignore_index=True,
    )
    is_step = by_hand["step_ends_at"].notna()
    for table, columns, expected in (
        (FLEET_FITS_FOLDER, FLEET_FITS, by_hand[~is_step]),
        (LONG_FORECASTS_FOLDER, LONG_FORECASTS, by_hand[is_step]),
    ):
        names = [column.name for column in columns]
        written = pq.read_table(file_of(folder, table), partitioning=None).to_pandas()
        assert list(written.columns) == names
        pd.testing.assert_frame_equal(plain(written), plain(expected[names]), check_exact=True)
    fits = pq.read_table(file_of(folder, FLEET_FITS_FOLDER), partitioning=None).to_pandas().set_index("group")
    assert fits.loc["d", "refusal_sentence"] == "KeyError: 'd'"
    assert [each.group for each in issued.groups] == ["a", "b", "c", "d"]
    for each in issued.groups:
        rows = fits.loc[[each.group]]
        scored = int(rows["scored_steps"].sum())
        covered = float((rows["scored_steps"] * rows["band_coverage_fraction"]).sum())
        assert (each.refusal_reason is None, each.scored_steps) == (each.group in {"b", "c"}, scored)
        assert each.band_coverage_fraction == (pytest.approx(covered / scored) if scored else None)
    assert issued.groups[3].refusal_sentence == "KeyError: 'd'"
    assert any(each.scored_steps for each in issued.groups)
    assert not (folder / "out" / ".unfinished").exists()


def test_the_same_instant_replaces_and_another_is_added(issue: Issue, folder: Path) -> None:
    """Two runs for one instant leave one issue, a run for another instant adds a second one, and no row is doubled."""
    earlier = END_AT - timedelta(hours=2)
    issue(issued_at=earlier)
    first = file_of(folder, LONG_FORECASTS_FOLDER, earlier).read_bytes()
    issue()
    issue()
    assert pq.read_metadata(file_of(folder, LONG_FORECASTS_FOLDER)).num_rows == 2 * WEEK_STEPS
    assert file_of(folder, LONG_FORECASTS_FOLDER, earlier).read_bytes() == first
    assert len(list((folder / "out").rglob("*.parquet"))) == 4


def test_days_that_are_too_old_are_removed_by_the_next_issue(issue: Issue, folder: Path) -> None:
    """Old days of both tables, counted from the day of the issue, are removed; other folders stay."""
    tables = [folder / "out" / name for name in (LONG_FORECASTS_FOLDER, FLEET_FITS_FOLDER)]
    days = [f"date={(END_AT - timedelta(days=back)).date()}" for back in (KEPT_DAYS, KEPT_DAYS + 1, 30)]
    for table in tables:
        for day in (*days, "date=of-somebody"):
            (table / day).mkdir(parents=True)
            (table / day / "issued.parquet").touch()
    issue()
    for table in tables:
        kept = {day.name for day in table.iterdir()}
        assert kept == {days[0], "date=of-somebody", END_AT.strftime(ISSUE_DAY)}


def test_files_of_a_run_that_ended_early_are_no_issue(
    issue: Issue, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run interrupted before a rename changes nothing and leaves no scratch; after a kill the next run repairs it."""
    unfinished = folder / "out" / ".unfinished"
    (unfinished / "issue").mkdir(parents=True)
    (unfinished / "issue" / "part-0.parquet").write_bytes(b"PAR1, and then the power went")
    issue()
    before = file_of(folder, LONG_FORECASTS_FOLDER).read_bytes()

    def interrupted(*_: object) -> None:
        # Readers of the folder as a dataset do not see files that are being written.
        assert len(pq.read_table(folder / "out" / LONG_FORECASTS_FOLDER)) == 2 * WEEK_STEPS
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        issue()
    assert file_of(folder, LONG_FORECASTS_FOLDER).read_bytes() == before
    assert not unfinished.exists()


def test_a_table_that_is_replaced_meanwhile_is_read_as_it_was(
    issue: Issue, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue is made although the features job removes files after they were listed and before Spark reads them."""
    moved = folder / "moved"

    def replaced_while_linking(file: Path, name: Path) -> None:
        if not moved.exists():
            moved.mkdir()
            raise FileNotFoundError(file)
        name.hardlink_to(file)

    def read_after_removal(*positional: object, **named: object) -> object:
        for part in read_manifest(folder / "features").parts:
            shutil.rmtree(folder / "features" / part.folder)
        return fit_fleet(*positional, **named)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr("spark_features.pinned._link", replaced_while_linking)
    monkeypatch.setattr("spark_features.forecasts.fit_fleet", read_after_removal)
    issued = issue()
    assert (issued.forecast_groups, issued.refused_groups) == (2, 2)


def test_an_instant_without_rows_is_an_error(issue: Issue, folder: Path) -> None:
    """For an instant before the first row the error is one sentence, and no folder is made."""
    with pytest.raises(FeaturesError, match="holds no minutes between 2024-11-30"):
        issue(issued_at=datetime(2025, 1, 5, tzinfo=UTC))
    assert not (folder / "out").exists()
