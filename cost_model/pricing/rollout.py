"""The compiled loop that plays candidate plans through scenarios of demand.

A plan is a few intended moves. Between and after them the group reacts as a sensible scaler would: up when the arrivals
exceed what it carries and the late messages would cost more than the move, down when idle replicas have cost as much as
the move. So waiting is priced with the later reaction, and no plan is charged for a disaster that the next decision
would have prevented.
"""

from typing import NamedTuple

import numpy as np

from cost_model.physics.backlog import HIGHEST_LOAD, LEAST_SPARE_FRACTION
from cost_model.physics.capacity import SATURATED_LAG_SECONDS
from cost_model.physics.fluid import share_late
from forecasting.compiled import compiled
from forecasting.units import FloatArray, IntArray

# The catch-up of partitions that stood still lasts beyond the step, unlike a backlog that all partitions share.
LONGEST_CATCH_UP_SECONDS = 600.0
# Items of a price, in the order of `cost_model.pricing.price.Cost`.
REPLICAS, LATE, PAUSE_LATE, BACKLOG, DUPLICATES, START_UP, RESTORE, RISK, ITEMS = 0, 1, 2, 3, 4, 5, 6, 7, 8
NO_MOVE = -1
# Late messages that any price above 0 makes more expensive than a move.
NO_END_OF_MESSAGES = 1e30
# A load is known to leave nothing waiting where it is below what is carried by more than rounding.
ROUNDING = 1e-9
# A reacting scaler carries the arrivals and works a backlog off within this time.
DRAIN_SECONDS = 300.0
# It goes down to no less than the count needed within the last 5 to 10 steps.
REMEMBERED_STEPS = 5
# The load after the last step is the mean of the last ten: a peak of one minute there would stay for ever.
ENDING_STEPS = 10


class SimulationInputs(NamedTuple):
    """The inputs of the simulation: the group's choices and moves, the scenarios, and the prices.

    Replicas come in three classes, each with its own share of the load and its own backlog: the slower ones among
    those with one partition more than others, the rest of those, and the others. So a load just above the useful count
    makes some messages late, not all. Moves out of each choice are known twice: row i of a group that keeps up, row
    a + i of one that is behind, whose batches are full.
    Shapes: a choices, S scenarios, H steps. `carried` (a,) messages/s before any replica falls behind, at the target
    utilization; `class_shares` (a, 3) of the load, `class_carried` (a, 3) messages/s. Of moves (2a, a): `start_up`,
    `risk`, `restore` in currency, `repeated` and `dropped` in seconds of the group's work, `in_flight` in messages
    that are repeated too; `shares` and `pauses` (2a, a, k) the partitions that a move stops, and for how long.
    `demand` (S, H); `pause_factor` and `capacity_factor` (S,). A move up takes effect `lead` (a, a) steps after its
    command, a reaction to the arrivals `reaction` (a, a) steps after that; parts of a step count.
    """

    replicas: FloatArray
    carried: FloatArray
    class_shares: FloatArray
    class_carried: FloatArray
    start_up: FloatArray
    risk: FloatArray
    in_flight: FloatArray
    repeated: FloatArray
    dropped: FloatArray
    restore: FloatArray
    shares: FloatArray
    pauses: FloatArray
    demand: FloatArray
    pause_factor: FloatArray
    capacity_factor: FloatArray
    price_running: float
    price_late: float
    price_held: float
    price_repeated: float
    price_backlog: float
    step_seconds: float
    max_lag_seconds: float
    lead: FloatArray
    reaction: FloatArray
    rest_up_steps: int
    rest_down_steps: int
    earliest_step: int
    rate_now: float


class Start(NamedTuple):
    """The start of every plan: the present choice, its backlog in messages, and the cost of idle replicas so far."""

    choice: int
    lag: float
    idle_cost: float
    behind_seconds: float


class Seen(NamedTuple):
    """The knowledge of a reacting scaler: the produce rate of the last step, and the backlog of each class."""

    rate: float
    slow_lag: float
    heavy_lag: float
    light_lag: float


class Ended(NamedTuple):
    """The end of a plan: the choice, its backlog in messages, with and without stops, and messages that will be late.

    `owed` messages of the last stop are late and not in any backlog yet. The load that lasts is `demand`, which `home`
    carries.
    """

    choice: int
    lag: float
    smooth_lag: float
    owed: float
    home: int
    demand: float


