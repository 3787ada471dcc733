"""Laws that hold for every plan search, whatever the group, the load and the prices."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_model.pricing.price import Cost
from cost_model.search.optimise import PlanSearch, Situation, search, solve
from cost_model.search.problem import tabulate
from forecasting.units import MessagesPerSecond, Replicas, Seconds
from tests.cost_model.drawn import PRICES, small_group, small_situation


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """Small groups, eager and cooperative, over 2 to 20 minutes, from idle to overloaded."""
    partitions, steps = draw(st.integers(1, 12)), draw(st.integers(2, 20))
    demand = draw(st.lists(st.floats(0.0, 130.0 * partitions), min_size=steps, max_size=steps))
    return small_situation(draw, small_group(draw, partitions), np.array(demand), target_utilization=0.85)


def _items(cost: Cost) -> list[float]:
    return [float(getattr(cost, item.name)) for item in fields(cost)]


def _with_price(situation: Situation, name: str, price: float) -> Situation:
    return replace(situation, prices=replace(situation.prices, **{name: price}))  # type: ignore[arg-type]  # all floats


def _least(situation: Situation, *, grid_of: Situation, ending: bool = True) -> float:
    """The least price, on the grid of another situation: on one grid, what is true of backlogs is true of prices."""
    tables, grid = tabulate(situation), tabulate(grid_of).problem.lag_grid
    tables = replace(tables, problem=tables.problem._replace(lag_grid=grid))
    if not ending:
        nothing = replace(tables.ending, moves=np.zeros_like(tables.ending.moves), backlog_price=0.0, late_price=0.0)
        tables = replace(tables, ending=nothing)
    return solve(situation, tables).best_total


def _plan(found: PlanSearch) -> tuple[int, int] | None:
    best = found.best()
    return None if best is None else (best.target, best.effective_step)


@settings(max_examples=40)
@given(situations())
def test_every_price_is_a_sum_of_items_that_are_not_negative(situation: Situation) -> None:
    """Staying, and each move at its best time: no item is below 0, and the total is their sum."""
    found = search(situation)
    moves = [move for move in (curve.best() for curve in found.single_moves) if move is not None]
    for cost in (found.stay, *(found.itemised(move.target, move.effective_step) for move in moves)):
        assert min(_items(cost)) >= 0.0
        assert cost.total == pytest.approx(sum(_items(cost)))


@settings(max_examples=40)
@given(situations())
def test_plans_stay_within_the_choices(situation: Situation) -> None:
    """The best plan's target is a choice, and none is more expensive than staying or than any other plan."""
    found = search(situation)
    best = found.best()
    assert situation.replicas in found.choices
    assert max(found.choices) <= max(situation.replicas, situation.profile.partitions)
    if best is None:
        assert found.stay.total >= found.best_total
    else:
        assert best.target in found.choices
        assert best.target <= situation.profile.partitions
        assert best.total == pytest.approx(found.best_total)
        assert found.itemised(best.target, best.effective_step).total < found.stay.total
        assert best.command_step >= 0


@settings(max_examples=25)
@given(situations(), st.sampled_from(PRICES), st.floats(1.0, 20.0))
def test_the_least_price_rises_and_bends_down_with_each_price(situation: Situation, name: str, factor: float) -> None:
    """A higher price never makes the best plan cheaper, and the higher it gets the more of it the plan avoids."""
    price = getattr(situation.prices, name) or 1e-6
    low, middle, high = (
        search(_with_price(situation, name, price * by)).best_total for by in (1.0, (1.0 + factor) / 2.0, factor)
    )
    assert low <= middle * (1 + 1e-12) + 1e-15
    assert middle <= high * (1 + 1e-12) + 1e-15
    assert middle >= (low + high) / 2.0 * (1 - 1e-9)


