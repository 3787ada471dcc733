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


def of_step(
    situation: Situation, scenario: Scenario, rate: float, lags: list[float], *, move: tuple[int, int], part: float
) -> tuple[Cost, list[float]]:
    """The price of one step under what follows a move (or none), and the backlog of each class after it.

    A move deals the backlog out again, and its stop takes time from the replicas that are there afterwards; those that
    come within the step carry no more than the former ones for the `part` of it that has passed by then.
    """
    prices, seconds, factor = situation.prices, situation.step_seconds, scenario.capacity_factor
    cost, stopped, transient = NOTHING, 0.0, 0.0
    capacities = [(share, factor * speed) for share, speed in classes(situation, move[1])]
    if move[0] != move[1]:
        waiting = sum(lags)
        behind = waiting > 2.0 * rate
        profile = while_behind(situation.profile) if behind else situation.profile
        lags = [share * waiting for share, _ in capacities]
        parts = stops(situation, profile, move, scenario.pause_factor)
        stopped = sum(share * length for share, length in parts)
        transient = late_by_stops(situation, parts, rate, factor * carried(situation, move[1]))
        former = factor * carried(situation, move[0])
        capacities = [(share, speed - part * max(0.0, speed - share * former)) for share, speed in capacities]
        cost = of_move(situation, profile, move, rate)
    late, following = 0.0, []
    for lag, (share, speed) in zip(lags, capacities, strict=True):
        after = max(0.0, lag + share * rate * seconds - speed * (seconds - stopped))
        late += share * rate * seconds * share_above(lag, after, situation.max_lag_seconds * speed)
        following.append(after)
    staying = replace(
        NOTHING,
        replicas=prices.price_per_replica_hour * move[1] * seconds / 3600.0,
        late=prices.price_per_late_message * late,
        pause_late=prices.price_per_late_message * max(0.0, transient - late),
        backlog=prices.price_per_held_message_second * seconds * (sum(lags) + sum(following)) / 2.0,
    )
    return summed(cost, staying), following


def of_end(situation: Situation, scenario: Scenario, choices: tuple[int, ...], replicas: int, lag: float) -> Cost:
    """The price of the state after the last step: the move to what carries the mean of the last ten, and the drain."""
    prices, factor = situation.prices, scenario.capacity_factor
    last = scenario.demand[-10:]
    rate = sum(last) / len(last)
    home = min((count for count in choices if factor * carried(situation, count) >= rate), default=choices[-1])
    capacity = factor * carried(situation, home)
    late = rate * max(0.0, lag - situation.max_lag_seconds * capacity) / max(capacity - rate, 0.01 * capacity)
    work = lag * situation.target_utilization / each(situation)
    drain = replace(
        NOTHING, late=prices.price_per_late_message * late, backlog=prices.price_per_replica_hour * work / 3600.0
    )
    if home == replicas:
        return drain
    parts = stops(situation, situation.profile, (replicas, home), scenario.pause_factor)
    stopped = prices.price_per_late_message * late_by_stops(situation, parts, rate, capacity)
    return summed(
        drain, of_move(situation, situation.profile, (replicas, home), rate), replace(NOTHING, pause_late=stopped)
    )


def of_plan(
    situation: Situation, scenario: Scenario, choices: tuple[int, ...], moves: tuple[tuple[int, int], ...]
) -> tuple[Cost, bool]:
    """The price of a plan by which nobody reacts, and whether each of its moves was made when it was planned.

    A move down waits until what arrived in the step before, and a backlog's worth of five minutes, would be carried.
    """
    replicas, pending, total, on_time = situation.replicas, list(moves), NOTHING, True
    waiting, seen = situation.lag_messages, scenario.rate_now
    shares = [share for share, _ in classes(situation, replicas)]
    lags = [share * waiting for share in shares]
    lags[0] = shares[0] * max(waiting, situation.behind_seconds * scenario.rate_now)
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
        cost, lags = of_step(situation, scenario, rate, lags, move=(before, replicas), part=part)
        total, seen = summed(total, cost), rate
    return summed(total, of_end(situation, scenario, choices, replicas, sum(lags))), on_time
