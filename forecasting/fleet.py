"""One group's rows in, its long-term fit and scores out: the function that a fleet runs once for each group.

Pure, from a pandas frame to a pandas frame, so that one machine or many give the same rows.
"""

import json
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd

from forecasting.backtest import history_of
from forecasting.columns import FLEET_FITS, Column
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import MINUTE_SECONDS, History
from forecasting.history_tier import MINUTES_PER_DAY
from forecasting.long_bands import LongBands
from forecasting.long_term import FittedLongTerm, LongTermForecaster
from forecasting.refusal import Refusal
from forecasting.scores import coverage, pinball_loss
from forecasting.slots import FIT_DAYS, SLOT_MINUTES, SLOT_SECONDS
from forecasting.units import FloatArray

# An hour, six hours, a day, three days and a week: each is scored over the twelve steps that end there.
SCORED_STEPS = (12, 72, 288, 864, 2016)
_SCORED_WINDOW = 12

# Two fits, four days apart, score the last eight days from every sixth hour: the week ahead is seen from one day. Fits
# are nearly all of the work, so a third and a fourth would make it five thirds; parameters age slowly, seasons not.
_BACKTEST_DAYS = 8
_REFIT_MINUTES = 4 * MINUTES_PER_DAY
_ORIGIN_MINUTES = 360

# How far back rows are read: a forecast on the first day of the backtest has its four weeks too.
HISTORY_DAYS = FIT_DAYS + _BACKTEST_DAYS


def fit_group(rows: pd.DataFrame, *, until: datetime | None = None, holidays: tuple[date, ...] = ()) -> pd.DataFrame:
    """The long-term fit of one group and its scores by rolling backtest, as rows of `columns.FLEET_FITS`.

    `rows` are `columns.GROUP_INTERVALS` of one group with an interval of 60 s, in any order; naive instants are UTC.
    `until` ends the history, else the newest row does; `holidays` are those of history and week ahead.
    Errors: ValueError on no row, or on rows of several groups or of another length.
    """
    history = history_from_rows(rows, until=until)
    forecaster = LongTermForecaster(holidays=holidays)
    fitted = forecaster.fit(history)
    known: dict[str, object] = {
        "cluster": history.cluster,
        "group": history.group,
        "model": forecaster.name,
        "fitted_at": history.end_at,
        "refusal_reason": fitted.reason if isinstance(fitted, Refusal) else None,
        "refusal_sentence": fitted.sentence if isinstance(fitted, Refusal) else None,
        "parameters": None if isinstance(fitted, Refusal) else parameters_text(fitted),
        "scored_steps": 0,
    }
    scores = [] if isinstance(fitted, Refusal) else _scores(forecaster, history)
    return frame_of([known | score for score in scores] or [known], columns=FLEET_FITS)


def history_from_rows(rows: pd.DataFrame, *, until: datetime | None = None) -> History:
    """The produce rate of one group by the minute, the last four weeks and the days of the backtest; gaps are NaN.

    It ends at `until`, a whole minute, and uses no later rows; where None, at the newest row.
    Errors: those of `fit_group`.
    """
    groups = list(rows[["cluster", "group"]].drop_duplicates().itertuples(index=False, name=None))
    lengths = sorted(rows["interval_seconds"].unique().tolist())
    if len(groups) != 1 or lengths != [MINUTE_SECONDS]:
        message = f"rows of one group with an interval of 60 s are needed; got groups {sorted(groups)}, {lengths} s"
        raise ValueError(message)
    cluster, group = groups.pop()
    ends_at = pd.to_datetime(rows["interval_end_at"], utc=True).dt.tz_localize(None)
    minutes = ends_at.to_numpy().astype("datetime64[m]").astype(np.int64)
    last = int(minutes.max()) if until is None else int(until.timestamp()) // MINUTE_SECONDS
    first = min(max(int(minutes.min()), last + 1 - HISTORY_DAYS * MINUTES_PER_DAY), last)
    rates = np.full(last - first + 1, np.nan)
    kept = (minutes >= first) & (minutes <= last)
    rates[minutes[kept] - first] = rows["produce_messages_per_second"].to_numpy(dtype=np.float64)[kept]
    end_at = datetime.fromtimestamp(last * MINUTE_SECONDS, tz=UTC)
    return history_of(rates, end_at=end_at, cluster=str(cluster), group=str(group))


