"""Scaling to zero: the conditions for 0 replicas, for staying there, and the count to activate the group with.

The owner's rule decides here, and no price: one message in a quiet night costs next to nothing, but has to be
consumed. An interval without samples never counts as idle.
"""

from datetime import timedelta
from math import ceil

from cost_model.physics.profile import ScaleToZero
from cost_model.physics.skew import carried_by_count
from cost_model.pricing.price import Cost, Prices
from forecasting.history import MINUTE_SECONDS
from forecasting.history_tier import MINUTES_PER_DAY
from forecasting.units import SECONDS_PER_HOUR
from recommender.deciding.context import DecisionContext
from recommender.deciding.proposal import MovePrice, Proposal
from recommender.deciding.recommendation import PricedPlan, ReasonCode, RebalanceImpact

# The backlog at the start of a group has to be consumed within five minutes.
DRAIN_SECONDS = 300.0
# Kafka deletes the offsets of a group that has had no members for offsets.retention.minutes, by default seven days.
LONGEST_REST_DAYS = 6


def propose_by_rule(context: DecisionContext) -> Proposal | None:
    """The proposal of the owner's rule on 0 replicas; None where there is none, or it leaves the decision to plans."""
    rule = context.profile.scale_to_zero
    if rule is None:
        return None
    return _while_at_zero(context, rule) if context.at_zero else _to_zero(context, rule)


def _while_at_zero(context: DecisionContext, rule: ScaleToZero) -> Proposal:
    """0 while no message waits or is expected; else the count to start with, at once."""
    lead = _lead_seconds(context)
    waiting, expected = _waiting_messages(context), _expected_messages(context, lead)
    coming = f"{_expected(expected)} expected within the {lead:,.0f} s that a start takes"
    if max(waiting, expected) >= rule.activation_lag_messages:
        count = _count_to_start(context)
        why = _waiting(waiting) if waiting >= rule.activation_lag_messages else coming
        sentence = (
            f"The group is at 0 and {why}; it takes {rule.activation_lag_messages:,} to start it. {count} to begin "
            f"with, each of which consumes {context.capacity.p50:,.0f}/s."
        )
    elif _has_rested_long(context):
        count = context.profile.min_replicas
        sentence = (
            f"The group has had no members for {LONGEST_REST_DAYS} days, and Kafka deletes the offsets of such a group "
            f"after 7 (offsets.retention.minutes): start {count} for a moment."
        )
    else:
        count = 0
        sentence = (
            f"No replica is needed: {_waiting(waiting)}, and {coming}. It takes {rule.activation_lag_messages:,}."
        )
    reason: ReasonCode = "activating" if count > 0 else "idle"
    return Proposal(target=count, command_at=context.now, reason=reason, sentences=(sentence,))


def _to_zero(context: DecisionContext, rule: ScaleToZero) -> Proposal | None:
    """The move to 0 where no message was produced for `idle_seconds`, and none is expected for as long."""
    if not _is_idle(context, rule):
        return None
    if _expected_messages(context, rule.idle_seconds) >= rule.activation_lag_messages:
        return None
    minutes = rule.idle_seconds / MINUTE_SECONDS
    sentence = (
        f"Nothing has come for {minutes:,.0f} min and none is expected in as many to come: no replica is needed. The "
        f"group is started again when {_waiting(rule.activation_lag_messages)}."
    )
    return Proposal(target=0, command_at=context.now, reason="idle", sentences=(sentence,))


def _is_idle(context: DecisionContext, rule: ScaleToZero) -> bool:
    """True if every moment of the last `idle_seconds` was seen, and no message was produced or waited."""
    history = context.history
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


def _has_rested_long(context: DecisionContext) -> bool:
    """True if every known minute of the last `LONGEST_REST_DAYS` days shows no member."""
    members = context.history.members[-LONGEST_REST_DAYS * MINUTES_PER_DAY :]
    return len(members) == LONGEST_REST_DAYS * MINUTES_PER_DAY and not (members > 0).any()


def _waiting(messages: float) -> str:
    if messages == 0:
        return "no message waits"
    return "1 message waits" if messages == 1 else f"{messages:,.0f} messages wait"


def _expected(messages: float) -> str:
    return "none is" if messages < 0.5 else "1 is" if messages < 1.5 else f"{messages:,.0f} are"


def _lead_seconds(context: DecisionContext) -> float:
    """Seconds from the command to the first message of a replica that is started."""
    return float(context.profile.start_up_seconds)


def _waiting_messages(context: DecisionContext) -> float:
    """Waiting messages in the newest row: one message is enough."""
    return context.row.lag_messages or 0.0


def _expected_messages(context: DecisionContext, seconds: float) -> float:
    """The likely number of messages within the next `seconds`; 0 without a forecast."""
    ahead = _expected_rates(context, seconds)
    return sum(ahead) * seconds / len(ahead) if ahead else 0.0


def _expected_rates(context: DecisionContext, seconds: float) -> list[float]:
    """The likely rates of the minutes of the next `seconds`; none without a forecast."""
    path = context.forecast.path(0.5)[context.passed_minutes :]
    ahead: list[float] = path[: max(1, ceil(seconds / MINUTE_SECONDS))].tolist()
    return ahead


def _count_to_start(context: DecisionContext) -> int:
    """The smallest count that carries the present or expected produce rate and consumes the backlog in five minutes."""
    expected = max(_expected_rates(context, _lead_seconds(context)), default=0.0)
    rate = max(context.produce_messages_per_second, expected)
    wanted = rate / context.settings.target_utilization + _waiting_messages(context) / DRAIN_SECONDS
    useful = context.useful_replicas
    carried = carried_by_count(context.profile, useful, capacity=context.capacity.p20).tolist()
    return next((count for count, level in zip(useful, carried, strict=True) if level >= wanted), useful[-1])


def price_by_rule(proposal: Proposal, context: DecisionContext) -> MovePrice:
    """The price of the proposal after the guards, beside that of staying."""
    replicas, target = context.replicas, proposal.target
    prices = context.settings.prices(context.capacity.p50)
    chosen, stay = (_cost(context, prices, count) for count in (target, replicas))
    other = () if target == replicas else (PricedPlan(desired_replicas=target, execute_at=context.now, cost=chosen),)
    moved = 0.0 if target == replicas else 1.0
    return MovePrice(
        uncapped_replicas=target,
        useful_replicas=(0, *context.useful_replicas),
        lead_seconds=_lead_seconds(context) if target > replicas else 0.0,
        # No replica is left to be stopped, or none runs yet.
        rebalance_impact=RebalanceImpact(
            protocol_profile=context.profile.protocol,
            rebalance_pause_seconds=0.0,
            moved_partition_fraction=moved,
            expected_rebalances=moved,
            duplicate_messages=0.0,
        ),
        chosen=chosen,
        stay=stay,
        alternatives=(*other, PricedPlan(desired_replicas=replicas, execute_at=None, cost=stay)),
    )


def _cost(context: DecisionContext, prices: Prices, replicas: int) -> Cost:
    """The cost of `replicas` over the horizon, and of the messages that are late meanwhile.

    Without a replica all waiting and expected messages are late; otherwise those that arrive before replicas have
    started.
    """
    settings, lead, horizon = context.settings, _lead_seconds(context), float(context.settings.horizon_seconds)
    late = 0.0
    if replicas == 0:
        late = _waiting_messages(context) + _expected_messages(context, horizon)
    elif context.replicas == 0 and lead > settings.max_lag_seconds:
        late = _waiting_messages(context) + _expected_messages(context, lead)
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
