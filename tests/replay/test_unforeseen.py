"""Loads that cannot be foreseen, in the independent plant: lagcast costs no more than what a person would set up."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecasting.history import GroupInterval
from forecasting.units import FloatArray, read_only
from recommender.deciding.decision import DecisionSettings
from replay.contest import LAGCAST, Contest, play
from replay.sampling import Names
from replay.trace import Trace
from replay.world import World

START_AT = datetime(2026, 1, 5, tzinfo=UTC)
STEP_SECONDS = 15
PER_HOUR = 240
KNOWN_HOURS, JUDGED_HOURS = 26, 10
NAMES = Names("replay", "unforeseen")
QUIET = 3000.0


def burst_once() -> FloatArray:
    """3,000/s, and in the fifth judged hour four minutes of 12,000/s."""
    rates = np.full((KNOWN_HOURS + JUDGED_HOURS) * PER_HOUR, QUIET)
    begins = (KNOWN_HOURS + 5) * PER_HOUR
    rates[begins : begins + 16] = 12_000.0
    return rates


def lulls() -> FloatArray:
    """18,000/s, which need all replicas, and at random 1,000/s for 20 to 60 minutes, of a length that is not known."""
    random = np.random.default_rng(7)
    rates = np.full((KNOWN_HOURS + JUDGED_HOURS) * PER_HOUR, 18_000.0)
    begins = 0
    while begins < rates.size:
        begins += int(random.integers(60, 180)) * 4
        length = int(random.integers(20, 60)) * 4
        rates[begins : begins + length] = 1_000.0
        begins += length
    return rates


def burst_each_hour() -> FloatArray:
    """3,000/s, and six minutes of 12,000/s in each hour, from a random minute on."""
    random = np.random.default_rng(3)
    rates = np.full((KNOWN_HOURS + JUDGED_HOURS) * PER_HOUR, QUIET)
    for hour in range(KNOWN_HOURS + JUDGED_HOURS):
        begins = hour * PER_HOUR + int(random.integers(0, PER_HOUR - 24))
        rates[begins : begins + 24] = 12_000.0
    return rates


def random_throughout() -> FloatArray:
    """Each minute has a random rate between 2,000 and 16,000/s."""
    minutes = (KNOWN_HOURS + JUDGED_HOURS) * 60
    return np.random.default_rng(4).uniform(2000.0, 16_000.0, minutes).repeat(4)


def known(rates: FloatArray) -> list[GroupInterval]:
    """The rows of the hours before, in which 20 replicas kept up with the load."""
    return [
        GroupInterval(
            cluster=NAMES.cluster,
            group=NAMES.group,
            topics=NAMES.group,
            interval_end_at=START_AT + timedelta(seconds=STEP_SECONDS * (place + 1)),
            interval_seconds=STEP_SECONDS,
            produce_messages_per_second=rate,
            consume_messages_per_second=rate,
            lag_messages=2.5 * rate,
            lag_seconds=2.5,
            partitions=60,
            sampled_partitions=60,
            members=20,
        )
        for place, rate in enumerate(rates.tolist())
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "load", [burst_once, burst_each_hour, lulls, random_throughout], ids=lambda load: load.__name__
)
def test_an_unforeseen_load_costs_no_more_than_the_setup_of_a_person(load: object) -> None:
    """The cost is at most 3 % above 20 fixed replicas, and above the better of a produce-rate and a small-lag rule."""
    assert callable(load)
    rates = load()
    cut = KNOWN_HOURS * PER_HOUR
    trace = Trace(
        name="unforeseen",
        start_at=START_AT + timedelta(hours=KNOWN_HOURS),
        step_seconds=STEP_SECONDS,
        messages_per_second=read_only(rates[cut:]),
    )
    world = World(partitions=60, capacity_messages_per_second_per_replica=1000.0, max_replicas=20)
    contest = Contest(trace=trace, world=world, settings=DecisionSettings(), names=NAMES, seed=5, start_replicas=20)
    ours = play(LAGCAST, contest, known(rates[:cut])).cost.total
    people = {rival: play(rival, contest).cost.total for rival in ("fixed", "useful-counts", "keda")}
    assert ours <= 1.02 * people["fixed"], people
    assert ours <= 1.03 * min(people.values()), (ours, people)
