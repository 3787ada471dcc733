"""A view of a history: its origins, its horizons, and the season's values there."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from forecasting.bands import Bands, fit_bands, jumps, scatter_columns
from forecasting.forecast import Forecast, HistoryTier
from forecasting.history import MINUTE_SECONDS, History
from forecasting.history_tier import MINUTES_PER_DAY, MINUTES_PER_WEEK
from forecasting.horizons import KNOTS, Between, origins_for, targets_at
from forecasting.memory import ERROR_PATH_STEPS, ErrorMemory, RankArray
from forecasting.season import Season
from forecasting.series import LogSeries, rates_of
from forecasting.units import FloatArray, IntArray, read_only

# No quantile is above so many times the greatest rate of the history it is forecast from.
_CEILING_OF_HIGHEST = 4.0

# Three weeks hold every weekday twice after the week that the first of them looks back on.
FIT_MINUTES = 3 * MINUTES_PER_WEEK

# A season reaches back seven days and half a smoothing window; the widest trailing window is 240 minutes.
_FORECAST_MINUTES = MINUTES_PER_WEEK + 300

# 1,440 origins of a week are one in seven minutes: neighbours differ little, and the fit stays under 300 ms.
_ORIGINS = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Origins whose future is known, from which models learn.

    Shapes: `targets` (origins, KNOTS), logarithms, NaN where unknown; the season's arrays are (KNOTS, origins).
    """

    series: LogSeries
    origins: IntArray
    season: Season
    targets: FloatArray

    @classmethod
    def of(cls, history: History, *, unit: float, history_tier: HistoryTier) -> Self:
        """Origins that have the past which the history tier requires: a day for daily, a week for weekly."""
        series = LogSeries.from_history(history, unit=unit, newest_minutes=FIT_MINUTES)
        first_known = int(np.argmax(series.counts[1:] > 0.0))
        needed = {"reactive": 0, "daily": MINUTES_PER_DAY, "weekly": MINUTES_PER_WEEK}[history_tier]
        origins = origins_for(first_known + needed, series.last - 1, at_most=_ORIGINS)
        return cls(
            series=series,
            origins=origins,
            season=Season.at(series, origins, KNOTS),
            targets=targets_at(series.values, origins, KNOTS),
        )

    def bands(self, centre: FloatArray, *, widen: float = 1.0) -> Bands:
        """Bands around centres (origins, KNOTS) that were made without their own targets."""
        columns = scatter_columns(self.series, self.origins, KNOTS, centre, self.season)
        largest_jump = float(np.abs(jumps(self.series, self.origins)).max())
        minutes = np.arange(1, ERROR_PATH_STEPS + 1, dtype=np.int64)
        return fit_bands(
            self.targets - centre,
            columns,
            centre=centre,
            largest_jump=largest_jump,
            by_minute=targets_at(self.series.values, self.origins, minutes)
            - Between.of(minutes).interpolate(centre.T).T,
            widen=widen,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """The one origin of a forecast: the last known minute, and the minutes after the history's end.

    Where the newest minutes are unknown the horizons start later: after three unknown minutes step 1 is 4 minutes ahead
    of the last known one, and has the bands of 4 minutes.
    """

    history: History
    series: LogSeries
    origin: IntArray
    horizons: IntArray
    season: Season
    between: Between

    @classmethod
    def of(cls, history: History, *, unit: float, steps: int) -> Self:
        """Errors: ValueError on fewer than one step; that is the caller's bug."""
        if steps < 1:
            message = f"steps is {steps}; a forecast has at least 1"
            raise ValueError(message)
        series = LogSeries.from_history(history, unit=unit, newest_minutes=_FORECAST_MINUTES)
        origin = np.array([series.last], dtype=np.int64)
        horizons = np.arange(1, steps + 1, dtype=np.int64) + series.stale_minutes
        return cls(
            history=history,
            series=series,
            origin=origin,
            horizons=horizons,
            season=Season.at(series, origin, horizons),
            between=Between.of(horizons),
        )

    def forecast(self, *, model: str, history_tier: HistoryTier, centre: FloatArray, bands: Bands) -> Forecast:
        """The quantile paths around a centre path (logarithms, one per horizon), as rates under the ceiling."""
        columns = scatter_columns(self.series, self.origin, self.horizons, centre[None, :], self.season)
        jump = float(jumps(self.series, self.origin)[0])
        paths = bands.paths(centre, columns, self.between, jump=jump)
        return self.published(
            model=model, history_tier=history_tier, logarithms=paths, memory=bands.memory, error_ranks=bands.error_ranks
        )

    def published(
        self,
        *,
        model: str,
        history_tier: HistoryTier,
        logarithms: FloatArray,
        memory: ErrorMemory,
        error_ranks: RankArray | None,
    ) -> Forecast:
        """Quantile paths (len(QUANTILES), horizons) in logarithms, as rates under the ceiling."""
        ceiling = _CEILING_OF_HIGHEST * max(self.series.highest, self.series.unit)
        capped = np.minimum(logarithms, np.log1p(ceiling / self.series.unit))
        return Forecast(
            cluster=self.history.cluster,
            group=self.history.group,
            model=model,
            history_tier=history_tier,
            origin_at=self.history.end_at,
            step_seconds=MINUTE_SECONDS,
            paths=read_only(rates_of(capped, unit=self.series.unit)),
            memory=memory,
            error_ranks=error_ranks,
        )
