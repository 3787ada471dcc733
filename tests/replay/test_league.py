"""The league: all policies in the same contest, costs that add up, verdicts, and the lost days."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import date
from multiprocessing import get_context

import numpy as np
import pytest

from replay.contest import LAGCAST, RIVALS, Contest, Entry, RunCost, capacity_for, play
from replay.hindsight import HINDSIGHT, best_plan
from replay.league import League, LostDay
from replay.policies.fixed import Fixed
from replay.policies.useful_counts import UsefulCounts
from replay.trace import Trace
from replay.world import World

Worlds = Callable[..., World]
Loads = Callable[..., Trace]
Contests = Callable[[World, Trace], Contest]


@pytest.fixture(name="wave")
def wave_fixture(load: Loads, contest: Contests) -> Contest:
    """Three hours between 400 and 2,000 messages/s, with all the noise of an ordinary world."""
    world = World(partitions=24, capacity_messages_per_second_per_replica=100)
    return contest(world, load(*(1_200 + 800 * np.sin(np.arange(180) / 28.0))))


def entry(policy: str, *daily: float) -> Entry:
    """An entry with these costs per day."""
    return Entry(
        policy=policy,
        daily=tuple(RunCost(pods=cost, late=0.0, duplicates=0.0) for cost in daily),
        daily_late_share=(0.0,) * len(daily),
        pod_hours=1.0,
        mean_replicas=1.0,
        mean_lag_messages=0.0,
        wait_p95_seconds=0.0,
        wait_p99_seconds=0.0,
        late_share=0.0,
        moves=0,
        rebalances=0,
        rebalancing_minutes=0.0,
        paused_partition_seconds=0.0,
        duplicate_messages=0,
    )


@pytest.fixture(name="judged")
def judged_fixture(wave: Contest) -> League:
    """Three days on which lagcast won, lost to useful-counts, and tied."""
    return League(
        contest=wave,
        entries=(
            entry("fixed", 4, 4, 4),
            entry("useful-counts", 3, 1, 2),
            entry(LAGCAST, 2, 2, 2),
            entry(HINDSIGHT, 1, 1, 1),
        ),
    )


def test_verdicts_name_the_best_and_the_distance_to_it(judged: League) -> None:
    """The best of the policies without knowledge of the future sets the scale; the bound does not compete."""
    verdicts = {entry.policy: judged.verdict(entry) for entry in judged.entries}
    assert verdicts == {"fixed": "+100.0%", "useful-counts": "best of 3", LAGCAST: "+0.0%", HINDSIGHT: "bound"}


def test_lost_days_are_those_on_which_a_rival_was_cheaper(judged: League) -> None:
    """Only the second day is listed, with its date and both costs; a tie is not lost, and hindsight is no rival."""
    assert judged.lost_days == (LostDay(day=date(2026, 1, 6), rival="useful-counts", rival_cost=1, lagcast_cost=2),)


def test_without_rivals_no_day_is_lost(judged: League) -> None:
    """Alone in the league, lagcast wins every day and is the best of one."""
    alone = replace(judged, entries=judged.entries[2:])
    assert alone.lost_days == ()
    assert alone.verdict(alone.entry(LAGCAST)) == "best of 1"


def test_an_absent_policy_is_named_in_the_error(judged: League) -> None:
    """The error for an absent entry lists the policies that took part."""
    with pytest.raises(ValueError, match="'keda' did not take part; fixed, useful-counts, lagcast, hindsight did"):
        judged.entry("keda")


def test_an_unknown_policy_is_named(wave: Contest) -> None:
    """The error has the name and every known policy."""
    with pytest.raises(
        ValueError, match="no policy 'vpa'; there are fixed, hpa, hpa-behavior, keda, useful-counts, lagcast"
    ):
        play("vpa", wave)


def test_every_policy_starts_with_enough_for_the_peak(wave: Contest, load: Loads, contest: Contests) -> None:
    """2,000 messages/s plus 5 % need 24 replicas; a peak that 600 carry needs 6."""
    assert wave.first_replicas == 24
    assert wave.plant().observation().replicas == 24
    small = contest(wave.world, load(100.0, 570.0, 100.0))
    assert small.first_replicas == 6
    assert contest(wave.world, load(100.0, 572.0, 100.0)).first_replicas == 8
    assert contest(wave.world, load(5.0, 7.0, step_seconds=1)).first_replicas == 1


@pytest.mark.slow
def test_a_day_is_charged_to_itself(calm_world: Worlds, load: Loads, contest: Contests) -> None:
    """Two days and a half at 8 fixed replicas have one cost each, and together they are the whole cost."""
    trace = load(*[700.0] * 10, step_seconds=21_600)
    entry = play("fixed", contest(calm_world(), trace))
    assert [day.pods for day in entry.daily] == pytest.approx([8 * 24 * 0.05, 8 * 24 * 0.05, 8 * 12 * 0.05])
    assert entry.cost.total == pytest.approx(sum(day.total for day in entry.daily))
    assert entry.pod_hours == pytest.approx(8 * 60)


def test_prices_come_from_the_settings(calm_world: Worlds, load: Loads, contest: Contests) -> None:
    """Costs use the owner's prices; a price that is not set follows from the replica-hour and the capacity."""
    plain = contest(calm_world(), load(700.0, 700.0))
    assert plain.prices.price_per_replica_hour == 0.05
    assert plain.prices.price_per_late_message == pytest.approx(0.05 / (100 * 100))
    expensive = replace(plain, settings=replace(plain.settings, price_per_replica_hour=1.0, price_per_late_message=0.5))
    assert (expensive.prices.price_per_replica_hour, expensive.prices.price_per_late_message) == (1.0, 0.5)
    assert play("fixed", expensive).cost.pods == pytest.approx(20 * play("fixed", plain).cost.pods)


