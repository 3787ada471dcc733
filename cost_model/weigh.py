"""Weighing: every plan that could be made now, priced in many scenarios of demand, pause and capacity.

Candidates are staying, reacting only, every single move at every useful time, moves up and back, and the plans that are
best on single quantile paths. The one with the least expected price, plus a weight on its worst tenth, is chosen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cost_model.optimise import search
from cost_model.plan import PlannedMove
from cost_model.price import Cost
from cost_model.problem import BYTES_PER_GIGABYTE
from cost_model.profile import GroupProfile
from cost_model.rollout import (
    DRAIN_SECONDS,
    NO_MOVE,
    Field,
    Start,
    expected_switch_cost,
    itemise_plan,
    play_plans,
    repeated_price,
    row_of,
)
from cost_model.situation import Situation, Uncertainty
from cost_model.skew import carried_by_count, load_classes, useful_counts
from cost_model.switches import switches_now
from forecasting.units import SECONDS_PER_HOUR, FloatArray, IntArray, MessagesPerSecond

# A first look with this many scenarios leaves this many plans for all of them.
FIRST_LOOK = 16
FINALISTS = 24
# Pairs (step, choice) that a plan may hold.
MOST_MOVES = 5
WORST_SHARE = 0.1
# Plans of several moves are proposals, priced like all others: a coarse grid proposes them in a third of the time.
PATH_LAG_POINTS = 20
# A path within two levels calls for no more than a move up and one back, which are candidates anyway, unless it is a
# valley: when to be back is known to the path alone.
LEVELS_FOR_A_PATH = 3
TIE_FRACTION = 1e-9
# Where staying means reacting later, a move at a known later time is announced if it is as good to 3 %: whoever reads
# it can prepare, and nothing is done before its time has come and it is the better of the two.
ANNOUNCED_FRACTION = 0.03
LEAST_CAPACITY_FRACTION = 1e-9
_SEED = 11
# Steps between a move up and the one back.
STAYS_UP = (5, 10, 20, 30)
# The slower quarter of equal replicas: at a spread of 5 % it is 6 % slower than the mean.
SLOW_SHARE = 0.25
SLOW_SPEED = 0.94


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Intended moves as (effective step, replicas); empty: react only.

    The last one stands at the end of the horizon and keeps what there is: until then nothing is removed.
    """

    moves: tuple[tuple[int, int], ...]

    @property
    def single(self) -> bool:
        """Whether it is one move that is kept."""
        return len(self.moves) == 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weighed:
    """Every finalist with its price in each scenario; the choice among them, and what staying costs.

    `idle` says that some replicas hold no partition: staying is then priced, but not chosen.
    Shapes: `totals` (plans, S), one row for each of `plans`.
    """

    choices: tuple[int, ...]
    replicas: int
    idle: bool
    plans: tuple[Plan, ...]
    totals: FloatArray
    objective: FloatArray
    risk_weight: float
    ground: Field = field(repr=False)
    start: Start = field(repr=False)

    @property
    def stay_row(self) -> int:
        """The cheaper of holding for the whole horizon and reacting only."""
        return int(np.argmin(self.objective[:2]))

    @property
    def best_row(self) -> int:
        """The cheapest plan; ties stay, unless staying means to react later to what can be announced now.

        A move down that the median scenario never allows is no plan to announce, however well it does in others.
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
        """When a move is made in the median scenario: one down waits until what arrived before allows it.

        None: never. Announced for the planned step, 12 replicas would become 5 half an hour before the load falls.
        """
        carried = self.ground.carried
        enough, present = carried[self.choices.index(target)], carried[self.choices.index(self.replicas)]
        if target >= self.replicas or enough >= present:
            return step
        arrived = np.concatenate(([self.ground.rate_now], np.median(self.ground.demand, axis=0)))[step:-1]
        allowed = np.flatnonzero(arrived <= enough)
        return step + int(allowed[0]) if allowed.size else None

    def _announced(self, *, limit: float) -> int | None:
        """The cheapest later move up, where staying would lead to one by reaction; None where it would not."""
        running = self.ground.price_running * self.replicas * self.ground.demand.shape[1]
        if self.cost(self.stay_row).replicas <= running * (1.0 + ANNOUNCED_FRACTION):
            return None
        # One that comes after the reaction moves nothing and costs the same.
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
        return _cost(self._items(plan).mean(axis=0))

    def totals_of(self, plan: Plan) -> FloatArray:
        """(S,): the price of any plan between the choices in each scenario."""
        totals: FloatArray = self._items(plan).sum(axis=1)
        return totals

    def _items(self, plan: Plan) -> FloatArray:
        return itemise_plan(self.ground, self.start, _encoded([plan], self.choices)[0])

    def at_once(self, target: int) -> Plan:
        """The single move to `target` that takes effect as early as one can."""
        first = max(self.ground.earliest_step, self._lead_steps(target))
        return Plan(moves=((first, target), (self.ground.demand.shape[1], target)))

    def _lead_steps(self, target: int) -> int:
        return int(self.ground.lead[self.start.choice, self.choices.index(target)])

    def replayed(self, ground: Field, rows: Sequence[int]) -> "Weighed":
        """Some of the plans, those that stay first, priced on another field."""
        plans = [self.plans[row] for row in rows]
        totals = play_plans(ground, self.start, _encoded(plans, self.choices), 0, ground.demand.shape[0])
        objective = _objective(totals, self.risk_weight)
        return replace(self, plans=tuple(plans), totals=totals, objective=objective, ground=ground)

    def best_of_each_target(self) -> tuple[int, ...]:
        """Rows of the cheapest single move to each other count, cheapest first."""
        rows = _best_of_each_target(list(self.plans), self.objective)
        return tuple(sorted(rows, key=lambda row: float(self.objective[row])))

    def window(self, move: PlannedMove, tolerance: float) -> tuple[int, int]:
        """First and last effective step around the chosen one at which the move costs at most `tolerance` more."""
        lead = move.effective_step - move.command_step
        steps = range(lead, self.ground.demand.shape[1])
        end = self.ground.demand.shape[1]
        plans = [Plan(moves=((step, move.target), (end, move.target))) for step in steps]
        totals = play_plans(
            self.ground, self.start, _encoded(plans, self.choices), 0, self.ground.demand.shape[0]
        ).mean(axis=1)
        best = move.effective_step - lead
        dear = np.flatnonzero(totals > totals[best] + tolerance)
        first = int(dear[dear < best].max(initial=-1)) + 1
        last = int(dear[dear > best].min(initial=totals.size)) - 1
        return self._made_step(first + lead, move.target) or 0, last + lead

    def duplicates_price(self, move: PlannedMove) -> float:
        """The part of `switch_price` that messages processed twice make up."""
        after, step = self._moment(move)
        return repeated_price(self.ground, self._row(step), after, float(self.ground.demand[:, step].mean()))

    def switch_price(self, move: PlannedMove) -> float:
        """The expected price of this one move, whatever follows."""
        after, step = self._moment(move)
        return expected_switch_cost(self.ground, self._row(step), after, self.ground.demand[:, step].copy())

    def _moment(self, move: PlannedMove) -> tuple[int, int]:
        return self.choices.index(move.target), min(move.effective_step, self.ground.demand.shape[1] - 1)

    def _row(self, step: int) -> int:
        """The row of moves out of the present choice; what waits now is met by a move that comes at once."""
        return row_of(self.ground, self.start.choice, self.start.lag if step == 0 else 0.0, self.ground.rate_now)


def weigh(situation: Situation, uncertainty: Uncertainty) -> Weighed:
    """Price every candidate in every scenario.

    Errors: ValueError on a profile of unknown capacity or an empty demand.
    """
    ground, choices = field_of(situation, uncertainty)
    scenarios = ground.demand.shape[0]
    start = Start(
        choices.index(situation.replicas), float(situation.lag_messages), 0.0, float(situation.behind_seconds)
    )
    candidates = [
        *_fixed_candidates(situation, ground, choices),
        *_path_plans(situation, uncertainty, ground, choices, _least_now(ground, choices, start.lag / DRAIN_SECONDS)),
    ]
    encoded = _encoded(candidates, choices)
    looked = play_plans(ground, start, encoded, 0, min(FIRST_LOOK, scenarios))
    rough = _objective(looked, uncertainty.risk_weight)
    order = np.argsort(rough[2:], kind="stable") + 2
    # Plans of one price are one plan: a move planned for later than the reaction, or for sooner than a load falls.
    order = order[(np.diff(rough[order], prepend=np.nan) != 0.0) & ~np.isin(rough[order], rough[:2])]
    kept = [0, 1, *order[:FINALISTS].tolist()]
    kept += [row for row in _best_of_each_target(candidates, rough) if row not in kept]
    totals = play_plans(ground, start, encoded[kept], 0, scenarios)
    return Weighed(
        choices=choices,
        replicas=situation.replicas,
        idle=situation.replicas > situation.profile.work_units,
        plans=tuple(candidates[row] for row in kept),
        totals=totals,
        objective=_objective(totals, uncertainty.risk_weight),
        risk_weight=uncertainty.risk_weight,
        ground=ground,
        start=start,
    )


def field_of(situation: Situation, uncertainty: Uncertainty) -> tuple[Field, tuple[int, ...]]:
    """The arrays that the compiled loop plays on, and the replica counts that its choices stand for."""
    profile, prices, step = situation.profile, situation.prices, situation.step_seconds
    useful = useful_counts(profile, minimum=profile.min_replicas, maximum=profile.max_replicas)
    choices = tuple(sorted({*useful, situation.replicas}))
    if profile.capacity is None or not profile.capacity.p20 > 0.0:
        message = f"the capacity of group '{profile.group}' is unknown or 0 messages/s; a plan needs one above 0"
        raise ValueError(message)
    each = profile.capacity.p50
    carried = carried_by_count(profile, choices, capacity=MessagesPerSecond(each))
    # The present count may carry less than a smaller useful one; its classes say so, and levels have to climb.
    levels = np.maximum.accumulate(np.maximum(carried, LEAST_CAPACITY_FRACTION * each))
    capacity = situation.head_room * levels
    class_shares, class_replicas = _classes(profile, choices)
    keeping_up = switches_now(situation, choices, behind=False)
    replicas = np.array(choices, dtype=np.float64)
    more = replicas[None, :] - replicas[:, None]
    idle_seconds = np.where(more > 0.0, keeping_up.lead_seconds, profile.termination_grace_seconds)
    demand = np.ascontiguousarray(uncertainty.demand_messages_per_second)
    pauses, capacities = _drawn(
        demand.shape[0], situation.pause_spread, float(np.log(profile.capacity.p90 / each) / 1.2816)
    )
    lead = keeping_up.lead_seconds / step
    reaction = np.maximum(0.0, keeping_up.lead_seconds + uncertainty.notice_seconds - step) / step
    return (
        Field(
            replicas=replicas,
            carried=capacity,
            class_shares=class_shares,
            class_carried=situation.head_room * each * class_replicas,
            start_up=_twice(prices.replica_hour * np.abs(more) * idle_seconds / SECONDS_PER_HOUR),
            risk=_twice(prices.move * (more != 0.0)),
            restore=_twice(prices.restored_gigabyte / BYTES_PER_GIGABYTE * keeping_up.restored_bytes),
            **moves_of(situation, choices)._asdict(),
            demand=demand,
            pause_factor=pauses,
            capacity_factor=capacities,
            price_running=prices.replica_hour * step / SECONDS_PER_HOUR,
            price_late=prices.late_message,
            price_held=0.5 * prices.held_message_second * step,
            price_repeated=prices.duplicate_message,
            price_backlog=prices.replica_hour / (SECONDS_PER_HOUR * each),
            step_seconds=float(step),
            max_lag_seconds=float(situation.max_lag_seconds),
            lead=lead,
            reaction=reaction,
            rest_up_steps=uncertainty.rest_up_steps,
            rest_down_steps=uncertainty.rest_down_steps,
            earliest_step=situation.earliest_move_step,
            rate_now=float(uncertainty.rate_now_messages_per_second),
        ),
        choices,
    )


class Moves(NamedTuple):
    """The arrays of a `Field` that say what moves stop, repeat and lose, (2a, a, ...): keeping up, then behind."""

    in_flight: FloatArray
    repeated: FloatArray
    dropped: FloatArray
    shares: FloatArray
    pauses: FloatArray


def moves_of(situation: Situation, choices: tuple[int, ...]) -> Moves:
    """What moves between these counts do to the group."""
    both = [switches_now(situation, choices, behind=behind) for behind in (False, True)]
    return Moves(
        in_flight=np.vstack([moves.in_flight_messages for moves in both]),
        repeated=np.vstack([moves.repeated_seconds for moves in both]),
        dropped=np.vstack([moves.dropped_seconds for moves in both]),
        shares=np.vstack([moves.pause_shares for moves in both]),
        pauses=np.vstack([moves.pause_seconds for moves in both]),
    )


def _twice(moves: FloatArray) -> FloatArray:
    """What a move costs whether the group is behind or not, for both."""
    return np.vstack((moves, moves))


def _classes(profile: GroupProfile, choices: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Shares of the load, and the work of how many usual replicas, (a, 3): the busiest that are slow, the rest, others.

    Fourteen replicas on 120 partitions: eight hold nine each, 0.6 of all, two of these being slow; six hold eight.
    """
    share, busiest, others = load_classes(profile, choices)
    shares = np.column_stack((SLOW_SHARE * share, (1.0 - SLOW_SHARE) * share, 1.0 - share))
    replicas = np.column_stack((SLOW_SHARE * SLOW_SPEED * busiest, (1.0 - SLOW_SHARE) * busiest, others))
    return shares, replicas


