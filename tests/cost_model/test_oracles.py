"""Advice whose best answer is computed by hand, checked on the plans that are played and published.

A quarter of the busiest replicas is 6 % slower than the rest, so that full loads are those at 0.94 of capacity. The
search's proposals are compared with the same oracles, and with every possible plan, in `search/test_optimise.py`.
"""

from dataclasses import replace

import numpy as np
import pytest

from cost_model.pricing.situation import Situation
from cost_model.search.candidates import Plan
from cost_model.search.evaluation import PlanEvaluation
from forecasting.units import Replicas, Seconds
from tests.cost_model.drawn import priced
from tests.cost_model.oracles import short_pauses, steady
from tests.cost_model.weighing import single_move, weighed, without_reactions

HOLD = 0


def _starting(situation: Situation, seconds: float, *, most: int | None = None) -> Situation:
    maximum = None if most is None else Replicas(most)
    profile = replace(situation.profile, start_up_seconds=Seconds(seconds), max_replicas=maximum)
    return replace(situation, profile=profile)


def _advised(found: PlanEvaluation) -> tuple[int, int, int] | None:
    """Target, effective step and command step; None: stay."""
    best = found.best()
    return None if best is None else (best.target, best.effective_step, best.command_step)


@pytest.mark.parametrize(("rate", "replicas"), [(350.0, 4), (700.0, 8), (1800.0, 20), (2600.0, 40)])
def test_oracle_1_at_the_optimum_a_constant_load_never_moves(plain: Situation, rate: float, replicas: int) -> None:
    """350, 700, 1,800 and 2,600 messages/s want 4, 8, 20 and 40 replicas, for their price and nothing else."""
    found = weighed(replace(plain, demand_messages_per_second=steady(rate), replicas=replicas))
    assert found.best() is None
    stay = found.cost(found.stay_row)
    assert stay.total == stay.replicas == pytest.approx(0.05 * replicas)


@pytest.mark.parametrize(("move", "pays"), [(0.29, True), (0.31, False)])
def test_oracle_2_a_move_must_pay_for_itself(plain: Situation, move: float, pays: bool) -> None:  # noqa: FBT001
    """Six replicas less for an hour save 0.30: worth a move at 0.29, not at 0.31 (the horizon being all there is)."""
    found = weighed(priced(replace(plain, demand_messages_per_second=steady(700.0), replicas=14), price_per_move=move))
    held, moved = found.cost(HOLD), single_move(found, 8, 0)
    # The move that the end of holding calls for is its only risk.
    assert held.risk == moved.risk == move
    assert (moved.total < held.total - held.risk) == pays


@pytest.mark.parametrize("move", [0.29, 0.31])
def test_a_move_that_has_to_come_anyway_comes_at_once(plain: Situation, move: float) -> None:
    """With the end priced, staying at 14 pays for the move to 8 too, only later: at any price, now is cheaper."""
    found = weighed(priced(replace(plain, demand_messages_per_second=steady(700.0), replicas=14), price_per_move=move))
    assert _advised(found) == (8, 0, 0)


def test_oracle_3_a_step_is_met_when_it_comes(plain: Situation) -> None:
    """600 to 1,800 messages/s after 8 minutes: 20 replicas from that minute on, commanded a start-up before it.

    A minute early costs 13 replicas for a minute, 0.0108; the first minute late costs 8.7: nearly all of its 108,000
    messages and most of the drain of what they leave, if no scaler reacts. A scaler that reacts is a minute later.
    """
    demand = np.repeat([600.0, 1800.0], [8, 52])
    found = weighed(_starting(replace(plain, demand_messages_per_second=demand), 60.0, most=20))
    assert _advised(found) == (20, 8, 7)
    slopes = np.diff([single_move(without_reactions(found), 20, step).total for step in range(2, 10)])
    assert slopes[:6] == pytest.approx(-0.05 * 13 / 60)
    assert slopes[6] == pytest.approx(8.67, abs=0.05)
    best = found.best()
    assert best is not None
    assert found.window(best, 0.025) == (6, 8)


@pytest.mark.parametrize("seconds", [30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 600.0])
def test_missing_replicas_are_added_at_once_however_slowly_pods_start(plain: Situation, seconds: float) -> None:
    """1,800 messages/s on 10 replicas want 20: a reaction, which comes half a minute later, is no reason to wait."""
    found = weighed(_starting(replace(plain, demand_messages_per_second=steady(1800.0), replicas=10), seconds, most=20))
    best = found.best()
    assert best is not None
    assert (best.target, best.command_step) == (20, 0)
    reacting = 1
    assert single_move(found, 20, best.effective_step).total < found.cost(reacting).total


def test_a_long_pause_is_taken_before_the_ramp(plain: Situation) -> None:
    """A pause of 10 s with a promise of 5 s is cheap at 600 messages/s, and costs 0.85 more at 1,800.

    600 * 5 / (1 - 0.3) = 4,286 messages are late of it at 600/s, 1,800 * 5 / (1 - 0.9) = 90,000 at 1,800/s. A minute
    of 13 replicas is worth 0.0108.
    """
    demand = np.repeat([600.0, 1800.0], [8, 52])
    situation = replace(plain, demand_messages_per_second=demand, rebalance_pause_prior_seconds=10.0)
    found = weighed(_starting(situation, 0.0, most=20))
    assert _advised(found) == (20, 7, 7)
    ahead, after = (single_move(without_reactions(found), 20, step).total for step in (7, 8))
    assert after - ahead == pytest.approx(0.9 - 0.0429 - 0.0108, abs=1e-3)


