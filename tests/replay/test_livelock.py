"""B6: a minute for each message, ten partitions: batches of 500 that never end, and a commit for each message."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from cost_model.physics.profile import GroupProfile
from forecasting.refusal import Refusal
from forecasting.units import Seconds, read_only
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.following.session import Session
from replay.plant import Plant
from replay.policies.hpa import LegacyRules
from replay.policies.keda import Keda
from replay.policies.lagcast import profile_of
from replay.sampling import Names, Rows
from replay.trace import Trace
from replay.world import RollingRestart, World

NAMES = Names("test", "lazy")
PARTITIONS, MINUTES = 10, 60
THRESHOLD = 500
MAX_POLL_INTERVAL_SECONDS = 300
# Where a message takes a minute, ten of them are no delay.
SETTINGS = DecisionSettings(price_per_replica_hour=0.05, max_lag_seconds=600.0)
# A batch of 500 takes 30,000 s: every member is put out after 300 s, loses its work and comes back as a new one.
ENDLESS = World(
    partitions=PARTITIONS,
    capacity_messages_per_second_per_replica=1.0 / 60.0,
    batch_seconds=500 * 60.0,
    start_up_seconds=10.0,
    termination_grace_seconds=0.0,
    to_zero=True,
    incidents=tuple(
        RollingRestart(at_second=second, seconds_per_pod=1)
        for second in range(MAX_POLL_INTERVAL_SECONDS, 60 * MINUTES, MAX_POLL_INTERVAL_SECONDS)
    ),
)
COMMITTED_EACH = replace(
    ENDLESS, batch_seconds=60.0, commit_mode="batch", termination_grace_seconds=90.0, to_zero=False, incidents=()
)


def load(*messages_per_minute: float) -> Trace:
    """One rate a minute."""
    rates = np.array(messages_per_minute, dtype=np.float64) / 60.0
    start_at = datetime(2026, 1, 5, tzinfo=UTC)
    return Trace(name="lazy", start_at=start_at, step_seconds=60, messages_per_second=read_only(rates))


def piling_up() -> Trace:
    """600 messages at once, then 90 a minute."""
    return load(600.0, *[90.0] * (MINUTES - 1))


def committed(plant: Plant) -> int:
    return int(plant.observation().committed_offsets.sum())


@pytest.mark.slow
def test_b6_keda_scales_a_group_again_and_again_that_never_commits() -> None:
    """From 0 to 10 replicas in ten changes within the hour, each of them a rebalance more; nothing was committed."""
    plant = Plant(world=ENDLESS, trace=piling_up(), seed=1, replicas=1)
    plant.scale(0)
    keda = Keda(threshold_messages=THRESHOLD, rules=LegacyRules(least=1, most=PARTITIONS))
    counts = [0]
    while plant.remaining_seconds > 0:
        plant.advance()
        seen = plant.observation()
        lag = int(seen.lag_messages.sum())
        now: dict[str, int] = {"replicas": seen.replicas, "now_seconds": seen.time_seconds}
        wanted = keda.decide(seen) if seen.replicas else keda.poll(lag, **now)
        if wanted != seen.replicas:
            plant.scale(wanted)
            counts.append(wanted)
    assert counts == list(range(PARTITIONS + 1))
    assert committed(plant) == 0


def followed(
    plant: Plant, profile: GroupProfile, *, cycle_seconds: int = 60
) -> tuple[list[Decision], list[tuple[int, int]]]:
    """What lagcast decides in each cycle of a minute, and the moves that it makes by second and count."""
    session, rows = Session(profile, SETTINGS), Rows(NAMES)
    decisions: list[Decision] = []
    moves: list[tuple[int, int]] = []
    while plant.remaining_seconds > 0:
        plant.advance()
        seen = plant.observation()
        session.observe(rows.row(seen))
        if seen.time_seconds % cycle_seconds:
            continue
        decision = session.recommend(seen.at)
        decisions.append(decision)
        if isinstance(decision, Recommendation) and decision.execute_at <= seen.at:
            wanted = decision.desired_replicas
            if wanted != seen.replicas:
                plant.scale(wanted)
                moves.append((seen.time_seconds, wanted))
    return decisions, moves


@pytest.mark.slow
def test_b6_lagcast_refuses_to_scale_it_and_says_why() -> None:
    """Two cycles pass, in which there is too little to advise on, and a third; then it refuses, and changes nothing."""
    plant = Plant(world=replace(ENDLESS, to_zero=False), trace=piling_up(), seed=1, replicas=1)
    profile = replace(profile_of(ENDLESS, NAMES), scale_to_zero=None)
    decisions, moves = followed(plant, profile)
    refused = [decision.reason if isinstance(decision, Refusal) else "" for decision in decisions]
    assert refused[:3] == ["not_enough_history", "not_enough_history", ""]
    assert set(refused[3:]) == {"livelock_suspected"}
    assert moves == []
    why = next(decision.sentence for decision in decisions[3:] if isinstance(decision, Refusal))
    assert "a batch of up to 500 records takes 30,000 s, over 80% of max.poll.interval.ms (300 s)" in why


@pytest.mark.slow
def test_b6_with_a_commit_for_each_message_all_work_is_done() -> None:
    """On a load of 2 to 8 a minute, and none: moves are 300 s apart, and a partition that moves repeats one at most."""
    trace = load(*[2.0] * 40, *[5.0] * 40, *[8.0] * 60, *[0.0] * 40)
    plant = Plant(world=COMMITTED_EACH, trace=trace, seed=1, replicas=3)
    profile = replace(
        profile_of(COMMITTED_EACH, NAMES),
        processing_p99_seconds=Seconds(60.0),
        poll_batch_seconds=Seconds(60.0),
        max_poll_records=1,
        commit_mode="message",
    )
    _, moves = followed(plant, profile)
    assert len(moves) >= 2
    assert all(after - before >= 300 for (before, _), (after, _) in pairwise(moves))
    (day,) = plant.day_totals()
    assert (day.served, plant.backlog_messages) == (day.arrivals, 0)
    assert day.duplicates <= PARTITIONS * len(moves)
