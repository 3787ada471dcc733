"""The advice and the published figures for a situation with one certain path."""

from dataclasses import replace

import numpy as np

from cost_model.pricing.price import Cost
from cost_model.pricing.situation import Situation, Uncertainty
from cost_model.search.candidates import Plan
from cost_model.search.evaluation import PlanEvaluation, evaluate_plans


def weighed(situation: Situation) -> PlanEvaluation:
    """The advice for the situation, whose one path is certain."""
    demand = situation.demand_messages_per_second
    return evaluate_plans(
        situation,
        Uncertainty(
            demand_messages_per_second=np.tile(demand, (8, 1)),
            rate_now_messages_per_second=float(demand[0]),
            risk_weight=0.0,
            rest_up_steps=1,
            rest_down_steps=5,
        ),
    )


def without_reactions(found: PlanEvaluation) -> PlanEvaluation:
    """The same plans without any move outside a plan, priced at the call."""
    return replace(found, inputs=found.inputs._replace(earliest_step=found.inputs.demand.shape[1]))


def single_move(found: PlanEvaluation, target: int, step: int) -> Cost:
    """The price of one move that is kept."""
    return found.cost_of(Plan(moves=((step, target), (found.inputs.demand.shape[1], target))))
