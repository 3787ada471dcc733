"""Laws of every comparison of plans over scenarios, for any group, load and prices."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cost_model.physics.profile import Capacity
from cost_model.pricing.price import Cost
from cost_model.pricing.rollout import ENDING_STEPS
from cost_model.pricing.situation import Situation, Uncertainty
from cost_model.search.evaluation import ANNOUNCED_FRACTION, PlanEvaluation, evaluate_plans
from cost_model.search.verdict import HALVINGS, MOST_OCTAVES, _nearest, outweighed
from forecasting.units import FloatArray, MessagesPerSecond, Replicas
from tests.cost_model.drawn import PRICES, priced, small_group, small_situation

PER_MESSAGE = ("price_per_late_message", "price_per_duplicate_message", "price_per_held_message_second")
# The first look sees 16 scenarios, so that 8 of them twice are the same 8 to every stage.
SCENARIOS = 8
Question = tuple[Situation, Uncertainty]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Small groups, eager and cooperative, over 2 to 30 minutes in 8 scenarios, from idle to overloaded."""
    partitions, steps = draw(st.integers(1, 12)), draw(st.integers(2, 30))
    profile = small_group(draw, partitions, max_replicas=draw(st.sampled_from([None, Replicas(4)])))
    levels = draw(st.lists(st.floats(0.0, 130.0 * partitions), min_size=2, max_size=2))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    ramp = np.linspace(levels[0], levels[1], steps)
    demand = ramp * random.uniform(0.7, 1.3, (SCENARIOS, 1)) * random.uniform(0.9, 1.1, (SCENARIOS, steps))
    situation = small_situation(
        draw,
        profile,
        np.quantile(demand, 0.9, axis=0),
        late_prices=(5e-7, 5e-6, 1e-4),
        move_prices=(1e-3, 0.02, 0.1),
        target_utilization=0.95,
        pause_spread=0.0,
        earliest_move_step=draw(st.sampled_from([0, 0, 3])),
    )
    uncertainty = Uncertainty(
        demand_messages_per_second=demand,
        rate_now_messages_per_second=float(demand[:, 0].mean()),
        risk_weight=draw(st.sampled_from([0.0, 0.1, 0.5])),
        rest_up_steps=0,
        rest_down_steps=5,
    )
    return situation, uncertainty


def decided(found: PlanEvaluation) -> tuple[int, int] | None:
    """The advised target and the step of its move, or None to stay."""
    best = found.best()
    return None if best is None else (best.target, best.effective_step)


def chosen(found: PlanEvaluation) -> Cost:
    """The chosen plan's price, itemised."""
    return found.cost(found.best_row)


@settings(max_examples=40)
@given(questions())
def test_items_are_not_negative_and_add_up_to_the_total(question: Question) -> None:
    """Every finalist: the mean of its totals over the scenarios is the sum of its items, none of them below 0."""
    found = evaluate_plans(*question)
    for row in range(len(found.plans)):
        cost = found.cost(row)
        assert min(getattr(cost, item.name) for item in fields(cost)) >= 0.0
        assert cost.total == pytest.approx(float(found.totals[row].mean()))


@settings(max_examples=30)
@given(questions(), st.sampled_from([0.5, 2.0, 1024.0]))
def test_another_currency_is_the_same_decision(question: Question, factor: float) -> None:
    """All prices times a power of two, so that ties stay ties: every total times that factor, the same move."""
    situation, uncertainty = question
    other = priced(situation, **{name: factor * getattr(situation.prices, name) for name in PRICES})
    one, two = evaluate_plans(situation, uncertainty), evaluate_plans(other, uncertainty)
    assert decided(one) == decided(two)
    assert two.objective[two.best_row] == pytest.approx(factor * one.objective[one.best_row])
    assert two.cost(two.stay_row).total == pytest.approx(factor * one.cost(one.stay_row).total)


