"""One group of a fleet: its rows go in, parameters and scores come out."""

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from forecasting.columns import FLEET_FITS
from forecasting.fleet import SCORED_STEPS, fit_group, fitted_from_text, history_from_rows
from forecasting.forecast import Forecast
from forecasting.long_term import LongTermForecaster
from forecasting.refusal import Refusal
from forecasting.units import FloatArray

MakeLoad = Callable[..., FloatArray]

DAY = 1440
END_AT = datetime(2026, 1, 5, tzinfo=UTC)


def rows_of(load: FloatArray, *, group: str = "g") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "cluster": "c",
            "group": group,
            "interval_end_at": pd.date_range(end=END_AT, periods=len(load), freq="1min"),
            "interval_seconds": 60,
            "produce_messages_per_second": load,
        }
    )


def test_every_horizon_is_scored_from_the_past_alone(daily_load: MakeLoad) -> None:
    """Sixteen days of a daily wave with 5 % of noise a minute: the median is 2 % off at any horizon."""
    fits = fit_group(rows_of(daily_load(minutes=16 * DAY)))
    assert list(fits.columns) == [column.name for column in FLEET_FITS]
    assert list(fits["horizon_seconds"]) == [300 * steps for steps in SCORED_STEPS]
    assert (fits["scored_steps"] >= 40).all()
    # A slot's mean scatters by 5 % / sqrt(5) = 2.2 %: half its mean distance is 9 messages/s of 1,000.
    assert fits["pinball_p50"].between(7.0, 14.0).all()
    assert (fits["pinball_p95"] < fits["pinball_p50"]).all()
    assert fits["band_coverage_fraction"].between(0.8, 0.98).all()
    assert fits["refusal_reason"].isna().all()


def test_the_parameters_make_the_same_forecast_again(daily_load: MakeLoad) -> None:
    """Kept parameters are JSON text, and a fit read from it forecasts the same as the fit itself to the last digit."""
    rows = rows_of(daily_load(minutes=15 * DAY))
    history = history_from_rows(rows)
    fitted = LongTermForecaster().fit(history)
    assert not isinstance(fitted, Refusal)
    again = fitted_from_text(fit_group(rows)["parameters"][0]).forecast(history)
    answer = fitted.forecast(history)
    assert isinstance(answer, Forecast)
    assert isinstance(again, Forecast)
    np.testing.assert_array_equal(again.paths, answer.paths)


def test_a_group_too_young_is_one_row_with_its_reason(daily_load: MakeLoad) -> None:
    """A day of minutes is refused, with the reason and without parameters or scores."""
    fits = fit_group(rows_of(daily_load(minutes=DAY)))
    assert list(fits["refusal_reason"]) == ["not_enough_history"]
    assert fits[["parameters", "horizon_seconds", "pinball_p50"]].isna().all(axis=None)


def test_the_order_of_rows_does_not_matter_and_missing_minutes_are_unknown(daily_load: MakeLoad) -> None:
    """Rows shuffled, naive instants, and a gap: the history has them in time, NaN in the gap."""
    load = daily_load(minutes=3 * DAY)
    rows = rows_of(load).drop(index=range(100, 200)).sample(frac=1.0, random_state=1)
    rows["interval_end_at"] = rows["interval_end_at"].dt.tz_localize(None)
    history = history_from_rows(rows)
    load[100:200] = np.nan
    np.testing.assert_array_equal(history.produce_messages_per_second, load)
    assert (history.cluster, history.group, history.end_at) == ("c", "g", END_AT)


def test_rows_of_two_groups_are_the_callers_mistake(daily_load: MakeLoad) -> None:
    """Several groups, another interval, or no row at all raise a ValueError that names them."""
    load = daily_load(minutes=10)
    several = pd.concat([rows_of(load), rows_of(load, group="other")])
    for rows in (several, rows_of(load).assign(interval_seconds=15), rows_of(load).iloc[:0]):
        with pytest.raises(ValueError, match="rows of one group with an interval of 60 s are needed"):
            fit_group(rows)
