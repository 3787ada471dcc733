"""What a change of replicas stops: which partitions, for how long, in how many rebalances, by protocol."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cost_model.profile import GroupProfile
from forecasting.units import Fraction, Replicas, Seconds

# New replicas do not become ready together. A third of the start-up time is the prior for the span from first to last:
# 10 s at 30 s, where ten new replicas cause 3.1 rebalances.
READY_SPREAD_FRACTION = 1.0 / 3.0
# Java clients advance a cooperative rebalance by one step per poll(), so each step waits for one batch. Measured on
# Kafka 4.3 at batches of 1, 2 and 5 s: moved partitions stop 2.9, 4.9, 11.9 s going up, 9.2, 14.6, 34.6 s going down.
COOPERATIVE_BATCHES_UP = 2.4
COOPERATIVE_BATCHES_DOWN = 5.6
RESPONSE_GRID_POINTS = 2_001  # on 0 .. heartbeat + batch; the mean of a maximum is then right to 1e-6 of that


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseClass:
    """Partitions that share a fate: their share of the group, and the mean time that they stop."""

    share: Fraction
    mean_seconds: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveEffect:
    """What one move does to the group while it happens.

    `moved_fraction` is the share of partitions that a sticky deal gives to another owner; range and round robin move
    more, which under an eager protocol changes no pause. `pause_seconds` is the mean over the partitions that stop.
    """

    pauses: tuple[PauseClass, ...]
    lost_partition_seconds: float
    moved_fraction: Fraction
    expected_rebalances: float
    pause_seconds: Seconds


NO_EFFECT = MoveEffect(
    pauses=(),
    lost_partition_seconds=0.0,
    moved_fraction=Fraction(0.0),
    expected_rebalances=0.0,
    pause_seconds=Seconds(0.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """How long members take to rejoin after a rebalance begins: next heartbeat, then the rest of the batch in hand."""

    mean_seconds: Seconds
    slowest_seconds: Seconds


@lru_cache(maxsize=4096)
def responses(members: int, *, heartbeat_interval: Seconds, poll_batch: Seconds) -> Responses:
    """Mean and expected slowest of `members` independent responses, each Uniform(0, h) + Uniform(0, B).

    Formula: E[max R] = integral over r of 1 - F(r) ** members. Heartbeats that still beat together after a recent
    rebalance answer sooner; independent phases are the upper value, and a plan cannot know which it will meet.

    >>> slow = responses(5, heartbeat_interval=Seconds(3.0), poll_batch=Seconds(0.0))
    >>> round(slow.slowest_seconds - slow.mean_seconds, 3)               # h * (N - 1) / (2 * (N + 1))
    1.0
    """
    reach = heartbeat_interval + poll_batch
    mean = reach / 2.0
    if members < 1 or reach <= 0.0:
        return Responses(mean_seconds=Seconds(mean), slowest_seconds=Seconds(mean))
    short, long = sorted((heartbeat_interval, poll_batch))
    seconds = np.linspace(0.0, reach, RESPONSE_GRID_POINTS)
    # Area of the unit square under u * h + v * B <= r: a straight edge where one side is 0, quadratic ends where not.
    edges = np.maximum(seconds, 0.0) ** 2 - np.maximum(seconds - short, 0.0) ** 2 - np.maximum(seconds - long, 0.0) ** 2
    reached = edges / (2.0 * short * long) if short > 1e-6 * long else seconds / long
    slowest = np.trapezoid(1.0 - np.clip(reached, 0.0, 1.0) ** members, seconds)
    return Responses(mean_seconds=Seconds(mean), slowest_seconds=Seconds(float(slowest)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One rebalance among `members` that stay: how long each is stopped on average, and how long it takes in all."""

    mean_stop_seconds: Seconds
    whole_seconds: Seconds


def rebalance_round(profile: GroupProfile, *, members: int) -> Round:
    """A rebalance of a group that has long been quiet, so that heartbeats beat apart; the upper value otherwise.

    Formula: a member stops from its own rejoin to the slowest one's, then for the sync: E[max R] - E[R] + s. The whole
    takes E[max R] + s. Held against Kafka 4.3: measured 0.83 s of 0.92 for 4 members, 1.30 of 1.25 for 10.
    """
    response = responses(
        members, heartbeat_interval=profile.heartbeat_interval_seconds, poll_batch=profile.poll_batch_seconds
    )
    whole = response.slowest_seconds + profile.sync_seconds
    return Round(mean_stop_seconds=Seconds(whole - response.mean_seconds), whole_seconds=Seconds(whole))


