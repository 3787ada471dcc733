"""Evaluation: every plan that could be made now, priced in many scenarios of demand, pause and capacity.

Candidates are staying, reacting only, every single move at every useful time, moves up and back, at once and where a
peak needs them, and the plans that are best on single quantile paths. The one with the least expected price, plus a
weight on its worst tenth, is chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from cost_model.pricing.price import Cost
from cost_model.pricing.rollout import (
    DRAIN_SECONDS,
    SimulationInputs,
    Start,
    expected_move_cost,
    itemise_plan,
    play_plans,
    repeated_price,
    row_of,
)
from cost_model.pricing.simulation_inputs import simulation_inputs_of
from cost_model.pricing.situation import Situation, Uncertainty
from cost_model.search.candidates import Plan, encoded, fixed_candidates, least_count_now, path_plans, peak_plans
from cost_model.search.plan import PlannedMove
from forecasting.units import FloatArray

# A first round with this many scenarios leaves this many plans for all of them.
FIRST_LOOK = 16
FINALISTS = 24
WORST_SHARE = 0.1
# The steps around a move are priced so many at a time until one is too expensive: all of an hour take 3.5 ms.
WINDOW_STEPS = 8
TIE_FRACTION = 1e-9
# Where staying means reacting later, a move at a known later time is announced if it costs at most 3 % more: readers of
# the advice can prepare, and it is made only if it is the cheaper one when its time has come.
ANNOUNCED_FRACTION = 0.03


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanEvaluation:
    """Every finalist with its price in each scenario; the choice among them, and the cost of staying.

    `idle` is true if some replicas hold no partition: staying is then priced, but not chosen.
    Shapes: `totals` (plans, S), one row for each of `plans`; `arrived` (T,), the load before each step, in the median
    scenario.
    """

    choices: tuple[int, ...]
    replicas: int
    idle: bool
    plans: tuple[Plan, ...]
    totals: FloatArray
    objective: FloatArray
    risk_weight: float
    inputs: SimulationInputs = field(repr=False)
    start: Start = field(repr=False)
    arrived: FloatArray = field(repr=False)
    _priced: dict[Plan, Cost] = field(default_factory=dict, init=False, repr=False)

    @property
    def stay_row(self) -> int:
        """The cheaper of holding for the whole horizon and reacting only."""
        return int(np.argmin(self.objective[:2]))

    @property
    def best_row(self) -> int:
        """The cheapest plan; ties stay, unless staying means to react later and the move can be announced now.

        A move down that the median scenario never allows is not announced, however well it does in other scenarios.
        """
        order = [int(row) + 2 for row in np.argsort(self.objective[2:], kind="stable")]
        planned = next((row for row in order if self._made_step(*self.plans[row].moves[0]) is not None), 0)
        if self.idle and order:
            return planned or order[0]
        stay = self.stay_row
        least = float(self.objective[stay])
        if self.objective[planned] < least - TIE_FRACTION * abs(least):
            return planned
        return self._announced(limit=least + ANNOUNCED_FRACTION * abs(least)) or stay

    def _made_step(self, step: int, target: int) -> int | None:
        """The step of the command in the median scenario: a scale-in waits until the load before it allows it.

        None: never. Announced for the planned step, 12 replicas would become 5 half an hour before the load falls.
        """
        carried = self.inputs.carried
        enough, present = carried[self.choices.index(target)], carried[self.choices.index(self.replicas)]
        if target >= self.replicas or enough >= present:
            return step
        allowed = np.flatnonzero(self.arrived[step:] <= enough)
        return step + int(allowed[0]) if allowed.size else None

    def _announced(self, *, limit: float) -> int | None:
        """The cheapest later move up, where staying would lead to one by reaction; None where it would not."""
        running = self.inputs.price_running * self.replicas * self.inputs.demand.shape[1]
        if self.cost(self.stay_row).replicas <= running * (1.0 + ANNOUNCED_FRACTION):
            return None
        # A move that comes after the reaction moves nothing and costs the same.
        made = (self.totals > self.totals[1] * (1.0 + TIE_FRACTION)).any(axis=1) & (self.objective <= limit)
        rows = [row for row in np.flatnonzero(made[2:]) + 2 if self.plans[row].moves[0][1] > self.replicas]
        later = [int(row) for row in rows if self.plans[row].single and self.move_of(int(row)).command_step > 0]
        return min(later, key=lambda row: float(self.objective[row]), default=None)

    def best(self) -> PlannedMove | None:
        """The first move of the cheapest plan, None if that is to stay."""
        row = self.best_row
        return None if row < 2 else self.move_of(row)

    def move_of(self, row: int) -> PlannedMove:
        """The first move of a plan, at the step in which the median scenario makes it."""
        step, target = self.plans[row].moves[0]
        step = self._made_step(step, target) or step
        lead = self._lead_steps(target)
        return PlannedMove(
            target=target, effective_step=step, command_step=step - lead, total=float(self.totals[row].mean())
        )

    def cost(self, row: int) -> Cost:
        """The expected price of a plan, item by item."""
        return self.cost_of(self.plans[row])

    def cost_of(self, plan: Plan) -> Cost:
        """The expected price of any plan between the choices, item by item."""
        if plan not in self._priced:  # staying is asked for three times in a decision
            self._priced[plan] = _cost(self._items(plan).mean(axis=0))
        return self._priced[plan]

    def totals_of(self, plan: Plan) -> FloatArray:
        """(S,): the price of any plan between the choices in each scenario."""
        totals: FloatArray = self._items(plan).sum(axis=1)
        return totals

    def _items(self, plan: Plan) -> FloatArray:
        return itemise_plan(self.inputs, self.start, encoded([plan], self.choices)[0])

    def at_once(self, target: int) -> Plan:
        """The single move to `target` that takes effect as early as possible."""
        first = max(self.inputs.earliest_step, self._lead_steps(target))
        return Plan(moves=((first, target), (self.inputs.demand.shape[1], target)))

    def _lead_steps(self, target: int) -> int:
        return int(self.inputs.lead[self.start.choice, self.choices.index(target)])

    def replayed(self, inputs: SimulationInputs, rows: Sequence[int]) -> "PlanEvaluation":
        """Some of the plans, those that stay first, priced on other inputs."""
        plans = [self.plans[row] for row in rows]
        totals = play_plans(inputs, self.start, encoded(plans, self.choices), 0, inputs.demand.shape[0])
        objective = _objective(totals, self.risk_weight)
        arrived = self.arrived if inputs.demand is self.inputs.demand else _arrived(inputs)
        return replace(self, plans=tuple(plans), totals=totals, objective=objective, inputs=inputs, arrived=arrived)

    def best_of_each_target(self) -> tuple[int, ...]:
        """Rows of the cheapest single move to each other count, cheapest first."""
        rows = _best_of_each_target(list(self.plans), self.objective)
        return tuple(sorted(rows, key=lambda row: float(self.objective[row])))

    def window(self, move: PlannedMove, tolerance: float) -> tuple[int, int]:
        """First and last effective step around the chosen one at which the move costs at most `tolerance` more."""
        lead = move.effective_step - move.command_step
        best, end = move.effective_step, self.inputs.demand.shape[1]
        (least,) = self._totals_of_steps(range(best, best + 1), move.target)
        first, last = best, best
        while first > lead:
            steps = range(max(lead, first - WINDOW_STEPS), first)
            expensive = np.flatnonzero(self._totals_of_steps(steps, move.target) > least + tolerance)
            if expensive.size:
                first = steps[int(expensive[-1])] + 1
                break
            first = steps.start
        while last < end - 1:
            steps = range(last + 1, min(last + 1 + WINDOW_STEPS, end))
            expensive = np.flatnonzero(self._totals_of_steps(steps, move.target) > least + tolerance)
            if expensive.size:
                last = steps[int(expensive[0])] - 1
                break
            last = steps[-1]
        return self._made_step(first, move.target) or 0, last

    def _totals_of_steps(self, steps: range, target: int) -> FloatArray:
        """(steps,): the mean price of the single move to `target` at each of these steps."""
        end = self.inputs.demand.shape[1]
        plans = [Plan(moves=((step, target), (end, target))) for step in steps]
        rows = encoded(plans, self.choices)
        totals: FloatArray = play_plans(self.inputs, self.start, rows, 0, self.inputs.demand.shape[0]).mean(axis=1)
        return totals

    def duplicates_price(self, move: PlannedMove) -> float:
        """The part of `move_price` for messages processed twice."""
        after, step = self._moment(move)
        return repeated_price(self.inputs, self._row(step), after, float(self.inputs.demand[:, step].mean()))

    def move_price(self, move: PlannedMove) -> float:
        """The expected price of this one move by itself."""
        after, step = self._moment(move)
        return expected_move_cost(self.inputs, self._row(step), after, self.inputs.demand[:, step].copy())

    def _moment(self, move: PlannedMove) -> tuple[int, int]:
        return self.choices.index(move.target), min(move.effective_step, self.inputs.demand.shape[1] - 1)

    def _row(self, step: int) -> int:
        """The row of moves out of the present choice; a move at once finds the present backlog."""
        return row_of(self.inputs, self.start.choice, self.start.lag if step == 0 else 0.0, self.inputs.rate_now)


def evaluate_plans(situation: Situation, uncertainty: Uncertainty) -> PlanEvaluation:
    """Price every candidate in every scenario.

    Errors: ValueError on a profile of unknown capacity or an empty demand.
    """
    inputs, choices = simulation_inputs_of(situation, uncertainty)
    scenarios = inputs.demand.shape[0]
    start = Start(
        choices.index(situation.replicas), float(situation.lag_messages), 0.0, float(situation.behind_seconds)
    )
    paths = np.quantile(uncertainty.demand_messages_per_second, uncertainty.planned_quantiles, axis=0)
    candidates = [
        *fixed_candidates(situation, inputs, choices),
        *peak_plans(situation, paths, inputs, choices),
        *path_plans(situation, paths, inputs, choices, least_count_now(inputs, choices, start.lag / DRAIN_SECONDS)),
    ]
    rows = encoded(candidates, choices)
    looked = play_plans(inputs, start, rows, 0, min(FIRST_LOOK, scenarios))
    rough = _objective(looked, uncertainty.risk_weight)
    order = np.argsort(rough[2:], kind="stable") + 2
    # Plans of equal price are one plan: a move planned for later than the reaction, or for sooner than a load falls.
    order = order[(np.diff(rough[order], prepend=np.nan) != 0.0) & ~np.isin(rough[order], rough[:2])]
    kept = [0, 1, *order[:FINALISTS].tolist()]
    kept += [row for row in _best_of_each_target(candidates, rough) if row not in kept]
    rest = play_plans(inputs, start, rows[kept], looked.shape[1], scenarios)
    totals = np.concatenate((looked[kept], rest), axis=1)
    return PlanEvaluation(
        choices=choices,
        replicas=situation.replicas,
        idle=situation.replicas > situation.profile.work_units,
        plans=tuple(candidates[row] for row in kept),
        totals=totals,
        objective=_objective(totals, uncertainty.risk_weight),
        risk_weight=uncertainty.risk_weight,
        inputs=inputs,
        start=start,
        arrived=_arrived(inputs),
    )


def _arrived(inputs: SimulationInputs) -> FloatArray:
    """(T,): the present rate, and what the median scenario has in each step but the last."""
    return np.concatenate(([inputs.rate_now], np.median(inputs.demand, axis=0)[:-1]))


def _objective(totals: FloatArray, risk_weight: float) -> FloatArray:
    """Mean price plus a weight on how much worse the worst tenth of scenarios is."""
    mean: FloatArray = totals.mean(axis=1)
    if risk_weight <= 0.0:
        return mean
    weighted: FloatArray = mean + risk_weight * (worst_tenth(totals) - mean)
    return weighted


def worst_tenth(totals: FloatArray) -> FloatArray:
    """(plans,): the mean cost of each plan in the tenth of scenarios that is most expensive for it."""
    worst = max(1, round(WORST_SHARE * totals.shape[1]))
    tail: FloatArray = np.sort(totals, axis=1)[:, -worst:].mean(axis=1)
    return tail


def _best_of_each_target(candidates: list[Plan], rough: FloatArray) -> list[int]:
    best: dict[int, int] = {}
    for row, plan in enumerate(candidates[2:], start=2):
        target = plan.moves[0][1]
        if plan.single and (target not in best or rough[row] < rough[best[target]]):
            best[target] = row
    return list(best.values())


def _cost(items: FloatArray) -> Cost:
    return Cost(**dict(zip((item.name for item in fields(Cost)), items.tolist(), strict=True)))
