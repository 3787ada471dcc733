"""The value of the state at the end of a plan."""

from dataclasses import dataclass

import numpy as np

from forecasting.units import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ending:
    """The price of the state a plan ends in; without it every plan would drop replicas and leave lag at the end.

    From (n, backlog) the group moves to the cheapest count that carries the last demand: the move there, replica time
    for working the backlog off, and the messages that are late until then.
    Shapes: `moves` is (a, 5): pause_late, duplicates, start_up, restore, risk of the move from each choice.
    """

    moves: FloatArray
    backlog_price: float
    late_price: float
    on_time_messages: float

    def late(self, backlog: FloatArray | float) -> FloatArray:
        """Price of what arrives late while the backlog drains."""
        priced: FloatArray = self.late_price * np.maximum(np.asarray(backlog) - self.on_time_messages, 0.0)
        return priced

    def values(self, lag_grid: FloatArray) -> FloatArray:
        """(a, G): the whole price for each choice and backlog."""
        priced: FloatArray = self.moves.sum(axis=1)[:, None] + self.backlog_price * lag_grid + self.late(lag_grid)
        return priced