@compiled
def needed(field: SimulationInputs, wanted: float, near: int) -> int:
    """The smallest choice that carries a demand, searched from `near`; the largest one where none does."""
    last = field.replicas.size - 1
    while near < last and field.carried[near] < wanted:
        near += 1
    while near > 0 and field.carried[near - 1] >= wanted:
        near -= 1
    return near


@compiled
def row_of(field: SimulationInputs, before: int, lag: float, demand: float) -> int:
    """The row of moves out of a choice: that of a group behind where more waits than arrives in two seconds."""
    return before + field.replicas.size if lag > SATURATED_LAG_SECONDS * demand else before


@compiled
def pause_late(field: SimulationInputs, row: int, after: int, demand: float, scenario: int) -> float:
    """Messages that the stop of a move makes late by itself."""
    factor = field.pause_factor[scenario]
    load = min(demand / (field.carried[after] * field.capacity_factor[scenario]), HIGHEST_LOAD)
    late = 0.0
    for kind in range(field.shares.shape[2]):
        over = field.pauses[row, after, kind] * factor - field.max_lag_seconds
        if over > 0.0:
            late += field.shares[row, after, kind] * min(over / (1.0 - load), LONGEST_CATCH_UP_SECONDS)
    return late * demand


@compiled
def repeated_price(field: SimulationInputs, row: int, after: int, demand: float) -> float:
    """The price of the messages that a move makes the group process twice."""
    return float(field.price_repeated * (field.repeated[row, after] * demand + field.in_flight[row, after]))


@compiled
def move_cost(field: SimulationInputs, row: int, after: int, demand: float, scenario: int) -> float:
    """The price of one move by itself; dropped messages count as late."""
    late = pause_late(field, row, after, demand, scenario) + field.dropped[row, after] * demand
    fixed = field.start_up[row, after] + field.risk[row, after] + field.restore[row, after]
    return float(fixed + repeated_price(field, row, after, demand) + field.price_late * late)


@compiled
def expected_move_cost(field: SimulationInputs, row: int, after: int, demand: FloatArray) -> float:
    """The mean price of one move over the scenarios, `demand` (S,) being the arrivals when it is made."""
    total = 0.0
    for scenario in range(demand.size):
        total += move_cost(field, row, after, demand[scenario], scenario)
    return total / demand.size


@compiled
def stopped_seconds(field: SimulationInputs, row: int, after: int, scenario: int) -> float:
    """Seconds of the whole group's work that a move's stop takes away."""
    seconds = 0.0
    for kind in range(field.shares.shape[2]):
        seconds += field.shares[row, after, kind] * field.pauses[row, after, kind]
    return float(seconds * field.pause_factor[scenario])


@compiled
def class_step(lag: float, arriving: float, worked: float, limit: float) -> tuple[float, float]:
    """Backlog of one class after a step, and the messages of the step that are late."""
    following = max(0.0, lag + arriving - worked)
    if lag <= limit and following <= limit:
        return following, 0.0
    return following, arriving * share_late(lag, following, limit)


@compiled
def late_if_kept(field: SimulationInputs, lag: float, arriving: float, carried: float, wait_seconds: float) -> float:
    """Messages of one class that are late if no move is made and the arrivals last; unbounded if it falls behind.

    Its backlog may grow as long as it is within the promise after `wait_seconds`: there is time for another decision.
    """
    on_time = field.max_lag_seconds * carried
    if arriving < carried:
        return arriving * max(0.0, lag - on_time) / (carried - arriving)
    return NO_END_OF_MESSAGES if lag + (arriving - carried) * wait_seconds > on_time else 0.0


@compiled
def move_pays(field: SimulationInputs, before: int, after: int, seen: Seen, scenario: int) -> bool:
    """True if the late messages cost more than the move: none are late while a move one step later comes in time."""
    row = row_of(field, before, seen.slow_lag + seen.heavy_lag + seen.light_lag, seen.rate)
    wait_seconds = (1.0 + field.reaction[before, after]) * field.step_seconds
    wait_seconds += stopped_seconds(field, row, after, scenario)
    late, factor = 0.0, field.capacity_factor[scenario]
    for kind in range(field.class_shares.shape[1]):
        arriving = field.class_shares[before, kind] * seen.rate
        if arriving > 0.0:
            lag = seen.slow_lag if kind == 0 else (seen.heavy_lag if kind == 1 else seen.light_lag)
            late += late_if_kept(field, lag, arriving, factor * field.class_carried[before, kind], wait_seconds)
    return bool(field.price_late * late > move_cost(field, row, after, seen.rate, scenario))


