"""The best plan: proposed, priced beside every other plan, and explained."""

from dataclasses import replace
from datetime import datetime, timedelta

from cost_model.physics.calibrate import moves_per_day
from cost_model.physics.streams import lead_seconds
from cost_model.search.candidates import Plan
from cost_model.search.evaluation import PlanEvaluation, evaluate_plans
from cost_model.search.plan import PlannedMove
from cost_model.search.verdict import begun_at_once, best_moves, cheapest_counts, confidence, valley
from forecasting.history import MINUTE_SECONDS
from forecasting.history_tier import known_minutes
from forecasting.units import SECONDS_PER_HOUR, Replicas
from recommender.deciding.account import learned_moves, policy_figures, rebalance_impact_of, turning_points
from recommender.deciding.context import DecisionContext
from recommender.deciding.explain import Leaving, explain
from recommender.deciding.proposal import MovePrice, PlanChoice, Proposal
from recommender.deciding.question import STEP_SECONDS, situation_of, uncertainty_of
from recommender.deciding.recommendation import PricedPlan, ReasonCode, Recommendation, SensitivityOf, TurningPoint
from recommender.deciding.remarks import cause_remark, remedy_remark, risk_remark, skew_remark, wasted_remark
from recommender.deciding.windows import open_until

# Plans within a tenth of a move's risk price of the best one count as equal: they make the window in which to act.
WINDOW_TOLERANCE_IN_MOVES = 0.1


def best_plan(context: DecisionContext) -> Proposal:
    """The first move of the plan with the least expected price, or staying."""
    situation = situation_of(context)
    found = evaluate_plans(situation, uncertainty_of(context))
    best = found.best()
    target, step = (context.replicas, 0) if best is None else (best.target, best.command_step)
    return Proposal(
        target=target,
        command_at=context.now + timedelta(seconds=step * STEP_SECONDS),
        reason=_reason(target, context),
        choice=PlanChoice(situation=situation, found=found, best=best),
    )


def _reason(target: int, context: DecisionContext) -> ReasonCode:
    if context.replicas > context.profile.work_units and target < context.replicas:
        return "idle_members"
    if target > context.replicas:
        limit_messages = context.settings.max_lag_seconds * context.produce_messages_per_second
        return "backlog_drain" if context.backlog_messages > limit_messages else "ramp_ahead"
    if target < context.replicas:
        return "peak_ending"
    if context.replicas < context.useful_replicas[-1]:
        return "cheaper_to_stay"
    return "at_useful_maximum" if context.finding is None else context.finding.reason


def price_by_plans(proposal: Proposal, choice: PlanChoice, context: DecisionContext) -> MovePrice:
    """The price of the proposal after the guards, beside every other plan."""
    situation, found, best = choice.situation, choice.found, choice.best
    profile, replicas = context.profile, context.replicas
    planned = best is not None and proposal.target == best.target != replicas and proposal.binding_rule is None
    move = best if planned else None
    plan = _carried_out(proposal, found, context, planned=planned)
    stay = found.cost(found.stay_row)
    lower, upper = cheapest_counts(found)
    # In every plan a move down waits for the load to fall, so that its earlier cost is not known.
    later_up = plan is not None and context.now < proposal.command_at and replicas < proposal.target
    return MovePrice(
        uncapped_replicas=best.target if best is not None else replicas,
        useful_replicas=context.useful_replicas,
        lead_seconds=lead_seconds(profile, from_replicas=Replicas(replicas), to_replicas=Replicas(proposal.target)),
        rebalance_impact=rebalance_impact_of(situation, proposal.target, rate=context.produce_messages_per_second),
        chosen=found.cost_of(plan) if plan is not None else stay,
        stay=stay,
        alternatives=_priced_plans(found, context),
        window=_window(choice, move, context) if move is not None else None,
        break_even_seconds=_break_even_seconds(choice, move, context) if move is not None else None,
        lower_replicas=lower,
        upper_replicas=upper,
        confidence=confidence(found, plan),
        act_now=found.cost_of(begun_at_once(found, plan)) if plan is not None and later_up else None,
        learned=learned_moves(context, situation),
        policy=policy_figures(context, situation, found),
    )


def _carried_out(proposal: Proposal, found: PlanEvaluation, context: DecisionContext, *, planned: bool) -> Plan | None:
    """The plan that is followed: the cheapest one, or the immediate move to the count of a guard; None: stay."""
    if planned:
        return found.plans[found.best_row]
    if proposal.target == context.replicas or proposal.target not in found.choices:
        return None
    return found.at_once(proposal.target)


def _priced_plans(found: PlanEvaluation, context: DecisionContext) -> tuple[PricedPlan, ...]:
    plans = [PricedPlan(desired_replicas=context.replicas, execute_at=None, cost=found.cost(found.stay_row))]
    for row in best_moves(found):
        move = found.move_of(row)
        at = context.now + timedelta(seconds=move.command_step * MINUTE_SECONDS)
        plans.append(PricedPlan(desired_replicas=move.target, execute_at=at, cost=found.cost(row)))
    return tuple(plans)


