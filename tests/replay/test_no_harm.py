"""An adviser must never cost more than leaving the replicas alone."""

from dataclasses import replace

import pytest

from forecasting.history import GroupInterval
from recommender.deciding.decision import DecisionSettings
from replay.contest import LAGCAST, Contest, capacity_for, play
from replay.sampling import Names, Rows
from replay.trace import Trace
from replay.workload import orders_workload
from replay.world import World

DAY_SECONDS = 86_400


def observed(contest: Contest, past: Trace) -> list[GroupInterval]:
    """The rows that the days before would have left at the fixed count."""
    rows, plant = Rows(contest.names), replace(contest, trace=past).plant()
    seen: list[GroupInterval] = []
    while plant.remaining_seconds > 0:
        plant.advance()
        seen.append(rows.row(plant.observation()))
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{}, {"heartbeat_drift": 10.0, "batch_seconds": 5.0, "start_up_seconds": 60.0}, {"protocol": "cooperative"}],
    ids=["quick pauses", "slow pauses", "cooperative"],
)
def test_a_day_of_orders_never_costs_more_than_a_fixed_count_hpa_or_keda(changes: dict[str, float | str]) -> None:
    """Friday of the default workload, with four known days before it, in three worlds."""
    week, _ = orders_workload().split(9 * DAY_SECONDS)
    assert week is not None
    past, judged = week.split(DAY_SECONDS)
    assert past is not None
    world = World(partitions=24, capacity_messages_per_second_per_replica=capacity_for(week, partitions=24))
    world = replace(world, **changes)  # type: ignore[arg-type]  # each value has its field's type
    names = Names("replay", "orders")
    contest = Contest(trace=judged, world=world, settings=DecisionSettings(), names=names, seed=7)
    ours = play(LAGCAST, contest, observed(contest, past)).cost.total
    for rival in ("fixed", "hpa", "keda"):
        assert ours < play(rival, contest).cost.total, rival
