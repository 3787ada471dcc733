"""The cheapest way through minutes of which all is known."""

from collections.abc import Iterable
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.cheapest_path import cheapest_path

prices = st.floats(0.0, 10.0) | st.just(np.inf)


@given(
    rows=st.lists(st.tuples(prices, prices, st.floats(0.0, 10.0)), min_size=1, max_size=6),
    change=st.floats(0.0, 5.0),
)
def test_no_other_path_is_cheaper(rows: list[tuple[float, float, float]], change: float) -> None:
    """The search finds the same cost as trying every path."""
    price = np.array(rows)

    def cost(path: Iterable[int]) -> float:
        places = list(path)
        moves = sum(a != b for a, b in pairwise(places))
        return float(price[range(len(places)), places].sum()) + change * moves

    cheapest = min(cost(path) for path in product(range(3), repeat=len(rows)))
    assert cost(cheapest_path(price, change).tolist()) == pytest.approx(cheapest)
