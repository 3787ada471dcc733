"""The answer's shape at its edges: ties, windows, items, and situations at the rim of what makes sense."""

from dataclasses import replace

import numpy as np
import pytest

from cost_model.physics.profile import GroupProfile
from cost_model.search.optimise import MoveCurve, PlannedMove, Situation, search
from forecasting.units import FloatArray, Partitions, Replicas, Seconds


def _valley() -> FloatArray:
    demand = np.full(60, 1300.0)
    demand[20:40] = 300.0
    return demand


def test_of_equal_times_the_latest_is_taken() -> None:
    """A forecast may change, so a move is not made before it has to be."""
    curve = MoveCurve(target=5, change=2, lead_steps=1, totals=np.array([np.inf, 3.0, 2.0, 2.0, 4.0]))
    assert curve.best() == PlannedMove(target=5, effective_step=3, command_step=2, total=2.0)


def test_a_move_that_cannot_take_effect_has_no_best_time(plain: Situation) -> None:
    """Start-up beyond the horizon: no move up has a price."""
    slow = replace(plain, profile=replace(plain.profile, start_up_seconds=Seconds(7200.0)))
    found = search(slow)
    assert found.curve(8).best() is None


def test_a_target_that_was_not_priced_is_named(plain: Situation) -> None:
    """9 replicas on 40 partitions carry no more than 8, so no plan with 9 is priced."""
    with pytest.raises(ValueError, match="9 replicas was not priced"):
        search(plain).curve(9)


def test_a_plan_may_go_down_into_a_valley_and_up_again(plain: Situation) -> None:
    """Twenty minutes of 300 messages/s between 1,300: down when it begins, back just before it ends."""
    situation = replace(plain, demand_messages_per_second=_valley(), replicas=14)
    best = search(situation).best()
    assert best is not None
    assert (best.target, best.effective_step) == (4, 20)
    path = search(situation).path(best.target, best.effective_step)
    assert path == (*(14,) * 20, *(4,) * 20, *(14,) * 20)


def test_a_curve_has_the_costs_of_its_played_plans(plain: Situation) -> None:
    """Over an hour of ups and downs curves are right to 1 % at their best times, and to 3 % where lateness rules."""
    minutes = np.arange(60)
    demand = 1500.0 * (1.0 + 0.5 * np.sin(minutes / 10.0) + 0.03 * np.random.default_rng(4).normal(size=60))
    found = search(
        replace(plain, demand_messages_per_second=demand, replicas=20, max_lag_seconds=10.0, target_utilization=0.85)
    )
    for curve in found.single_moves:
        best = curve.best()
        assert best is not None
        assert found.itemised(best.target, best.effective_step).total == pytest.approx(best.total, rel=0.01)
        for step in range(0, 60, 7):
            played = found.itemised(curve.target, step).total
            assert played == pytest.approx(float(curve.totals[step]), rel=0.03)


def test_lateness_of_a_pause_is_separate_from_lateness_of_the_load(plain: Situation) -> None:
    """A pause of 20 s at a load the group carries is all pause; an overload without a move is none."""
    paused = replace(plain, replicas=14, rebalance_pause_prior_seconds=20.0, demand_messages_per_second=_valley())
    moved = search(paused).itemised(4, 20)
    assert moved.pause_late > 0.0
    assert moved.late == 0.0
    overloaded = search(replace(plain, demand_messages_per_second=np.full(60, 900.0))).stay
    assert overloaded.late > 0.0
    # What is left of it is the move that the end calls for, whose pause is free here.
    assert overloaded.pause_late == 0.0


def test_starting_and_leaving_replicas_are_paid_for(plain: Situation) -> None:
    """13 new replicas for 60 s of start-up, and 13 leaving ones for 30 s of grace: 13 * 0.05 * 90 / 3600."""
    profile = replace(plain.profile, start_up_seconds=Seconds(60.0), termination_grace_seconds=Seconds(30.0))
    demand = np.full(60, 600.0)
    demand[30] = 3000.0
    found = search(replace(plain, profile=profile, demand_messages_per_second=demand, max_lag_seconds=60.0))
    cost = found.itemised(20, 30)
    assert cost.start_up == pytest.approx(13 * 0.05 * 90.0 / 3600.0)
    assert cost.risk == pytest.approx(0.04)


