"""A start-up time that the pods show makes plans cheaper, in a simulation that knows nothing of them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from benchmarks.decisions.forecasters import Foresight
from benchmarks.decisions.tournament import history_rows
from cost_model.physics.pods import PodStart, PodStartUp, start_up_of
from forecasting.history import GroupInterval
from forecasting.units import Seconds, read_only
from recommender.following.session import Session
from replay.contest import PRICED, Contest, Entry, run_policy
from replay.policies.lagcast import Lagcast, profile_of
from replay.sampling import Names
from replay.trace import Trace
from replay.world import World

START_AT = datetime(2026, 1, 5, tzinfo=UTC)
NAMES = Names("replay", "orders")
# Pods that are ready after 120 to 180 s, where a profile assumes 30 s.
WORLD = World(
    partitions=24, capacity_messages_per_second_per_replica=200.0, start_up_seconds=150.0, start_up_spread_seconds=60.0
)
JUDGED_SECONDS = 2 * 3600


def waves() -> Trace:
    """Each two hours: an hour at 600/s, ten minutes up to 3,000/s, 50 minutes there; five times."""
    wave = np.concatenate([np.full(60, 600.0), np.linspace(600.0, 3000.0, 10), np.full(50, 3000.0)])
    return Trace(name="waves", start_at=START_AT, step_seconds=60, messages_per_second=read_only(np.tile(wave, 5)))


def seen_in_the_plant(contest: Contest) -> PodStartUp | None:
    """The start-up time that a scale-out in the same world shows: when each of twelve new members was there."""
    plant = replace(contest, start_replicas=4).plant()
    plant.scale(16)
    created_at, members, starts = plant.observation().at, 4, []
    while members < 16:
        plant.advance(1)
        seen = plant.observation()
        joined, members = seen.ready_members - members, max(members, seen.ready_members)
        steps = (created_at, created_at + timedelta(seconds=1), created_at + timedelta(seconds=2))
        starts += [PodStart(created_at=steps[0], scheduled_at=steps[1], started_at=steps[2], ready_at=seen.at)] * joined
    return start_up_of(starts)


def played(contest: Contest, history: Sequence[GroupInterval], foresight: Foresight, pods: PodStartUp | None) -> Entry:
    """The run of an adviser that assumes 30 s, and was shown these pods."""
    policy = Lagcast(contest.world, contest.settings, names=contest.names)
    assumed = replace(profile_of(contest.world, contest.names), start_up_seconds=Seconds(30.0))
    policy._session = Session(assumed, contest.settings, history, forecaster=foresight)
    policy._session.see_workload(pods, seen_at=START_AT)
    return run_policy("lagcast", policy, contest)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_ramp_costs_less_with_the_start_up_time_that_the_pods_show(seed: int) -> None:
    """Where pods take 150 s, replicas that are expected after 30 s come two minutes late: messages wait meanwhile."""
    whole = waves()
    past, judged = whole.split(JUDGED_SECONDS)
    assert past is not None
    contest = Contest(trace=judged, world=WORLD, settings=PRICED, names=NAMES, seed=seed, start_replicas=4)
    pods = seen_in_the_plant(contest)
    assert pods is not None
    assert pods.start_up_seconds == pytest.approx(165.0, abs=15.0)
    foresight = Foresight(rates=whole.minute_rates(), start_at=START_AT)
    history = history_rows(past, WORLD.partitions, seed, NAMES)
    told, assumed = (played(contest, history, foresight, known) for known in (pods, None))
    assert told.late_share < 0.1 * assumed.late_share
    assert told.cost.total < 0.8 * assumed.cost.total
