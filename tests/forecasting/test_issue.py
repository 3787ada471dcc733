"""C15, one group of a fleet: its rows go in, its fit and its week ahead come out."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from forecasting.columns import FLEET_FITS, FLEET_ISSUE, LONG_FORECASTS, quantile_column
from forecasting.fleet import fit_group, history_from_rows
from forecasting.forecast import QUANTILES, Forecast
from forecasting.issue import issue_group
from forecasting.long_term import WEEK_STEPS, LongTermForecaster
from forecasting.refusal import Refusal
from forecasting.units import FloatArray

MakeLoad = Callable[..., FloatArray]

DAY = 1440
END_AT = datetime(2026, 1, 5, tzinfo=UTC)
QUANTILE_COLUMNS = [quantile_column(quantile) for quantile in QUANTILES]


def rows_of(load: FloatArray, *, end_at: datetime = END_AT) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "cluster": "c",
            "group": "g",
            "interval_end_at": pd.date_range(end=end_at, periods=len(load), freq="1min"),
            "interval_seconds": 60,
            "produce_messages_per_second": load,
        }
    )


def no_holidays(_group: str) -> tuple[date, ...]:
    return ()


def steps_of(issue: pd.DataFrame) -> pd.DataFrame:
    return issue[issue["step_ends_at"].notna()]


def test_the_columns_are_those_of_the_quantiles() -> None:
    """Every quantile of a forecast has its column, in order, and a frame holds the columns of both tables once."""
    assert [column.name for column in LONG_FORECASTS][-len(QUANTILES) :] == QUANTILE_COLUMNS
    names = [column.name for column in FLEET_ISSUE]
    assert len(names) == len(set(names))
    assert {column.name for column in (*FLEET_FITS, *LONG_FORECASTS)} == set(names)


def test_the_week_equals_the_forecasters_own(daily_load: MakeLoad) -> None:
    """Fits are those of `fit_group`, and the steps those of the fit itself, to the last digit."""
    rows = rows_of(daily_load(minutes=15 * DAY))
    issue = issue_group(rows, issued_at=END_AT, holidays_of=no_holidays)
    fits = issue[issue["step_ends_at"].isna()].reset_index(drop=True)
    expected = fit_group(rows)
    pd.testing.assert_frame_equal(fits[list(expected.columns)], expected)
    steps = steps_of(issue)
    history = history_from_rows(rows)
    fitted = LongTermForecaster().fit(history)
    assert not isinstance(fitted, Refusal)
    week = fitted.forecast(history)
    assert isinstance(week, Forecast)
    np.testing.assert_array_equal(steps[QUANTILE_COLUMNS].to_numpy().T, week.paths)
    assert list(steps["step_ends_at"]) == [END_AT + timedelta(minutes=5 * step) for step in range(1, WEEK_STEPS + 1)]
    assert set(steps["history_tier"]) == {"weekly"}
    assert set(steps["issued_at"]) == {END_AT}


def test_rows_after_the_instant_are_not_known(daily_load: MakeLoad) -> None:
    """A late issue equals the issue that would have been made in time."""
    load = daily_load(minutes=5 * DAY)
    in_time = issue_group(rows_of(load[: 4 * DAY]), issued_at=END_AT, holidays_of=no_holidays)
    late = issue_group(rows_of(load, end_at=END_AT + timedelta(days=1)), issued_at=END_AT, holidays_of=no_holidays)
    pd.testing.assert_frame_equal(late, in_time)


def test_a_week_begins_at_the_instant_though_the_last_rows_are_missing(daily_load: MakeLoad) -> None:
    """For a group whose rows end an hour before, the first step still ends five minutes after the instant."""
    rows = rows_of(daily_load(minutes=4 * DAY), end_at=END_AT - timedelta(hours=1))
    steps = steps_of(issue_group(rows, issued_at=END_AT, holidays_of=no_holidays))
    assert steps["step_ends_at"].iloc[0] == END_AT + timedelta(minutes=5)
    assert len(steps) == WEEK_STEPS


def test_an_error_is_one_row_with_its_reason(daily_load: MakeLoad) -> None:
    """A group that is too young, silent for three days or poisoned has reason and sentence, but no fit and no step."""

    def broken(_group: str) -> tuple[date, ...]:
        message = "the calendar is torn"
        raise RuntimeError(message)

    load = daily_load(minutes=4 * DAY)
    troubles = [
        (rows_of(load[:DAY]), no_holidays, "not_enough_history", "holds 86,400 s of known produce rate"),
        (rows_of(load, end_at=END_AT - timedelta(days=3)), no_holidays, "history_stale", "259,200 s older than 2026"),
        (rows_of(load), broken, "unsupported", "RuntimeError: the calendar is torn"),
    ]
    for rows, holidays_of, reason, sentence in troubles:
        (row,) = issue_group(rows, issued_at=END_AT, holidays_of=holidays_of).to_dict("records")
        assert (row["cluster"], row["group"], row["model"]) == ("c", "g", "long_term")
        assert (row["refusal_reason"], row["fitted_at"]) == (reason, END_AT)
        assert sentence in row["refusal_sentence"]
        assert row["parameters"] is None
        assert pd.isna(row["step_ends_at"])


@pytest.mark.slow
def test_a_holiday_to_come_runs_like_the_one_before(daily_load: MakeLoad) -> None:
    """A Wednesday that was a holiday had half the load: the next Tuesday that is a holiday has half too."""
    load = daily_load(minutes=15 * DAY).reshape(15, DAY)
    past, coming = date(2025, 12, 31), date(2026, 1, 6)
    load[-5] *= 0.5  # rows end with the midnight that begins January 5, so that the last day is January 4
    rows = rows_of(load.ravel())

    def tuesday(holidays: tuple[date, ...]) -> float:
        steps = steps_of(issue_group(rows, issued_at=END_AT, holidays_of=lambda _: holidays))
        return float(steps[quantile_column(0.5)].iloc[288:576].mean())

    assert 0.3 < tuesday((past, coming)) / tuesday(()) < 0.7