@settings(max_examples=25)
@given(situations(), st.sampled_from([0.01, 2.0, 1024.0]))
def test_another_currency_is_the_same_plan(situation: Situation, factor: float) -> None:
    """All prices times a factor: every total times that factor, and the same plan."""
    prices = replace(situation.prices, **{name: factor * getattr(situation.prices, name) for name in PRICES})
    one, other = search(situation), search(replace(situation, prices=prices))
    assert other.best_total == pytest.approx(factor * one.best_total)
    assert other.stay.total == pytest.approx(factor * one.stay.total)
    if factor > 1.0:  # powers of two, so that ties stay ties to the last bit
        assert _plan(one) == _plan(other)


@settings(max_examples=25)
@given(situations())
def test_counting_in_units_of_1024_messages_changes_nothing(situation: Situation) -> None:
    """Messages, rates and capacity divided by 1,024 and prices per message times 1,024: the same plan and price."""
    capacity = situation.profile.capacity
    assert capacity is not None
    rate = MessagesPerSecond(capacity.p20 / 1024)
    rated = replace(capacity, p20=rate, p50=rate, p90=rate)
    per_message = ("price_per_late_message", "price_per_duplicate_message", "price_per_held_message_second")
    other = replace(
        situation,
        profile=replace(situation.profile, capacity=rated),
        prices=replace(situation.prices, **{name: 1024 * getattr(situation.prices, name) for name in per_message}),
        demand_messages_per_second=situation.demand_messages_per_second / 1024,
        lag_messages=situation.lag_messages / 1024,
    )
    one, two = search(situation), search(other)
    assert two.best_total == pytest.approx(one.best_total)
    assert two.stay.total == pytest.approx(one.stay.total)


@settings(max_examples=40)
@given(situations(), st.sampled_from(["lag", "pause", "start_up"]))
def test_a_harder_situation_is_never_cheaper(situation: Situation, harder: str) -> None:
    """More backlog, longer pauses or a longer start-up: no plan gets cheaper."""
    profile = situation.profile
    slower = replace(profile, start_up_seconds=Seconds(profile.start_up_seconds + 120.0))
    worse = {
        "lag": replace(situation, lag_messages=situation.lag_messages + 3_000.0),
        "pause": replace(situation, rebalance_pause_prior_seconds=40.0),
        "start_up": replace(situation, profile=slower),
    }[harder]
    assert search(worse).stay.total >= search(situation).stay.total * (1 - 1e-9)
    assert _least(worse, grid_of=worse) >= _least(situation, grid_of=worse) * (1 - 1e-9)


@settings(max_examples=40)
@given(situations(), st.sampled_from(["load", "capacity", "maximum"]))
def test_more_work_for_fewer_is_never_cheaper(situation: Situation, harder: str) -> None:
    """More load, less capacity or a lower maximum: within the horizon, no plan gets cheaper.

    The price of the end is left out: the count that it goes home to is another one then, perhaps the present one.
    """
    profile, capacity = situation.profile, situation.profile.capacity
    assert capacity is not None
    less = replace(capacity, p20=MessagesPerSecond(0.8 * capacity.p20))
    worse = {
        "load": replace(situation, demand_messages_per_second=1.3 * situation.demand_messages_per_second + 5.0),
        "capacity": replace(situation, profile=replace(profile, capacity=less)),
        "maximum": replace(situation, profile=replace(profile, max_replicas=Replicas(3))),
    }[harder]
    harder_least = _least(worse, grid_of=worse, ending=False)
    assert harder_least >= _least(situation, grid_of=worse, ending=False) * (1 - 1e-9)


@settings(max_examples=25)
@given(situations(), st.integers(0, 25))
def test_nothing_moves_before_it_may(situation: Situation, earliest: int) -> None:
    """No curve has a price before the minimum interval is over, nor an up-move before its replicas can have started."""
    found = search(replace(situation, earliest_move_step=earliest))
    for curve in found.single_moves:
        first = max(earliest, curve.lead_steps)
        assert np.all(np.isinf(curve.totals[:first]))
        if curve.target in range(1, situation.profile.partitions + 1):
            assert np.all(np.isfinite(curve.totals[first:]))
