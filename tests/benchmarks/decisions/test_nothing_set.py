"""A group of which nothing but bounds is set, in the plant: what it can do is found, with next to nothing late."""

from datetime import UTC, datetime

import numpy as np
import pytest

from benchmarks.decisions.ours import LAGCAST, ONLY_BOUNDS_SET, OURS
from benchmarks.decisions.tournament import history_rows
from benchmarks.decisions.worlds import MOST_REPLICAS, WORLDS
from forecasting.units import SECONDS_PER_DAY
from recommender.deciding.decision import DecisionSettings
from replay.contest import Contest, run_policy
from replay.sampling import Names
from replay.trace import Trace

DAYS, JUDGED_DAYS, MINUTES_PER_DAY = 4, 2, 1440
SECOND_DAY_TO_ALL_SET = 1.1
LATE_SHARE = 0.002


@pytest.mark.slow
def test_what_is_not_set_is_found_by_the_second_day_though_the_capacity_is_never_reached() -> None:
    """A noisy daily wave, for which 40 replicas are three times too many, and a burst that all of them barely carry.

    With bounds alone the second day costs at most a tenth more than with everything set, and of the messages of both
    days at most two in a thousand are late.
    """
    generator = np.random.default_rng(7)
    minutes = np.arange(DAYS * MINUTES_PER_DAY)
    rates = (
        7000.0
        * (1.0 + 0.5 * np.sin(2.0 * np.pi * minutes / MINUTES_PER_DAY))
        * generator.lognormal(0.0, 0.2, minutes.size)
    )
    rates[300:310] = 36_000.0
    start_at = datetime(2026, 1, 5, tzinfo=UTC)
    trace = Trace(name="wave", start_at=start_at, step_seconds=60, messages_per_second=rates)
    past, judged = trace.split(JUDGED_DAYS * SECONDS_PER_DAY)
    assert past is not None
    contest = Contest(
        trace=judged,
        world=WORLDS["real-quick"].world,
        settings=DecisionSettings(scenarios=16),
        names=Names("learning", "load"),
        seed=0,
        start_replicas=MOST_REPLICAS,
    )
    history = history_rows(past, contest.world.partitions, 0, contest.names)
    all_set, bounds = (
        run_policy(policy, OURS[policy](contest.world, contest.settings, contest.names, history), contest)
        for policy in (LAGCAST, ONLY_BOUNDS_SET)
    )
    assert bounds.daily[1].total <= SECOND_DAY_TO_ALL_SET * all_set.daily[1].total
    assert bounds.late_share <= LATE_SHARE
