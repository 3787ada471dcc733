"""One group's rows in, its fit, its scores and its week ahead out: `lagcast forecast` runs this for each group.

Pure, from a pandas frame to a pandas frame, like the fit in `forecasting.fleet`. The forecast is made from the
written parameters, so that the table alone is enough to make it again.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd

from forecasting.columns import FLEET_ISSUE, quantile_column
from forecasting.fleet import fit_group, fitted_from_text, frame_of, history_from_rows
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import MINUTE_SECONDS, History
from forecasting.long_term import LongTermForecaster
from forecasting.refusal import Refusal

# Steps of five minutes that begin and end at multiples of five minutes.
ISSUE_SECONDS = 300

# After two days of silence the group or its collector has stopped: its last week does not predict its next one.
SILENT_AFTER = timedelta(days=2)


def issue_group(
    rows: pd.DataFrame, *, issued_at: datetime, holidays_of: Callable[[str], tuple[date, ...]]
) -> pd.DataFrame:
    """The fit, the scores and the week after `issued_at` of one group, as rows of `columns.FLEET_ISSUE`.

    `rows` as for `fit_group`; those after `issued_at`, a whole minute, are ignored. `holidays_of` gives the days of a
    group that run like holidays, of history and week ahead. Every failure becomes a row with its reason, because a
    thousand other groups are forecast beside this one.
    """
    identity = {"cluster": rows["cluster"].iloc[0], "group": rows["group"].iloc[0]}
    try:
        return _issued(rows, issued_at=issued_at, holidays=holidays_of(str(identity["group"])))
    except Exception as error:  # noqa: BLE001  # one poisoned group of a thousand must not silence the others
        return _refused(identity, "unsupported", f"{type(error).__name__}: {error}", at=issued_at)


def _issued(rows: pd.DataFrame, *, issued_at: datetime, holidays: tuple[date, ...]) -> pd.DataFrame:
    history = history_from_rows(rows, until=issued_at)
    identity = {"cluster": history.cluster, "group": history.group}
    silent = _silence(history)
    if silent > SILENT_AFTER:
        sentence = (
            f"the newest known rate of group '{history.group}' is {silent.total_seconds():,.0f} s older than "
            f"{issued_at.isoformat()}; the limit is {SILENT_AFTER.total_seconds():,.0f} s"
        )
        return _refused(identity, "history_stale", sentence, at=issued_at)
    fits = fit_group(rows, until=issued_at, holidays=holidays)
    said = [{str(name): value for name, value in fit.items()} for fit in fits.astype(object).to_dict("records")]
    parameters = fits["parameters"].iloc[0]
    if pd.isna(parameters):
        return frame_of(said, columns=FLEET_ISSUE)
    week = fitted_from_text(parameters).forecast(history)
    if isinstance(week, Refusal):
        return _refused(identity, week.reason, week.sentence, at=issued_at)
    return frame_of([*said, *_steps(week)], columns=FLEET_ISSUE)


def _silence(history: History) -> timedelta:
    """The time from the end of the newest known minute to the history's end; the whole history where none is known."""
    known = np.flatnonzero(np.isfinite(history.produce_messages_per_second))
    newest = int(known[-1]) if len(known) else -1
    return timedelta(seconds=(history.minutes - 1 - newest) * MINUTE_SECONDS)


def _steps(week: Forecast) -> list[dict[str, object]]:
    known = {
        "cluster": week.cluster,
        "group": week.group,
        "model": week.model,
        "history_tier": week.history_tier,
        "issued_at": week.origin_at,
        "step_seconds": week.step_seconds,
    }
    names = [quantile_column(quantile) for quantile in QUANTILES]
    return [
        known
        | {"step_ends_at": week.origin_at + timedelta(seconds=week.step_seconds * (step + 1))}
        | dict(zip(names, values, strict=True))
        for step, values in enumerate(week.paths.T.tolist())
    ]


def _refused(identity: Mapping[str, object], reason: str, sentence: str, *, at: datetime) -> pd.DataFrame:
    said = {"refusal_reason": reason, "refusal_sentence": sentence, "fitted_at": at, "scored_steps": 0}
    return frame_of([{**identity, "model": LongTermForecaster().name, **said}], columns=FLEET_ISSUE)
