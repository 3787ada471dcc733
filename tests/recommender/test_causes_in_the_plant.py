"""B10: three reasons for lag, simulated, and told apart: a restart, replicas that have become slow, and a peak."""

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest

from forecasting.units import read_only
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.following.session import Session
from replay.plant import Plant
from replay.policies.lagcast import profile_of
from replay.sampling import Names, Rows
from replay.trace import Trace
from replay.world import World

NAMES = Names("test", "orders")
SEEDS = range(20)
MINUTES, BEGINS, JUDGED = 48, 40, 46
MEMBERS, CAPACITY = 8, 500.0
# Eight replicas carry 4,000/s.
SETTINGS = DecisionSettings(price_per_replica_hour=0.05)
Family = Callable[[Plant, np.random.Generator], None]


def restart(plant: Plant, random: np.random.Generator) -> None:
    """All pods go at once, and come back after two to three minutes."""
    plant.scale(0)
    plant.advance(int(random.integers(120, 180)))
    plant.scale(MEMBERS)


def slow_replicas(plant: Plant, random: np.random.Generator) -> None:
    """Each replica does from now on between three and five tenths of what it did."""
    share = random.uniform(0.3, 0.5)
    plant._physics = plant._physics._replace(capacity=share * CAPACITY)


def peak(plant: Plant, random: np.random.Generator) -> None:
    """Nothing happens to the group: the load comes with the trace."""
    del plant, random


def judged(family: Family, seed: int) -> Recommendation:
    """The advice six minutes after the lag began, when a rollout of three minutes is over."""
    random = np.random.default_rng([seed, 10])
    base = random.uniform(2600.0, 3200.0)
    rates = np.full(MINUTES, base)
    if family is peak:
        rates[BEGINS:] = random.uniform(5000.0, 7500.0)
    world = World(partitions=24, capacity_messages_per_second_per_replica=CAPACITY, to_zero=True, start_up_seconds=20.0)
    trace = Trace(
        name="b10",
        start_at=datetime(2026, 1, 5, tzinfo=UTC),
        step_seconds=60,
        messages_per_second=read_only(rates),
    )
    plant = Plant(world=world, trace=trace, seed=seed, replicas=MEMBERS)
    rows, session = Rows(NAMES), Session(profile_of(world, NAMES), SETTINGS)
    while plant.time_seconds < 60 * JUDGED:
        if plant.time_seconds == 60 * BEGINS:
            family(plant, random)
        plant.advance(15 - plant.time_seconds % 15)
        seen = plant.observation()
        session.observe(rows.row(seen))
    decision = session.recommend(seen.at)
    assert isinstance(decision, Recommendation), decision
    return decision


@pytest.mark.parametrize(
    ("family", "cause", "sentence"),
    [
        (restart, "restart_backlog", "the backlog drains by itself"),
        (slow_replicas, "capacity_drop", "look at them, and at what they write to"),
        (peak, "load", None),
    ],
    ids=["restart", "slow replicas", "peak"],
)
def test_b10_three_reasons_for_lag_are_told_apart(family: Family, cause: str, sentence: str | None) -> None:
    """In 19 of 20 draws of each; a restart is waited for, a peak scaled for, and slow replicas are to be looked at."""
    advised = [judged(family, seed) for seed in SEEDS]
    told = [advice for advice in advised if advice.cause == cause]
    assert len(told) >= 19, [advice.cause for advice in advised]
    if sentence is not None:
        assert all(any(sentence in line for line in advice.sentences) for advice in told)
    if family is restart:
        assert {advice.action for advice in told} == {"hold"}
    if family is peak:
        assert {advice.action for advice in told} == {"scale_out"}
