"""The cost of a plan in one scenario, written without arrays: the compiled rollout has to give the same."""

from dataclasses import dataclass, replace
from math import floor

from cost_model.physics.duplicates import dropped_seconds, in_flight_messages, repeated_seconds
from cost_model.physics.profile import GroupProfile, while_behind
from cost_model.physics.rebalance import move_effect
from cost_model.pricing.price import Cost
from cost_model.pricing.situation import Situation
from forecasting.units import Replicas, Seconds

NOTHING = Cost(replicas=0, late=0, pause_late=0, backlog=0, duplicates=0, start_up=0, restore=0, risk=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One path of demand, with stops so many times as long and replicas so many times as fast as expected."""

    demand: tuple[float, ...]
    rate_now: float
    pause_factor: float = 1.0
    capacity_factor: float = 1.0


def each(situation: Situation) -> float:
    """The load that plans may put on one replica, messages/s."""
    capacity = situation.profile.capacity
    assert capacity is not None
    return situation.target_utilization * capacity.p50


def carried(situation: Situation, replicas: int) -> float:
    """The capacity of so many replicas before the busiest falls behind, ceil(P / N) partitions being its share of P."""
    partitions = situation.profile.partitions
    return each(situation) * partitions / -(-partitions // replicas)


def classes(situation: Situation, replicas: int) -> list[tuple[float, float]]:
    """Shares of the load with what each carries: the slower quarter of the busiest (94 %), their rest, the others."""
    partitions = situation.profile.partitions
    working = min(replicas, partitions)
    held, busiest = divmod(partitions, working)
    share = busiest * (held + 1) / partitions if busiest else 1.0
    busiest = busiest or working
    whole = each(situation)
    return [
        (0.25 * share, 0.25 * 0.94 * busiest * whole),
        (0.75 * share, 0.75 * busiest * whole),
        (1.0 - share, (working - busiest) * whole),
    ]


def share_above(before: float, after: float, limit: float) -> float:
    """The share of a straight line from one backlog to the other that lies above a limit."""
    low, high = sorted((before, after))
    if low >= limit:
        return 1.0 if high > limit else 0.0
    return max(0.0, (high - limit) / (high - low)) if high > low else 0.0


def stops(
    situation: Situation, profile: GroupProfile, move: tuple[int, int], factor: float
) -> list[tuple[float, float]]:
    """Shares of the partitions that a move stops, and for how long."""
    priors = situation.pause_priors
    effect = move_effect(
        profile,
        from_replicas=Replicas(move[0]),
        to_replicas=Replicas(move[1]),
        rebalance_pause_prior_seconds=None if priors is None else Seconds(priors[int(move[1] < move[0])]),
    )
    return [(pause.share, factor * pause.mean_seconds) for pause in effect.pauses]


def late_by_stops(situation: Situation, parts: list[tuple[float, float]], rate: float, capacity: float) -> float:
    """Messages that stops make late: per stop rate * (stop - promise) / (1 - load), for at most ten minutes."""
    load = min(rate / capacity, 0.999)
    overruns = [(share, max(0.0, seconds - situation.max_lag_seconds)) for share, seconds in parts]
    return rate * sum(share * min(over / (1.0 - load), 600.0) for share, over in overruns)


def of_move(situation: Situation, profile: GroupProfile, move: tuple[int, int], rate: float) -> Cost:
    """The cost of one move apart from the messages that its stop makes late; lost messages count as late."""
    before, after = Replicas(move[0]), Replicas(move[1])
    prices, group = situation.prices, situation.profile
    idle = group.start_up_seconds if after > before else group.termination_grace_seconds
    repeated = rate * repeated_seconds(profile, from_replicas=before, to_replicas=after)
    repeated += in_flight_messages(profile, from_replicas=before, to_replicas=after)
    lost = rate * dropped_seconds(profile, from_replicas=before, to_replicas=after)
    return replace(
        NOTHING,
        pause_late=prices.price_per_late_message * lost,
        duplicates=prices.price_per_duplicate_message * repeated,
        start_up=prices.price_per_replica_hour * abs(after - before) * idle / 3600.0,
        risk=prices.price_per_move,
    )


def summed(*costs: Cost) -> Cost:
    """Item by item."""
    names = ("replicas", "late", "pause_late", "backlog", "duplicates", "start_up", "restore", "risk")
    return Cost(**{name: sum(getattr(cost, name) for cost in costs) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One step: its price without lateness, backlogs of the classes after it and messages late in it, and by its stop.

    `smooth_lags` and `smooth_late` are those had no move of the plan stopped anything.
    """

    cost: Cost
    lags: list[float]
    late: float
    smooth_lags: list[float]
    smooth_late: float
    by_stop: float
    moved: bool


def of_step(
    situation: Situation,
    scenario: Scenario,
    rate: float,
    lags: list[float],
    smooth_lags: list[float],
    *,
    move: tuple[int, int],
    part: float,
) -> Played:
    """One step under what follows a move (or none).

    A move deals the backlog out again, and its stop takes time from the smaller of both counts; replicas that come
    within the step carry no more than the former ones for the `part` of it that has passed by then.
    """
    prices, seconds, factor = situation.prices, situation.step_seconds, scenario.capacity_factor
    cost, by_stop = NOTHING, 0.0
    capacities = [(share, factor * speed) for share, speed in classes(situation, move[1])]
    lost = [0.0 for _ in capacities]
    if move[0] != move[1]:
        waiting = sum(lags)
        behind = waiting > 2.0 * rate
        profile = while_behind(situation.profile) if behind else situation.profile
        lags = [share * waiting for share, _ in capacities]
        smooth_lags = [share * sum(smooth_lags) for share, _ in capacities]
        parts = stops(situation, profile, move, scenario.pause_factor)
        stopped = sum(share * length for share, length in parts)
        by_stop = late_by_stops(situation, parts, rate, factor * carried(situation, move[1]))
        former = factor * carried(situation, move[0])
        lost = [stopped * min(share * former, speed) for share, speed in capacities]
        capacities = [(share, speed - part * max(0.0, speed - share * former)) for share, speed in capacities]
        cost = of_move(situation, profile, move, rate)

    def queued(before: list[float], missed: list[float]) -> tuple[list[float], float]:
        late, following = 0.0, []
        for lag, (share, speed), less in zip(before, capacities, missed, strict=True):
            after = max(0.0, lag + share * rate * seconds - (speed * seconds - less))
            late += share * rate * seconds * share_above(lag, after, situation.max_lag_seconds * speed)
            following.append(after)
        return following, late

    following, late = queued(lags, lost)
    smooth_following, smooth_late = queued(smooth_lags, [0.0 for _ in lost])
    staying = replace(
        NOTHING,
        replicas=prices.price_per_replica_hour * move[1] * seconds / 3600.0,
        backlog=prices.price_per_held_message_second * seconds * (sum(lags) + sum(following)) / 2.0,
    )
    return Played(
        cost=summed(cost, staying),
        lags=following,
        late=late,
        smooth_lags=smooth_following,
        smooth_late=smooth_late,
        by_stop=by_stop,
        moved=move[0] != move[1],
    )


def late_beyond_backlogs(played: list[Played], *, at_end: float) -> float:
    """Messages late by stops that backlogs do not show: what is late after a stop is set against what it makes late.

    That ends with a step in which nothing is late, or ten minutes after the last move; `at_end` is late after all.
    """
    beyond, owed, minutes = 0.0, 0.0, 0
    for step in played:
        if step.moved:
            minutes = 0
        owed, minutes = max(0.0, owed + step.by_stop - step.late), minutes + 1
        if step.late == 0.0 or minutes >= 10:
            beyond, owed = beyond + owed, 0.0
    return beyond + max(0.0, owed - at_end)


def of_end(
    situation: Situation, scenario: Scenario, choices: tuple[int, ...], replicas: int, lag: float
) -> tuple[Cost, float]:
    """The price of the state after the last step, and the messages that are late while its backlog drains.

    That is the move to what carries the mean of the last ten, and the work of the drain.
    """
    prices, factor = situation.prices, scenario.capacity_factor
    last = scenario.demand[-10:]
    rate = sum(last) / len(last)
    home = min((count for count in choices if factor * carried(situation, count) >= rate), default=choices[-1])
    capacity = factor * carried(situation, home)
    late = rate * max(0.0, lag - situation.max_lag_seconds * capacity) / max(capacity - rate, 0.01 * capacity)
    work = lag * situation.target_utilization / each(situation)
    drain = replace(NOTHING, backlog=prices.price_per_replica_hour * work / 3600.0)
    if home == replicas:
        return drain, late
    parts = stops(situation, situation.profile, (replicas, home), scenario.pause_factor)
    stopped = prices.price_per_late_message * late_by_stops(situation, parts, rate, capacity)
    moved = of_move(situation, situation.profile, (replicas, home), rate)
    return summed(drain, moved, replace(NOTHING, pause_late=stopped)), late


def of_plan(
    situation: Situation, scenario: Scenario, choices: tuple[int, ...], moves: tuple[tuple[int, int], ...]
) -> tuple[Cost, bool]:
    """The price of a plan without reactions, and whether each of its moves was made when it was planned.

    A move down waits until what arrived in the step before, and a backlog's worth of five minutes, would be carried.
    """
    replicas, pending, on_time = situation.replicas, list(moves), True
    waiting, seen = situation.lag_messages, scenario.rate_now
    shares = [share for share, _ in classes(situation, replicas)]
    lags = [share * waiting for share in shares]
    lags[0] = shares[0] * max(waiting, situation.behind_seconds * scenario.rate_now)
    smooth_lags, steps = lags, []
    for step, rate in enumerate(scenario.demand):
        before, part = replicas, 0.0
        if pending and pending[0][0] <= step:
            planned, target = pending[0]
            wanted = (seen + sum(lags) / 300.0) / scenario.capacity_factor
            if target >= replicas or carried(situation, target) >= wanted:
                lead = situation.profile.start_up_seconds / situation.step_seconds
                part = lead - floor(lead) if target > replicas and planned == step else 0.0
                replicas = target
                pending.pop(0)
            else:
                on_time = False
        played = of_step(situation, scenario, rate, lags, smooth_lags, move=(before, replicas), part=part)
        steps.append(played)
        lags, smooth_lags, seen = played.lags, played.smooth_lags, rate
    end, late_at_end = of_end(situation, scenario, choices, replicas, sum(lags))
    _, smooth_at_end = of_end(situation, scenario, choices, replicas, sum(smooth_lags))
    late = sum(step.late for step in steps) + late_at_end
    smooth_late = sum(step.smooth_late for step in steps) + smooth_at_end
    by_stops = late - smooth_late + late_beyond_backlogs(steps, at_end=late_at_end)
    price = situation.prices.price_per_late_message
    lateness = replace(NOTHING, late=price * smooth_late, pause_late=price * by_stops)
    return summed(*(step.cost for step in steps), end, lateness), on_time