@compiled
def fill_calm_needs(field: SimulationInputs, scenario: int, needs: IntArray) -> None:
    """Fill `needs` (H,) from step 1 on: the choice that carries what came in the step before, where nothing waits."""
    factor = field.capacity_factor[scenario]
    needs[0] = 0
    for step in range(1, needs.size):
        needs[step] = needed(field, field.demand[scenario, step - 1] / factor, needs[step - 1])


@compiled
def ends_held(plan: IntArray, steps: int) -> bool:
    """True if a plan holds its last count until the horizon ends, so that what idle replicas cost moves nothing."""
    cursor = 0
    while cursor < plan.size and NO_MOVE != plan[cursor] < steps:
        cursor += 2
    return cursor < plan.size and plan[cursor] != NO_MOVE


@compiled
def play_scenario(  # noqa: C901, PLR0912, PLR0915, PLR0917 - one loop: a call copies all inputs, 1.6 kB
    field: SimulationInputs, start: Start, plans: IntArray, scenario: int, calm_needs: IntArray, prices: FloatArray
) -> None:
    """Add the itemised price of each plan in one scenario to `prices` (plans, ITEMS).

    A plan holds pairs (effective step, choice), NO_MOVE after the last. An intended move up happens unless the group is
    that large already; one down happens once the arrivals then allow it. Reactions see the arrivals of the step before,
    and come from the next decision on: a move for now has to be in the plan. A move of the plan that comes sooner than
    the reaction takes its place. No reaction goes up in the step in which a move down is planned, because the load seen
    then is the one that the plan was up for. Down only when the plan's own moves are done, and when idle replicas have
    cost as much as the move.

    In nineteen of twenty steps nothing waits, comes late or moves: what plans share there, `calm_needs` of
    `fill_calm_needs`, is not computed again, and a plan that holds its last count passes over them.
    """
    factor = field.capacity_factor[scenario]
    steps = field.demand.shape[1]
    ending = field.demand[scenario, -min(ENDING_STEPS, steps) :].mean()
    home = needed(field, ending / factor, start.choice)
    for place in range(plans.shape[0]):
        plan, items = plans[place], prices[place]
        choice, idle = start.choice, start.idle_cost
        slow_lag = field.class_shares[choice, 0] * max(start.lag, start.behind_seconds * field.rate_now)
        heavy_lag = field.class_shares[choice, 1] * start.lag
        light_lag = field.class_shares[choice, 2] * start.lag
        # The same backlogs if no move had stopped anything: messages late with them are late for another reason than
        # a stop.
        slow_smooth, heavy_smooth, light_smooth = slow_lag, heavy_lag, light_lag
        running, late_messages, smooth_messages, held, pause_messages = 0.0, 0.0, 0.0, 0.0, 0.0
        apart, owed = False, 0.0
        looked_up, replicas, calm_rate = NO_MOVE, 0.0, 0.0
        slow_share, heavy_share, light_share, slow_full, heavy_full, light_full = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        coming, coming_step, moved_at = NO_MOVE, -1, -1_000_000
        cursor, seen, need = 0, field.rate_now, choice
        newer_need, older_need = 0, 0
        step, held_to_end = -1, ends_held(plan, steps)
        while step < steps - 1:
            step += 1
            before, part = choice, 0.0
            lag = slow_lag + heavy_lag + light_lag
            if held_to_end and lag == 0.0 and owed == 0.0 and coming == NO_MOVE and choice == looked_up:
                calm_from, enough = step, NO_END_OF_MESSAGES
                if plan[cursor + 1] < choice:  # once this carries what comes
                    enough = field.carried[plan[cursor + 1]]
                while (
                    step < steps
                    and field.demand[scenario, step] <= calm_rate
                    and calm_needs[step] <= choice
                    and (step < plan[cursor] or enough < seen / factor)
                ):
                    seen = field.demand[scenario, step]
                    step += 1
                running += replicas * (step - calm_from)
                if step == steps:
                    break
            pending, returning = cursor < plan.size and plan[cursor] != NO_MOVE, False
            if pending and plan[cursor] <= step:
                target = plan[cursor + 1]
                if target > choice:
                    part = field.lead[before, target] % 1.0 if plan[cursor] == step else 0.0
                    choice, coming = target, NO_MOVE
                    cursor += 2
                elif target == choice:
                    cursor += 2
                elif field.carried[target] >= (seen + lag / DRAIN_SECONDS) / factor:
                    choice = target
                    cursor += 2
                else:
                    returning = plan[cursor] == step
            if choice == before and coming == NO_MOVE and step > field.earliest_step:
                need = calm_needs[step] if lag == 0.0 else needed(field, (seen + lag / DRAIN_SECONDS) / factor, need)
                if step % REMEMBERED_STEPS == 0:
                    older_need, newer_need = newer_need, need
                newer_need = max(newer_need, need)
                lower = max(newer_need, older_need)
                if need > choice:
                    idle = 0.0
                    known = Seen(seen, slow_lag, heavy_lag, light_lag)
                    rested = step - moved_at >= field.rest_up_steps
                    sooner = (
                        not pending or plan[cursor + 1] < need or step + field.reaction[choice, need] < plan[cursor]
                    )
                    if rested and sooner and not returning and move_pays(field, choice, need, known, scenario):
                        coming, coming_step = need, step + int(field.reaction[choice, need])
                        if coming_step == step:
                            choice, coming, part = need, NO_MOVE, field.reaction[before, need] % 1.0
                elif lower < choice:
                    idle += field.price_running * (field.replicas[choice] - field.replicas[lower])
                    if (
                        not pending
                        and step - moved_at >= field.rest_down_steps
                        and idle >= move_cost(field, choice, lower, seen, scenario)
                    ):
                        choice = lower
                else:
                    idle = 0.0
            demand = field.demand[scenario, step]
            if choice != looked_up:
                looked_up, replicas = choice, field.replicas[choice]
                slow_share, heavy_share = field.class_shares[choice, 0], field.class_shares[choice, 1]
                light_share = field.class_shares[choice, 2]
                slow_full, heavy_full = field.class_carried[choice, 0] * factor, field.class_carried[choice, 1] * factor
                light_full = field.class_carried[choice, 2] * factor
                calm_rate = (1.0 - ROUNDING) * min(slow_full / slow_share, heavy_full / heavy_share)
                if light_share > 0.0:
                    calm_rate = min(calm_rate, (1.0 - ROUNDING) * light_full / light_share)
            if choice == before and demand <= calm_rate and owed == 0.0 and lag == 0.0:
                running, seen = running + replicas, demand
                continue
            slow_carried, heavy_carried, light_carried = slow_full, heavy_full, light_full
            slow_lost, heavy_lost, light_lost = 0.0, 0.0, 0.0
            if choice != before:
                moved_at, idle = step, 0.0
                # Partitions keep their backlog and change owners: range and roundrobin assign all of them anew, so
                # that slow replicas' backlog is spread over all. Sticky assignors leave slow replicas most of theirs on
                # the way up; it is spread here too, because their spare capacity after such a move consumes it within
                # minutes.
                total = slow_lag + heavy_lag + light_lag
                slow_lag, heavy_lag, light_lag = slow_share * total, heavy_share * total, light_share * total
                smooth = slow_smooth + heavy_smooth + light_smooth
                slow_smooth, heavy_smooth, light_smooth = (
                    slow_share * smooth,
                    heavy_share * smooth,
                    light_share * smooth,
                )
                row = row_of(field, before, total, demand)
                # The stop ends with the new replicas' first commits, so it takes time from the smaller count.
                stopped = stopped_seconds(field, row, choice, scenario)
                old = field.carried[before] * factor
                slow_lost = stopped * min(slow_share * old, slow_carried)
                heavy_lost = stopped * min(heavy_share * old, heavy_carried)
                light_lost = stopped * min(light_share * old, light_carried)
                apart = apart or stopped > 0.0
                owed += pause_late(field, row, choice, demand, scenario)
                if part > 0.0:
                    slow_carried += part * min(0.0, slow_share * old - slow_carried)
                    heavy_carried += part * min(0.0, heavy_share * old - heavy_carried)
                    light_carried += part * min(0.0, light_share * old - light_carried)
                pause_messages += field.dropped[row, choice] * demand
                items[DUPLICATES] += repeated_price(field, row, choice, demand)
                items[START_UP] += field.start_up[row, choice]
                items[RESTORE] += field.restore[row, choice]
                items[RISK] += field.risk[row, choice]
            seconds, arriving, limit = field.step_seconds, demand * field.step_seconds, field.max_lag_seconds
            held += slow_lag + heavy_lag + light_lag
            slow_new, heavy_new, light_new = slow_share * arriving, heavy_share * arriving, light_share * arriving
            slow_work, heavy_work, light_work = slow_carried * seconds, heavy_carried * seconds, light_carried * seconds
            slow_limit, heavy_limit, light_limit = limit * slow_carried, limit * heavy_carried, limit * light_carried
            slow_lag, late = class_step(slow_lag, slow_new, slow_work - slow_lost, slow_limit)
            heavy_lag, more = class_step(heavy_lag, heavy_new, heavy_work - heavy_lost, heavy_limit)
            late += more
            if light_share > 0.0:
                light_lag, more = class_step(light_lag, light_new, light_work - light_lost, light_limit)
                late += more
            if apart:
                slow_smooth, smooth_late = class_step(slow_smooth, slow_new, slow_work, slow_limit)
                heavy_smooth, more = class_step(heavy_smooth, heavy_new, heavy_work, heavy_limit)
                smooth_late += more
                if light_share > 0.0:
                    light_smooth, more = class_step(light_smooth, light_new, light_work, light_limit)
                    smooth_late += more
                apart = slow_smooth < slow_lag or heavy_smooth < heavy_lag or light_smooth < light_lag
            else:
                slow_smooth, heavy_smooth, light_smooth, smooth_late = slow_lag, heavy_lag, light_lag, late
            held += slow_lag + heavy_lag + light_lag
            running += replicas
            late_messages += late
            smooth_messages += smooth_late
            # Late is the larger of both, never the sum: backlog shows the catch-up of stops that all share, and nothing
            # of that of a few partitions.
            owed = max(0.0, owed - late)
            if owed > 0.0 and (late == 0.0 or (step + 1 - moved_at) * seconds >= LONGEST_CATCH_UP_SECONDS):
                pause_messages, owed = pause_messages + owed, 0.0
            seen = demand
        items[REPLICAS] += field.price_running * running
        items[LATE] += field.price_late * smooth_messages
        items[PAUSE_LATE] += field.price_late * (pause_messages + max(0.0, late_messages - smooth_messages))
        items[BACKLOG] += field.price_held * held
        lag, smooth = slow_lag + heavy_lag + light_lag, slow_smooth + heavy_smooth + light_smooth
        if choice != home or lag > 0.0 or smooth > 0.0 or owed > 0.0:
            settle(field, Ended(choice, lag, smooth, owed, home, ending), scenario, items)


