"""The effects of a change of replicas: which partitions pause, how long, in how many rebalances, by protocol."""

from dataclasses import dataclass
from math import ceil

from cost_model.physics.assignors import moved_fraction
from cost_model.physics.exits import heartbeat_seconds, orphaned_seconds, ungraceful_fraction
from cost_model.physics.profile import GroupProfile
from cost_model.physics.rounds import Round, rebalance_round, responses
from cost_model.physics.streams import moved_tasks, restore_seconds
from forecasting.units import Fraction, Replicas, Seconds

# New replicas do not become ready together. A third of the start-up time is the prior for the span from first to last:
# 10 s at 30 s, where ten new replicas cause 3.1 rebalances.
READY_SPREAD_FRACTION = 1.0 / 3.0
# The Java client advances the newer protocols by one step per poll(), and each step waits for one batch. Measured on
# Kafka 4.3 at batches of 1, 2 and 5 s: cooperative 2.9, 4.9, 11.9 s up and 9.2, 14.6, 34.6 s down; KIP-848 7.6, 10.5,
# 23.7 s up and 8.8, 16, 36 s down. librdkafka has a thread for it: no surcharge. Others are taken to poll like Java.
COOPERATIVE_BATCHES_UP = 2.4
COOPERATIVE_BATCHES_DOWN = 5.6
COOPERATIVE_BATCHES_DOWN_COMMITTED = 4.5  # with a commit after each batch, which answers the group in between
KIP848_BATCHES_UP = 4.3
KIP848_BATCHES_DOWN = 6.6


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseClass:
    """Partitions with the same kind of stop: their share of the group, and the mean time that they stop."""

    share: Fraction
    mean_seconds: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveEffect:
    """The effects of one move on the group while it happens.

    `pauses` has at most three classes: those that stay, those of replicas that leave gracefully, and of those that
    leave ungracefully. `moved_fraction` is the share of partitions that the group's assignor gives to another owner;
    under an eager protocol it changes no pause. `rebalance_pause_seconds` is the mean over the partitions that stop.
    """

    pauses: tuple[PauseClass, ...]
    lost_partition_seconds: float
    moved_fraction: Fraction
    expected_rebalances: float
    rebalance_pause_seconds: Seconds


