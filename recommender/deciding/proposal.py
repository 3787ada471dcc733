"""Proposal: a move before and while the guards are applied, with its reason and the plans behind it."""

from dataclasses import dataclass, replace
from datetime import datetime

from cost_model.pricing.price import Cost
from cost_model.pricing.situation import Situation
from cost_model.search.evaluation import PlanEvaluation
from cost_model.search.plan import PlannedMove
from recommender.deciding.context import DecisionContext
from recommender.deciding.recommendation import LearnedMoves, PolicyFigures, PricedPlan, ReasonCode, RebalanceImpact


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanChoice:
    """Every plan that was priced for `situation`, and the first move of the best one, None if that is to stay."""

    situation: Situation
    found: PlanEvaluation
    best: PlannedMove | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """`target` replicas from `command_at`, or staying where `target` is the present count, and the reason.

    `choice` holds the plans that it was chosen from, None where the owner's rule on 0 replicas decides without prices.
    `binding_rule` names the guard that changed the proposal last.
    """

    target: int
    command_at: datetime
    reason: ReasonCode
    choice: PlanChoice | None = None
    binding_rule: str | None = None
    sentences: tuple[str, ...] = ()

    def held(self, context: DecisionContext, *, rule: str, sentence: str, reason: ReasonCode = "guarded") -> "Proposal":
        """The same proposal turned into a hold, with the reason as a sentence for people."""
        return replace(
            self,
            target=context.replicas,
            command_at=context.now,
            reason=reason,
            binding_rule=rule,
            sentences=(*self.sentences, sentence),
        )

    def bounded(self, context: DecisionContext, *, target: int, rule: str, sentence: str) -> "Proposal":
        """The same proposal with this target in place of one beyond it; a hold where that is the present count."""
        if target == context.replicas:
            return self.held(context, rule=rule, sentence=sentence)
        sentences = (*self.sentences, sentence)
        return replace(self, target=target, reason="guarded", binding_rule=rule, sentences=sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePrice:
    """Effects and costs of a proposed move, beside staying and every alternative; prices over the horizon.

    `uncapped_replicas` is the count before guards. `window` holds the instants between which the command may be given,
    None where no plan has timed the move. The rest is None where no plans were priced, or nothing is removed or waited
    for (`break_even_seconds`, `act_now`).
    """

    uncapped_replicas: int
    useful_replicas: tuple[int, ...]
    lead_seconds: float
    rebalance_impact: RebalanceImpact
    chosen: Cost
    stay: Cost
    alternatives: tuple[PricedPlan, ...]
    window: tuple[datetime, datetime] | None = None
    break_even_seconds: float | None = None
    lower_replicas: int | None = None
    upper_replicas: int | None = None
    confidence: float | None = None
    act_now: Cost | None = None
    learned: LearnedMoves | None = None
    policy: PolicyFigures | None = None
