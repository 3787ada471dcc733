"""Guards: small named policies that may hold a planned move back, each leaving its line in the explanation.

A guard never invents a move. It sees the proposal and the scene, and lets the proposal pass or turns it into a hold.
The order of `GUARDS` is the order in which they speak; the first that binds names the rule.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cost_model.livelock import least_move_interval_seconds
from cost_model.profile import GroupProfile
from cost_model.skew import carried_by_count
from cost_model.streams import lead_seconds
from forecasting.history import GroupInterval
from forecasting.units import Replicas
from recommender.decision import DecisionSettings
from recommender.pace import HOUR
from recommender.windows import closed_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A move that is still being discussed: `target` from `command_at`, or staying where `target` is the present."""

    target: int
    command_at: datetime
    binding_rule: str | None = None
    sentences: tuple[str, ...] = ()

    def held(self, scene: "Scene", *, rule: str, sentence: str) -> "Proposal":
        """The same proposal turned into a hold, with the reason a person would give."""
        return replace(
            self, target=scene.replicas, command_at=scene.now, binding_rule=rule, sentences=(*self.sentences, sentence)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What guards look at: the group as it stands, when it last changed size, and when within the last hour."""

    now: datetime
    replicas: int
    backlog_messages: float
    behind_seconds: float
    produce_messages_per_second: float
    latest: GroupInterval
    last_move_at: datetime | None
    moved_at: tuple[datetime, ...] = ()
    profile: GroupProfile
    settings: DecisionSettings


Guard = Callable[[Proposal, Scene], Proposal]


def never_fewer_on_partial_data(proposal: Proposal, scene: Scene) -> Proposal:
    """Partitions that were not sampled may be the ones that are behind."""
    row = scene.latest
    if proposal.target >= scene.replicas or row.sampled_partitions >= row.partitions:
        return proposal
    return proposal.held(
        scene,
        rule="partial_data",
        sentence=f"Only {row.sampled_partitions} of {row.partitions} partitions were sampled, so nothing is removed.",
    )


def never_fewer_while_draining(proposal: Proposal, scene: Scene) -> Proposal:
    """A backlog worth more than half the promised wait is consumed before anything is removed."""
    if proposal.target >= scene.replicas:
        return proposal
    limit_seconds = scene.settings.max_lag_seconds / 2
    # Where next to nothing arrives one replica's work counts: 30 markers of transactions stay for ever and are no work.
    alone = scene.profile.capacity.p20 if scene.profile.capacity is not None else 0.0
    limit_messages = limit_seconds * max(scene.produce_messages_per_second, alone)
    if scene.backlog_messages <= limit_messages:
        return proposal
    return proposal.held(
        scene,
        rule="backlog_draining",
        sentence=(
            f"A backlog of {scene.backlog_messages:,.0f} messages is still to be consumed (limit "
            f"{limit_messages:,.0f}, {limit_seconds:g} s of the load or of one replica's work), so nothing is removed."
        ),
    )


def rest_between_moves(proposal: Proposal, scene: Scene) -> Proposal:
    """A group that has just changed size settles first; removing waits longer than adding."""
    if proposal.target == scene.replicas or scene.last_move_at is None:
        return proposal
    rest = rest_seconds(scene.profile, scene.settings, removing=proposal.target < scene.replicas)
    rested_at = scene.last_move_at + timedelta(seconds=rest)
    if proposal.command_at >= rested_at:
        return proposal
    return proposal.held(
        scene,
        rule="scale_in_cooldown" if proposal.target < scene.replicas else "move_interval",
        sentence=(
            f"The group changed size at {scene.last_move_at:%H:%M:%S}; the next move waits until {rested_at:%H:%M:%S}."
        ),
    )


def rest_seconds(profile: GroupProfile, settings: DecisionSettings, *, removing: bool) -> float:
    """Least time since the last move: the configured cooldown before removing, the move interval before adding.

    The move interval is what the group needs between two moves, whatever is configured: time to settle, and five p99
    processing times, so that work is not interrupted again and again. A shorter cooldown counts as that.
    """
    needed = least_move_interval_seconds(profile)
    return max(settings.scale_in_cooldown_seconds, needed) if removing else needed


GUARDS: tuple[Guard, ...] = (never_fewer_on_partial_data, never_fewer_while_draining, rest_between_moves)


def follow_fallback(proposal: Proposal, scene: Scene, wanted: int) -> Proposal:
    """The fallback policy's count in place of the plan's, once the plan's way has been more expensive for too long.

    It knows no findings: nothing is added beyond the ceiling of the scene's profile, nor before the group
    has had time to show what the last addition did.
    """
    if wanted > scene.replicas:
        wanted = scene.replicas if _settling(scene) else max(scene.replicas, min(wanted, scene.profile.replica_ceiling))
    return replace(
        proposal,
        target=wanted,
        command_at=scene.now,
        binding_rule="fallback_policy",
        sentences=(
            *proposal.sentences,
            f"Advice has lately cost more than a simpler scaler would have, so that is followed: {wanted}.",
        ),
    )


def _settling(scene: Scene) -> bool:
    """Whether the group has just changed size to a count that carries what arrives: what more would do is not seen.

    State that has to warm up takes its time, taken here as that of a group which has doubled: 100 min for 40 tasks.
    """
    profile = scene.profile
    if scene.last_move_at is None or profile.capacity is None:
        return False
    (carried,) = carried_by_count(profile, (scene.replicas,), capacity=profile.capacity.p50)
    half = Replicas(max(1, scene.replicas // 2))
    settled = lead_seconds(profile, from_replicas=half, to_replicas=Replicas(scene.replicas))
    rested_at = scene.last_move_at + timedelta(seconds=max(scene.settings.scale_in_cooldown_seconds, settled))
    return bool(scene.now < rested_at and carried >= scene.produce_messages_per_second)


def keep_the_pace(proposal: Proposal, scene: Scene) -> Proposal:
    """No more changes of size within an hour than the owner allows, whoever wants or made them."""
    most = scene.settings.max_moves_per_hour
    within = [at for at in scene.moved_at if at > proposal.command_at - HOUR]
    if most is None or proposal.target == scene.replicas or len(within) < most:
        return proposal
    times = "once" if len(within) == 1 else f"{len(within)} times"
    return proposal.held(
        scene,
        rule="max_moves_per_hour",
        sentence=(
            f"The group has changed size {times} since {within[0]:%H:%M:%S}, and max_moves_per_hour is {most}; the "
            f"next move waits until {within[-most] + HOUR:%H:%M:%S}."
        ),
    )


def keep_to_windows(proposal: Proposal, scene: Scene) -> Proposal:
    """No move in hours that its owner has closed to it, whoever wants it."""
    if proposal.target == scene.replicas:
        return proposal
    removing = proposal.target < scene.replicas
    closed = closed_by(scene.settings.windows, proposal.command_at, removing=removing)
    if closed is None:
        return proposal
    window, closes_at = closed
    nothing = "nothing is removed" if window.effect == "no_scale_in" else "nothing is moved"
    name = f"{window.schedule} ({window.time_zone})"
    return proposal.held(
        scene,
        rule="window",
        sentence=(
            f"The window {name} is open at {proposal.command_at:%H:%M:%S} and closes at "
            f"{closes_at:%Y-%m-%dT%H:%M:%SZ}; until then {nothing}."
        ),
    )


def keep_the_minimum(proposal: Proposal, scene: Scene) -> Proposal:
    """At least the configured minimum, and at once: that is the owner's word and no question of price."""
    least = scene.profile.min_replicas
    if scene.replicas >= least or (proposal.target >= least and proposal.command_at <= scene.now):
        return proposal
    return replace(
        proposal,
        target=max(least, proposal.target),
        command_at=scene.now,
        binding_rule="minimum",
        sentences=(*proposal.sentences, f"{scene.replicas} are fewer than min_replicas, {least}."),
    )


def pass_guards(proposal: Proposal, scene: Scene, guards: tuple[Guard, ...] = GUARDS) -> Proposal:
    """The proposal after every guard has spoken, in order."""
    for guard in guards:
        proposal = guard(proposal, scene)
    return proposal