@lru_cache(maxsize=64)
def _drawn(scenarios: int, pause_spread: float, capacity_spread: float) -> tuple[FloatArray, FloatArray]:
    """A pause factor of mean 1 and a capacity factor of median 1 for each scenario, log-normal."""
    random = np.random.default_rng(_SEED)
    pauses = np.exp(pause_spread * random.standard_normal(scenarios) - 0.5 * pause_spread**2)
    return pauses, np.exp(capacity_spread * random.standard_normal(scenarios))


@lru_cache(maxsize=1024)
def _times(first: int, steps: int) -> tuple[int, ...]:
    """Every useful time of a move: each of the next minutes, then every second one, later every fifth."""
    times = [step for step in range(first, steps) if step - first <= 10 or (step - first) % 5 == 0]
    return tuple(times)


def _fixed_candidates(situation: Situation, ground: Field, choices: tuple[int, ...]) -> list[Plan]:
    """Candidates among the counts that any scenario calls for, one more on either side."""
    calls = ground.demand / ground.capacity_factor[:, None]
    backlog = situation.lag_messages / DRAIN_SECONDS
    least, most = float(calls.min()), float(calls.max()) + backlog
    profile = situation.profile
    legal = useful_counts(profile, minimum=profile.min_replicas, maximum=profile.max_replicas)
    useful = np.flatnonzero(np.isin(ground.replicas, legal))
    carried = ground.carried[useful]
    first = max(int(np.searchsorted(carried, least)) - 1, 0)
    last = min(int(np.searchsorted(carried, most)) + 1, len(useful) - 1)
    leads = ground.lead[choices.index(situation.replicas)].astype(np.int64).tolist()
    targets = tuple(choices[place] for place in useful[first : last + 1])
    plans = _grid(
        targets,
        situation.replicas,
        leads=tuple(leads[choices.index(target)] for target in targets),
        steps=ground.demand.shape[1],
        earliest=ground.earliest_step,
        least_now=_least_now(ground, choices, backlog),
    )
    return list(plans)