def test_cooperative_scale_out_pays_for_duplicates(plain: Situation) -> None:
    """Moving half the partitions at 600 messages/s repeats what moved ones consumed since the last commit."""
    profile = replace(plain.profile, protocol="cooperative", poll_batch_seconds=Seconds(1.0), sync_seconds=Seconds(0.3))
    prices = replace(plain.prices, price_per_duplicate_message=1e-4)
    demand = np.full(60, 600.0)
    found = search(replace(plain, profile=profile, prices=prices, demand_messages_per_second=demand))
    assert found.itemised(14, 0).duplicates > 1e-4 * 0.5 * 600 * 3.0
    assert found.stay.duplicates == 0.0


def test_a_group_without_demand_shrinks_to_its_minimum(plain: Situation) -> None:
    """Nothing arrives for an hour: the smallest allowed count, at once, and no number breaks."""
    profile = replace(plain.profile, min_replicas=Replicas(2))
    found = search(replace(plain, profile=profile, demand_messages_per_second=np.zeros(60)))
    best = found.best()
    assert best is not None
    assert (best.target, best.effective_step) == (2, 0)
    assert np.isfinite(found.stay.total)


@pytest.mark.parametrize("lag", [1e9, 1e15])
def test_a_huge_backlog_is_a_number_too(plain: Situation, lag: float) -> None:
    """For any backlog prices stay finite and the plan uses all allowed replicas."""
    found = search(replace(plain, lag_messages=lag))
    best = found.best()
    assert best is not None
    assert best.target == 40
    assert np.isfinite(found.best_total)


def test_an_empty_group_is_started(plain: Situation) -> None:
    """From 0 replicas with demand coming in, the plan starts what carries it; no member was there to be stopped."""
    found = search(replace(plain, replicas=0, rebalance_pause_prior_seconds=12.0))
    best = found.best()
    assert best is not None
    assert (best.target, best.effective_step) == (7, 0)
    assert found.itemised(7, 0).pause_late == 0.0
    assert np.isfinite(found.stay.total)


def test_one_step_and_one_choice_are_enough(plain: Situation) -> None:
    """A topic of one partition, one minute ahead: stay, for the price of a minute."""
    profile = replace(plain.profile, partitions=Partitions(1))
    situation = replace(plain, profile=profile, replicas=1, demand_messages_per_second=np.array([50.0]))
    found = search(situation)
    assert (found.choices, found.single_moves, found.best()) == ((1,), (), None)
    assert found.stay.total == pytest.approx(0.05 / 60)


def test_a_present_count_outside_the_bounds_is_left_and_not_returned_to(plain: Situation) -> None:
    """30 replicas where 20 are the most allowed: holding is legal, and no plan comes back to 30."""
    profile = replace(plain.profile, max_replicas=Replicas(20))
    found = search(replace(plain, profile=profile, replicas=30, demand_messages_per_second=np.full(60, 2500.0)))
    assert 30 in found.choices
    assert max(curve.target for curve in found.single_moves) == 20
    assert set(found.path(20, 0)) == {20}


def test_the_target_utilization_keeps_a_share_of_capacity_free(plain: Situation) -> None:
    """At 85 % of capacity 7 replicas carry 567 messages/s, too few for 600: the plan takes 8."""
    best = search(replace(plain, target_utilization=0.85)).best()
    assert best is not None
    assert best.target == 8


def test_an_unknown_capacity_is_refused(plain: Situation) -> None:
    """Without capacity nothing can be priced; the message names the group."""
    unknown: GroupProfile = replace(plain.profile, capacity=None)
    with pytest.raises(ValueError, match="capacity of group 'orders' is unknown"):
        search(replace(plain, profile=unknown))


def test_a_path_without_steps_is_refused(plain: Situation) -> None:
    """A plan needs a horizon."""
    with pytest.raises(ValueError, match="has 0 steps"):
        search(replace(plain, demand_messages_per_second=np.array([])))


def test_a_promise_of_no_time_is_refused(plain: Situation) -> None:
    """With no time to wait every message is late, and no plan is better than another."""
    with pytest.raises(ValueError, match=r"max_lag_seconds of group 'orders' is 0\.0"):
        search(replace(plain, max_lag_seconds=0.0))
