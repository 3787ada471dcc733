"""The result of the plan search: the cost of staying, of moving now, and of moving later."""

from dataclasses import dataclass, field

import numpy as np

from cost_model.pricing.price import Cost
from cost_model.search.problem import Tables
from cost_model.search.sweep import Move, Played, play
from forecasting.units import FloatArray

# Totals closer than this fraction of the least are a tie; the plan that changes less is then preferred.
TIE_FRACTION = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """A move to `target`: commanded at `command_step` so that it takes effect at `effective_step`."""

    target: int
    effective_step: int
    command_step: int
    total: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MoveCurve:
    """The cost of a move to `target`, by the step at which the move takes effect; infinite where it cannot.

    `totals[t]` is the price of holding until step t, then having `target`, then the cheapest continuation.
    `change` is how many replicas it adds or removes; the command goes out `lead_steps` before the effect.
    """

    target: int
    change: int
    lead_steps: int
    totals: FloatArray

    def best(self) -> PlannedMove | None:
        """The cheapest time for this move, the latest of equals; None if it cannot take effect within the horizon."""
        least = float(self.totals.min())
        if not np.isfinite(least):
            return None
        step = int(np.flatnonzero(self.totals <= _tied(least))[-1])
        return PlannedMove(
            target=self.target,
            effective_step=step,
            command_step=step - self.lead_steps,
            total=float(self.totals[step]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanSearch:
    """Every plan that was priced: holding for the whole horizon, and each single move at each step.

    `stay` is the cost of holding, the state it ends in included. `tables` and `values` are the inputs of the prices.
    """

    choices: tuple[int, ...]
    replicas: int
    stay: Cost
    single_moves: tuple[MoveCurve, ...]
    tables: Tables = field(repr=False)
    values: FloatArray = field(repr=False)
    lag_messages: float

    @property
    def best_total(self) -> float:
        """The least price of all plans."""
        return min([self.stay.total, *(float(curve.totals.min()) for curve in self.single_moves)])

    def best(self) -> PlannedMove | None:
        """The cheapest plan, None if it is to stay. Ties go to staying, then to the later, then to the smaller move.

        A move is only advised if it is cheaper than staying when played forward too: curves carry the grid's error.
        """
        limit = _tied(self.best_total)
        if self.stay.total <= limit:
            return None
        moves = ((curve.best(), abs(curve.change)) for curve in self.single_moves)
        tied = [(-move.effective_step, change, move) for move, change in moves if move and move.total <= limit]
        best = min(tied, key=lambda candidate: candidate[:2])[2]
        return best if self.itemised(best.target, best.effective_step).total < self.stay.total else None

    def curve(self, target: int) -> MoveCurve:
        """The priced times of one target.

        Errors: ValueError on a target that was not priced.
        """
        for curve in self.single_moves:
            if curve.target == target:
                return curve
        message = f"a move to {target} replicas was not priced; moves to {[c.target for c in self.single_moves]} were"
        raise ValueError(message)

    def itemised(self, target: int, effective_step: int) -> Cost:
        """The plan "hold, move to `target` at `effective_step`, continue as cheaply as possible", item by item.

        It is played forward on exact backlogs, while the curves interpolate between grid points: the totals agree
        exactly as long as backlogs are 0, and to a few percent at worst where lateness is most of the price.
        """
        present = self.choices.index(self.replicas)
        return itemise(self._played(target, effective_step), self.tables, present=present)

    def path(self, target: int, effective_step: int) -> tuple[int, ...]:
        """Replicas per step under the same plan."""
        return tuple(self.choices[choice] for choice in self._played(target, effective_step).path)

    def _played(self, target: int, effective_step: int) -> Played:
        move = Move(effective_step, self.choices.index(self.replicas), self.choices.index(target))
        return play(self.tables.problem, self.values, move, self.lag_messages)


def _tied(least: float) -> float:
    """The highest total that counts as equal to the least."""
    return least + TIE_FRACTION * abs(least)


def itemise(played: Played, tables: Tables, *, present: int) -> Cost:
    """The items of a played plan that starts from choice `present`, those of the state it ends in included.

    A message counts as late because of a pause if it would not be late had the plan's moves stopped nothing.
    """
    problem, rates, prices, ending = tables.problem, tables.rate_prices, tables.move_prices, tables.ending
    before, after = np.concatenate(([present], played.path[:-1])), played.path
    end_pause_late, end_duplicates, end_start_up, end_restore, end_risk = ending.moves[after[-1]].tolist()
    late = float(problem.late_price * played.late.sum() + ending.late(played.lag))
    smooth_late = float(problem.late_price * played.smooth_late.sum() + ending.late(played.smooth_lag))
    dropped = float((rates.drop[before, after] * tables.demand).sum())
    return Cost(
        replicas=float(rates.running[after].sum()),
        late=smooth_late,
        pause_late=max(0.0, late - smooth_late) + dropped + end_pause_late,  # rounding must not make it negative
        backlog=float(problem.held_price * played.held.sum()) + ending.backlog_price * played.lag,
        duplicates=float((rates.repeat[before, after] * tables.demand + rates.in_flight[before, after]).sum())
        + end_duplicates,
        start_up=float(prices.start_up[before, after].sum()) + end_start_up,
        restore=float(prices.restore[before, after].sum()) + end_restore,
        risk=float(prices.risk[before, after].sum()) + end_risk,
    )