@settings(max_examples=30)
@given(questions())
def test_counting_in_units_of_1024_messages_changes_nothing(question: Question) -> None:
    """Messages, rates, capacity and a poll's records divided by 1,024, prices per message times it: the same answer."""
    situation, uncertainty = question
    situation = replace(situation, profile=replace(situation.profile, max_poll_records=1024))
    rate = MessagesPerSecond(100.0 / 1024)
    capacity = Capacity(p20=rate, p50=rate, p90=rate, source="configured")
    other = replace(
        priced(situation, **{name: 1024 * getattr(situation.prices, name) for name in PER_MESSAGE}),
        profile=replace(situation.profile, capacity=capacity, max_poll_records=1),
        demand_messages_per_second=situation.demand_messages_per_second / 1024,
        lag_messages=situation.lag_messages / 1024,
    )
    scaled = replace(
        uncertainty,
        demand_messages_per_second=uncertainty.demand_messages_per_second / 1024,
        rate_now_messages_per_second=uncertainty.rate_now_messages_per_second / 1024,
    )
    one, two = evaluate_plans(situation, uncertainty), evaluate_plans(other, scaled)
    assert decided(one) == decided(two)
    assert chosen(two).total == pytest.approx(chosen(one).total)


@settings(max_examples=30)
@given(questions())
def test_scenarios_counted_twice_change_nothing(question: Question) -> None:
    """Each path twice is each path once: the same mean, the same worst tenth, the same choice.

    Plans for single quantile paths are left out: a quantile between 8 values is another one between 16.
    """
    situation, uncertainty = question[0], replace(question[1], planned_quantiles=())
    twice = np.tile(uncertainty.demand_messages_per_second, (2, 1))
    one, two = (
        evaluate_plans(situation, uncertainty),
        evaluate_plans(situation, replace(uncertainty, demand_messages_per_second=twice)),
    )
    assert chosen(two).total == pytest.approx(chosen(one).total)
    assert two.objective[two.stay_row] == pytest.approx(one.objective[one.stay_row])


@settings(max_examples=60)
@given(questions())
def test_the_choice_is_useful_in_time_and_worth_it(question: Question) -> None:
    """No move beyond the partitions or the maximum, none before it may be, none above staying but one announced.

    Idle replicas go whatever it costs, and a later move up is announced if it is within 3 % of staying.
    """
    situation, _ = question
    found = evaluate_plans(*question)
    best, stay = found.best(), float(found.objective[found.stay_row])
    if best is None:
        assert found.best_row == found.stay_row
        return
    assert best.target != situation.replicas
    assert best.target <= situation.profile.replica_ceiling
    assert best.command_step >= 0
    assert best.effective_step >= situation.earliest_move_step
    price = float(found.objective[found.best_row])
    announced = best.target > situation.replicas and best.command_step > 0
    assert found.idle or price < stay or (announced and price <= (1.0 + ANNOUNCED_FRACTION) * stay)


@settings(max_examples=40)
@given(questions())
def test_a_move_down_is_advised_for_when_what_remains_carries_the_load(question: Question) -> None:
    """At the advised step the median of what arrived before is no more than what the smaller group carries."""
    situation, uncertainty = question
    found = evaluate_plans(*question)
    best = found.best()
    if best is None or best.target > situation.replicas or found.idle:
        return
    carried = found.inputs.carried[[found.choices.index(best.target), found.choices.index(situation.replicas)]]
    before = np.median(uncertainty.demand_messages_per_second, axis=0)[: best.effective_step]
    arrived = before[-1] if before.size else uncertainty.rate_now_messages_per_second
    assert arrived <= carried[0] or carried[0] >= carried[1]


def held(situation: Situation, uncertainty: Uncertainty) -> float:
    """The cost of staying for a group that may not move within the horizon."""
    steps = uncertainty.demand_messages_per_second.shape[1]
    return float(evaluate_plans(replace(situation, earliest_move_step=steps), uncertainty).totals[0].mean())


@settings(max_examples=40)
@given(questions(), st.sampled_from(["lag", "load", "capacity"]))
def test_staying_is_never_cheaper_where_it_is_harder(question: Question, harder: str) -> None:
    """For a group that may not move: more backlog, more load or less capacity, and staying costs no less.

    The move home at the end is left out of it: nothing arrives in the last ten steps.
    """
    situation, uncertainty = question
    known = uncertainty.demand_messages_per_second
    demand = np.hstack((known, np.zeros((known.shape[0], ENDING_STEPS))))
    situation = replace(
        situation,
        replicas=1,
        profile=replace(situation.profile, max_replicas=None),
        demand_messages_per_second=demand[0],
    )
    uncertainty = replace(uncertainty, demand_messages_per_second=demand)
    less = MessagesPerSecond(80.0)
    weaker = replace(situation.profile, capacity=Capacity(p20=less, p50=less, p90=less, source="configured"))
    worse = {
        "lag": (replace(situation, lag_messages=situation.lag_messages + 3000.0), uncertainty),
        "load": (situation, replace(uncertainty, demand_messages_per_second=1.3 * demand)),
        "capacity": (replace(situation, profile=weaker), uncertainty),
    }[harder]
    assert held(*worse) >= held(situation, uncertainty) * (1 - 1e-9)


