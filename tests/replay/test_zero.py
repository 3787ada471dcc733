"""No replica while nothing comes, in the plant: the nights cost nothing, and nobody's message is lost for it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from replay.contest import Contest, run_policy
from replay.plant.observation import Observation
from replay.plant.plant import Plant
from replay.policies.lagcast import Lagcast
from replay.trace import Trace
from replay.world import World

Loads = Callable[..., Trace]
Contests = Callable[[World, Trace], Contest]


@pytest.fixture(name="lazy")
def lazy_fixture(calm_world: Callable[..., World]) -> World:
    """Twelve partitions, 60 messages/s per replica, and 0 replicas allowed."""
    return calm_world(partitions=12, capacity_messages_per_second_per_replica=60.0, to_zero=True)


def test_a_group_without_replicas_works_off_nothing_and_all_of_it_when_it_is_started(lazy: World, load: Loads) -> None:
    """Ten minutes at 6/s: two with a replica, three without, and 6 x 180 messages wait; started, all is done."""
    plant = Plant(world=lazy, trace=load(*[6.0] * 10), seed=7, replicas=1)
    plant.advance(120)
    plant.scale(0)
    plant.advance(180)
    seen = plant.observation()
    assert (seen.replicas, seen.ready_members) == (0, 0)
    assert seen.lag_messages.sum() == pytest.approx(6 * 180, rel=0.1)
    plant.scale(1)
    plant.advance(300)
    assert plant.observation().ready_members == 1
    assert plant.backlog_messages <= 12
    days = plant.day_totals()
    assert sum(day.served for day in days) + plant.backlog_messages == sum(day.arrivals for day in days)


def test_a_world_without_it_keeps_a_replica(lazy: World, load: Loads) -> None:
    """A request for 0 replicas results in one."""
    plant = Plant(world=replace(lazy, to_zero=False), trace=load(0.0, 0.0), seed=7, replicas=2)
    plant.scale(0)
    plant.advance(60)
    assert plant.observation().replicas == 1


class ByNight:
    """lagcast, and how many replicas it had between two and six o'clock."""

    def __init__(self, contest: Contest) -> None:
        self._policy = Lagcast(contest.world, contest.settings, names=contest.names)
        self.replicas: set[int] = set()

    def decide(self, seen: Observation) -> int:
        """As lagcast does."""
        if seen.at.hour in range(2, 6):
            self.replicas.add(seen.replicas)
        return self._policy.decide(seen)


@pytest.mark.slow
def test_nights_cost_nothing_and_the_morning_is_met(lazy: World, load: Loads, contest: Contests) -> None:
    """A day and a half that are busy from 7 to 19 o'clock: no pod at night, and hardly more comes late than else."""
    hours = (np.arange(36 * 60) % 1440) / 60.0
    day = (hours >= 7) & (hours < 19)
    trace = load(*np.where(day, 20.0 + 180.0 * np.sin(np.pi * (hours - 7) / 12), 0.0))
    entries, nights = [], []
    for to_zero in (False, True):
        played = contest(replace(lazy, to_zero=to_zero), trace)
        policy = ByNight(played)
        entries.append(run_policy("lagcast", policy, played))
        nights.append(policy.replicas)
    active, scaled_to_zero = entries
    assert nights == [{1}, {0}]
    # Two nights of seven and five hours, less a quarter of an hour each, and what days differ by.
    assert scaled_to_zero.pod_hours < active.pod_hours - 8.0
    assert scaled_to_zero.late_share < active.late_share + 0.001
