"""No replica at all: when a group may go to 0, what keeps it there, and with how many replicas it is started again.

The owner's rule decides here, and no price: a message that comes in a quiet night is worth next to nothing, and is to
be consumed all the same. What nobody saw never counts as nothing.
"""

from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from cost_model.price import Cost, Prices
from cost_model.profile import GroupProfile, ScaleToZero
from cost_model.skew import carried_by_count, useful_counts
from forecasting.forecast import Forecast
from forecasting.history import MINUTE_SECONDS, History
from forecasting.history_tier import MINUTES_PER_DAY
from forecasting.refusal import Refusal
from forecasting.units import SECONDS_PER_HOUR, Replicas
from recommender.compose import action_of, at_once, counts_of, named, observed, summary_of
from recommender.facts import Facts
from recommender.guards import Proposal, Scene
from recommender.recommendation import (
    ForecastSummary,
    PricedPlan,
    ReasonCode,
    RebalanceImpact,
    Recommendation,
    TrackRecord,
)

# What waits when a group is started is to be gone within five minutes.
DRAIN_SECONDS = 300.0
# Kafka forgets where a group stood that has had no members for offsets.retention.minutes, by default seven days.
LONGEST_REST_DAYS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What a decision on 0 replicas rests on."""

    history: History
    forecast: Forecast | Refusal
    facts: Facts
    scene: Scene
    previous: Recommendation | None
    record: TrackRecord

    @property
    def waiting_messages(self) -> float:
        """Those of the newest row: one that shows a message is enough."""
        return self.facts.row.lag_messages or 0.0

    @property
    def lead_seconds(self) -> float:
        """From the command to the first message of a replica that is started."""
        return float(self.scene.profile.start_up_seconds)

    @property
    def expected_rate(self) -> float:
        """The highest likely rate within the lead; 0 where nothing can be said."""
        if isinstance(self.forecast, Refusal):
            return 0.0
        ahead = _ahead(self.forecast, self.scene, self.lead_seconds)
        return max(ahead, default=0.0)

    def expected_messages(self, seconds: float) -> float:
        """How many messages are likely to come within so many seconds; 0 where nothing can be said."""
        if isinstance(self.forecast, Refusal):
            return 0.0
        ahead = _ahead(self.forecast, self.scene, seconds)
        return sum(ahead) * seconds / len(ahead) if ahead else 0.0


def scaled_to_zero(
    history: History, profile: GroupProfile, previous: Recommendation | None, *, patience_seconds: float
) -> ScaleToZero | None:
    """The rule under which the group is at 0, and not just for a moment; None: it is not.

    It was advised so, or nobody has joined for `patience_seconds`: a group whose pods are all replaced at once has no
    members for as long as they take to start.
    """
    settled = [row for row in history.recent if not row.in_rebalance]
    if profile.scale_to_zero is None or not settled or settled[-1].members != 0:
        return None
    if previous is not None and 0 in {previous.desired_replicas, previous.current_replicas}:
        return profile.scale_to_zero
    since = settled[-1].interval_end_at - timedelta(seconds=patience_seconds)
    latest = [row for row in settled if row.interval_end_at >= since]
    nobody = settled[0].interval_end_at <= since and all(row.members == 0 for row in latest)
    return profile.scale_to_zero if nobody else None


def is_idle(history: History, rule: ScaleToZero) -> bool:
    """Whether every moment of the last `idle_seconds` was seen, and not one message came or waited."""
    minutes = ceil(rule.idle_seconds / MINUTE_SECONDS)
    if history.minutes < minutes:
        return False
    since = history.end_at - timedelta(seconds=rule.idle_seconds)
    rows = [row for row in history.recent if row.interval_end_at > since]
    return (
        bool((history.produce_messages_per_second[-minutes:] == 0.0).all())
        and bool((history.lag_messages[-minutes:] < rule.activation_lag_messages).all())
        and all(
            row.produce_messages_per_second == 0.0
            and row.lag_messages is not None
            and row.lag_messages < rule.activation_lag_messages
            and row.sampled_partitions >= row.partitions
            for row in rows
        )
    )


def wanted_at_zero(grounds: Grounds, rule: ScaleToZero) -> Proposal:
    """0 while nothing waits and nothing is about to come; else what that calls for, at once."""
    waiting, expected = grounds.waiting_messages, grounds.expected_messages(grounds.lead_seconds)
    coming = f"{_expected(expected)} expected within the {grounds.lead_seconds:,.0f} s that a start takes"
    if max(waiting, expected) >= rule.activation_lag_messages:
        count = _count_to_start(grounds)
        why = _waiting(waiting) if waiting >= rule.activation_lag_messages else coming
        sentence = (
            f"The group is at 0 and {why}; it takes {rule.activation_lag_messages:,} to start it. {count} to begin "
            f"with, each of which consumes {grounds.facts.capacity.p50:,.0f}/s."
        )
    elif _has_rested_long(grounds.history):
        count = grounds.scene.profile.min_replicas
        sentence = (
            f"The group has had no members for {LONGEST_REST_DAYS} days, and Kafka forgets where such a group stood "
            f"after 7 (offsets.retention.minutes): start {count} for a moment."
        )
    else:
        count = 0
        sentence = (
            f"No replica is needed: {_waiting(waiting)}, and {coming}. It takes {rule.activation_lag_messages:,}."
        )
    return Proposal(target=count, command_at=grounds.scene.now, sentences=(sentence,))


def to_zero(grounds: Grounds) -> Proposal | None:
    """The move to 0 where it is allowed, nothing has come for long enough, and nothing is expected for as long."""
    rule = grounds.scene.profile.scale_to_zero
    if rule is None or not is_idle(grounds.history, rule):
        return None
    if grounds.expected_messages(rule.idle_seconds) >= rule.activation_lag_messages:
        return None
    minutes = rule.idle_seconds / MINUTE_SECONDS
    sentence = (
        f"Nothing has come for {minutes:,.0f} min and none is expected in as many to come: no replica is needed. The "
        f"group is started again when {_waiting(rule.activation_lag_messages)}."
    )
    return Proposal(target=0, command_at=grounds.scene.now, sentences=(sentence,))


def _has_rested_long(history: History) -> bool:
    """Whether all that is known of so many days shows nobody."""
    members = history.members[-LONGEST_REST_DAYS * MINUTES_PER_DAY :]
    return len(members) == LONGEST_REST_DAYS * MINUTES_PER_DAY and not (members > 0).any()


def _waiting(messages: float) -> str:
    if messages == 0:
        return "no message waits"
    return "1 message waits" if messages == 1 else f"{messages:,.0f} messages wait"


def _expected(messages: float) -> str:
    return "none is" if messages < 0.5 else "1 is" if messages < 1.5 else f"{messages:,.0f} are"


def _ahead(forecast: Forecast, scene: Scene, seconds: float) -> list[float]:
    """The likely rates of the minutes of the next `seconds`."""
    path = forecast.path(0.5)
    passed = max(0, int((scene.now - forecast.origin_at).total_seconds() // MINUTE_SECONDS))
    ahead: list[float] = path[passed : passed + max(1, ceil(seconds / MINUTE_SECONDS))].tolist()
    return ahead


def _count_to_start(grounds: Grounds) -> int:
    """The fewest that carry what arrives, or is about to, and consume what waits within five minutes."""
    scene, facts = grounds.scene, grounds.facts
    rate = max(scene.produce_messages_per_second, grounds.expected_rate)
    wanted = rate / scene.settings.target_utilization + grounds.waiting_messages / DRAIN_SECONDS
    useful = _useful(scene.profile)
    carried = carried_by_count(scene.profile, useful, capacity=facts.capacity.p20).tolist()
    return next((count for count, level in zip(useful, carried, strict=True) if level >= wanted), useful[-1])


def _useful(profile: GroupProfile) -> tuple[int, ...]:
    return useful_counts(profile, minimum=profile.min_replicas, maximum=Replicas(profile.replica_ceiling))


def compose_zero(proposal: Proposal, grounds: Grounds) -> Recommendation:
    """The recommendation for what came through the guards, with its price beside that of staying."""
    scene, facts, settings = grounds.scene, grounds.facts, grounds.scene.settings
    now, replicas, target = scene.now, scene.replicas, proposal.target
    prices = settings.prices(facts.capacity.p50)
    chosen, stay = (_price(grounds, prices, count) for count in (target, replicas))
    lead = grounds.lead_seconds if target > replicas else 0.0
    not_before, latest_safe = at_once(scene, target)
    other = () if target == replicas else (PricedPlan(desired_replicas=target, execute_at=now, cost=chosen),)
    plans = (*other, PricedPlan(desired_replicas=replicas, execute_at=None, cost=stay))
    reason: ReasonCode = "activating" if target > replicas else "idle"
    return named(
        Recommendation(
            recommendation_id="",
            cluster=scene.profile.cluster,
            group=scene.profile.group,
            topics=tuple(facts.row.topics.split(",")),
            issued_at=now,
            valid_until=now + timedelta(seconds=settings.valid_for_seconds),
            action=action_of(target, replicas),
            current_replicas=replicas,
            desired_replicas=target,
            uncapped_replicas=target,
            useful_replicas=(0, *_useful(scene.profile)),
            execute_at=now,
            not_before=not_before,
            latest_safe=latest_safe,
            effective_at=now + timedelta(seconds=lead),
            lead_time_seconds=lead,
            observed=observed(facts),
            history_seconds=float(grounds.history.minutes * MINUTE_SECONDS),
            data_counts=counts_of(grounds.history),
            capacity=facts.capacity,
            forecast=_forecast(grounds),
            # Nobody is left to be stopped, or nobody is there yet.
            rebalance_impact=RebalanceImpact(
                protocol_profile=scene.profile.protocol,
                rebalance_pause_seconds=0.0,
                moved_partition_fraction=0.0 if target == replicas else 1.0,
                expected_rebalances=0.0 if target == replicas else 1.0,
                duplicate_messages=0.0,
            ),
            horizon_seconds=float(settings.horizon_seconds),
            currency=settings.currency,
            chosen=chosen,
            stay=stay,
            break_even_seconds=None,
            alternatives=tuple(sorted(plans, key=lambda plan: (plan.cost.total, plan.desired_replicas))),
            reason=reason if proposal.binding_rule is None else "guarded",
            sentences=proposal.sentences,
            binding_rule=proposal.binding_rule,
            supersedes=grounds.previous.recommendation_id if grounds.previous is not None else None,
            fallback_policy=grounds.record.fallback_policy,
        )
    )


def _price(grounds: Grounds, prices: Prices, replicas: int) -> Cost:
    """What so many replicas cost over the horizon, and what waits too long meanwhile.

    Without a replica all that waits and is likely to come is late; with some that start, what comes before they work.
    """
    scene, horizon = grounds.scene, float(grounds.scene.settings.horizon_seconds)
    late = 0.0
    if replicas == 0:
        late = grounds.waiting_messages + grounds.expected_messages(horizon)
    elif scene.replicas == 0 and grounds.lead_seconds > scene.settings.max_lag_seconds:
        late = grounds.waiting_messages + grounds.expected_messages(grounds.lead_seconds)
    return Cost(
        replicas=replicas * prices.price_per_replica_hour * horizon / SECONDS_PER_HOUR,
        late=late * prices.price_per_late_message,
        pause_late=0.0,
        backlog=0.0,
        duplicates=0.0,
        start_up=0.0,
        restore=0.0,
        risk=0.0,
    )


def _forecast(grounds: Grounds) -> ForecastSummary:
    """The forecast; where there is none, that all stays as it is: a group at 0 is started all the same."""
    if not isinstance(grounds.forecast, Refusal):
        return summary_of(grounds.forecast, grounds.record)
    rate = (grounds.scene.produce_messages_per_second,)
    return ForecastSummary(
        model="none", history_tier="reactive", step_seconds=MINUTE_SECONDS, p05=rate, p50=rate, p95=rate
    )
