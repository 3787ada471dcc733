"""Joins, leaves and rebalances of the classic group protocol, event by event in continuous time.

A join or leave opens a join phase that ends when every member has rejoined; a member is notified at its next heartbeat
and rejoins when its present batch is done. A join in the join phase merges; a later one starts the phase anew.
Eager: a member commits and stops everything when it rejoins, and all resume together after the sync.
Cooperative: members continue; after the first sync only partitions that move are revoked, without a second commit, so
that messages consumed since the rejoin run again at the new owner; members that revoked request a second round, which
hands the partitions over.
"""

import math

from forecasting.compiled import compiled
from replay.plant.assignment import deal_ranges, deal_sticky, in_group
from replay.plant.ownership import (
    batch_left,
    batch_now,
    commit_held,
    go_back,
    grant,
    resume_partition,
    revoke_polls,
    start_revoking,
    stop_partition,
)
from replay.plant.physics import COOPERATIVE, EAGER, Physics
from replay.plant.randomness import normal
from replay.plant.restoring import hold_back_the_cold
from replay.plant.state import GHOST, JOINING, MEMBER, STABLE, SYNCING, State


@compiled
def next_heartbeat(state: State, physics: Physics, pod: int, now: float) -> float:
    """The instant of the pod's next heartbeat: heartbeats start in step and drift apart.

    Never more than one interval from now, however far the drift: 10.5 s after they were in step, 2 s astray and 3 s
    apart, the last beat was 2.5 s ago and the next one comes in 0.5 s.
    """
    age = now - state.group[0].in_step_at
    strayed = state.pods.drift[pod] * physics.heartbeat_drift * math.sqrt(age)
    return float(now + physics.heartbeat - (age - strayed) % physics.heartbeat)


@compiled
def open_join_phase(state: State, physics: Physics, now: float) -> None:
    """Request every member to rejoin; during a sync they all wait for the response and rejoin at once.

    A member that is about to revoke rejoins by itself after that.
    """
    at_once = state.group[0].phase == SYNCING
    state.group[0].phase = JOINING
    state.group[0].sync_at = math.inf
    for pod in range(state.pods.status.size):
        if in_group(state, pod):
            state.pods.rejoined[pod] = 0
            if state.pods.status[pod] == MEMBER and math.isinf(state.pods.revoke_at[pod]):
                heard_at = now if at_once else next_heartbeat(state, physics, pod, now)
                state.pods.event_at[pod] = heard_at + (0.0 if at_once else batch_left(state, physics, pod))


@compiled
def rejoin(state: State, physics: Physics, pod: int, now: float) -> None:
    """A member commits and waits for the others; under the eager protocol it stops everything first."""
    commit_held(state, pod)
    state.pods.rejoined[pod] = 1
    state.pods.event_at[pod] = math.inf
    if physics.protocol == EAGER:
        for partition in range(state.partitions.owner.size):
            if state.partitions.owner[partition] == pod:
                stop_partition(state, partition, now)


@compiled
def revoke_moved(state: State, physics: Physics, pod: int, now: float, day: int) -> None:
    """One step of a cooperative member that gives up partitions: revoke, poll, and request the second round."""
    table, pods = state.partitions, state.pods
    if pods.revoke_step[pod] == 1:
        for partition in range(table.owner.size):
            if table.owner[partition] == pod and table.target[partition] != pod:
                go_back(state, partition, day)
                stop_partition(state, partition, now)
                table.owner[partition] = -1
    if pods.revoke_step[pod] <= revoke_polls(physics):
        pods.revoke_step[pod] += 1
        pods.revoke_at[pod] = now + batch_now(state, physics, pod)
        return
    if pods.status[pod] == MEMBER:
        if state.group[0].phase == STABLE:
            open_join_phase(state, physics, now)
        rejoin(state, physics, pod, now)
    pods.revoke_at[pod] = math.inf


@compiled
def hand_out(state: State, physics: Physics, now: float, day: int) -> None:
    """The sync responses are sent: partitions are assigned, and heartbeats are in step again."""
    table = state.partitions
    state.group[0].sync_at = math.inf
    state.group[0].phase = STABLE
    put_in_step(state, now)
    if physics.protocol == COOPERATIVE:
        hand_out_changes(state, physics, now)
        return
    deal_ranges(state)
    for partition in range(table.owner.size):
        if table.target[partition] >= 0:
            table.owner[partition] = table.target[partition]
            resume_partition(state, partition, now, day)


@compiled
def hand_out_changes(state: State, physics: Physics, now: float) -> None:
    """Free partitions go to their new owners; a member that holds another's partition begins to give it up."""
    table = state.partitions
    deal_sticky(state)
    if physics.restore > 0.0:
        hold_back_the_cold(state, physics, now)
    for partition in range(table.owner.size):
        owner = table.owner[partition]
        if owner < 0 and table.target[partition] >= 0:
            grant(state, physics, partition, table.target[partition], now)
        elif owner >= 0 and owner != table.target[partition] and state.pods.status[owner] != GHOST:
            start_revoking(state, physics, owner, now)


@compiled
def put_in_step(state: State, now: float) -> None:
    """Restart all heartbeat timers, as every rebalance does; each member then drifts at a rate of its own."""
    state.group[0].in_step_at = now
    for pod in range(state.pods.status.size):
        if in_group(state, pod):
            state.pods.drift[pod] = normal(state.random)


@compiled
def all_rejoined(state: State) -> bool:
    """True if the join phase may end: every member is back."""
    missing = 0
    for pod in range(state.pods.status.size):
        if in_group(state, pod) and state.pods.rejoined[pod] == 0:
            missing += 1
    return missing == 0
