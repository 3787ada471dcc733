"""The sentences of a recommendation: the same arithmetic as its figures, in words."""

from recommender.recommendation import Recommendation


def explain(advice: Recommendation) -> tuple[str, ...]:
    """What is expected, what the group can carry, and what staying and moving would cost; one sentence each."""
    return (_arrivals(advice), _carrying(advice), _verdict(advice))


def _arrivals(advice: Recommendation) -> str:
    path = advice.forecast.p50
    peak = max(range(len(path)), key=path.__getitem__)
    minutes = (peak + 1) * advice.forecast.step_seconds // 60
    return (
        f"Arrivals: {advice.observed.produce_messages_per_second:,.0f}/s now, at most {path[peak]:,.0f}/s expected, in "
        f"{minutes} min (90 % band {advice.forecast.p05[peak]:,.0f}-{advice.forecast.p95[peak]:,.0f}/s; "
        f"{advice.forecast.rung} rung)."
    )


def _carrying(advice: Recommendation) -> str:
    capacity = advice.capacity
    return (
        f"One replica works off {capacity.p50:,.0f}/s (p20 {capacity.p20:,.0f}, {capacity.source}); "
        f"replica counts that differ: {', '.join(str(count) for count in advice.useful_replicas)}."
    )


def _verdict(advice: Recommendation) -> str:
    money = advice.currency
    if advice.action == "hold":
        moves = [plan for plan in advice.alternatives if plan.execute_at is not None]
        if not moves:
            return f"Stay at {advice.current_replicas}: there is no other count to move to."
        rival = moves[0]
        return (
            f"Stay at {advice.current_replicas}: {advice.stay.total:.3f} {money} over the horizon; "
            f"the best move, to {rival.desired_replicas}, costs {rival.cost.total:.3f}."
        )
    switch = advice.switch
    verdict = (
        f"Move to {advice.desired_replicas} at {advice.execute_at:%H:%M:%S}: {advice.chosen.total:.3f} {money} over "
        f"the horizon against {advice.stay.total:.3f} for staying; what it stops, it stops for about "
        f"{switch.pause_seconds:.0f} s ({switch.protocol_profile}; {switch.moved_partition_fraction:.0%} of the "
        f"partitions change owner)."
    )
    if advice.break_even_seconds is None:
        return verdict
    return f"{verdict} It pays off after {advice.break_even_seconds / 60:.0f} min."
