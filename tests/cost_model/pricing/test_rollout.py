"""The compiled rollout, whose prices are published, compared with the same arithmetic by hand."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_model.pricing.price import Cost
from cost_model.pricing.rollout import Start, fill_calm_needs, itemise_plan, needed
from cost_model.pricing.simulation_inputs import simulation_inputs_of
from cost_model.pricing.situation import Situation, Uncertainty
from forecasting.units import FloatArray, Fraction, read_only
from tests.cost_model.drawn import small_group, small_situation
from tests.cost_model.pricing_by_hand import Scenario, of_plan

Moves = tuple[tuple[int, int], ...]


@st.composite
def played(draw: st.DrawFn) -> tuple[Situation, Scenario, Moves]:
    """Small groups of every protocol over 2 to 20 minutes, from idle to overloaded, with up to three moves."""
    partitions, steps = draw(st.integers(1, 12)), draw(st.integers(2, 20))
    profile = small_group(
        draw,
        partitions,
        protocols=("eager", "cooperative", "kip848"),
        client=draw(st.sampled_from(["java", "librdkafka"])),
        ungraceful_share=draw(st.sampled_from([None, Fraction(0.5)])),
    )
    situation = small_situation(
        draw,
        profile,
        np.zeros(steps),
        target_utilization=0.97,
        rebalance_pause_prior_scale_in_seconds=draw(st.sampled_from([None, 20.0])),
        pause_spread=0.0,
        behind_seconds=draw(st.sampled_from([0.0, 20.0])),
    )
    # A third of 5e-324 is 0 in one order of the arithmetic and 5e-324 in the other: no rates that small.
    rates = st.floats(0.0, 130.0 * partitions, allow_subnormal=False)
    scenario = Scenario(
        demand=tuple(draw(st.lists(rates, min_size=steps, max_size=steps))),
        rate_now=draw(rates),
        pause_factor=draw(st.sampled_from([1.0, 2.5])),
        capacity_factor=draw(st.sampled_from([1.0, 0.9])),
    )
    counts = st.integers(1, partitions)
    moves = draw(st.lists(st.tuples(st.integers(0, steps), counts), max_size=3, unique_by=lambda move: move[0]))
    return situation, scenario, tuple(sorted(moves))


def cost_played(situation: Situation, scenario: Scenario, moves: Moves) -> tuple[Cost, tuple[int, ...]]:
    """The price of a plan by the compiled loop, no reaction being allowed, and the choices."""
    inputs, choices = simulation_inputs_of(
        situation,
        Uncertainty(
            demand_messages_per_second=np.array([scenario.demand]),
            rate_now_messages_per_second=scenario.rate_now,
            risk_weight=0.0,
            rest_up_steps=0,
            rest_down_steps=0,
        ),
    )
    inputs = inputs._replace(
        pause_factor=np.array([scenario.pause_factor]),
        capacity_factor=np.array([scenario.capacity_factor]),
        earliest_step=len(scenario.demand),
    )
    plan = np.array([*(number for at, count in moves for number in (at, choices.index(count))), -1, -1])
    start = Start(choices.index(situation.replicas), situation.lag_messages, 0.0, situation.behind_seconds)
    items = itemise_plan(inputs, start, plan)[0].tolist()
    return Cost(**dict(zip((item.name for item in fields(Cost)), items, strict=True))), choices


def useful(situation: Situation, moves: Moves) -> Moves:
    """The moves with each target lowered to the smallest count that carries as much."""
    partitions = situation.profile.partitions
    return tuple((at, -(-partitions // -(-partitions // count))) for at, count in moves)


@settings(max_examples=300)
@given(played())
def test_a_played_plan_has_the_cost_computed_by_hand(drawn: tuple[Situation, Scenario, Moves]) -> None:
    """Item by item, to rounding: stops, backlogs of three classes, duplicates, losses, start-ups and the end."""
    situation, scenario, moves = drawn
    moves = useful(situation, moves)
    cost, choices = cost_played(situation, scenario, moves)
    by_hand, _ = of_plan(situation, scenario, choices, moves)
    for item in fields(Cost):
        assert getattr(cost, item.name) == pytest.approx(getattr(by_hand, item.name), rel=1e-9, abs=1e-12), item.name


@settings(max_examples=300)
@given(played())
def test_where_nothing_reacts_a_plan_that_holds_its_last_count_has_the_cost_of_one_that_may_leave_it(
    drawn: tuple[Situation, Scenario, Moves],
) -> None:
    """To the last bit, though the first one passes over the steps in which nothing waits, comes late or moves."""
    situation, scenario, moves = drawn
    steps = len(scenario.demand)
    made = tuple((at, count) for at, count in useful(situation, moves) if at < steps)
    last = made[-1][1] if made else situation.replicas
    assert cost_played(situation, scenario, (*made, (steps, last))) == cost_played(situation, scenario, made)


@given(st.lists(st.floats(0.0, 3_000.0), min_size=1, max_size=20), st.sampled_from([1.0, 0.9, 1.1]))
def test_where_nothing_waits_the_smallest_count_that_carries_the_last_step_is_needed(
    plain: Situation, rates: list[float], factor: float
) -> None:
    """Wherever the search begins: what all plans share in a scenario is what each of them would find."""
    inputs, choices = simulation_inputs_of(
        plain,
        Uncertainty(
            demand_messages_per_second=np.array([rates]),
            rate_now_messages_per_second=600.0,
            risk_weight=0.0,
            rest_up_steps=0,
            rest_down_steps=0,
        ),
    )
    inputs = inputs._replace(capacity_factor=np.array([factor]))
    needs = np.zeros(len(rates), np.int64)
    fill_calm_needs(inputs, 0, needs)
    smallest = np.minimum(np.searchsorted(inputs.carried, np.array(rates) / factor), len(choices) - 1)
    assert needs[1:].tolist() == smallest[:-1].tolist()
    for near in range(len(choices)):
        assert needed(inputs, rates[0] / factor, near) == smallest[0]


@pytest.mark.parametrize("given", [read_only(np.full((4, 60), 600.0)), np.asfortranarray(np.full((4, 60), 600.0))])
def test_the_loop_gets_rates_of_one_layout_whatever_it_is_given(plain: Situation, given: FloatArray) -> None:
    """The machine code is compiled, for 6 s, for each layout of arrays: read-only and transposed ones are copied."""
    rates = Uncertainty(
        demand_messages_per_second=given,
        rate_now_messages_per_second=600.0,
        risk_weight=0.0,
        rest_up_steps=0,
        rest_down_steps=0,
    )
    demand = simulation_inputs_of(plain, rates)[0].demand
    assert demand.flags.writeable
    assert demand.flags.c_contiguous


def test_no_move_is_made_earlier_than_it_may_be(plain: Situation) -> None:
    """A planned move down waits for the minute after the load has fallen: 13 replicas run for one minute more."""
    demand = tuple(np.repeat([1800.0, 600.0], 30).tolist())
    scenario = Scenario(demand=demand, rate_now=1800.0)
    early, late = (cost_played(replace(plain, replicas=20), scenario, ((at, 7),))[0] for at in (20, 31))
    assert early == late
    assert early.replicas == pytest.approx(0.05 * (20 * 31 + 7 * 29) / 60.0)


def test_a_move_deals_the_slow_replicas_backlog_out_with_their_partitions(plain: Situation) -> None:
    """8 replicas, of whom the slower two are 20 s behind at 700/s: 3,500 messages, of which 10 share 3.5 s each.

    Assigned again, lagging partitions are shared by all: within a promise of 5 s nothing is late. Without a move,
    the slow ones, which carry 188/s, take a minute to consume 780 messages, and all that they get stays late.
    """
    steady = replace(plain, replicas=8, behind_seconds=20.0, profile=replace(plain.profile, max_poll_records=0))
    scenario = Scenario(demand=(700.0, 700.0, 700.0), rate_now=700.0)
    moved, kept = (cost_played(steady, scenario, moves)[0] for moves in (((0, 10),), ()))
    assert moved.late == moved.pause_late == 0.0
    assert kept.late >= 1e-5 * 3 * 60 * 175.0
