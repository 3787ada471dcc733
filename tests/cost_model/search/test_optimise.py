"""Proposals whose best answer is known independently of the search: computed by hand, or by trying every plan."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from cost_model.physics.capacity import group_capacity
from cost_model.physics.fluid import share_late
from cost_model.physics.rebalance import move_effect
from cost_model.pricing.price import Prices
from cost_model.search.optimise import PlanSearch, Situation, search, solve
from cost_model.search.problem import tabulate
from forecasting.units import Partitions, Replicas, Seconds
from tests.cost_model.drawn import priced
from tests.cost_model.oracles import short_pauses, steady


def _starting(situation: Situation, seconds: float) -> Situation:
    return replace(situation, profile=replace(situation.profile, start_up_seconds=Seconds(seconds)))


def _endless(situation: Situation) -> PlanSearch:
    """The search without a price of the state that a plan ends in: the horizon is all there is."""
    tables = tabulate(situation)
    nothing = replace(tables.ending, moves=np.zeros_like(tables.ending.moves), backlog_price=0.0, late_price=0.0)
    return solve(situation, replace(tables, ending=nothing))


def _path(found: PlanSearch) -> tuple[int, ...]:
    """Replicas per step under the best plan."""
    best = found.best()
    steps = found.tables.demand.size
    return (found.replicas,) * steps if best is None else found.path(best.target, best.effective_step)


def _moves(found: PlanSearch) -> int:
    return sum(before != after for before, after in pairwise((found.replicas, *_path(found))))


@pytest.mark.parametrize(("rate", "replicas"), [(350.0, 4), (700.0, 8), (1900.0, 20), (2600.0, 40)])
def test_oracle_1_at_the_optimum_a_constant_load_never_moves(plain: Situation, rate: float, replicas: int) -> None:
    """350, 700, 1,900 and 2,600 messages/s want 4, 8, 20 and 40 replicas, for their price and nothing else."""
    found = search(replace(plain, demand_messages_per_second=steady(rate), replicas=replicas))
    assert found.best() is None
    assert found.stay.total == found.stay.replicas == pytest.approx(0.05 * replicas)


@pytest.mark.parametrize(("move", "target"), [(0.29, 8), (0.31, None)])
def test_oracle_2_a_move_must_pay_for_itself(plain: Situation, move: float, target: int | None) -> None:
    """Six replicas less for an hour save 0.30: worth a move at 0.29, not at 0.31 (the horizon being all there is)."""
    situation = replace(plain, demand_messages_per_second=steady(700.0), replicas=14)
    best = _endless(priced(situation, price_per_move=move)).best()
    assert (best.target if best else None) == target


@pytest.mark.parametrize("move", [0.29, 0.31])
def test_a_move_that_has_to_come_anyway_comes_at_once(plain: Situation, move: float) -> None:
    """With the end priced, staying at 14 pays for the move to 8 too, only later: whatever it costs, now is cheaper."""
    situation = replace(plain, demand_messages_per_second=steady(700.0), replicas=14)
    found = search(priced(situation, price_per_move=move))
    best = found.best()
    assert best is not None
    assert (best.target, best.effective_step) == (8, 0)
    assert found.stay.risk == move


def test_oracle_3_a_step_is_met_when_it_comes(plain: Situation) -> None:
    """600 to 1,900 messages/s after half an hour: 20 replicas from that minute on, commanded a start-up before it.

    A minute early costs 13 replicas for a minute, 0.0108; the first minute late costs 13.2, as 74,000 messages of
    backlog drain at 100 messages/s.
    """
    demand = np.repeat([600.0, 1900.0], 30)
    profile = replace(plain.profile, max_replicas=Replicas(20))
    found = search(_starting(replace(plain, demand_messages_per_second=demand, profile=profile), 90.0))
    best = found.best()
    assert best is not None
    assert (best.target, best.effective_step, best.command_step) == (20, 30, 28)
    totals = found.curve(20).totals
    slopes = np.diff(totals[26:32])
    assert slopes[:4] == pytest.approx(-0.05 * 13 / 60)
    assert slopes[4] == pytest.approx(13.2, abs=0.05)
    assert np.flatnonzero(totals <= totals.min() + 0.025).tolist() == [28, 29, 30]


def test_a_long_pause_is_taken_before_the_ramp(plain: Situation) -> None:
    """A pause of 10 s against a promise of 5 s: at 600 messages/s it is cheap, at 1,900 it costs 1.09 more."""
    profile = replace(plain.profile, max_replicas=Replicas(20))
    demand = np.repeat([600.0, 1900.0], 30)
    situation = replace(plain, demand_messages_per_second=demand, profile=profile, rebalance_pause_prior_seconds=10.0)
    found = search(situation)
    best = found.best()
    assert best is not None
    assert (best.target, best.effective_step) == (20, 29)
    slopes = np.diff(found.curve(20).totals)
    assert slopes[29:31] == pytest.approx([1.09, 13.4], abs=0.05)


def test_oracle_4_a_short_excess_is_waited_out(plain: Situation) -> None:
    """One minute of 900 messages/s on 7 replicas leaves 21 s of backlog, within a promise of 60 s: no move, 0.35."""
    demand = steady(600.0)
    demand[30] = 900.0
    situation = replace(
        plain, demand_messages_per_second=demand, max_lag_seconds=60.0, rebalance_pause_prior_seconds=5.0
    )
    found = search(situation)
    assert found.best() is None
    assert found.best_total == found.stay.total == pytest.approx(0.35)


def test_oracle_4_free_moves_chatter(plain: Situation) -> None:
    """With moves and backlog free the plan spends the promise as a buffer and moves all the time: price both."""
    situation = replace(plain, max_lag_seconds=60.0, rebalance_pause_prior_seconds=5.0)
    assert _moves(search(priced(situation, price_per_move=0.0))) >= 5
    assert _moves(search(priced(situation, price_per_move=0.0, price_per_held_message_second=1e-5 / 60))) == 0


def test_oracle_4_a_short_peak_is_met_and_left(plain: Situation) -> None:
    """One minute of 3,000 messages/s: 20 replicas for two minutes, nothing late, 0.4225 in all."""
    demand = steady(600.0)
    demand[30] = 3000.0
    situation = replace(
        plain, demand_messages_per_second=demand, max_lag_seconds=60.0, rebalance_pause_prior_seconds=5.0
    )
    found = search(_starting(situation, 60.0))
    assert _path(found) == (*(7,) * 30, 20, 20, *(7,) * 28)
    best = found.best()
    assert best is not None
    assert best.command_step == 29
    cost = found.itemised(20, 30)
    assert cost.total == pytest.approx(0.4225)
    assert (cost.late, cost.pause_late) == (0.0, 0.0)


@pytest.mark.parametrize(("backlog", "moves"), [(3_000.0, False), (200_000.0, True)])
def test_oracle_5_a_past_spike_is_only_drained_if_that_pays(plain: Situation, backlog: float, moves: bool) -> None:  # noqa: FBT001
    """The backlog of a spike is consumed in place, unless its late messages cost more than a move."""
    found = search(_starting(replace(plain, lag_messages=backlog), 120.0))
    assert (found.best() is not None) == moves


def test_oracle_8_replicas_beyond_the_partitions_only_cost(plain: Situation) -> None:
    """From 50 replicas on 40 partitions the plan goes to 40 even for the highest load, and at once."""
    found = search(replace(plain, demand_messages_per_second=steady(3900.0), replicas=50))
    best = found.best()
    assert best is not None
    assert (best.target, best.effective_step) == (40, 0)


def test_oracle_8_a_count_between_levels_is_never_better_than_the_level_below(plain: Situation) -> None:
    """9 replicas on 40 partitions carry what 8 carry: staying costs an hour of one replica more, lateness the same."""
    random = np.random.default_rng(2)
    demand = random.uniform(200.0, 1200.0, 60)
    nine, eight = (search(replace(plain, demand_messages_per_second=demand, replicas=n)).stay for n in (9, 8))
    assert (nine.late, nine.backlog) == (eight.late, eight.backlog)
    assert nine.replicas - eight.replicas == pytest.approx(0.05)


def test_oracle_10_if_lateness_is_free_the_group_stays_minimal(plain: Situation) -> None:
    """At no price of late, held or repeated messages the smallest group stays, whatever comes."""
    demand = np.random.default_rng(1).uniform(100.0, 3900.0, 60)
    situation = replace(plain, demand_messages_per_second=demand, replicas=1)
    assert search(priced(situation, price_per_late_message=0.0)).best() is None


def test_oracle_10_if_lateness_is_expensive_nothing_is_late(plain: Situation) -> None:
    """At a thousand per late message no message is late that a feasible group can save."""
    demand = np.random.default_rng(1).uniform(100.0, 3900.0, 60)
    found = search(priced(replace(plain, demand_messages_per_second=demand, replicas=40), price_per_late_message=1e3))
    best = found.best()
    cost = found.stay if best is None else found.itemised(best.target, best.effective_step)
    assert (cost.late, cost.pause_late) == (0.0, 0.0)


@pytest.mark.parametrize(("minutes_off", "toggles"), [(2, 0), (3, 0), (4, 6), (6, 6)])
def test_oracle_9_a_load_that_goes_on_and_off_is_followed_if_off_pays(
    plain: Situation, minutes_off: int, toggles: int
) -> None:
    """Renting skis: 13 replicas fewer save 0.0108 a minute, two moves cost 0.04, so 3.7 min off are the limit.

    1,900 messages/s for ten minutes, then 600 for the given ones, three times, and on again at the end.
    """
    demand = np.array([*([1900.0] * 10 + [600.0] * minutes_off) * 3, *[1900.0] * 10])
    found = search(replace(plain, demand_messages_per_second=demand, replicas=20))
    moves = sum(before != after for before, after in pairwise((20, *_path(found))))
    assert moves == toggles
    assert set(_path(found)) == ({7, 20} if toggles else {20})


@pytest.mark.parametrize("seed", range(6))
def test_oracle_12_where_no_pause_outlasts_the_promise_protocols_give_one_plan(plain: Situation, seed: int) -> None:
    """Eager and KIP-848 at a promise of 10 s, backlog and duplicates free: the same plan at the same price.

    Six loads of ten minutes, each at least a tenth under the useful count that carries it: where a plan spends the
    promise as a buffer, what a stop leaves behind counts, and protocols differ.
    """
    plans = [search(situation) for situation in short_pauses(plain, seed)]
    assert _path(plans[0]) == _path(plans[1])
    assert plans[0].best_total == pytest.approx(plans[1].best_total)


def _small(plain: Situation, *, pause: float, seed: int) -> Situation:
    """Five partitions, six minutes, a random load around what 3 of them carry."""
    profile = replace(plain.profile, partitions=Partitions(5))
    prices = Prices(
        currency="EUR",
        price_per_replica_hour=0.05,
        price_per_late_message=2e-6,
        price_per_duplicate_message=1e-6,
        price_per_held_message_second=1e-9,
        price_per_move=1e-3,
    )
    random = np.random.default_rng(seed)
    return replace(
        plain,
        profile=profile,
        prices=prices,
        demand_messages_per_second=random.uniform(20.0, 480.0, 6),
        replicas=int(random.choice([1, 2, 3, 5])),
        lag_messages=float(random.choice([0.0, 4_000.0])),
        rebalance_pause_prior_seconds=pause,
        target_utilization=0.9,
    )


def _capacity(situation: Situation, replicas: int) -> float:
    capacity = situation.profile.capacity
    assert capacity is not None
    whole = group_capacity(Replicas(replicas), partitions=situation.profile.partitions, capacity=capacity.p20)
    return situation.target_utilization * whole


def _transient(situation: Situation, move: tuple[int, int], rate: float) -> float:
    """Late messages of a move's stop, straight from the pause classes; pauses are certain here."""
    effect = move_effect(
        situation.profile,
        from_replicas=Replicas(move[0]),
        to_replicas=Replicas(move[1]),
        rebalance_pause_prior_seconds=Seconds(situation.rebalance_pause_prior_seconds or 0.0),
    )
    load = min(rate / _capacity(situation, move[1]), 0.999)
    limit, step = situation.max_lag_seconds, situation.step_seconds
    return sum(
        pause.share * rate * min(max(0.0, pause.mean_seconds - limit) / (1 - load), step) for pause in effect.pauses
    )


