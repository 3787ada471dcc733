"""Medians of the week-ahead model, compared with numpy's and with their definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from forecasting.slots import row_medians, weighted_median
from forecasting.units import FloatArray

# Few different values, so that many are equal; the others differ in their last digits, too.
values = st.sampled_from([0.0, 1.0, 2.0, np.nan]) | st.floats(-1e6, 1e6)
tables = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=40), elements=values)


@given(rows=tables)
def test_the_median_of_a_row_is_that_of_its_known_values(rows: FloatArray) -> None:
    """The same bits as numpy's, and NaN where nothing is known."""
    known = [row[np.isfinite(row)] for row in rows]
    expected = [np.median(row) if len(row) else np.nan for row in known]
    np.testing.assert_array_equal(row_medians(rows), expected)


@given(rows=tables, decay=st.sampled_from([0.7, 0.93, 1.0]))
def test_the_weighted_median_is_the_least_value_at_which_half_of_the_weight_is_reached(
    rows: FloatArray, decay: float
) -> None:
    """Value by value in ascending order, as far as half of the known weight."""
    weights = decay ** np.arange(len(rows), dtype=np.float64)

    def by_hand(column: FloatArray) -> float:
        known = np.isfinite(column)
        total, reached = weights[known].sum(), 0.0
        for value, weight in sorted(zip(column[known], weights[known], strict=True)):
            reached += weight
            if reached >= 0.5 * total - 1e-12:
                return float(value)
        return float("nan")

    np.testing.assert_array_equal(weighted_median(rows, weights), [by_hand(column) for column in rows.T])
