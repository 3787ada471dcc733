"""The decision: one group's history and forecast in, a priced recommendation or a refusal out.

Pure: the live loop, a notebook and the replay call the same `recommend`, so that benchmarks judge the code that runs.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import carried_by_count
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.refusal import Refusal
from recommender.deciding.compose import compose, compose_waiting
from recommender.deciding.context import DecisionContext, day_one, read_context
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.guards import pass_guards
from recommender.deciding.hold import Hold
from recommender.deciding.pace import patience_seconds
from recommender.deciding.planned import best_plan
from recommender.deciding.probing import probed
from recommender.deciding.proposal import Proposal
from recommender.deciding.recommendation import Decision, Recommendation, SensitivityOf, TrackRecord
from recommender.deciding.zero import propose_by_rule

__all__ = ["day_one", "planned_replicas", "recommend"]


def recommend(
    history: History,
    forecast: Forecast | Refusal,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    previous: Recommendation | None,
    now: datetime,
    learned: Learned | None = None,
    hold: Hold | None = None,
    fallback_replicas: int | None = None,
    track_record: TrackRecord | None = None,
    sensitivity: SensitivityOf = "none",
) -> Decision:
    """The count of replicas and the instant at the least expected price; or a refusal.

    `previous` is the recommendation in force until now: it shows whether a move is still under way. `learned` are the
    beliefs from the group's own moves (None: the settings' priors). `hold` is in force on the group.
    `fallback_replicas` is the fallback policy's count, given when the advice has been more expensive than the policy
    for too long: it is followed then. `track_record` is published with the advice. The smallest changes that reverse a
    decision are added to those of `sensitivity`, a search of about 15 ms. `now` is timezone-aware. A group that cannot
    be decided on gives a `Refusal`; a `ValueError` is the caller's bug.
    """
    context = read_context(
        history,
        forecast,
        profile,
        settings,
        previous=previous,
        now=now,
        learned=learned,
        hold=hold,
        fallback_replicas=fallback_replicas,
        track_record=track_record,
    )
    if isinstance(context, Refusal):
        return context
    under_way = _under_way(context)
    if under_way is not None:
        return compose_waiting(under_way, context)
    proposal = pass_guards(probed(_propose(context), context), context)
    return compose(proposal, context, sensitivity=sensitivity)


def planned_replicas(
    history: History,
    forecast: Forecast | Refusal,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    now: datetime,
    learned: Learned,
    replicas: int,
    backlog_messages: float,
) -> int:
    """The count that plans would choose now for a group of the same load with `replicas` and that backlog."""
    context = read_context(history, forecast, profile, settings, previous=None, now=now, learned=learned)
    if isinstance(context, Refusal) or context.at_zero:
        return replicas
    beside = replace(
        context,
        replicas=replicas,
        backlog_messages=backlog_messages,
        behind_seconds=0.0,
        last_move_at=None,
        moved_at=(),
    )
    proposal = pass_guards(best_plan(beside), beside)
    return proposal.target if proposal.command_at <= now else replicas


def _under_way(context: DecisionContext) -> Recommendation | None:
    """The previous move, if it was due, has not shown in the members yet, and may still be starting."""
    previous, profile = context.previous, context.profile
    if previous is None or previous.action == "hold" or previous.execute_at > context.now:
        return None
    if context.replicas == previous.desired_replicas:
        return None
    if context.fallback_replicas not in (None, previous.desired_replicas):
        return None  # the fallback policy has another count by now
    (carried,) = carried_by_count(profile, (previous.desired_replicas,), capacity=context.capacity.p50)
    if context.produce_messages_per_second > carried:
        return None  # even the count that is under way cannot carry the load
    return previous if context.now < previous.execute_at + timedelta(seconds=patience_seconds(profile)) else None


def _propose(context: DecisionContext) -> Proposal:
    """The proposal of the owner's rule on 0 replicas; else the best plan.

    A move to 0 that a guard holds back is not proposed: then plans decide for a group that stays active.
    """
    by_rule = propose_by_rule(context)
    if by_rule is not None and (context.at_zero or pass_guards(by_rule, context).target == 0):
        return by_rule
    return best_plan(context)
