"""The account of a decision: the figures that are published with it beside the prices of its plans."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import log
from typing import Literal

from cost_model.physics.detected import DETECTABLE_IN_CLUSTER
from cost_model.physics.duplicates import expected_duplicates
from cost_model.physics.profile import GroupProfile, while_behind
from cost_model.physics.rebalance import move_effect
from cost_model.pricing.situation import Situation
from cost_model.search.evaluation import PlanEvaluation
from cost_model.search.verdict import QUANTITIES, Quantity, turning_factor
from forecasting.units import MessagesPerSecond, Replicas, Seconds
from recommender.deciding.context import DecisionContext
from recommender.deciding.decision import DecisionSettings, PricedSettings
from recommender.deciding.recommendation import (
    LearnedMoves,
    PolicyFigures,
    ProfileFigure,
    RebalanceImpact,
    Recommendation,
    TurningPoint,
    TurningQuantity,
)

# The fields of a profile that are published, by the names of their settings; the assignor of an eager group alone.
PROFILE_FIGURES = (
    *("protocol", "assignor", "client", "static_membership", "start_up_seconds", "heartbeat_interval_seconds"),
    *("consumer_heartbeat_seconds", "session_timeout_seconds", "commit_mode", "commit_interval_seconds"),
    *("poll_batch_seconds", "max_poll_records", "max_poll_interval_seconds"),
    *("processing_p99_seconds", "termination_grace_seconds", "min_replicas", "max_replicas"),
)
# Under the newer protocol brokers tell members how often to send a sign of life.
_HEARTBEATS: Mapping[str, bool] = {"heartbeat_interval_seconds": False, "consumer_heartbeat_seconds": True}
# The columns that show figures of members, but for those that are in each description of a group.
_COLUMNS: Mapping[str, str] = {
    "max_poll_interval_seconds": "rebalance_timeout_seconds",
    **{name: name for name in ("commit_interval_seconds", "session_timeout_seconds", "consumer_heartbeat_seconds")},
}
# Of these only what is known of the group is published: its useful counts show the defaults.
_BOUNDS = frozenset({"min_replicas", "max_replicas"})
# Those of a Streams application, whose commit interval is its own; the last ones are of state alone.
STREAMS_FIGURES = ("tasks", "stateful", "exactly_once", "commit_interval_seconds")
STATE_FIGURES = (
    *("restore_bytes", "restore_bytes_per_second", "standbys", "behind_bytes", "volume_kept"),
    *("max_warmup_replicas", "probing_seconds"),
)
_NAMES: dict[Quantity, TurningQuantity] = {
    "price_per_late_message": "price_per_late_message",
    "rebalance_pause_seconds": "rebalance_pause_seconds",
    "capacity": "capacity_messages_per_second_per_replica",
    "forecast": "forecast_peak_messages_per_second",
}


def learned_moves(context: DecisionContext, situation: Situation) -> LearnedMoves:
    """Results of past moves, and the target utilization and start-up time used for planning."""
    learned = context.learned
    seen = learned.start_up_seen
    return LearnedMoves(
        rebalance_pause_scale_out_seconds=learned.pause_scale_out.value,
        rebalance_pause_scale_in_seconds=learned.pause_scale_in.value,
        move_risk=learned.risk,
        moves=learned.moves,
        source=learned.source,
        target_utilization=situation.target_utilization,
        target_utilization_set=context.settings.target_utilization,
        start_up_seconds=situation.profile.start_up_seconds,
        start_up_seen_seconds=None if seen is None else seen.value,
        start_up_source=learned.start_up_source,
        similar_groups=None if learned.similar is None else learned.similar.groups,
        pod_start_up=learned.pod_start_up,
    )


def profile_figures(context: DecisionContext) -> tuple[ProfileFigure, ...]:
    """The figures of the profile that moves are priced with, each with its source.

    The start-up time is the owner's; else that which moves or pods have shown, else the default.
    """
    profile, start_up = context.profile, context.learned.start_up_source
    streams = profile.streams
    own: tuple[str, ...] = ()
    if streams is not None:
        own = (*STREAMS_FIGURES, *(STATE_FIGURES if streams.stateful else ()))
    plain = tuple(
        ProfileFigure(
            name=name,
            value=_figure(getattr(profile, name)),
            source=profile.source_of(name) if name != "start_up_seconds" or start_up == "assumed" else start_up,
        )
        for name in PROFILE_FIGURES
        if name not in own
        and (name != "assignor" or profile.rebalances_as == "eager")
        and _HEARTBEATS.get(name, profile.rebalances_as == "kip848") is (profile.rebalances_as == "kip848")
        and (name not in _BOUNDS or _is_bound(profile, name, found=context.finding is not None))
    )
    of_streams = (
        ProfileFigure(name=name, value=_figure(getattr(streams, name)), source=streams.source_of(name))
        for name in own
        if streams is not None
    )
    figures = (_with_instant(figure, context) for figure in (*plain, *of_streams))
    return (*figures, *_price_of_replicas(context.settings))


def _price_of_replicas(settings: DecisionSettings) -> Iterator[ProfileFigure]:
    """The price of a replica-hour, where it is known."""
    price = settings.price_per_replica_hour
    if price is not None:
        seen_at = settings.price_seen_at if isinstance(settings, PricedSettings) else None
        source: Literal["configured", "detected"] = "configured" if seen_at is None else "detected"
        yield ProfileFigure(name="price_per_replica_hour", value=price, source=source, seen_at=seen_at)


def _is_bound(profile: GroupProfile, name: str, *, found: bool) -> bool:
    """True for a bound that is set or detected; what was `found` on the group may have lowered its maximum."""
    return profile.source_of(name) != "assumed" and getattr(profile, name) is not None and not found


def _with_instant(figure: ProfileFigure, context: DecisionContext) -> ProfileFigure:
    """The figure with when it was last seen, where Kafka or the cluster tells it."""
    if figure.source != "detected":
        return figure
    if figure.name in DETECTABLE_IN_CLUSTER:
        return replace(figure, seen_at=context.track_record.cluster_seen_at)
    if figure.name == "start_up_seconds":
        pods = context.learned.pod_start_up
        return figure if pods is None else replace(figure, seen_at=pods.newest_at)
    column = _COLUMNS.get(figure.name, "group_protocol")
    told = (row.interval_end_at for row in reversed(context.history.recent) if getattr(row, column) is not None)
    return replace(figure, seen_at=next(told, None))


def _figure(value: str | bool | float) -> str | bool | float:  # noqa: FBT001  # a figure of any kind
    return value if isinstance(value, str | bool) else float(value)


def policy_figures(context: DecisionContext, situation: Situation, found: PlanEvaluation) -> PolicyFigures:
    """The policy and the figures that were in force."""
    prices = situation.prices
    return PolicyFigures(
        name=context.settings.policy,
        price_per_replica_hour=prices.price_per_replica_hour,
        price_per_late_message=prices.price_per_late_message,
        price_per_duplicate_message=prices.price_per_duplicate_message,
        price_per_move=context.learned.risk_prior,
        risk_weight=found.risk_weight,
        max_lag_seconds=context.settings.max_lag_seconds,
    )


def turning_points(
    advice: Recommendation, found: PlanEvaluation, *, price_per_late_message: float, rebalance_pause_seconds: float
) -> tuple[TurningPoint, ...]:
    """For each quantity the smallest change that reverses the decision, nearest first; those without one left out.

    `price_per_late_message` is its price in currency, `rebalance_pause_seconds` the stop of the move that is made or
    would be. Takes about 15 ms.
    """
    present: dict[Quantity, float] = {
        "price_per_late_message": price_per_late_message,
        "rebalance_pause_seconds": rebalance_pause_seconds,
        "capacity": advice.capacity.p50,
        "forecast": max(advice.forecast.p50),
    }
    factors = [(turning_factor(found, quantity), quantity) for quantity in QUANTITIES if present[quantity] > 0.0]
    nearest = sorted((abs(log(factor)), factor, quantity) for factor, quantity in factors if factor is not None)
    return tuple(
        TurningPoint(quantity=_NAMES[quantity], present=present[quantity], turning=factor * present[quantity])
        for _, factor, quantity in nearest
    )


def rebalance_impact_of(situation: Situation, target: int, *, rate: float) -> RebalanceImpact:
    """Effects of the move to `target` while it happens, at `rate` messages/s; a group with backlog has full batches."""
    profile = while_behind(situation.profile) if situation.behind else situation.profile
    before, after, priors = Replicas(situation.replicas), Replicas(target), situation.pause_priors
    if target == situation.replicas:
        return RebalanceImpact(
            protocol_profile=profile.protocol,
            rebalance_pause_seconds=0.0,
            moved_partition_fraction=0.0,
            expected_rebalances=0.0,
            duplicate_messages=0.0,
        )
    effect = move_effect(
        profile,
        from_replicas=before,
        to_replicas=after,
        rebalance_pause_prior_seconds=None if priors is None else Seconds(priors[int(after < before)]),
        quiet_seconds=None if situation.quiet_seconds is None else Seconds(situation.quiet_seconds),
    )
    return RebalanceImpact(
        protocol_profile=profile.protocol,
        rebalance_pause_seconds=effect.rebalance_pause_seconds,
        moved_partition_fraction=effect.moved_fraction,
        expected_rebalances=effect.expected_rebalances,
        duplicate_messages=expected_duplicates(
            profile, from_replicas=before, to_replicas=after, consume=MessagesPerSecond(rate)
        ),
    )
