"""The weeks ahead that `lagcast forecast` has issued, as the recommender reads them: one file for each issue. No JVM.

    FOLDER/long_forecasts/date=2026-05-04/issued-20260504T120000Z.parquet

The folder is read anew for every call, so that a service which runs for weeks sees what the daily job has added. It
may be missing: the job may run for the first time tomorrow.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above

from forecasting.columns import ISSUE_DAY, ISSUE_FILE, LONG_FORECASTS, LONG_FORECASTS_FOLDER, quantile_column
from forecasting.forecast import QUANTILES, Forecast
from forecasting.units import read_only
from recommender.ports import MalformedError

# An issue reaches a week ahead: an older one holds no future steps.
REACH = timedelta(days=7)

_NAMES = [column.name for column in LONG_FORECASTS]


class LongForecastsFolder:
    """The issues in the folder `path`, that `lagcast forecast --out` was given."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def newest(self, cluster: str, group: str, *, until: datetime) -> Forecast | None:
        """The group's forecast that was issued last, no later than `until` and no earlier than a week before it.

        An issue that refused the group is skipped. Errors: MalformedError on a file that cannot be read.
        """
        for issued_at, file in self._issues(until):
            rows = _rows_of(file, cluster, group)
            if rows.num_rows:
                return _forecast(rows, issued_at, file)
        return None

    def _issues(self, until: datetime) -> list[tuple[datetime, Path]]:
        """Issues that may hold the forecast, newest first."""
        days = [(until - timedelta(days=back)).astimezone(UTC) for back in range(REACH.days + 1)]
        folders = [self.path / LONG_FORECASTS_FOLDER / day.strftime(ISSUE_DAY) for day in days]
        dated = [(_issued_at(file), file) for folder in folders for file in folder.glob("*.parquet")]
        return sorted(((at, file) for at, file in dated if at and until - REACH < at <= until), reverse=True)


def _issued_at(file: Path) -> datetime | None:
    """The instant in the file's name; None for a file with another kind of name."""
    try:
        return datetime.strptime(file.name, ISSUE_FILE).replace(tzinfo=UTC)
    except ValueError:
        return None


def _rows_of(file: Path, cluster: str, group: str) -> pa.Table:
    wanted = (pc.field("cluster") == cluster) & (pc.field("group") == group)
    try:
        # With a partitioning, the folder's date would be read as a further column.
        return pq.read_table(file, columns=_NAMES, filters=wanted, partitioning=None).sort_by("step_ends_at")
    except (OSError, pa.ArrowException) as error:
        message = f"the long forecast {file} cannot be read ({error}); remove it and run `lagcast forecast` again"
        raise MalformedError(message) from error


def _forecast(rows: pa.Table, issued_at: datetime, file: Path) -> Forecast:
    step_seconds = int(rows["step_seconds"][0].as_py())
    ends = rows["step_ends_at"].cast(pa.timestamp("s", tz="UTC")).cast(pa.int64()).to_numpy()
    expected = int(issued_at.timestamp()) + step_seconds * np.arange(1, rows.num_rows + 1)
    if not np.array_equal(ends, expected):
        message = f"the long forecast {file} has steps missing or doubled; remove it and run `lagcast forecast` again"
        raise MalformedError(message)
    paths = np.array([rows[quantile_column(quantile)].to_numpy() for quantile in QUANTILES], dtype=np.float64)
    return Forecast(
        cluster=rows["cluster"][0].as_py(),
        group=rows["group"][0].as_py(),
        model=rows["model"][0].as_py(),
        history_tier=rows["history_tier"][0].as_py(),
        origin_at=issued_at,
        step_seconds=step_seconds,
        paths=read_only(paths),
    )
