"""The blend: the forecaster used in production, as good and as certain as the history allows.

Below thirty known minutes it refuses; to two days it is persistence; from there it mixes persistence, the short-term
regression, the season before and exponential smoothing, by weights that each horizon earns on days held out from the
fit. The regression hands over to the season as the horizon grows, without a jump, and where the season has no skill
persistence keeps its weight. Smoothing needs the fewest days: it carries most until the others have learnt.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from forecasting.bands import Bands
from forecasting.forecast import Forecast, HistoryTier
from forecasting.history import History
from forecasting.history_tier import REACTIVE_MINUTES, history_tier_of, refuse_short
from forecasting.horizons import KNOTS
from forecasting.persistence import FittedPersistence, fit_persistence
from forecasting.refusal import Refusal
from forecasting.scores import pinball_losses
from forecasting.seasonal_naive import best_season, residuals_from_season, season_before
from forecasting.series import clamp_to_fitted_range, rates_of, unit_of
from forecasting.short_term import Regression, fit_regression
from forecasting.smoothing import Smoothing, fit_smoothing
from forecasting.units import FloatArray
from forecasting.view import Ahead, Past

_MODEL = "seasonal_short_blend"

# All weights of persistence, regression, season and smoothing in quarters that add up to 1: 35 mixtures.
_MIXTURES: FloatArray = (
    np.array([parts for parts in product(range(5), repeat=4) if sum(parts) == 4], dtype=np.float64)[::-1] / 4.0
)

_PERSISTENCE_ALONE = (1.0, 0.0, 0.0, 0.0)

# The level now: the mean of two minutes.
_LEVEL_MINUTES = 2

# The loss that earns a weight: the middle, and the upper quantiles that replicas are planned on.
_JUDGED_QUANTILES = (0.5, 0.9, 0.95)

# With fewer held-out targets than this a horizon takes the weights of the one before it.
_ENOUGH_TARGETS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBlend:
    """The four models, their weights (KNOTS, 4) in the order persistence, regression, season, smoothing; the bands.

    `residual_limits` (KNOTS, 2) are the least and greatest residual from the season, in logarithms, that the fit has
    seen; `smoothed_limits` those of the level now from what smoothing expects of the next minute.
    """

    unit: float
    history_tier: HistoryTier
    persistence: FittedPersistence
    regression: Regression
    season_minutes: int
    residual_limits: FloatArray
    smoothing: Smoothing
    smoothed_limits: tuple[float, float]
    weights: FloatArray
    bands: Bands

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """The mixture's paths; a history too short for its season gets persistence, below thirty minutes a refusal."""
        if history_tier_of(history) in (None, "reactive"):
            return _reactive(self.persistence, history, steps=steps)
        ahead = Ahead.of(history, unit=self.unit, steps=steps)
        centres = np.stack(
            [
                np.repeat(self.persistence.levels(ahead.series, ahead.origin), steps),
                self.regression.centre(ahead),
                self._season(ahead),
                self._smoothed(ahead),
            ],
            axis=1,
        )
        centre = np.einsum("hm,hm->h", ahead.between.interpolate(self.weights), centres)
        return ahead.forecast(model=_MODEL, history_tier=self.history_tier, centre=centre, bands=self.bands)

    def _season(self, ahead: Ahead) -> FloatArray:
        """The season before, moved by the part of today's residual from it that is beyond every day of the fit."""
        before = season_before(ahead.series, ahead.origin, ahead.horizons, season_minutes=self.season_minutes)[0]
        residuals = residuals_from_season(
            ahead.series, ahead.origin, ahead.horizons, season_minutes=self.season_minutes
        )[0]
        limits = ahead.between.interpolate(self.residual_limits)
        moved: FloatArray = before + residuals - clamp_to_fitted_range(residuals, limits[:, 0], limits[:, 1])
        return moved

    def _smoothed(self, ahead: Ahead) -> FloatArray:
        """The smoothing, moved in the same way, so that a load that has tripled is followed at once."""
        path = self.smoothing.centre(ahead)
        residual = ahead.series.trailing_mean(ahead.origin, minutes=_LEVEL_MINUTES) - path[:1]
        low, high = (np.array([limit]) for limit in self.smoothed_limits)
        moved: FloatArray = path + residual - clamp_to_fitted_range(residual, low, high)
        return moved


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedReactive:
    """The blend before it has a season: persistence under the blend's name."""

    persistence: FittedPersistence

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """Persistence's paths."""
        return _reactive(self.persistence, history, steps=steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlendForecaster:
    """Persistence, regression and season, weighted by horizon on held-out days; needs thirty known minutes."""

    name: str = _MODEL

    def fit(self, history: History) -> FittedBlend | FittedReactive | Refusal:
        """Learn as far as the history tier allows, or refuse."""
        history_tier = history_tier_of(history)
        if history_tier is None:
            return refuse_short(history, needed_minutes=REACTIVE_MINUTES)
        unit = unit_of(history)
        past = Past.of(history, unit=unit, history_tier=history_tier)
        persistence = fit_persistence(past)
        if history_tier == "reactive":
            return FittedReactive(persistence=persistence)
        regression, held_out = fit_regression(past)
        season_minutes = best_season(past, history_tier)
        smoothing, smoothed = fit_smoothing(past)
        unexpected = past.series.trailing_mean(past.origins, minutes=_LEVEL_MINUTES) - smoothed[:, 0]
        centres = np.stack(
            [
                np.repeat(persistence.levels(past.series, past.origins)[:, None], len(KNOTS), axis=1),
                held_out,
                season_before(past.series, past.origins, KNOTS, season_minutes=season_minutes),
                smoothed,
            ],
            axis=2,
        )
        residuals = residuals_from_season(past.series, past.origins, KNOTS, season_minutes=season_minutes)
        weights = mixture_weights(past.targets, centres, unit=unit)
        centre = np.einsum("okm,km->ok", centres, weights)
        return FittedBlend(
            unit=unit,
            history_tier=history_tier,
            persistence=persistence,
            regression=regression,
            season_minutes=season_minutes,
            residual_limits=np.stack([residuals.min(axis=0), residuals.max(axis=0)], axis=1),
            smoothing=smoothing,
            smoothed_limits=(float(unexpected.min()), float(unexpected.max())),
            weights=weights,
            bands=past.bands(centre),
        )


def mixture_weights(targets: FloatArray, centres: FloatArray, *, unit: float) -> FloatArray:
    """For each knot the mixture with the least pinball loss in rates, softened with its neighbours; rows add up to 1.

    Shapes: `targets` (origins, KNOTS), NaN where unknown; `centres` (origins, KNOTS, 4), held out; logarithms both.
    A knot with too few known targets takes the mixture of the one before it, the first one persistence alone.
    """
    weights = np.empty((len(KNOTS), centres.shape[2]))
    weights[-1] = _PERSISTENCE_ALONE  # the weights before knot 0
    for knot in range(len(KNOTS)):
        known = np.isfinite(targets[:, knot])
        if known.sum() < _ENOUGH_TARGETS:
            weights[knot] = weights[knot - 1]
            continue
        losses = _losses(targets[known, knot], centres[known, knot], unit=unit)
        weights[knot] = _MIXTURES[int(np.argmin(losses))]
    padded = np.concatenate([weights[:1], weights, weights[-1:]])
    return 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]


def _losses(target: FloatArray, centres: FloatArray, *, unit: float) -> FloatArray:
    """Loss of each mixture in rates, summed over the judged quantiles, (mixtures,)."""
    mixed = np.stack([centres @ mixture for mixture in _MIXTURES])
    offsets = np.quantile(target - mixed, _JUDGED_QUANTILES, axis=1)
    actual = rates_of(target, unit=unit)
    losses = np.zeros(len(_MIXTURES))
    for quantile, offset in zip(_JUDGED_QUANTILES, offsets, strict=True):
        losses += pinball_losses(actual, rates_of(mixed + offset[:, None], unit=unit), quantile=quantile)
    return losses


def _reactive(persistence: FittedPersistence, history: History, *, steps: int) -> Forecast | Refusal:
    answer = persistence.forecast(history, steps=steps)
    if isinstance(answer, Refusal):
        return answer
    return replace(answer, model=_MODEL)
