"""Scaled to zero in the simulated group: nights without messages cost nothing, and no message is lost."""

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
    """A world of 12 partitions and 60 messages/s per replica in which 0 replicas are allowed."""
    return calm_world(partitions=12, capacity_messages_per_second_per_replica=60.0, to_zero=True)


def test_a_group_without_replicas_works_off_nothing_and_all_of_it_when_it_is_started(lazy: World, load: Loads) -> None:
    """Without a replica for 3 of 10 minutes at 6/s, 6 x 180 messages wait; all are consumed after the start."""
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
    """lagcast, and the replica counts that it had between two and six o'clock."""

    def __init__(self, contest: Contest) -> None:
        self._policy = Lagcast(contest.world, contest.settings, names=contest.names)
        self.replicas: set[int] = set()

    def decide(self, seen: Observation) -> int:
        """Return what lagcast decides."""
        if seen.at.hour in range(2, 6):
            self.replicas.add(seen.replicas)
        return self._policy.decide(seen)


@pytest.mark.slow
def test_nights_cost_nothing_and_the_morning_is_met(lazy: World, load: Loads, contest: Contests) -> None:
    """On a load from 7 to 19 o'clock, nights of a day and a half have no pod, and few more messages are late."""
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
    # Two nights of seven and five hours, less a quarter of an hour each, and less the difference between days.
    assert scaled_to_zero.pod_hours < active.pod_hours - 8.0
    assert scaled_to_zero.late_share < active.late_share + 0.001
