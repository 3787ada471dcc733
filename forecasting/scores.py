"""Scores of forecasts: the price of a missed quantile, the error of the median, the coverage of a band."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forecasting.units import FloatArray


def pinball_loss(actual: ArrayLike, quantile_path: ArrayLike, *, quantile: float) -> float:
    """Mean price of missing a quantile: a unit too low costs `quantile`, a unit too high costs `1 - quantile`.

    Shapes: equal, at least one known actual; an unknown actual (NaN) is left out. Units: those of `actual`.
    Errors: ValueError on unequal shapes or no known value; that is the caller's bug, not a Refusal.
    Source: Koenker and Bassett (1978), Regression Quantiles, Econometrica 46(1).

    >>> pinball_loss([1450.0], [1400.0], quantile=0.95)  # 50 too low: 0.95 x 50
    47.5
    >>> pinball_loss([1450.0], [1500.0], quantile=0.95)  # 50 too high: 0.05 x 50
    2.5
    """
    known, path = _known_pairs(actual, quantile_path)
    return float(_mean_pinball_loss(known, path, alpha=quantile))


def pinball_losses(actuals: FloatArray, paths: FloatArray, *, quantile: float) -> FloatArray:
    """Mean pinball loss of each of many paths at once, (paths,); each equals that of `pinball_loss` to the last digit.

    Shapes: `paths` (paths, steps); `actuals` the same, or (steps,) for all paths alike. Errors: ValueError on a value
    that is unknown or infinite; that is the caller's bug.

    >>> pinball_losses(np.array([1450.0]), np.array([[1400.0], [1500.0]]), quantile=0.95)
    array([47.5,  2.5])
    """
    actual = np.broadcast_to(actuals, paths.shape)
    losses: FloatArray = _mean_pinball_loss(actual.T, paths.T, alpha=quantile, multioutput="raw_values")
    return losses


def _mean_pinball_loss(actual: FloatArray, paths: FloatArray, **options: Any) -> Any:  # noqa: ANN401  # as scikit-learn's
    # Loading it takes a second of processor time and 60 MB, which a process that fits nothing does without.
    from sklearn.metrics import mean_pinball_loss  # type: ignore[import-untyped]  # noqa: PLC0415  # has no types

    return mean_pinball_loss(actual, paths, **options)


def wape(actual: ArrayLike, path: ArrayLike) -> float | None:
    """Sum of absolute errors as a fraction of the sum of actuals; None when the actuals sum to 0.

    Shapes and errors: those of `pinball_loss`.

    >>> wape([100.0, 300.0], [110.0, 270.0])  # (10 + 30) / 400
    0.1
    >>> wape([0.0], [5.0]) is None
    True
    """
    known, values = _known_pairs(actual, path)
    total = float(np.sum(known))
    return float(np.sum(np.abs(known - values))) / total if total > 0.0 else None


def coverage(actual: ArrayLike, upper_path: ArrayLike, *, lower_path: ArrayLike | None = None) -> float:
    """Fraction of actuals at or under the upper path and, where one is given, at or over the lower path.

    Shapes and errors: those of `pinball_loss`. For a p95 path near 0.95; for the band from p05 to p95 near 0.90.

    >>> coverage([1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 9.0])  # 1, 2 and 4 are under
    0.75
    >>> coverage([1.0, 2.0, 3.0, 4.0], [9.0] * 4, lower_path=[2.0] * 4)
    0.75
    """
    known, upper = _known_pairs(actual, upper_path)
    inside = known <= upper
    if lower_path is not None:
        inside &= known >= _known_pairs(actual, lower_path)[1]
    return float(np.mean(inside))


def _known_pairs(actual: ArrayLike, path: ArrayLike) -> tuple[FloatArray, FloatArray]:
    values, paths = np.asarray(actual, dtype=np.float64), np.asarray(path, dtype=np.float64)
    if values.shape != paths.shape:
        message = f"actuals have shape {values.shape} and the path {paths.shape}; one value per step is needed"
        raise ValueError(message)
    known = ~np.isnan(values)
    if not known.any():
        message = f"none of {values.size} actuals is known; a score needs at least one"
        raise ValueError(message)
    return values[known], paths[known]
