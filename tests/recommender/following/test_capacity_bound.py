"""A group of which nothing is set, from its first half hour on, in the independent plant."""

from datetime import UTC, datetime

import numpy as np
import pytest

from forecasting.units import read_only
from recommender.deciding.decision import DecisionSettings
from replay.contest import Contest, run_policy
from replay.plant.plant import Observation
from replay.policies.fixed import Fixed
from replay.policies.lagcast import Lagcast
from replay.sampling import Names
from replay.trace import Trace
from replay.world import World

NAMES = Names("replay", "orders")
HOURS, HOUR_STEPS = 14, 240


class Watched(Lagcast):
    """Lagcast without a configured capacity, and the counts that it requested."""

    def __init__(self, contest: Contest, *, capacity_known: bool = False) -> None:
        super().__init__(contest.world, contest.settings, names=contest.names, capacity_known=capacity_known)
        self.counts: list[int] = []

    def decide(self, seen: Observation) -> int:
        """The replicas of the advice in force now."""
        self.counts.append(super().decide(seen))
        return self.counts[-1]


@pytest.mark.slow
@pytest.mark.parametrize("begins_busy", [True, False], ids=["from the peak on", "from the night on"])
def test_the_first_hours_cost_no_more_than_leaving_the_replicas_alone(*, begins_busy: bool) -> None:
    """Ten replicas, of which the peak needs seven: nothing is ever added to them, and next to nothing is late."""
    steps = np.arange(HOURS * HOUR_STEPS)
    phase = 0.0 if begins_busy else np.pi
    wave = 4000.0 + 2800.0 * np.cos(2.0 * np.pi * steps / (24 * HOUR_STEPS) + phase)
    noise = np.random.default_rng(5).lognormal(0.0, 0.05, steps.size)
    trace = Trace(
        name="orders",
        start_at=datetime(2026, 1, 5, tzinfo=UTC),
        step_seconds=15,
        messages_per_second=read_only(wave * noise),
    )
    world = World(partitions=60, capacity_messages_per_second_per_replica=1000.0, max_replicas=40)
    contest = Contest(trace=trace, world=world, settings=DecisionSettings(), names=NAMES, seed=5, start_replicas=10)
    ours = Watched(contest)
    entry = run_policy("lagcast", ours, contest)
    alone = run_policy("alone", Fixed(replicas=10), contest)
    assert max(ours.counts) <= 10
    assert entry.late_share <= 0.001
    assert entry.cost.total <= (0.8 if begins_busy else 1.0) * alone.cost.total, (ours.counts[::240], entry.moves)


@pytest.mark.parametrize("capacity_known", [True, False], ids=["capacity set", "nothing set"])
def test_replicas_that_are_too_few_from_the_start_are_added_in_the_third_minute(*, capacity_known: bool) -> None:
    """Ten replicas of 1,000/s at 14,000/s: a backlog shows their limit, and nobody waits for half an hour."""
    rates = read_only(np.full(10 * 4, 14_000.0))
    trace = Trace(name="orders", start_at=datetime(2026, 1, 5, tzinfo=UTC), step_seconds=15, messages_per_second=rates)
    world = World(partitions=60, capacity_messages_per_second_per_replica=1000.0, max_replicas=40)
    contest = Contest(trace=trace, world=world, settings=DecisionSettings(), names=NAMES, seed=5, start_replicas=10)
    ours = Watched(contest, capacity_known=capacity_known)
    run_policy("lagcast", ours, contest)
    (first,) = np.flatnonzero(np.array(ours.counts) > 10)[:1]
    assert 15 * (first + 1) <= 180
    assert min(ours.counts[first:]) >= 15
