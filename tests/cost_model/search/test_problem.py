"""The search's own prices compared with the rollout's, which are published: equal but for intended differences.

The search proposes plans for one path; what is published is what the rollout makes of them. The two differ in
- capacity: p20 here; there p50, drawn in each scenario, a quarter of the busiest replicas being 6 % slower;
- backlog: one of the whole group here; there one for each of three classes, so that half a group may be late;
- a backlog's origin: batches that are not full here; there also full ones, and `behind_seconds` of the slower replicas;
- a stop's catch-up: at most a step here; at most ten minutes there;
- a move down: as planned here; there when what arrived in the step before allows it. A move up: from a whole step on
  here; there from within the step in which its replicas come;
- the end: the last step and whole replicas here; the mean of the last ten steps and `target_utilization` of them there;
- what follows: the best from each state here; there what a scaler would do that sees what arrives.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cost_model.physics.profile import Capacity, GroupProfile
from cost_model.pricing import simulation_inputs
from cost_model.pricing.price import Prices
from cost_model.pricing.situation import Situation
from cost_model.search.problem import tabulate
from cost_model.search.sweep import Move, step_price, terms_of
from forecasting.units import MessagesPerSecond, Partitions, Seconds
from tests.cost_model.pricing.test_rollout import Moves, cost_played
from tests.cost_model.pricing_by_hand import Scenario, carried, of_plan, stops

STEPS = 20
COUNTS = (1, 2, 3, 4, 6, 12)


@st.composite
def planned(draw: st.DrawFn) -> tuple[Situation, Moves]:
    """Twelve partitions on divisors of them, utilization 1, the last ten minutes alike."""
    rate = MessagesPerSecond(100.0)
    profile = GroupProfile(
        cluster="east",
        group="orders",
        partitions=Partitions(12),
        capacity=Capacity(p20=rate, p50=rate, p90=rate, source="configured"),
        protocol="eager",
        commit_mode=draw(st.sampled_from(["interval", "batch"])),
        start_up_seconds=Seconds(0.0),
        heartbeat_interval_seconds=Seconds(0.0),
        max_poll_records=0,
        poll_batch_seconds=Seconds(0.0),
        sync_seconds=Seconds(0.0),
        processing_p99_seconds=Seconds(draw(st.sampled_from([0.0, 60.0]))),
    )
    varied = draw(st.lists(st.floats(0.0, 1100.0), min_size=STEPS - 10, max_size=STEPS - 10))
    demand = np.array([*varied, *[draw(st.floats(0.0, 1100.0))] * 10])
    situation = Situation(
        profile=profile,
        prices=Prices(
            currency="EUR",
            price_per_replica_hour=0.05,
            price_per_late_message=draw(st.sampled_from([5e-6, 1e-4])),
            price_per_duplicate_message=1e-6,
            price_per_held_message_second=draw(st.sampled_from([0.0, 1e-9])),
            price_per_move=draw(st.sampled_from([1e-3, 0.1])),
        ),
        demand_messages_per_second=demand,
        step_seconds=60.0,
        replicas=draw(st.sampled_from(COUNTS)),
        lag_messages=draw(st.sampled_from([0.0, 500.0, 2e4])),
        max_lag_seconds=draw(st.sampled_from([1.0, 10.0, 60.0])),
        target_utilization=1.0,
        rebalance_pause_prior_seconds=draw(st.sampled_from([0.0, 3.0, 12.0])),
        rebalance_pause_prior_scale_in_seconds=draw(st.sampled_from([0.0, 3.0, 12.0])),
        pause_spread=0.0,
    )
    moves = draw(
        st.lists(st.tuples(st.integers(0, STEPS - 1), st.sampled_from(COUNTS)), max_size=4, unique_by=lambda at: at[0])
    )
    return situation, tuple(sorted(moves))


def searched(situation: Situation, moves: Moves) -> float:
    """The cost of a plan according to the search."""
    tables = tabulate(situation)
    choices, total, lag = tables.choices, 0.0, situation.lag_messages
    at, present = dict(moves), choices.index(situation.replicas)
    for step in range(tables.demand.size):
        after = choices.index(at[step]) if step in at else present
        terms = terms_of(tables.problem, Move(step, present, after))
        following = max(0.0, lag + terms.change)
        total += step_price(terms, lag, following)
        present, lag = after, following
    return total + float(
        tables.ending.moves[present].sum() + tables.ending.backlog_price * lag + tables.ending.late(lag)
    )


def catches_up_within_a_step(situation: Situation, moves: Moves) -> bool:
    """True if the lateness of each stop, that of the move home included, is over within a minute."""
    demand = situation.demand_messages_per_second.tolist()
    counts = [situation.replicas, *(count for _, count in moves)]
    home = next(count for count in COUNTS if carried(situation, count) >= demand[-1])
    made = [(demand[step], move) for (step, _), move in zip(moves, pairwise(counts), strict=True)]
    return all(
        seconds - situation.max_lag_seconds <= 60.0 * (1.0 - rate / carried(situation, move[1]))
        for rate, move in [*made, (demand[-1], (counts[-1], home))]
        for _, seconds in stops(situation, situation.profile, move, 1.0)
    )


@settings(max_examples=200)
@given(planned())
def test_the_search_and_the_rollout_price_a_plan_alike(drawn: tuple[Situation, Moves]) -> None:
    """Their prices are equal to rounding if stops end within a step, whatever the load, backlog, moves and prices."""
    situation, moves = drawn
    demand = tuple(situation.demand_messages_per_second.tolist())
    scenario = Scenario(demand=demand, rate_now=demand[0])
    assume(catches_up_within_a_step(situation, moves))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation_inputs, "SLOW_SPEED", 1.0)
        cost, choices = cost_played(situation, scenario, moves)
    assume(of_plan(situation, scenario, choices, moves)[1])
    assert searched(situation, moves) == pytest.approx(cost.total, rel=1e-9, abs=1e-12)


def test_a_stop_on_the_way_up_loses_the_smaller_counts_work(plain: Situation) -> None:
    """A stop of 4 s while 7 replicas become 20 at 1,990/s loses 2,667 messages, of 7 at 667/s, not 8,000 of 20.

    It is over when the new ones commit for the first time, from when on they count as started. 2,067 are left at
    the end of the minute, the 600 that 10/s of spare capacity consume taken off, and 1,467 a minute later. Priced is
    the backlog alone.
    """
    prices = replace(
        plain.prices,
        price_per_replica_hour=0.0,
        price_per_late_message=0.0,
        price_per_held_message_second=1e-6,
        price_per_move=0.0,
    )
    moving = replace(
        plain,
        prices=prices,
        demand_messages_per_second=np.array([600.0, 1990.0, 1990.0]),
        rebalance_pause_prior_seconds=4.0,
        max_lag_seconds=60.0,
    )
    scenario = Scenario(demand=(600.0, 1990.0, 1990.0), rate_now=600.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation_inputs, "SLOW_SPEED", 1.0)
        there = cost_played(moving, scenario, ((1, 20),))[0].total
    left = 4.0 * 4000.0 / 6.0 - 600.0
    assert there == pytest.approx(1e-6 * 60.0 * (left / 2.0 + (2.0 * left - 600.0) / 2.0))
    assert searched(moving, ((1, 20),)) == pytest.approx(there)


def test_a_stop_at_a_high_load_is_late_once(plain: Situation) -> None:
    """12 s of stop at 780 of 800/s make 780 * (12 - 5) / (1 - 0.975) messages late: 218,400, because of the pause.

    The backlog of 9,360 messages that the stop leaves shows 196,000 of them in the minutes after it.
    """
    demand = (780.0,) * STEPS
    moving = replace(
        plain,
        prices=replace(plain.prices, price_per_replica_hour=0.0, price_per_move=0.0),
        demand_messages_per_second=np.array(demand),
        replicas=10,
        rebalance_pause_prior_seconds=12.0,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation_inputs, "SLOW_SPEED", 1.0)
        there = cost_played(moving, Scenario(demand=demand, rate_now=780.0), ((5, 8),))[0]
    assert searched(moving, ((5, 8),)) == pytest.approx(1e-5 * 218_400.0)
    assert there.pause_late == pytest.approx(1e-5 * 218_400.0)
    assert there.late == 0.0