def test_oracle_4_a_short_excess_is_waited_out(plain: Situation) -> None:
    """One minute of 900 messages/s on 7 replicas leaves 21 s of backlog, within a promise of 60 s: no move, 0.35.

    No plan is cheaper, and the scaler that comes after a plan waits too: after another such minute a move would still
    come in time.
    """
    demand = steady(600.0)
    demand[30] = 900.0
    situation = replace(
        plain, demand_messages_per_second=demand, max_lag_seconds=60.0, rebalance_pause_prior_seconds=5.0
    )
    found = weighed(situation)
    assert found.best() is None
    assert found.cost(found.stay_row).total == found.cost(HOLD).total == pytest.approx(0.35)
    assert all(found.cost_of(plan).total >= 0.35 - 1e-12 for plan in found.plans)


def test_oracle_4_a_short_peak_is_met_and_left(plain: Situation) -> None:
    """One minute of 3,000 messages/s in half an hour: 20 replicas for two minutes, nothing late, 0.4225 in all."""
    demand = steady(600.0)
    demand[30] = 3000.0
    situation = replace(
        plain, demand_messages_per_second=demand, max_lag_seconds=60.0, rebalance_pause_prior_seconds=5.0
    )
    found = weighed(_starting(situation, 60.0))
    assert _advised(found) == (20, 30, 29)
    assert found.cost(found.best_row).total == pytest.approx(0.4225)
    found = without_reactions(found)
    cost = found.cost_of(Plan(moves=((30, 20), (32, 7), (60, 7))))
    assert cost.total == pytest.approx(0.4225)
    assert (cost.late, cost.pause_late) == (0.0, 0.0)
    assert all(found.cost_of(plan).total >= cost.total for plan in found.plans)


@pytest.mark.parametrize(("backlog", "moves"), [(3_000.0, False), (200_000.0, True)])
def test_oracle_5_a_past_spike_is_only_drained_if_that_pays(plain: Situation, backlog: float, moves: bool) -> None:  # noqa: FBT001
    """The backlog of a spike is consumed in place, unless its late messages cost more than a move."""
    found = weighed(_starting(replace(plain, lag_messages=backlog), 120.0))
    assert (found.best() is not None) == moves


def test_oracle_8_replicas_beyond_the_partitions_only_cost(plain: Situation) -> None:
    """From 50 replicas on 40 partitions the plan goes to 40 even for the highest load, and at once."""
    found = weighed(replace(plain, demand_messages_per_second=steady(3700.0), replicas=50))
    assert _advised(found) == (40, 0, 0)


def test_oracle_8_a_count_between_levels_is_never_better_than_the_level_below(plain: Situation) -> None:
    """9 replicas on 40 partitions carry what 8 carry: staying costs an hour of one replica more and nothing else."""
    demand = np.random.default_rng(2).uniform(200.0, 740.0, 60)
    found = [weighed(replace(plain, demand_messages_per_second=demand, replicas=count)) for count in (9, 8)]
    assert found[0].inputs.carried[found[0].choices.index(9)] == found[1].inputs.carried[found[1].choices.index(8)]
    nine, eight = (without_reactions(each).cost(HOLD) for each in found)
    assert replace(nine, replicas=0.0) == replace(eight, replicas=0.0)
    assert nine.replicas - eight.replicas == pytest.approx(0.05)


def test_oracle_10_if_lateness_is_free_the_group_stays_minimal(plain: Situation) -> None:
    """If late, waiting or repeated messages are free, the smallest group stays, for any load."""
    demand = np.random.default_rng(1).uniform(100.0, 3900.0, 60)
    situation = replace(plain, demand_messages_per_second=demand, replicas=1)
    assert weighed(priced(situation, price_per_late_message=0.0)).best() is None


def test_oracle_10_if_lateness_is_expensive_nothing_is_late(plain: Situation) -> None:
    """At a thousand per late message no message is late that a feasible group can save."""
    demand = np.random.default_rng(1).uniform(100.0, 3900.0, 60)
    found = weighed(priced(replace(plain, demand_messages_per_second=demand, replicas=40), price_per_late_message=1e3))
    cost = found.cost(found.best_row)
    assert (cost.late, cost.pause_late) == (0.0, 0.0)


@pytest.mark.parametrize(("minutes_off", "pays"), [(2, False), (3, False), (4, False), (5, True), (6, True)])
def test_oracle_9_a_load_that_goes_on_and_off_is_followed_if_off_pays(
    plain: Situation,
    minutes_off: int,
    pays: bool,  # noqa: FBT001
) -> None:
    """Renting skis: 13 replicas fewer save 0.0108 a minute, two moves cost 0.04, so 3.7 minutes off are the limit.

    They go a minute after the load did, when it has been seen. 1,800 messages/s for ten minutes, then 600 for the given
    ones, three times, and on again at the end; a plan holds four moves and the count that it ends with.
    """
    demand = np.array([*([1800.0] * 10 + [600.0] * minutes_off) * 3, *[1800.0] * 10])
    found = weighed(replace(plain, demand_messages_per_second=demand, replicas=20))
    assert _advised(found) == ((7, 11, 11) if pays else None)
    assert found.cost(found.best_row).risk == pytest.approx(4 * 0.02 if pays else 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_oracle_12_where_no_pause_outlasts_the_promise_protocols_give_one_plan(plain: Situation, seed: int) -> None:
    """Eager and KIP-848 at a promise of 10 s, backlog and duplicates free: the same plan at the same price.

    Six loads of ten minutes, each at least a tenth under the useful count that carries it: where a plan spends the
    promise as a buffer, what a stop leaves behind counts, and protocols differ.
    """
    eager, kip848 = (weighed(situation) for situation in short_pauses(plain, seed))
    assert eager.plans[eager.best_row] == kip848.plans[kip848.best_row]
    assert eager.cost(eager.best_row).total == pytest.approx(kip848.cost(kip848.best_row).total)
