"""The moved share by assignor, compared with assignments played out for every order of the ids."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.assignors import moved_fraction, owners
from cost_model.physics.profile import Assignor

ASSIGNORS: tuple[Assignor, ...] = ("sticky", "range", "roundrobin")


@pytest.mark.parametrize(
    ("partitions", "before", "after", "moved"),
    [
        (40, 4, 5, (0.20, 0.40, 0.80)),
        (40, 4, 8, (0.50, 0.68, 0.80)),
        (40, 8, 7, (0.125, 0.36, 0.91)),
        (40, 8, 4, (0.50, 0.68, 0.79)),
        (40, 10, 11, (0.075, 0.40, 0.87)),
        (40, 10, 9, (0.10, 0.40, 0.89)),
        (100, 10, 20, (0.50, 0.76, 0.91)),
        (100, 20, 10, (0.50, 0.76, 0.91)),
    ],
)
def test_b16_moved_shares_are_those_of_the_assignor(
    partitions: int, before: int, after: int, moved: tuple[float, float, float]
) -> None:
    """40 partitions from 4 to 5 members: sticky moves 0.20 of them, range 0.40, round robin 0.80.

    The other figures were simulated: range from 10 to 9 members is 0.375 exactly where 0.40 was drawn.
    """
    found = [moved_fraction(partitions, before, after, assignor) for assignor in ASSIGNORS]
    assert found == pytest.approx(moved, abs=0.026)


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 6), st.sampled_from(["range", "roundrobin"]))
def test_the_moved_share_is_the_mean_over_every_order_of_the_ids(
    partitions: int, few: int, more: int, assignor: Assignor
) -> None:
    """Joiners' ids fall anywhere among the others: the mean over all places, dealt out one by one, is the figure."""
    before, after = min(few, partitions), min(few + more, partitions)
    old, new = owners(partitions, before, assignor), owners(partitions, after, assignor)
    moved = [
        np.mean(np.array(stayers)[old] != new) if before < after else 0.0
        for stayers in combinations(range(after), before)
    ]
    assert moved_fraction(partitions, before, after, assignor) == pytest.approx(np.mean(moved))
    assert moved_fraction(partitions, after, before, assignor) == pytest.approx(np.mean(moved))


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60))
def test_no_assignor_moves_less_than_a_sticky_one(partitions: int, one: int, other: int) -> None:
    """Sticky is the least that an even deal needs, and every share lies between nothing and all."""
    before, after = min(one, partitions), min(other, partitions)
    sticky, ranges, turns = (moved_fraction(partitions, before, after, assignor) for assignor in ASSIGNORS)
    assert 0.0 <= sticky <= min(ranges, turns) + 1e-9
    assert max(ranges, turns) <= 1.0 + 1e-9


@given(st.integers(1, 100), st.integers(1, 100), st.sampled_from(ASSIGNORS))
def test_every_deal_is_even(partitions: int, members: int, assignor: Assignor) -> None:
    """No member holds two partitions more than another."""
    held = np.bincount(owners(partitions, members, assignor), minlength=members)
    assert held.sum() == partitions
    assert held.max() - held.min() <= 1