def parameters_text(fitted: FittedLongTerm) -> str:
    """The parameters as JSON, from which `fitted_from_text` makes the same fit again."""
    return json.dumps(
        {
            "unit": fitted.unit,
            "history_tier": fitted.history_tier,
            "holidays": sorted(fitted.holidays),
            "residual_weights": fitted.residual_weights.tolist(),
            "lowest": fitted.lowest.tolist(),
            "highest": fitted.highest.tolist(),
            "band_quantiles": fitted.bands.quantiles.tolist(),
        }
    )


def fitted_from_text(text: str) -> FittedLongTerm:
    """The fit that `parameters_text` wrote."""
    read = json.loads(text)
    return FittedLongTerm(
        unit=read["unit"],
        history_tier=read["history_tier"],
        holidays=frozenset(read["holidays"]),
        residual_weights=np.array(read["residual_weights"]),
        lowest=np.array(read["lowest"]),
        highest=np.array(read["highest"]),
        bands=LongBands(quantiles=np.array(read["band_quantiles"])),
    )


def _scores(forecaster: LongTermForecaster, history: History) -> list[dict[str, object]]:
    """Losses and coverage at each horizon that has known targets, forecasts made from their past alone."""
    actuals: dict[int, list[FloatArray]] = {steps: [] for steps in SCORED_STEPS}
    paths: dict[int, list[FloatArray]] = {steps: [] for steps in SCORED_STEPS}
    first = history.minutes - 1 - _BACKTEST_DAYS * MINUTES_PER_DAY
    fitted: FittedLongTerm | Refusal | None = None
    for number, origin in enumerate(range(first, history.minutes - 1, _ORIGIN_MINUTES)):
        if origin < 0:
            continue
        known = history.until(origin)
        if fitted is None or isinstance(fitted, Refusal) or number % (_REFIT_MINUTES // _ORIGIN_MINUTES) == 0:
            fitted = forecaster.fit(known)
        answer = None if isinstance(fitted, Refusal) else fitted.forecast(known)
        if not isinstance(answer, Forecast):
            continue
        came = _slot_means(history.produce_messages_per_second[origin + 1 :], steps=answer.steps)
        for steps in SCORED_STEPS:
            window = slice(steps - _SCORED_WINDOW, steps)
            actuals[steps].append(came[window])
            paths[steps].append(answer.paths[:, window])
    scored = [steps for steps in SCORED_STEPS if any(np.isfinite(part).any() for part in actuals[steps])]
    return [_score(steps, np.concatenate(actuals[steps]), np.concatenate(paths[steps], axis=1)) for steps in scored]


def _score(steps: int, actual: FloatArray, paths: FloatArray) -> dict[str, object]:
    path = dict(zip(QUANTILES, paths, strict=True))
    return {
        "horizon_seconds": steps * SLOT_SECONDS,
        "scored_steps": int(np.isfinite(actual).sum()),
        "pinball_p50": pinball_loss(actual, path[0.5], quantile=0.5),
        "pinball_p90": pinball_loss(actual, path[0.9], quantile=0.9),
        "pinball_p95": pinball_loss(actual, path[0.95], quantile=0.95),
        "band_coverage_fraction": coverage(actual, path[0.95], lower_path=path[0.05]),
    }


def _slot_means(rates: FloatArray, *, steps: int) -> FloatArray:
    """Means of five minutes each, (steps,); NaN where a minute is unknown or has not come yet."""
    slots = np.full(steps * SLOT_MINUTES, np.nan)
    come = rates[: len(slots)]
    slots[: len(come)] = come
    means: FloatArray = slots.reshape(steps, SLOT_MINUTES).mean(axis=1)
    return means


_PANDAS_TYPES = {"string": "object", "int": "Int32", "double": "float64", "timestamp": "datetime64[us, UTC]"}


def frame_of(rows: list[dict[str, object]], *, columns: tuple[Column, ...]) -> pd.DataFrame:
    """Rows as a frame with these columns, in their order and with their types; None where not given."""
    return pd.DataFrame(
        {
            column.name: pd.Series([row.get(column.name) for row in rows], dtype=_PANDAS_TYPES[column.kind])
            for column in columns
        }
    )
