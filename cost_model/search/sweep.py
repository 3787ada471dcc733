"""The compiled loops of the plan search: backward over time, then forward along one plan.

Everything here is arithmetic on a `Problem`, which explains its numbers. Going backward, backlog lives on a grid with
linear interpolation; plans are played forward without one.
"""

from typing import NamedTuple

import numpy as np

from cost_model.physics.fluid import share_late
from cost_model.search.problem import Problem
from forecasting.compiled import compiled
from forecasting.units import FloatArray, IntArray

# Two plans whose prices differ by less than this fraction are equal, and the one that stays is taken.
TIE_FRACTION = 1e-12


class Move(NamedTuple):
    """From one choice to another (or the same), taking effect at a step; choices are indices."""

    step: int
    before: int
    after: int


class Terms(NamedTuple):
    """One move at one step as plain numbers, so that the innermost loops touch no array of the problem."""

    fixed: float
    change: float
    transient: float
    arriving: float
    on_time: float
    late_price: float
    held_price: float


class Staying(NamedTuple):
    """By backlog (G,): the price of staying in one choice for a step, then the best; and the cell backlog goes to."""

    prices: FloatArray
    cells: IntArray


class Played(NamedTuple):
    """One plan played forward: choices and messages, one value per step, and the group's state at its end.

    `smooth_late` and `smooth_lag` are the values of the same plan if its moves stopped nothing; `held` sums the
    backlogs at both ends of each step.
    """

    path: IntArray
    late: FloatArray
    smooth_late: FloatArray
    held: FloatArray
    lag: float
    smooth_lag: float


@compiled
def terms_of(problem: Problem, move: Move) -> Terms:
    """The numbers of one move; those of staying where both choices are the same."""
    return Terms(
        problem.fixed[move.step, move.before, move.after],
        problem.change[move.step, move.before, move.after],
        problem.transient[move.step, move.before, move.after],
        problem.arriving[move.step],
        problem.on_time[move.after],
        problem.late_price,
        problem.held_price,
    )


@compiled
def late_messages(terms: Terms, lag: float, next_lag: float) -> float:
    """Late is the larger of backlog and transient, never the sum: backlog has a catch-up that outlasts the step."""
    return max(terms.arriving * share_late(lag, next_lag, terms.on_time), terms.transient)


@compiled
def step_price(terms: Terms, lag: float, next_lag: float) -> float:
    """Price of one step that goes from one backlog to another."""
    late = late_messages(terms, lag, next_lag)
    return terms.fixed + terms.late_price * late + terms.held_price * (lag + next_lag)


@compiled
def cell_of(grid: FloatArray, lag: float, cell: int) -> int:
    """The grid cell of a backlog, searched from `cell` upwards; beyond the grid the last one."""
    while cell < grid.size - 2 and grid[cell + 1] <= lag:
        cell += 1
    return cell


@compiled
def interpolated(grid: FloatArray, row: FloatArray, lag: float, cell: int) -> float:
    """The row's value at a backlog in that cell; beyond the grid along the last slope."""
    slope = (row[cell + 1] - row[cell]) / (grid[cell + 1] - grid[cell])
    return row[cell] + slope * (lag - grid[cell])  # type: ignore[no-any-return]  # numpy types an element as Any


@compiled
def price_staying(terms: Terms, grid: FloatArray, following: FloatArray, staying: Staying) -> None:
    """Fill `staying` for one choice; `following` (G,) holds its least prices from the next step on."""
    cell = 0
    for point in range(grid.size):
        next_lag = max(0.0, grid[point] + terms.change)
        cell = cell_of(grid, next_lag, cell)
        staying.cells[point] = cell
        staying.prices[point] = step_price(terms, grid[point], next_lag) + interpolated(grid, following, next_lag, cell)


@compiled
def improve(problem: Problem, move: Move, following: FloatArray, staying: Staying, best: FloatArray) -> None:
    """Lower `best` (G,), the least prices from `move.before`, wherever the move is cheaper.

    A move costs at least its own price and that of staying in its target from the same backlog, because prices never
    fall with backlog. Most moves fail that test, which saves their pricing.
    """
    terms, grid = terms_of(problem, move), problem.lag_grid
    least = terms.fixed - problem.fixed[move.step, move.after, move.after]
    for point in range(best.size):
        if least + staying.prices[point] < best[point]:
            next_lag = max(0.0, grid[point] + terms.change)
            cell = cell_of(grid, next_lag, staying.cells[point])
            price = step_price(terms, grid[point], next_lag) + interpolated(grid, following, next_lag, cell)
            best[point] = min(best[point], price)