def _stage(situation: Situation, step: int, move: tuple[int, int], lag: float) -> tuple[float, float]:
    """Price of one step and the backlog after it, written down without arrays or grids."""
    prices, seconds = situation.prices, situation.step_seconds
    rate = float(situation.demand_messages_per_second[step])
    before, after = (_capacity(situation, count) for count in move)
    lost = 0.0
    if move[0] != move[1]:
        effect = move_effect(
            situation.profile,
            from_replicas=Replicas(move[0]),
            to_replicas=Replicas(move[1]),
            rebalance_pause_prior_seconds=Seconds(situation.rebalance_pause_prior_seconds or 0.0),
        )
        lost = min(before, after) * effect.lost_partition_seconds / situation.profile.partitions
    following = max(0.0, lag + (rate - after) * seconds + lost)
    share = share_late(lag / after, following / after, situation.max_lag_seconds)
    late = max(rate * seconds * share, _transient(situation, move, rate))
    held = (lag + following) / 2 * seconds
    total = prices.price_per_replica_hour * move[1] * seconds / 3600
    total += (
        prices.price_per_late_message * late
        + prices.price_per_held_message_second * held
        + prices.price_per_move * (move[0] != move[1])
    )
    return total, following


def _end(situation: Situation, replicas: int, lag: float) -> float:
    """Price of the state after the last step: the move home, the work left, and what is late until it is done."""
    last = float(situation.demand_messages_per_second[-1])
    enough = [n for n in (1, 2, 3, 5) if _capacity(situation, n) >= last]
    home = min(enough, default=5)
    whole = _capacity(situation, home) / situation.target_utilization
    late = last * max(0.0, lag - situation.max_lag_seconds * whole) / max(whole - last, 0.01 * whole)
    if replicas != home:
        late += _transient(situation, (replicas, home), last)
    moving = situation.prices.price_per_move if replicas != home else 0.0
    return moving + 0.05 * lag / (3600 * 100.0) + situation.prices.price_per_late_message * late