NO_EFFECT = MoveEffect(
    pauses=(),
    lost_partition_seconds=0.0,
    moved_fraction=Fraction(0.0),
    expected_rebalances=0.0,
    rebalance_pause_seconds=Seconds(0.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A move between counts that hold partitions: members that stay, come or go, partitions that move, and the rounds.

    `leaving` is the share of partitions whose replicas leave, before any other change by the assignor.
    """

    before: int
    after: int
    staying: int
    changed: int
    moved: float
    leaving: float
    rebalances: float
    first: Round


def move_effect(
    profile: GroupProfile,
    *,
    from_replicas: Replicas,
    to_replicas: Replicas,
    rebalance_pause_prior_seconds: Seconds | None = None,
    quiet_seconds: Seconds | None = None,
) -> MoveEffect:
    """The expected stop of a move from one replica count to another.

    `rebalance_pause_prior_seconds` is a floor of the whole move's stop: under eager for every stopped partition; under
    the newer protocols, where a partition stops only when it moves, scaled by the moved fraction. `quiet_seconds` is
    the time since the last rebalance; None: so long that heartbeats beat apart, the upper value.

    >>> from forecasting.units import Partitions
    >>> profile = GroupProfile(cluster="c", group="g", partitions=Partitions(40), capacity=None, assignor="sticky")
    >>> effect = move_effect(profile, from_replicas=Replicas(8), to_replicas=Replicas(10))
    >>> round(effect.rebalance_pause_seconds, 2), effect.moved_fraction, round(effect.expected_rebalances, 2)
    (1.68, 0.2, 1.62)
    """
    before, after = (min(replicas, profile.work_units) for replicas in (from_replicas, to_replicas))
    if before < 1 or after < 1 or from_replicas == to_replicas:
        return NO_EFFECT  # an empty group has nothing to stop
    move = _move(profile, before=before, after=after, quiet_seconds=quiet_seconds)
    floor = 0.0 if rebalance_pause_prior_seconds is None else float(rebalance_pause_prior_seconds)
    if profile.rebalances_as != "eager":
        floor *= move.moved
    stops = _stops_growing(profile, move) if to_replicas > from_replicas else _stops_shrinking(profile, move)
    return _effect(profile, move, stops, floor=floor)


def _move(profile: GroupProfile, *, before: int, after: int, quiet_seconds: Seconds | None) -> _Move:
    staying, changed = min(before, after), abs(after - before)
    first = rebalance_round(profile, members=staying, quiet_seconds=quiet_seconds)
    return _Move(
        before=before,
        after=after,
        staying=staying,
        changed=changed,
        moved=moved_fraction(profile.work_units, before, after, profile.deals_by),
        leaving=max(0, before - after) / before,
        rebalances=_rebalances(profile, up=after > before, changed=changed, round_seconds=first.whole_seconds),
        first=first,
    )


def _rebalances(profile: GroupProfile, *, up: bool, changed: int, round_seconds: float) -> float:
    """The number of rebalances by `changed` joins or leaves that spread over S seconds, where one gathers for W.

    Formula: 1 + (k - 1) / (1 + k * W / S); ten joins, W = 3 s, over 5 / 20 / 60 s: 2.3, 4.6, 7.0. Replicas stop
    together, and each leaves after its present batch. Under KIP-848 the broker gathers joins into one assignment.
    """
    spread = profile.start_up_seconds * READY_SPREAD_FRACTION if up else profile.poll_batch_seconds
    if changed < 2 or spread <= 0.0 or profile.rebalances_as == "kip848":
        return 1.0
    return 1.0 + (changed - 1) / (1.0 + changed * round_seconds / spread)


def _stops_everyone(move: _Move) -> float:
    """Mean stop of every member, from its own rejoin to the last one's, in each rebalance.

    The first rebalance may meet heartbeats that have drifted apart and puts them in step, so later ones cost only the
    spread of running batches: A + (n - 1) * A_sync. Measured 2.3 s where n * A would give 5.9.
    """
    return move.first.mean_pause_seconds + (move.rebalances - 1.0) * move.first.next_pause_seconds


def _stops_growing(profile: GroupProfile, move: _Move) -> list[tuple[float, float]]:
    """Shares of the partitions and how long they stop when replicas join."""
    batch = _batch_of_a_step(profile)
    if profile.rebalances_as == "eager":
        return [(1.0, _stops_everyone(move))]
    if profile.rebalances_as == "kip848":
        return [(move.moved, heartbeat_seconds(profile) / 2.0 + KIP848_BATCHES_UP * batch + profile.sync_seconds)]
    # From the revocation to the end of round two, which members without one notice at their next heartbeat.
    residual = responses(move.staying, heartbeat_interval=Seconds(0.0), poll_batch=profile.poll_batch_seconds)
    discovery = max(heartbeat_seconds(profile), residual.slowest_seconds, COOPERATIVE_BATCHES_UP * batch)
    return [(move.moved, _times_moved(profile, move) * (discovery + profile.sync_seconds))]


def _stops_shrinking(profile: GroupProfile, move: _Move) -> list[tuple[float, float]]:
    """Shares of the partitions and how long they stop when replicas leave.

    Leavers' partitions wait for the rebalance from its start, those of ungraceful leavers also until their leave is
    noticed, and stateful tasks until they are restored.
    """
    batch = _batch_of_a_step(profile)
    if profile.rebalances_as == "kip848":
        dealt_again = heartbeat_seconds(profile) / 2.0 + KIP848_BATCHES_DOWN * batch + profile.sync_seconds
    elif profile.rebalances_as == "cooperative":
        committed = profile.commit_mode != "interval"
        steps = COOPERATIVE_BATCHES_DOWN_COMMITTED if committed else COOPERATIVE_BATCHES_DOWN
        dealt_again = move.first.whole_seconds + steps * batch
    else:
        dealt_again = float(move.first.whole_seconds)
    dealt_again += restore_seconds(profile, from_replicas=Replicas(move.before), to_replicas=Replicas(move.after))
    ungraceful = ungraceful_fraction(profile)
    stay = [(1.0 - move.leaving, _stops_everyone(move))] if profile.rebalances_as == "eager" else []
    return [
        *stay,
        (move.leaving * (1.0 - ungraceful), dealt_again),
        (move.leaving * ungraceful, orphaned_seconds(profile) + dealt_again),
    ]


def _batch_of_a_step(profile: GroupProfile) -> float:
    """The wait in each step of the newer protocols: nothing where the client answers in a thread of its own."""
    return 0.0 if profile.client == "librdkafka" else float(profile.poll_batch_seconds)


def _times_moved(profile: GroupProfile, move: _Move) -> float:
    """The number of times that a moved partition moves: replicas that join one by one take some twice.

    Each joiner takes floor(P / members): 40 partitions, 4 to 20 members: 1.375 of them in all, 0.80 of them at once.
    Streams moves a task once, after it has been warmed up at its new owner.
    """
    if move.changed < 2 or (profile.streams is not None and profile.streams.stateful):
        return 1.0
    one_by_one = sum(profile.work_units // members for members in range(move.before + 1, move.after + 1))
    apart = (move.rebalances - 1.0) / (move.changed - 1)  # 0: all joined together, 1: each alone
    return 1.0 + apart * (one_by_one / (move.moved * profile.work_units) - 1.0)


def _expected_rebalances(profile: GroupProfile, move: _Move) -> float:
    """Expected rebalances; with state a growing Streams application rebalances once more for each round of warm-ups."""
    streams = profile.streams
    if streams is None or not streams.stateful or move.after <= move.before:
        return move.rebalances
    moves = moved_tasks(profile, from_replicas=Replicas(move.before), to_replicas=Replicas(move.after))
    return move.rebalances + ceil(moves / streams.max_warmup_replicas)


def _effect(profile: GroupProfile, move: _Move, stops: list[tuple[float, float]], *, floor: float) -> MoveEffect:
    pauses = [(share, max(seconds, floor)) for share, seconds in stops if share > 0.0]
    stopped = sum(share for share, _ in pauses)
    lost = sum(share * seconds for share, seconds in pauses)
    return MoveEffect(
        pauses=tuple(PauseClass(share=Fraction(share), mean_seconds=Seconds(seconds)) for share, seconds in pauses),
        lost_partition_seconds=profile.partitions * lost,
        moved_fraction=Fraction(move.moved),
        expected_rebalances=_expected_rebalances(profile, move),
        rebalance_pause_seconds=Seconds(lost / stopped if stopped > 0.0 else 0.0),
    )