@compiled
def sweep_back(problem: Problem, ending: FloatArray) -> FloatArray:
    """Least price from each step, choice and backlog to the end: (H + 1, a, G), the last row being `ending`."""
    steps, (choices, points) = problem.arriving.size, ending.shape
    values = np.empty((steps + 1, choices, points))
    values[steps] = ending
    prices, cells = np.empty((choices, points)), np.empty((choices, points), np.int64)
    for step in range(steps - 1, -1, -1):
        following = values[step + 1]
        for stay in range(choices):
            terms = terms_of(problem, Move(step, stay, stay))
            price_staying(terms, problem.lag_grid, following[stay], Staying(prices[stay], cells[stay]))
        values[step] = prices
        # From the largest: where backlog is high it is the best target, and all others then fail the first test.
        for after in range(choices - 1, -1, -1):
            for before in range(choices):
                if before != after and problem.fixed[step, before, after] < np.inf:
                    move = Move(step, before, after)
                    improve(problem, move, following[after], Staying(prices[after], cells[after]), values[step, before])
    return values


@compiled
def price_from(problem: Problem, values: FloatArray, move: Move, lag: float) -> float:
    """Price of a move (or of staying), then the best from there."""
    terms = terms_of(problem, move)
    next_lag = max(0.0, lag + terms.change)
    cell = cell_of(problem.lag_grid, next_lag, 0)
    following = interpolated(problem.lag_grid, values[move.step + 1, move.after], next_lag, cell)
    return step_price(terms, lag, next_lag) + following


@compiled
def price_single_moves(problem: Problem, values: FloatArray, present: int, lag: float) -> FloatArray:
    """(a, H): price of holding until a step, then moving to a choice, then the best; infinite where unavailable."""
    steps, choices = problem.arriving.size, problem.on_time.size
    totals = np.full((choices, steps), np.inf)
    paid = 0.0
    for step in range(steps):
        for after in range(choices):
            if after != present and problem.fixed[step, present, after] < np.inf:
                totals[after, step] = paid + price_from(problem, values, Move(step, present, after), lag)
        terms = terms_of(problem, Move(step, present, present))
        next_lag = max(0.0, lag + terms.change)
        paid += step_price(terms, lag, next_lag)
        lag = next_lag
    return totals


@compiled
def best_choice(problem: Problem, values: FloatArray, stay: Move, lag: float) -> int:
    """The cheapest choice for a step; a tie stays."""
    best, least = stay.before, price_from(problem, values, stay, lag)
    for after in range(problem.on_time.size):
        if after != stay.before and problem.fixed[stay.step, stay.before, after] < np.inf:
            price = price_from(problem, values, Move(stay.step, stay.before, after), lag)
            if price < least - TIE_FRACTION * abs(least):
                best, least = after, price
    return best


@compiled
def play(problem: Problem, values: FloatArray, first: Move, lag: float) -> Played:
    """Hold until the first move (at step H: to the end), make it, then the best choice from each state."""
    steps, present, smooth_lag = problem.arriving.size, first.before, lag
    path = np.empty(steps, np.int64)
    late, smooth_late, held = np.empty(steps), np.empty(steps), np.empty(steps)
    for step in range(steps):
        after = present
        if step == first.step:
            after = first.after
        elif step > first.step:
            after = best_choice(problem, values, Move(step, present, present), lag)
        terms, smooth = terms_of(problem, Move(step, present, after)), terms_of(problem, Move(step, after, after))
        next_lag, next_smooth = max(0.0, lag + terms.change), max(0.0, smooth_lag + smooth.change)
        path[step] = after
        late[step] = late_messages(terms, lag, next_lag)
        smooth_late[step] = late_messages(smooth, smooth_lag, next_smooth)
        held[step] = lag + next_lag
        present, lag, smooth_lag = after, next_lag, next_smooth
    return Played(path, late, smooth_late, held, lag, smooth_lag)