def _window(choice: PlanChoice, best: PlannedMove, context: DecisionContext) -> tuple[datetime, datetime]:
    """The instants between which the command may be given for a price that is as good as the best.

    A plan has steps and no seconds, so that the window lasts to the end of its last step.
    """
    first, last = choice.found.window(best, WINDOW_TOLERANCE_IN_MOVES * choice.situation.prices.price_per_move)
    lead_steps = best.effective_step - best.command_step
    command_at = context.now + timedelta(seconds=best.command_step * MINUTE_SECONDS)
    latest = context.now + timedelta(seconds=max(0, last - lead_steps + 1) * MINUTE_SECONDS)
    return (
        context.now + timedelta(seconds=max(0, first - lead_steps) * MINUTE_SECONDS),
        open_until(context.settings.windows, command_at, latest, removing=best.target < context.replicas),
    )


def _break_even_seconds(choice: PlanChoice, best: PlannedMove, context: DecisionContext) -> float | None:
    """Seconds for which a smaller group has to last before the move has paid off; None where nothing is removed."""
    removed = context.replicas - best.target
    if removed <= 0:
        return None
    price = choice.found.move_price(best)
    return price / (choice.situation.prices.price_per_replica_hour * removed) * SECONDS_PER_HOUR


def explained(
    draft: Recommendation, choice: PlanChoice, context: DecisionContext, *, sensitivity: SensitivityOf
) -> Recommendation:
    """The draft with the sentences on its plans and with its sensitivity; its own sentences come last."""
    guarded = draft.binding_rule is not None
    if sensitivity != "none" and not guarded:
        draft = replace(draft, sensitivity=_sensitivity(draft, choice, context, searched=sensitivity == "any"))
    leaving = _leaving(choice, context) if draft.action == "hold" and not guarded else None
    sentences = explain(draft, choice.situation.profile, leaving=leaving)
    more = (*_on_what_is_missing(context), *_remarks(draft, choice, context, sentences))
    return replace(draft, sentences=(*sentences, *more, *draft.sentences))


def _on_what_is_missing(context: DecisionContext) -> tuple[str, ...]:
    """A sentence on a forecaster that is not used, and one on a past that is not read."""
    failure = context.track_record.forecaster_failure
    unread = (
        f"Since its last start the recommender has read {known_minutes(context.history)} minutes of this group's past; "
        "the rest follows."
    )
    return (*(() if failure is None else (failure,)), *((unread,) if context.track_record.past_unread else ()))


def _sensitivity(
    draft: Recommendation, choice: PlanChoice, context: DecisionContext, *, searched: bool
) -> tuple[TurningPoint, ...] | None:
    """What reverses the decision; while it stays the same, what did when that was `searched` for."""
    previous = context.previous
    if previous is not None and previous.sensitivity is not None and _decided(previous) == _decided(draft):
        return previous.sensitivity
    if not searched:
        return None
    return turning_points(
        draft,
        choice.found,
        price_per_late_message=choice.situation.prices.price_per_late_message,
        rebalance_pause_seconds=_rebalance_pause_seconds(draft, choice, context),
    )


def _decided(advice: Recommendation) -> tuple[str | int | None, ...]:
    return advice.action, advice.current_replicas, advice.desired_replicas, advice.reason, advice.binding_rule


def _remarks(
    draft: Recommendation, choice: PlanChoice, context: DecisionContext, sentences: tuple[str, ...]
) -> tuple[str, ...]:
    """Reasons against a plan with a cheaper mean, obstacles to more replicas, wasted ones, and changes that save."""
    risky = risk_remark(choice.found, currency=draft.currency) if draft.binding_rule is None else None
    skewed = skew_remark(context, replicas=draft.desired_replicas)
    in_the_way = skewed if context.finding is None else context.finding.sentence
    cheaper = remedy_remark(choice.found, choice.situation, moves_per_day(context.history), sentences=sentences)
    remarks = (risky, in_the_way, cause_remark(draft.cause), wasted_remark(context), cheaper)
    return tuple(sentence for sentence in remarks if sentence is not None)


def _rebalance_pause_seconds(draft: Recommendation, choice: PlanChoice, context: DecisionContext) -> float:
    """The stop of the move that is made, or else of the cheapest move."""
    rivals = best_moves(choice.found)
    if draft.rebalance_impact.rebalance_pause_seconds > 0.0 or not rivals:
        return draft.rebalance_impact.rebalance_pause_seconds
    rival = choice.found.move_of(rivals[0])
    return rebalance_impact_of(
        choice.situation, rival.target, rate=context.produce_messages_per_second
    ).rebalance_pause_seconds


def _leaving(choice: PlanChoice, context: DecisionContext) -> Leaving | None:
    """The saving of going down, where a valley is too short for it to pay off; None where there is none."""
    found, low = choice.found, valley(choice.found)
    if low is None:
        return None
    target, steps = low
    move = PlannedMove(
        target=target, effective_step=0, command_step=0, total=found.cost_of(found.at_once(target)).total
    )
    pays_after = _break_even_seconds(choice, move, context)
    if pays_after is None or pays_after <= steps * MINUTE_SECONDS:
        return None
    duplicates = found.duplicates_price(move)
    return Leaving(
        replicas=target,
        saving_per_hour=choice.situation.prices.price_per_replica_hour * (context.replicas - target),
        rebalance=found.move_price(move) - duplicates,
        duplicates=duplicates,
        pays_after_seconds=pays_after,
        valley_seconds=float(steps * MINUTE_SECONDS),
    )
