"""The question for which plans are priced: it is the same for every caller with the same context."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from recommender.deciding.context import DecisionContext
from recommender.deciding.planned import best_plan
from recommender.deciding.question import situation_of

MakeContext = Callable[..., DecisionContext]


def test_a_decision_and_a_review_of_it_price_the_same_time_since_the_last_rebalance(context: MakeContext) -> None:
    """Nine members until ten minutes ago, then eight: both use 480 s, the octave of minutes that contains ten."""
    steady = context()
    members = np.where(np.arange(steady.history.minutes) < steady.history.minutes - 11, 9.0, 8.0)
    moved = context(history=replace(steady.history, members=members))
    assert situation_of(steady).quiet_seconds is None
    assert situation_of(moved).quiet_seconds == 480.0
    choice = best_plan(moved).choice
    assert choice is not None
    assert choice.situation.quiet_seconds == 480.0
