"""The compiled loops of the plan search: backward over time, then forward along one plan.

Everything here is arithmetic on a `Problem`; what its numbers mean stands there. Going backward, backlog lives on a
grid with linear interpolation; plans are rolled out forward without one.
"""

from typing import NamedTuple

import numpy as np

from cost_model.backlog import HIGHEST_LOAD
from cost_model.fluid import compiled, lag_after, share_late
from cost_model.problem import Problem
from forecasting.units import FloatArray, IntArray

# Two plans whose prices differ by less than this fraction are equal, and the one that stays is taken.
TIE_FRACTION = 1e-12


class Move(NamedTuple):
    """From one choice to another (or the same), taking effect at a step; choices are indices."""

    step: int
    before: int
    after: int


class Staying(NamedTuple):
    """Price of staying in each choice for one step and the best from there, and the grid cells its backlog goes to."""

    prices: FloatArray
    cells: IntArray


class RollOut(NamedTuple):
    """One plan played forward: money by item, and where it leaves the group.

    `smooth_lag` is the backlog that the same plan would end with if its moves stopped nothing.
    """

    running: float
    late: float
    pause_late: float
    held: float
    repeated: float
    start_up: float
    risk: float
    lag: float
    smooth_lag: float
    path: IntArray


@compiled
def next_lag_of(problem: Problem, move: Move, lag: float) -> float:
    """Backlog one step on; the stop of a move adds what it kept from being consumed, at once."""
    lost = problem.lost_messages[move.before, move.after]
    return lag_after(lag, problem.demand[move.step], problem.capacity[move.after], problem.step_seconds, lost)


@compiled
def transient_messages(problem: Problem, move: Move) -> float:
    """Messages that the stop of a move makes late, over both classes of partitions; 0 for staying."""
    load = min(problem.demand[move.step] / problem.capacity[move.after], HIGHEST_LOAD)
    overruns, shares = problem.pause_overruns[move.before, move.after], problem.pause_shares[move.before, move.after]
    first = shares[0] * min(overruns[0] / (1.0 - load), problem.step_seconds)
    second = shares[1] * min(overruns[1] / (1.0 - load), problem.step_seconds)
    return float(problem.demand[move.step] * (first + second))


@compiled
def move_price(problem: Problem, move: Move) -> float:
    """What a move costs apart from what its stop makes late."""
    if move.before == move.after:
        return 0.0
    repeated = problem.repeat_price[move.before, move.after] * problem.demand[move.step]
    return float(problem.risk_price + problem.start_up_price[move.before, move.after] + repeated)


@compiled
def late_messages(problem: Problem, move: Move, lag: float, next_lag: float) -> float:
    """Messages of one step that wait too long, by its backlog at both ends."""
    capacity, arriving = problem.capacity[move.after], problem.demand[move.step] * problem.step_seconds
    return float(arriving * share_late(lag / capacity, next_lag / capacity, problem.max_lag_seconds))


@compiled
def step_price(problem: Problem, move: Move, lag: float, next_lag: float, transient: float) -> float:
    """Running, late and held price of one step that goes from one backlog to another.

    Late is the larger of backlog and transient, never the sum: backlog already sees a catch-up that outlasts the step.
    """
    late = max(late_messages(problem, move, lag, next_lag), transient)
    held = 0.5 * (lag + next_lag) * problem.step_seconds
    return float(problem.running_price[move.after] + problem.late_price * late + problem.held_price * held)


@compiled
def interpolated(grid: FloatArray, row: FloatArray, lag: float, cell: int) -> tuple[float, int]:
    """The row's value at `lag`, and its grid cell, looked for from `cell` upwards; beyond the grid the last slope."""
    while cell < grid.size - 2 and grid[cell + 1] <= lag:
        cell += 1
    slope = (row[cell + 1] - row[cell]) / (grid[cell + 1] - grid[cell])
    return row[cell] + slope * (lag - grid[cell]), cell


@compiled
def price_staying(problem: Problem, step: int, following: FloatArray, staying: Staying) -> None:
    """Fill `staying` for one step; `following` (a, G) holds the least prices from the step after it."""
    for choice in range(following.shape[0]):
        stay, cell = Move(step, choice, choice), 0
        for point in range(following.shape[1]):
            lag = problem.lag_grid[point]
            next_lag = next_lag_of(problem, stay, lag)
            value, cell = interpolated(problem.lag_grid, following[choice], next_lag, cell)
            staying.prices[choice, point] = step_price(problem, stay, lag, next_lag, 0.0) + value
            staying.cells[choice, point] = cell


