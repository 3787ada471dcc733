"""Oracles 9 and 12 on whole plans, and the list: each of the fifteen has a test that bears its number."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from cost_model.search.optimise import PlanSearch, Situation, search
from forecasting.units import Seconds

ORACLES = range(1, 16)


def path(found: PlanSearch) -> tuple[int, ...]:
    """Replicas per step under the best plan."""
    best = found.best()
    steps = found.tables.demand.size
    return (found.replicas,) * steps if best is None else found.path(best.target, best.effective_step)


@pytest.mark.parametrize(("minutes_off", "toggles"), [(2, 0), (3, 0), (4, 6), (6, 6)])
def test_oracle_9_a_load_that_goes_on_and_off_is_followed_if_off_pays(
    plain: Situation, minutes_off: int, toggles: int
) -> None:
    """Renting skis: 13 replicas fewer save 0.0108 a minute, two moves cost 0.04, so 3.7 min off are the limit.

    1,900 messages/s for ten minutes, then 600 for the given ones, three times, and on again at the end.
    """
    demand = np.array([*([1900.0] * 10 + [600.0] * minutes_off) * 3, *[1900.0] * 10])
    found = search(replace(plain, demand_messages_per_second=demand, replicas=20))
    moves = sum(before != after for before, after in pairwise((20, *path(found))))
    assert moves == toggles
    assert set(path(found)) == ({7, 20} if toggles else {20})


@pytest.mark.parametrize("seed", range(6))
def test_oracle_12_where_no_pause_outlasts_the_promise_protocols_give_one_plan(plain: Situation, seed: int) -> None:
    """Eager and KIP-848 at a promise of 10 s, backlog and duplicates free: the same plan at the same price.

    Six loads of ten minutes, each at least a tenth under the useful count that carries it: where a plan spends the
    promise as a buffer, what a stop leaves behind counts, and protocols differ.
    """
    demand = np.repeat(np.random.default_rng(seed).choice([300.0, 600.0, 1000.0, 1500.0], 6), 10)
    shaped = replace(
        plain.profile,
        heartbeat_interval_seconds=Seconds(3.0),
        consumer_heartbeat_seconds=Seconds(5.0),
        poll_batch_seconds=Seconds(0.1),
        sync_seconds=Seconds(0.3),
        termination_grace_seconds=Seconds(30.0),
    )
    plans = []
    for protocol in ("eager", "kip848"):
        profile = replace(shaped, protocol=protocol)
        found = search(
            replace(
                plain,
                profile=profile,
                demand_messages_per_second=demand,
                replicas=14,
                max_lag_seconds=10.0,
                target_utilization=0.85,
            )
        )
        plans.append((path(found), found.best_total))
    assert plans[0][0] == plans[1][0]
    assert plans[0][1] == pytest.approx(plans[1][1])


def test_every_oracle_has_a_test_by_its_number() -> None:
    """The oracles of the model are numbered 1 to 15; each number stands in the name of a test of this folder."""
    texts = [file.read_text(encoding="utf-8") for file in Path(__file__).parent.rglob("test_*.py")]
    tested = {int(number) for text in texts for number in re.findall(r"def test_oracle_(\d+)_", text)}
    assert tested == set(ORACLES)
