"""Guards: small named policies that may hold back a planned move, each with a sentence in the explanation.

A guard sees the proposal and the context, and lets the proposal pass or turns it into a hold. Two set a count of their
own: the fallback policy's, and the owner's minimum. They are applied in the order of `GUARDS`; the last that changes
the proposal is the binding rule.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Literal

import numpy as np

from cost_model.physics.calibrate import LOOK_BACK_MINUTES
from cost_model.physics.livelock import INTERVAL_PER_PROCESSING_P99, least_move_interval_seconds
from cost_model.physics.skew import carried_by_count
from cost_model.physics.streams import capacity_lead_seconds
from forecasting.history_tier import REACTIVE_MINUTES, known_minutes
from forecasting.units import Replicas
from recommender.deciding.context import DecisionContext
from recommender.deciding.pace import HOUR, last_grown_at, last_growth, patience_seconds, rest_seconds
from recommender.deciding.proposal import Proposal
from recommender.deciding.windows import closed_by

Guard = Callable[[Proposal, DecisionContext], Proposal]


def never_fewer_on_partial_data(proposal: Proposal, context: DecisionContext) -> Proposal:
    """Nothing is removed while some partitions were not sampled: those may be the ones that are behind."""
    row = context.history.recent[-1]
    if proposal.target >= context.replicas or row.sampled_partitions >= row.partitions:
        return proposal
    return proposal.held(
        context,
        rule="partial_data",
        sentence=f"Only {row.sampled_partitions} of {row.partitions} partitions were sampled, so nothing is removed.",
    )


def never_fewer_while_draining(proposal: Proposal, context: DecisionContext) -> Proposal:
    """Nothing is removed before a backlog of more than half of `max_lag_seconds` is consumed."""
    if proposal.target >= context.replicas:
        return proposal
    limit_seconds = context.settings.max_lag_seconds / 2
    # Where the produce rate is next to 0, one replica's work counts: 30 transaction markers stay for ever and are no
    # work.
    limit_messages = limit_seconds * max(context.produce_messages_per_second, context.capacity.p20)
    if context.backlog_messages <= limit_messages:
        return proposal
    return proposal.held(
        context,
        rule="backlog_draining",
        # A backlog that drains slowly or not at all waits for the limit that was found.
        reason="guarded" if context.finding is None else context.finding.reason,
        sentence=(
            f"A backlog of {context.backlog_messages:,.0f} messages has to be consumed first (limit "
            f"{limit_messages:,.0f}, {limit_seconds:g} s of the load or of one replica's work), so nothing is removed."
        ),
    )


def rest_between_moves(proposal: Proposal, context: DecisionContext) -> Proposal:
    """A group that has just changed size settles first, before a removal for longer than before an addition."""
    if proposal.target == context.replicas or context.last_move_at is None:
        return proposal
    removing = proposal.target < context.replicas
    rest = rest_seconds(context.profile, context.settings, removing=removing)
    rested_at = context.last_move_at + timedelta(seconds=rest)
    if proposal.command_at >= rested_at:
        return proposal
    rule: Literal["scale_in_cooldown", "move_interval"] = "scale_in_cooldown" if removing else "move_interval"
    return proposal.held(
        context,
        rule=rule,
        reason=rule,
        sentence=(
            f"The group changed size at {context.last_move_at:%H:%M:%S}; "
            f"the next move waits until {rested_at:%H:%M:%S}."
        ),
    )


def let_state_warm_up(proposal: Proposal, context: DecisionContext) -> Proposal:
    """Nothing is added to a Streams application whose tasks still warm up, and which carries the load when they are.

    Replicas that were added before do nothing until then, as those would that were added now.
    """
    grown = last_growth(context.history, patience_seconds=patience_seconds(context.profile))
    if grown is None or proposal.target <= context.replicas or not _carries(context):
        return proposal
    at, before, after = grown
    seconds = capacity_lead_seconds(context.profile, from_replicas=Replicas(before), to_replicas=Replicas(after))
    warm_at = at + timedelta(seconds=seconds)
    if proposal.command_at >= warm_at:
        return proposal
    return proposal.held(
        context,
        rule="move_interval",
        reason="move_interval",
        sentence=(
            f"The group grew from {before} to {after} at {at:%H:%M:%S}, which carry the load once their state is warm, "
            f"at {warm_at:%H:%M:%S}; nothing is added until then."
        ),
    )


def follow_fallback(proposal: Proposal, context: DecisionContext) -> Proposal:
    """The fallback policy's count in place of the plan's, while plans have been more expensive than it.

    It ignores findings: nothing is added beyond the ceiling of the context's profile, nor before the group has settled.
    A probe goes on: its policy knows no more of the capacity than plans do, and would undo what is to be shown.
    """
    wanted, replicas = context.fallback_replicas, context.replicas
    if wanted is None or proposal.target == 0:  # the owner's rule on 0 holds under every policy
        return proposal
    if proposal.reason == "probing":
        return proposal
    if wanted != replicas and _working_long(context):
        sentence = "Messages take long, and are done before the group is changed again."
        return proposal.held(context, rule="move_interval", reason="move_interval", sentence=sentence)
    if wanted > replicas:
        wanted = replicas if _settling(context) else max(replicas, min(wanted, context.profile.replica_ceiling))
    return replace(
        proposal,
        target=wanted,
        command_at=context.now,
        reason="guarded",
        binding_rule="fallback_policy",
        sentences=(
            *proposal.sentences,
            f"Plans have lately cost more than a simple scaler would have, so its count is followed: {wanted}.",
        ),
    )


def _working_long(context: DecisionContext) -> bool:
    """True if the group has just changed size, and messages that take long are not done yet.

    Interrupted again and again, they never are.
    """
    if context.last_move_at is None:
        return False
    work_seconds = INTERVAL_PER_PROCESSING_P99 * context.profile.processing_p99_seconds
    return context.now < context.last_move_at + timedelta(seconds=work_seconds)


def _settling(context: DecisionContext) -> bool:
    """True if the group has just changed size to a count that carries the produce rate: it settles first.

    The time for state to warm up is that of a group which has doubled: 100 min for 40 tasks.
    """
    profile = context.profile
    if context.last_move_at is None:
        return False
    half = Replicas(max(1, context.replicas // 2))
    warming = capacity_lead_seconds(profile, from_replicas=half, to_replicas=Replicas(context.replicas))
    rested_at = context.last_move_at + timedelta(seconds=max(least_move_interval_seconds(profile), warming))
    return context.now < rested_at and _carries(context)


def _carries(context: DecisionContext) -> bool:
    (carried,) = carried_by_count(context.profile, (context.replicas,), capacity=context.capacity.p50)
    return bool(carried >= context.produce_messages_per_second)


def let_an_addition_show(proposal: Proposal, context: DecisionContext) -> Proposal:
    """Nothing is added to a group that grew enough to carry the load and is still behind, until the effect shows.

    It has not caught up yet, or something else limits it: more replicas would not help.
    """
    grown_at = last_grown_at(context.history)
    behind = context.backlog_messages > context.settings.max_lag_seconds * context.produce_messages_per_second
    if grown_at is None or not behind or proposal.target <= context.replicas or not _carries(context):
        return proposal
    shown_at = grown_at + timedelta(seconds=context.settings.scale_in_cooldown_seconds)
    if proposal.command_at >= shown_at:
        return proposal
    return proposal.held(
        context,
        rule="move_interval",
        reason="move_interval",
        sentence=(
            f"The group grew at {grown_at:%H:%M:%S} to {context.replicas}, which carry the load, and is behind; until "
            f"{shown_at:%H:%M:%S} it shows what they do."
        ),
    )


def hold_back_at_first(proposal: Proposal, context: DecisionContext) -> Proposal:
    """In the first half hour only replicas without work are removed: what was seen may have been a lull.

    None are added beside those that have done no message: that may be a livelock, which a move would only prolong.
    While the group's past is not read, what comes next is not known either: the hour that is read may be a lull too.
    """
    known, useful = known_minutes(context.history), min(context.replicas, context.useful_replicas[-1])
    if known >= REACTIVE_MINUTES:
        if not context.track_record.past_unread or proposal.target >= useful:
            return proposal
        sentence = "Until the past of this group is read, no replica that has work is removed."
        return proposal.bounded(context, target=useful, rule="short_history", sentence=sentence)
    if proposal.target > context.replicas > 0 and not np.nansum(context.history.consume_messages_per_second) > 0.0:
        sentence = f"In the {known} minutes that are known no message was done, so nothing shows that replicas help."
        return proposal.held(context, rule="short_history", sentence=sentence)
    if proposal.target >= useful:
        return proposal
    sentence = (
        f"{known} minutes of this group are known; they may have been a lull, so before {REACTIVE_MINUTES} no replica "
        "that has work is removed."
    )
    return proposal.bounded(context, target=useful, rule="short_history", sentence=sentence)


def add_nothing_under_a_bound(proposal: Proposal, context: DecisionContext) -> Proposal:
    """While only a lower bound of the capacity is known, no more replicas than have run within a day.

    A full group at its highest rate looks too small by the bound alone. A backlog would show the limit.
    """
    if context.capacity.source != "lower_bound" or proposal.target <= context.replicas:
        return proposal
    ran = max(int(np.nan_to_num(context.history.members[-LOOK_BACK_MINUTES:]).max(initial=0.0)), context.replicas)
    if proposal.target <= ran:
        return proposal
    sentence = (
        f"A replica does {context.capacity.p50:,.0f}/s at least, as it has shown, and its limit is not known yet: "
        f"nothing is added beyond the {ran} replicas that have run within a day. Set "
        "capacity_messages_per_second_per_replica if you know it."
    )
    return proposal.bounded(context, target=ran, rule="lower_bound", sentence=sentence)


def keep_the_pace(proposal: Proposal, context: DecisionContext) -> Proposal:
    """No more changes of size within an hour than the owner allows, including those that others made."""
    most = context.settings.max_moves_per_hour
    within = [at for at in context.moved_at if at > proposal.command_at - HOUR]
    if most is None or proposal.target == context.replicas or len(within) < most:
        return proposal
    times = "once" if len(within) == 1 else f"{len(within)} times"
    return proposal.held(
        context,
        rule="max_moves_per_hour",
        sentence=(
            f"The group has changed size {times} since {within[0]:%H:%M:%S}, and max_moves_per_hour is {most}; the "
            f"next move waits until {within[-most] + HOUR:%H:%M:%S}."
        ),
    )


def keep_to_windows(proposal: Proposal, context: DecisionContext) -> Proposal:
    """No move in hours that the owner has closed to it, under every policy."""
    if proposal.target == context.replicas:
        return proposal
    removing = proposal.target < context.replicas
    closed = closed_by(context.settings.windows, proposal.command_at, removing=removing)
    if closed is None:
        return proposal
    window, closes_at = closed
    nothing = "nothing is removed" if window.effect == "no_scale_in" else "nothing is moved"
    name = f"{window.schedule} ({window.time_zone})"
    return proposal.held(
        context,
        rule="window",
        sentence=(
            f"The window {name} is open at {proposal.command_at:%H:%M:%S} and closes at "
            f"{closes_at:%Y-%m-%dT%H:%M:%SZ}; until then {nothing}."
        ),
    )


def keep_the_minimum(proposal: Proposal, context: DecisionContext) -> Proposal:
    """At least the configured minimum, and at once: the owner sets it, and no price overrides it.

    It does not apply to a group at 0.
    """
    least = context.profile.min_replicas
    if proposal.target == 0 or context.replicas >= least:
        return proposal
    if proposal.target >= least and proposal.command_at <= context.now:
        return proposal
    return replace(
        proposal,
        target=max(least, proposal.target),
        command_at=context.now,
        reason="guarded",
        binding_rule="minimum",
        sentences=(*proposal.sentences, f"{context.replicas} is below min_replicas, {least}."),
    )


def keep_the_hold(proposal: Proposal, context: DecisionContext) -> Proposal:
    """Nothing is moved while a hold is in force, neither by a plan nor by a rule."""
    if context.hold is None:
        return proposal
    return proposal.held(context, rule="hold", reason="held", sentence=context.hold.sentence)


# Rules for plans; then the fallback policy; then the owner's limits, which bind every policy; a hold binds all.
GUARDS: tuple[Guard, ...] = (
    never_fewer_on_partial_data,
    never_fewer_while_draining,
    rest_between_moves,
    let_state_warm_up,
    follow_fallback,
    let_an_addition_show,
    hold_back_at_first,
    add_nothing_under_a_bound,
    keep_the_pace,
    keep_to_windows,
    keep_the_minimum,
    keep_the_hold,
)


def pass_guards(proposal: Proposal, context: DecisionContext) -> Proposal:
    """The proposal after every guard was applied, in order."""
    for guard in GUARDS:
        proposal = guard(proposal, context)
    return proposal