def _price_of(situation: Situation, plan: tuple[int, ...]) -> float:
    total, replicas, lag = 0.0, situation.replicas, situation.lag_messages
    for step, after in enumerate(plan):
        price, lag = _stage(situation, step, (replicas, after), lag)
        total, replicas = total + price, after
    return total + _end(situation, replicas, lag)


def _by_labels(situation: Situation, choices: tuple[int, ...]) -> float:
    """The exact optimum by forward label-setting: per count only states that no other beats in lag and in price."""
    labels = [(situation.replicas, situation.lag_messages, 0.0)]
    for step in range(len(situation.demand_messages_per_second)):
        reached = []
        for replicas, lag, paid in labels:
            for after in choices:
                price, following = _stage(situation, step, (replicas, after), lag)
                reached.append((after, following, paid + price))
        labels = []
        for label in sorted(reached):
            if not any(kept[0] == label[0] and kept[2] <= label[2] for kept in labels):
                labels.append(label)
    return min(paid + _end(situation, replicas, lag) for replicas, lag, paid in labels)


@pytest.mark.parametrize("pause", [0.0, 3.0, 9.0])
@pytest.mark.parametrize("seed", range(4))
def test_oracle_13_the_search_finds_the_optimum_of_label_setting(plain: Situation, pause: float, seed: int) -> None:
    """The optimum over backlogs on a grid is the exact one within half a percent, and its plan has the stated cost."""
    situation = _small(plain, pause=pause, seed=seed)
    found = search(situation)
    exact = _by_labels(situation, (1, 2, 3, 5))
    assert found.best_total == pytest.approx(exact, rel=5e-3)
    best = found.best()
    plan = (situation.replicas,) * 6 if best is None else found.path(best.target, best.effective_step)
    cost = found.stay if best is None else found.itemised(best.target, best.effective_step)
    assert cost.total == pytest.approx(_price_of(situation, plan))
    assert cost.total >= exact - 1e-9


def test_oracle_13_label_setting_finds_the_optimum_of_all_plans(plain: Situation) -> None:
    """All 4,096 plans of six steps over four counts hold none cheaper."""
    situation = _small(plain, pause=9.0, seed=5)
    tried = min(_price_of(situation, plan) for plan in product((1, 2, 3, 5), repeat=6))
    assert tried == pytest.approx(_by_labels(situation, (1, 2, 3, 5)))


@pytest.mark.parametrize("seed", range(3))
def test_oracle_8_searching_useful_counts_only_misses_nothing(plain: Situation, seed: int) -> None:
    """With free pauses the exact optimum over all counts of 1 to 7 is no better than over the useful ones."""
    situation = _small(plain, pause=0.0, seed=seed)
    assert _by_labels(situation, (1, 2, 3, 5)) <= _by_labels(situation, (1, 2, 3, 4, 5, 6, 7)) + 1e-12
