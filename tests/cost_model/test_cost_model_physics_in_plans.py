"""What is known of a group's moves and partitions decides its plans: each law here turns a decision."""

from dataclasses import replace

import numpy as np
import pytest

from cost_model.optimise import search
from cost_model.profile import GroupProfile
from cost_model.scalability import Scalability
from cost_model.situation import Situation, Uncertainty
from cost_model.weigh import Weighed, weigh


def _weighed(situation: Situation) -> Weighed:
    """The situation with its one path for certain."""
    demand = situation.demand_messages_per_second
    return weigh(
        situation,
        Uncertainty(
            demand_messages_per_second=np.tile(demand, (8, 1)),
            rate_now_messages_per_second=float(demand[0]),
            risk_weight=0.0,
            rest_up_steps=1,
            rest_down_steps=5,
        ),
    )


def _target(situation: Situation) -> int:
    best = _weighed(situation).best()
    return situation.replicas if best is None else best.target


def _targets(situation: Situation) -> tuple[int, int]:
    """What both the weighing and the search on one path would have."""
    best = search(situation).best()
    return _target(situation), situation.replicas if best is None else best.target


@pytest.fixture(name="hot")
def hot_fixture(profile: GroupProfile) -> GroupProfile:
    """Thirty percent of the load on the last of 40 partitions: one replica of 100/s carries at most 333/s of it all."""
    return replace(profile, partition_weights=(*(1.0,) * 39, 39.0 * 3.0 / 7.0))


def test_a_hot_partition_asks_for_more_replicas_than_its_load(plain: Situation, hot: GroupProfile) -> None:
    """250/s are three even replicas' work; with one hot partition 6 carry 257, and 282 takes 9, one of them slow."""
    ramp = replace(plain, replicas=2, demand_messages_per_second=np.repeat([150.0, 250.0], 30))
    assert _targets(ramp) == (3, 3)
    assert _targets(replace(ramp, profile=hot)) == (9, 6)


def test_no_replica_is_added_that_a_hot_partition_leaves_idle(plain: Situation, hot: GroupProfile) -> None:
    """At 1,000/s nothing carries the hot partition; 21 replicas hold it alone, and none of the plans has more."""
    found = _weighed(replace(plain, profile=hot, replicas=21, demand_messages_per_second=np.full(60, 1000.0)))
    assert max(found.choices) == 21
    assert found.best() is None or found.choices[-1] == 21


def test_replicas_that_hinder_each_other_are_taken_away(plain: Situation) -> None:
    """At coherence 0.01 ten replicas carry 526/s and forty 240/s: at 500/s of arrivals forty shrink to about ten."""
    hindered = replace(plain.profile, contention=Scalability(contention=0.0, coherence=0.01))
    crowd = replace(plain, profile=hindered, replicas=40, demand_messages_per_second=np.full(60, 500.0))
    assert all(8 <= target <= 10 for target in _targets(crowd))
    assert all(target <= 10 for target in _targets(replace(crowd, replicas=8)))


def test_even_weights_change_nothing(plain: Situation) -> None:
    """Weights that are all alike are priced to the last digit as if none were given."""
    even = replace(plain.profile, partition_weights=(2.0,) * 40)
    bare, weighted = (_weighed(replace(plain, profile=profile, replicas=14)) for profile in (plain.profile, even))
    assert weighted.choices == bare.choices
    assert weighted.totals == pytest.approx(bare.totals)