@compiled
def settle(field: SimulationInputs, ended: Ended, scenario: int, items: FloatArray) -> None:
    """Add the value of the state in which a plan ends: the move home, and the backlog consumed there."""
    choice, lag, home, demand = ended.choice, ended.lag, ended.home, ended.demand
    factor = field.capacity_factor[scenario]
    if home != choice:
        late = pause_late(field, choice, home, demand, scenario) + field.dropped[choice, home] * demand
        items[PAUSE_LATE] += field.price_late * late
        items[DUPLICATES] += repeated_price(field, choice, home, demand)
        items[START_UP] += field.start_up[choice, home]
        items[RESTORE] += field.restore[choice, home]
        items[RISK] += field.risk[choice, home]
    carried = field.carried[home] * factor
    spare = max(carried - demand, LEAST_SPARE_FRACTION * carried)
    items[BACKLOG] += field.price_backlog * lag
    on_time = field.max_lag_seconds * carried
    late = demand * max(lag - on_time, 0.0) / spare
    smooth_late = demand * max(ended.smooth_lag - on_time, 0.0) / spare
    items[LATE] += field.price_late * smooth_late
    items[PAUSE_LATE] += field.price_late * (max(late, ended.owed) - smooth_late)


@compiled
def play_plans(field: SimulationInputs, start: Start, plans: IntArray, first: int, last: int) -> FloatArray:
    """(plans, last - first) totals of each plan in scenarios first..last - 1."""
    totals = np.empty((plans.shape[0], last - first))
    items = np.empty((plans.shape[0], ITEMS))
    calm_needs = np.empty(field.demand.shape[1], np.int64)
    for scenario in range(first, last):
        fill_calm_needs(field, scenario, calm_needs)
        items[:] = 0.0
        play_scenario(field, start, plans, scenario, calm_needs, items)
        for plan in range(plans.shape[0]):
            totals[plan, scenario - first] = items[plan].sum()
    return totals


@compiled
def itemise_plan(field: SimulationInputs, start: Start, plan: IntArray) -> FloatArray:
    """(S, ITEMS): one plan's price in each scenario, item by item."""
    scenarios = field.demand.shape[0]
    items = np.zeros((scenarios, ITEMS))
    calm_needs = np.empty(field.demand.shape[1], np.int64)
    for scenario in range(scenarios):
        fill_calm_needs(field, scenario, calm_needs)
        play_scenario(field, start, plan.reshape((1, plan.size)), scenario, calm_needs, items[scenario : scenario + 1])
    return items
