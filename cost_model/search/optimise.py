"""The search for the cheapest plan: when to move to how many replicas, over the whole horizon at once."""

import numpy as np

from cost_model.pricing.situation import Situation
from cost_model.search.plan import MoveCurve, PlannedMove, PlanSearch, itemise
from cost_model.search.problem import Tables, tabulate
from cost_model.search.sweep import Move, play, price_single_moves, sweep_back

__all__ = ["MoveCurve", "PlanSearch", "PlannedMove", "Situation", "search", "solve"]


def search(situation: Situation) -> PlanSearch:
    """Price staying and every single move at every step, each with the cheapest continuation.

    Dynamic programming over (replicas, backlog) backward in time, on the useful replica counts only. A move that takes
    effect at step t acts on that whole step; in the example it comes in the last quiet minute, where a pause is cheap.
    Errors: ValueError on a profile of unknown capacity or an empty demand path.

    >>> import numpy as np
    >>> from cost_model.pricing.price import Prices
    >>> from cost_model.physics.profile import Capacity, GroupProfile
    >>> from forecasting.units import MessagesPerSecond as Rate, Partitions
    >>> capacity = Capacity(p20=Rate(100), p50=Rate(100), p90=Rate(100), source="configured")
    >>> found = search(
    ...     Situation(
    ...         profile=GroupProfile(cluster="c", group="g", partitions=Partitions(40), capacity=capacity),
    ...         prices=Prices.from_replica_hour(0.05, capacity=Rate(100)),
    ...         demand_messages_per_second=np.repeat([500.0, 1000.0], 30),
    ...         step_seconds=60.0,
    ...         replicas=7,
    ...         lag_messages=0.0,
    ...         max_lag_seconds=10.0,
    ...         target_utilization=0.85,
    ...         rebalance_pause_prior_seconds=8.0,
    ...     )
    ... )
    >>> move = found.best()
    >>> move.target, move.effective_step, move.command_step
    (14, 29, 28)
    """
    return solve(situation, tabulate(situation))


def solve(situation: Situation, tables: Tables) -> PlanSearch:
    """The search on a tabulated situation."""
    problem, lag = tables.problem, float(situation.lag_messages)
    present = tables.choices.index(situation.replicas)
    values = sweep_back(problem, tables.ending.values(problem.lag_grid))
    totals = price_single_moves(problem, values, present, lag)
    hold = play(problem, values, Move(tables.demand.size, present, present), lag)
    lead_steps = np.ceil(tables.lead_seconds[present] / situation.step_seconds).astype(np.int64)
    return PlanSearch(
        choices=tables.choices,
        replicas=situation.replicas,
        stay=itemise(hold, tables, present=present),
        single_moves=tuple(
            MoveCurve(
                target=target,
                change=target - situation.replicas,
                lead_steps=int(lead_steps[choice]),
                totals=totals[choice],
            )
            for choice, target in enumerate(tables.choices)
            if target != situation.replicas
        ),
        tables=tables,
        values=values,
        lag_messages=lag,
    )