def steady(rate: float) -> FloatArray:
    """An hour of one rate in every scenario."""
    return np.full((SCENARIOS, 60), rate)


def certain(plain: Situation, rate: float, replicas: int, **changes: float) -> Question:
    """The plain situation at a rate that is known, on so many replicas."""
    situation = replace(priced(plain, **changes), demand_messages_per_second=steady(rate)[0], replicas=replicas)
    uncertainty = Uncertainty(
        demand_messages_per_second=steady(rate),
        rate_now_messages_per_second=rate,
        risk_weight=0.1,
        rest_up_steps=0,
        rest_down_steps=5,
    )
    return situation, uncertainty


def test_a_more_expensive_move_never_adds_moves(plain: Situation) -> None:
    """An hour of ups and downs between 300 and 1,500/s: moves expected of the choice fall as their price rises."""
    demand = 900.0 + 600.0 * np.sin(np.arange(60) / 8.0) * np.ones((SCENARIOS, 1))
    counts = []
    for price in (0.001, 0.005, 0.02, 0.05, 0.1, 0.3, 1.0):
        situation, uncertainty = certain(plain, 900.0, 14, price_per_move=price)
        situation = replace(situation, demand_messages_per_second=demand[0])
        found = evaluate_plans(situation, replace(uncertainty, demand_messages_per_second=demand))
        counts.append(round(chosen(found).risk / price, 6))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


@settings(max_examples=30)
@given(questions())
def test_an_outweighed_plan_is_cheaper_on_average_and_more_expensive_with_its_risk(
    question: Question,
) -> None:
    """(1 - w) times what it saves on average is less than w times what it adds in the worst tenth."""
    found = evaluate_plans(*question)
    passed_over = outweighed(found)
    if passed_over is not None:
        row, less, more = passed_over
        assert less == pytest.approx(found.cost(found.best_row).total - found.cost(row).total)
        assert less > 0.0
        assert (1.0 - found.risk_weight) * less < found.risk_weight * more


@given(st.floats(0.1, 6.0), st.floats(0.1, 6.0))
def test_the_nearer_of_two_turns_is_found_to_a_sixteenth_of_an_octave(above: float, below: float) -> None:
    """A decision that turns `above` octaves up and `below` octaves down, each at most 4 if it turns at all."""
    turns = {1.0: above, -1.0: below}
    signs = [sign for sign, octaves in turns.items() if octaves <= MOST_OCTAVES]
    assume(signs)
    found = _nearest(lambda octaves: abs(octaves) >= turns[float(np.sign(octaves))], signs)
    assert turns[float(np.sign(found))] <= abs(found)
    assert 0.0 <= abs(found) - min(turns.values()) <= MOST_OCTAVES / 2**HALVINGS


def test_the_cost_of_a_rare_burst_decides_only_if_the_worst_tenth_counts(plain: Situation) -> None:
    """300/s on 8 replicas; in one of 8 scenarios 790/s from the tenth minute on."""
    situation, uncertainty = certain(plain, 300.0, 8, price_per_late_message=1e-5)
    demand = steady(300.0)
    demand[0, 10:] = 790.0
    careless = evaluate_plans(situation, replace(uncertainty, demand_messages_per_second=demand, risk_weight=0.0))
    careful = evaluate_plans(situation, replace(uncertainty, demand_messages_per_second=demand, risk_weight=0.5))
    down, kept = careless.best(), careful.best()
    assert down is not None
    assert down.target == 4
    assert outweighed(careless) is None
    assert kept is None or kept.target >= 8
    passed_over = outweighed(careful)
    assert passed_over is not None
    assert careful.plans[passed_over[0]].moves[0][1] == 4
