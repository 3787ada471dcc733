"""What a group costs that is seen through scrapes, in the plant: hardly more than one that is read from Kafka."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from benchmarks.decisions.scrapes import Scrapes, play_scraped
from recommender.deciding.decision import DecisionSettings
from replay.contest import LAGCAST, Contest, Entry, play
from replay.sampling import Names
from replay.trace import Trace
from replay.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def contest() -> Contest:
    """Four hours of a wave that doubles and halves each two hours, in a group of 24 partitions."""
    wave = 1500.0 - 500.0 * np.cos(np.arange(240) / 120.0 * 2.0 * np.pi)
    trace = Trace(name="wave", start_at=datetime(2026, 5, 4, tzinfo=UTC), step_seconds=60, messages_per_second=wave)
    world = World(partitions=24, capacity_messages_per_second_per_replica=150.0)
    return Contest(
        trace=trace, world=world, settings=DecisionSettings(), names=Names("demo", "orders"), seed=3, start_replicas=24
    )


@pytest.fixture(scope="module")
def direct(contest: Contest) -> Entry:
    """The run of lagcast that reads Kafka."""
    return play(LAGCAST, contest)


@pytest.mark.parametrize(
    ("every", "offset", "most"), [(15, 7, 1.03), (15, 14, 1.03), (30, 7, 1.03), (60, 7, 1.03), (60, 14, 1.05)]
)
def test_a_group_that_is_seen_through_scrapes_costs_what_it_costs_from_kafka(
    contest: Contest, direct: Entry, every: int, offset: int, most: float
) -> None:
    """On a wave of hours, whose ramps are slower than a pod starts, scrapes cost at most 3 % more, the oldest 5 %."""
    scraped = play_scraped(Scrapes(every_seconds=every, offset_seconds=offset), contest)
    assert scraped.cost.total <= most * direct.cost.total


def test_scrapes_without_delay_each_15_s_are_kafka_itself(contest: Contest, direct: Entry) -> None:
    """The plant that is scraped at each round gives the same run, to the last message."""
    scraped = play_scraped(Scrapes(every_seconds=15, offset_seconds=0), contest)
    assert replace(scraped, policy=LAGCAST) == direct