def _least_now(ground: Field, choices: tuple[int, ...], backlog: float) -> int:
    """The smallest count that carries what arrives now: to fewer one may only go later."""
    place = int(np.searchsorted(ground.carried, ground.rate_now + backlog))
    return choices[min(place, len(choices) - 1)]


@lru_cache(maxsize=1024)
def _grid(
    targets: tuple[int, ...], present: int, *, leads: tuple[int, ...], steps: int, earliest: int, least_now: int
) -> tuple[Plan, ...]:
    """Hold and react first, then single moves, then up and back."""
    plans = [Plan(moves=((steps, present),)), Plan(moves=())]
    for target, lead in zip(targets, leads, strict=True):
        if target == present:
            continue
        first = max(earliest, lead if target > present else int(target < least_now))
        # What is needed now cannot be announced for later: a reaction would come before it, and the plan would be to
        # come down from there.
        times = (first,) if least_now > present and target > present else _times(first, steps)
        plans += [Plan(moves=((at, target), (steps, target))) for at in times]
        if target > present:
            plans += [
                Plan(moves=((first, target), (first + up, present), (steps, present)))
                for up in STAYS_UP
                if first + up < steps
            ]
    return tuple(plans)


def _path_plans(
    situation: Situation, uncertainty: Uncertainty, ground: Field, choices: tuple[int, ...], least_now: int
) -> Iterator[Plan]:
    """The best plans on single paths: the median of the scenarios and higher ones."""
    leads = ground.lead[choices.index(situation.replicas)].astype(np.int64).tolist()
    for quantile in uncertainty.planned_quantiles:
        path = np.quantile(uncertainty.demand_messages_per_second, quantile, axis=0)
        levels = np.minimum(np.searchsorted(ground.carried, path), ground.replicas.size - 1)
        valley = ground.replicas[levels.min()] < situation.replicas and levels.min() < levels[-1]
        if len(np.unique(levels)) < LEVELS_FOR_A_PATH and not valley:
            continue
        found = search(replace(situation, demand_messages_per_second=path, lag_points=PATH_LAG_POINTS))
        best = found.best()
        if best is None:
            continue
        replicas = (situation.replicas, *found.path(best.target, best.effective_step))
        moves = [(step, after) for step, (before, after) in enumerate(pairwise(replicas)) if before != after]
        shifted = [
            (max(step, leads[choices.index(after)] if after > situation.replicas else int(after < least_now)), after)
            for step, after in moves
        ]
        kept = shifted[: MOST_MOVES - 1]
        yield Plan(moves=(*kept, (len(path), kept[-1][1])))


