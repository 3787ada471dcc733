"""P9: however wrong the forecasts, the advice costs no more than a simple scaler's and an allowance, in the model."""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np
import pytest

from cost_model.learned import Learned
from cost_model.price import Prices
from cost_model.profile import GroupProfile
from forecasting.units import FloatArray, MessagesPerSecond
from recommender.decision import DecisionSettings
from recommender.reference import SLACK_RATIO, SURPRISE_REPLICA_HOURS, Reference
from recommender.session import Session
from replay.forecasters import ADVERSARIAL, CONSTANT, RANDOM, REVERSED, PatternForecaster

MakeFluid = Callable[..., Any]
ROWS_PER_HOUR = 240
HOURS = 2
WORKLOADS = 40
# The guard acts once the allowance is spent; what the surprise under way and the way back still cost comes on top. The
# worst of these workloads, one of steps, spends 8.9 replica-hours in all.
WAY_BACK_REPLICA_HOURS = 2.0


def rates_of(seed: int) -> FloatArray:
    """Two hours of one of 40 loads between 2,000 and 22,000/s: waves of 1 to 3 hours, steps, bursts, noise."""
    random = np.random.default_rng([9, seed])
    hours = np.arange(HOURS * ROWS_PER_HOUR) / ROWS_PER_HOUR
    wave = np.sin(2.0 * pi * (hours / random.uniform(1.0, 3.0) + random.uniform()))
    steps = np.repeat(random.uniform(-0.5, 0.5, HOURS * 2), ROWS_PER_HOUR // 2)
    bursts = np.where(random.uniform(size=hours.size // 8) < 0.03, random.uniform(0.0, 1.5), 0.0).repeat(8)
    kind = seed % 4
    shape = (wave, 0.5 * wave + steps, 0.5 * wave + bursts, 2.0 * steps)[kind]
    rates = 12_000.0 + 6600.0 * shape + random.normal(0.0, 300.0, hours.size)
    return np.clip(rates, 2000.0, 22_000.0)


def costs(
    fluid: MakeFluid, profile: GroupProfile, forecaster: PatternForecaster, seed: int
) -> tuple[float, float, float]:
    """What advice cost, what the cheaper reference did, and a replica-hour, faded as the reference fades them."""
    session = Session(profile, DecisionSettings(cycle_seconds=120), forecaster=forecaster)
    group = fluid(session=session, members=24).play(rates_of(seed).tolist())
    prices = Prices.from_replica_hour(0.05, capacity=MessagesPerSecond(1000.0))
    judge = Reference(
        profile=profile,
        capacity=MessagesPerSecond(1000.0),
        prices=prices,
        max_lag_seconds=10.0,
        learned=Learned.assumed(stop_seconds=12.0, risk=prices.move),
    )
    for row in group.rows:
        judge.observe(row)
    return judge.actual, min(judge.reacting, judge.staying), prices.replica_hour


@pytest.mark.slow
@pytest.mark.parametrize("forecaster", [REVERSED, CONSTANT, RANDOM, ADVERSARIAL], ids=lambda each: each.name)
def test_p9_bad_forecasts_are_bounded(fluid: MakeFluid, profile: GroupProfile, forecaster: PatternForecaster) -> None:
    """Over 40 workloads: never dearer than the cheaper reference, 5 % of it, the allowance, and the way back."""
    spent = []
    for seed in range(WORKLOADS):
        actual, reference, replica_hour = costs(fluid, profile, forecaster, seed)
        spent.append((actual - (1.0 + SLACK_RATIO) * reference) / replica_hour)
    assert max(spent) <= SURPRISE_REPLICA_HOURS + WAY_BACK_REPLICA_HOURS
