"""The cheapest way through minutes of which all is known: a choice for each, and a price for changing it.

Here because the judge of replays and the product both search so, and share nothing of the cost model.
"""

import numpy as np

from forecasting.units import FloatArray, IntArray


def cheapest_path(price: FloatArray, change: float) -> IntArray:
    """Index of the choice for each minute: least sum of prices, `change` more whenever the choice differs.

    Shapes: `price` is (minutes, choices), both 1 at least, in one unit with `change`; infinite where a choice is none.

    >>> cheapest_path(np.array([[1.0, 2.0], [1.0, 2.0], [9.0, 2.0], [1.0, 2.0]]), 0.5).tolist()
    [0, 0, 1, 0]
    """
    minutes, choices = price.shape
    every = np.arange(choices)
    came_from = np.empty((minutes, choices), dtype=np.int64)
    total = price[0].copy()
    for minute in range(1, minutes):
        cheapest = int(total.argmin())
        moved = total[cheapest] + change
        came_from[minute] = np.where(total <= moved, every, cheapest)
        total = np.minimum(total, moved) + price[minute]
    path = np.empty(minutes, dtype=np.int64)
    path[-1] = int(total.argmin())
    for minute in range(minutes - 1, 0, -1):
        path[minute - 1] = came_from[minute, path[minute]]
    return path