def leaves_gracefully(profile: GroupProfile) -> bool:
    """Whether a stopped replica gets to finish its batch, commit and say goodbye before Kubernetes kills it."""
    return profile.termination_grace_seconds >= profile.processing_p99_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A move between counts that hold partitions: who stays, how many come or go, in how many rebalances."""

    up: bool
    staying: int
    changed: int
    rebalances: float
    first: Round

    @property
    def moved(self) -> float:
        """The least share of partitions that has to change owner for an even deal."""
        return self.changed / (self.staying + self.changed)


def move_effect(
    profile: GroupProfile,
    *,
    from_replicas: Replicas,
    to_replicas: Replicas,
    pause_prior_seconds: Seconds | None = None,
) -> MoveEffect:
    """The stop that a move from one replica count to another is expected to cause.

    `pause_prior_seconds` is a floor of the whole move's stop: under eager for every stopped partition; under
    cooperative, where a partition stops only when it moves, scaled by the moved fraction.

    >>> from forecasting.units import Partitions
    >>> profile = GroupProfile(cluster="c", group="g", partitions=Partitions(40), capacity=None)
    >>> effect = move_effect(profile, from_replicas=Replicas(8), to_replicas=Replicas(10))
    >>> round(effect.pause_seconds, 2), effect.moved_fraction, round(effect.expected_rebalances, 2)
    (1.68, 0.2, 1.62)
    """
    before, after = (min(replicas, profile.partitions) for replicas in (from_replicas, to_replicas))
    if before < 1 or after < 1 or from_replicas == to_replicas:
        return NO_EFFECT  # an empty group has nothing to stop
    staying, changed, up = min(before, after), abs(after - before), after > before
    first = rebalance_round(profile, members=staying)
    rebalances = _rebalances(profile, up=up, changed=changed, round_seconds=first.whole_seconds)
    move = _Move(up=up, staying=staying, changed=changed, rebalances=rebalances, first=first)
    floor = 0.0 if pause_prior_seconds is None else float(pause_prior_seconds)
    if profile.protocol == "eager":
        return _effect(profile, move, _eager_stops(profile, move), floor=floor)
    return _effect(profile, move, [_cooperative_stop(profile, move)], floor=floor * move.moved)


def _rebalances(profile: GroupProfile, *, up: bool, changed: int, round_seconds: float) -> float:
    """How many rebalances `changed` joins or leaves cause when they spread over S seconds and one gathers for W.

    Formula: 1 + (k - 1) / (1 + k * W / S); ten joins, W = 3 s, over 5 / 20 / 60 s: 2.3, 4.6, 7.0. Replicas are told to
    leave together, and each does after the batch in hand.
    """
    spread = profile.start_up_seconds * READY_SPREAD_FRACTION if up else profile.poll_batch_seconds
    if changed < 2 or spread <= 0.0:
        return 1.0
    return 1.0 + (changed - 1) / (1.0 + changed * round_seconds / spread)


def _eager_stops(profile: GroupProfile, move: _Move) -> list[tuple[float, float]]:
    """Everybody stops from its own rejoin to the last one's; leavers' partitions wait from the start.

    The first rebalance meets independent heartbeats and puts them in step, so later ones cost only the spread of
    running batches: A + (n - 1) * A_in_step. Measured 2.3 s where n * A would say 5.9.
    """
    batches = responses(move.staying, heartbeat_interval=Seconds(0.0), poll_batch=profile.poll_batch_seconds)
    in_step = batches.slowest_seconds - batches.mean_seconds + profile.sync_seconds
    everyone = move.first.mean_stop_seconds + (move.rebalances - 1.0) * in_step
    if move.up:
        return [(1.0, everyone)]
    return [(1.0 - move.moved, everyone), (move.moved, _orphaned_seconds(profile) + move.first.whole_seconds)]


def _cooperative_stop(profile: GroupProfile, move: _Move) -> tuple[float, float]:
    """Only moved partitions stop: going up from the revocation to the end of round two, going down until dealt again.

    Replicas that join one by one move some partitions more than once: 1/(N+1) + ... + 1/(N+k) in all, not k/(N+k).
    """
    batch = profile.poll_batch_seconds
    if not move.up:
        wait = move.first.whole_seconds + COOPERATIVE_BATCHES_DOWN * batch
        return (move.moved, _orphaned_seconds(profile) + wait)
    one_by_one = sum(1.0 / (move.staying + joiner) for joiner in range(1, move.changed + 1))
    apart = (move.rebalances - 1.0) / max(move.changed - 1, 1)  # 0: all joined together, 1: each alone
    times_moved = 1.0 + apart * (one_by_one / move.moved - 1.0)
    wait = max(profile.heartbeat_interval_seconds, COOPERATIVE_BATCHES_UP * batch) + profile.sync_seconds
    return (move.moved, times_moved * wait)


def _orphaned_seconds(profile: GroupProfile) -> float:
    """How long nobody notices that a replica is gone: none after a goodbye, else the rest of its session."""
    if leaves_gracefully(profile):
        return 0.0
    return max(0.0, profile.session_timeout_seconds - profile.heartbeat_interval_seconds / 2.0)


def _effect(profile: GroupProfile, move: _Move, stops: list[tuple[float, float]], *, floor: float) -> MoveEffect:
    pauses = [(share, max(seconds, floor)) for share, seconds in stops if share > 0.0]
    stopped = sum(share for share, _ in pauses)
    lost = sum(share * seconds for share, seconds in pauses)
    return MoveEffect(
        pauses=tuple(PauseClass(share=Fraction(share), mean_seconds=Seconds(seconds)) for share, seconds in pauses),
        lost_partition_seconds=profile.partitions * lost,
        moved_fraction=Fraction(move.moved),
        expected_rebalances=move.rebalances,
        pause_seconds=Seconds(lost / stopped if stopped > 0.0 else 0.0),
    )