@compiled
def improve_by_moving(problem: Problem, move: Move, following: FloatArray, staying: Staying, best: FloatArray) -> None:
    """Lower `best` (G,), the least prices from `move.before`, wherever the move is cheaper.

    A move costs at least its fixed price and what staying in its target costs from the same backlog, because prices
    never fall with backlog. Most moves fail that test, which saves their pricing.
    """
    fixed, transient = move_price(problem, move), transient_messages(problem, move)
    for point in range(best.size):
        if fixed + staying.prices[move.after, point] >= best[point]:
            continue
        lag = problem.lag_grid[point]
        next_lag = next_lag_of(problem, move, lag)
        value, _ = interpolated(problem.lag_grid, following[move.after], next_lag, staying.cells[move.after, point])
        best[point] = min(best[point], fixed + step_price(problem, move, lag, next_lag, transient) + value)


@compiled
def sweep_back(problem: Problem, ending: FloatArray) -> FloatArray:
    """Least price from each step, choice and backlog to the end: (H + 1, a, G), the last row being `ending`."""
    steps, (choices, points) = problem.demand.size, ending.shape
    values = np.empty((steps + 1, choices, points))
    values[steps] = ending
    staying = Staying(np.empty((choices, points)), np.empty((choices, points), np.int64))
    for step in range(steps - 1, -1, -1):
        price_staying(problem, step, values[step + 1], staying)
        values[step] = staying.prices
        for before in range(choices):
            for after in range(choices):
                if after != before and step >= problem.first_step[before, after]:
                    move = Move(step, before, after)
                    improve_by_moving(problem, move, values[step + 1], staying, values[step, before])
    return values


@compiled
def price_from(problem: Problem, values: FloatArray, move: Move, lag: float) -> tuple[float, float]:
    """Price of a move (or of staying) and the best from there, and the backlog that its step ends with."""
    next_lag = next_lag_of(problem, move, lag)
    now = move_price(problem, move) + step_price(problem, move, lag, next_lag, transient_messages(problem, move))
    value, _ = interpolated(problem.lag_grid, values[move.step + 1, move.after], next_lag, 0)
    return now + value, next_lag


@compiled
def price_single_moves(problem: Problem, values: FloatArray, present: int, lag: float) -> FloatArray:
    """(a, H): price of holding until a step, then moving to a choice, then the best; infinite where unavailable."""
    steps, choices = problem.demand.size, problem.capacity.size
    totals = np.full((choices, steps), np.inf)
    paid = 0.0
    for step in range(steps):
        for after in range(choices):
            if after != present and step >= problem.first_step[present, after]:
                price, _ = price_from(problem, values, Move(step, present, after), lag)
                totals[after, step] = paid + price
        stay = Move(step, present, present)
        next_lag = next_lag_of(problem, stay, lag)
        paid += step_price(problem, stay, lag, next_lag, 0.0)
        lag = next_lag
    return totals


@compiled
def best_choice(problem: Problem, values: FloatArray, stay: Move, lag: float) -> int:
    """The cheapest choice for a step; a tie stays."""
    best = stay.before
    least, _ = price_from(problem, values, stay, lag)
    for after in range(problem.capacity.size):
        if after != stay.before and stay.step >= problem.first_step[stay.before, after]:
            price, _ = price_from(problem, values, Move(stay.step, stay.before, after), lag)
            if price < least - TIE_FRACTION * abs(least):
                best, least = after, price
    return best


@compiled
def roll_out(problem: Problem, values: FloatArray, first: Move, lag: float) -> RollOut:
    """Hold until the first move (at step H: to the end), carry it out, then the best from each state; items apart.

    A message counts as late because of a pause if it would not be late had the plan's moves stopped nothing.
    """
    steps, present, smooth_lag = problem.demand.size, first.before, lag
    path = np.empty(steps, np.int64)
    running, late, pause_late, held, repeated, start_up, risk = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for step in range(steps):
        after = present
        if step == first.step:
            after = first.after
        elif step > first.step:
            after = best_choice(problem, values, Move(step, present, present), lag)
        move = Move(step, present, after)
        next_lag = next_lag_of(problem, move, lag)
        next_smooth = next_lag_of(problem, Move(step, after, after), smooth_lag)
        smooth_late = late_messages(problem, move, smooth_lag, next_smooth)
        all_late = max(late_messages(problem, move, lag, next_lag), transient_messages(problem, move))
        running += problem.running_price[after]
        late += problem.late_price * smooth_late
        pause_late += problem.late_price * max(0.0, all_late - smooth_late)
        held += problem.held_price * 0.5 * (lag + next_lag) * problem.step_seconds
        if after != present:
            repeated += problem.repeat_price[present, after] * problem.demand[step]
            start_up += problem.start_up_price[present, after]
            risk += problem.risk_price
        path[step] = after
        present, lag, smooth_lag = after, next_lag, next_smooth
    return RollOut(running, late, pause_late, held, repeated, start_up, risk, lag, smooth_lag, path)