def _encoded(plans: list[Plan], choices: tuple[int, ...]) -> IntArray:
    place = {count: position for position, count in enumerate(choices)}
    encoded = np.full((len(plans), 2 * MOST_MOVES), NO_MOVE, dtype=np.int64)
    for row, plan in enumerate(plans):
        for position, (step, target) in enumerate(plan.moves):
            encoded[row, 2 * position] = step
            encoded[row, 2 * position + 1] = place[target]
    return encoded


def _objective(totals: FloatArray, risk_weight: float) -> FloatArray:
    """Mean price plus a weight on how much worse the worst tenth of scenarios is."""
    mean: FloatArray = totals.mean(axis=1)
    if risk_weight <= 0.0:
        return mean
    worst = max(1, round(WORST_SHARE * totals.shape[1]))
    tail = np.sort(totals, axis=1)[:, -worst:].mean(axis=1)
    weighted: FloatArray = mean + risk_weight * (tail - mean)
    return weighted


def _best_of_each_target(candidates: list[Plan], rough: FloatArray) -> list[int]:
    best: dict[int, int] = {}
    for row, plan in enumerate(candidates[2:], start=2):
        target = plan.moves[0][1]
        if plan.single and (target not in best or rough[row] < rough[best[target]]):
            best[target] = row
    return list(best.values())


def _cost(items: FloatArray) -> Cost:
    return Cost(**dict(zip((item.name for item in fields(Cost)), items.tolist(), strict=True)))
