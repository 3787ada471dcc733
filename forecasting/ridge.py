"""Ridge regressions for many horizons at once, with the errors of each on days that it did not see."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from forecasting.units import FloatArray

# Of the number of rows, per standardised column: enough to hold near-collinear windows together, too little to bend
# the fit (a column that explains a tenth of the scatter keeps 97 % of its coefficient).
PENALTY = 0.003

# Consecutive blocks, each predicted by a fit on all the others: of 7 days, each block is 34 hours.
BLOCKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RidgeFit:
    """`coefficients` (horizons, columns) from all rows; `held_out` (rows, horizons) predicted without its own block."""

    coefficients: FloatArray
    held_out: FloatArray


def fit_ridge(columns: FloatArray, targets: FloatArray) -> RidgeFit:
    """One regression per horizon on standardised columns, and its block-wise held-out predictions.

    Shapes: `columns` (horizons, rows, columns), the first column all ones and not penalised; `targets`
    (rows, horizons), NaN where unknown: such rows are left out. Rows are in order of time.
    All Gram matrices come from one pass: leaving a block out is a subtraction, not another fit over the rows.
    """
    horizons, rows, width = columns.shape
    known = np.isfinite(targets.T)[:, :, None]
    spread = columns.std(axis=1, keepdims=True)
    scale = np.where(spread > 1e-9, spread, 1.0)
    weighted = columns / scale * known
    wanted = np.where(known[:, :, 0], targets.T, 0.0)
    edges = np.linspace(0, rows, BLOCKS + 1).astype(int)
    grams = np.empty((BLOCKS, horizons, width, width))
    moments = np.empty((BLOCKS, horizons, width))
    for block, (start, stop) in enumerate(pairwise(edges)):
        part = weighted[:, start:stop]
        grams[block] = part.transpose(0, 2, 1) @ part
        moments[block] = (part.transpose(0, 2, 1) @ wanted[:, start:stop, None])[:, :, 0]
    penalty = np.diag(np.r_[1e-9, np.full(width - 1, PENALTY)]) * max(rows, 1)
    without = np.linalg.solve(grams.sum(axis=0) - grams + penalty, (moments.sum(axis=0) - moments)[..., None])[..., 0]
    whole = np.linalg.solve(grams.sum(axis=0) + penalty, moments.sum(axis=0)[..., None])[..., 0]
    held_out = np.empty((rows, horizons))
    for block, (start, stop) in enumerate(pairwise(edges)):
        per_column = without[block] / scale[:, 0]
        held_out[start:stop] = (columns[:, start:stop] @ per_column[:, :, None])[:, :, 0].T
    return RidgeFit(coefficients=whole / scale[:, 0], held_out=held_out)