def test_messages_that_still_wait_are_charged(calm_world: Worlds, load: Loads, contest: Contests) -> None:
    """Messages that still wait at the end and are late count as late."""
    world = calm_world(partitions=4)
    entry = play("fixed", contest(world, load(*[800.0] * 10)))
    # 400 of 800 messages/s are served for 600 s; what came before 295 s was served, and late after 20 s. In total,
    # 590 s of arrivals less those of the first ten seconds were late.
    assert entry.late_share == pytest.approx(580 / 600, abs=0.01)


@pytest.mark.parametrize("partitions", [1, 24, 100])
def test_a_capacity_suits_the_load(load: Loads, partitions: int) -> None:
    """Four fifths of all replicas just carry the rate that is exceeded in one minute of a thousand."""
    trace = load(*np.linspace(1_000, 2_000, 2_001))
    capacity = capacity_for(trace, partitions=partitions)
    assert capacity * 0.8 * partitions == pytest.approx(1_999, rel=0.005)  # three digits


def test_a_load_of_nothing_has_a_capacity(load: Loads) -> None:
    """An empty topic and a topic of two seconds cause no division by zero."""
    assert capacity_for(load(0.0, 0.0), partitions=10) > 0
    assert capacity_for(load(80.0, 80.0, step_seconds=1), partitions=10) == 10.0


def test_useful_counts_goes_up_at_once_and_down_after_ten_minutes(
    calm_world: Worlds, load: Loads, contest: Contests
) -> None:
    """1.2 times the last minute's rate, at useful counts; scaling in waits until ten minutes have needed fewer."""
    world = calm_world()
    plant = contest(world, load(*[450.0] * 15, *[900.0] * 5, *[450.0] * 15)).plant()
    policy, changes = UsefulCounts(world=world), []
    while plant.remaining_seconds > 0:
        plant.advance(15)
        seen = plant.observation()
        requested = policy.decide(seen)
        if requested != seen.replicas:
            changes.append((plant.time_seconds, requested))
            plant.scale(requested)
    # 1.2 x 450 is 540: six, at once, because nothing else was ever needed. After 15 s at 900 the last minute's mean is
    # 562, and 1.2 times that 675: eight; after 30 s it is 675, times 1.2 810: twelve. Back again, the last minute that
    # needs twelve ends at 1,230 s and the last one that needs eight at 1,245 s; both count for ten minutes more.
    assert changes == [(30, 6), (915, 8), (930, 12), (1_845, 8), (1_860, 6)]


def test_fixed_stays(wave: Contest) -> None:
    """The count is the same at every observation."""
    assert Fixed(replicas=7).decide(wave.plant().observation()) == 7


@pytest.mark.slow
def test_a_league_end_to_end(wave: Contest) -> None:
    """A new process gives every policy the same result as this process, and no policy is cheaper than the bound."""
    names = [*RIVALS, LAGCAST]
    entries = [play(name, wave) for name in names]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(play, names, [wave] * len(names))) == entries
    league = League(contest=wave, entries=(*entries, best_plan(wave, entries)))

    costs = {entry.policy: entry.cost.total for entry in league.entries}
    assert min(costs.values()) == costs[HINDSIGHT]
    assert costs["fixed"] == pytest.approx(24 * 3 * 0.05, rel=0.1)
    assert league.entry("fixed").moves == 0
    assert costs["hpa"] > costs["useful-counts"]
    best = min(league.real, key=lambda entry: entry.cost.total)
    assert league.verdict(best) == f"best of {len(names)}"
    assert [lost.day for lost in league.lost_days] == ([] if best.policy == LAGCAST else [date(2026, 1, 5)])


def test_a_second_run_costs_the_same(wave: Contest) -> None:
    """The same contest gives the same entry; another seed gives another one."""
    assert play("useful-counts", wave) == play("useful-counts", wave)
    assert play("useful-counts", wave) != play("useful-counts", replace(wave, seed=8))
