"""The scores: their laws, and what they refuse."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.scores import coverage, pinball_loss, pinball_losses, wape

rates = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30)
fractions = st.floats(0.01, 0.99)


@given(actual=rates, quantile=fractions)
def test_a_perfect_path_costs_nothing(actual: list[float], quantile: float) -> None:
    """Pinball loss is 0 at every quantile if the path equals the actual rates."""
    assert pinball_loss(actual, actual, quantile=quantile) == 0.0


@given(actual=rates, shift=st.floats(0.1, 1e3))
def test_the_median_is_priced_at_half_the_absolute_error(actual: list[float], shift: float) -> None:
    """At quantile 0.5 a miss of `shift` costs half of it, whichever side it is on."""
    for path in (np.array(actual) + shift, np.array(actual) - shift):
        assert pinball_loss(actual, path, quantile=0.5) == pytest.approx(shift / 2.0, rel=1e-6)


@given(actual=st.lists(st.floats(0.0, 1e6), min_size=2, max_size=60), quantile=fractions)
def test_no_constant_path_beats_the_empirical_quantile(actual: list[float], quantile: float) -> None:
    """Pinball loss is least at the quantile itself: any other observed value costs as much or more."""
    values = np.array(actual)
    best = np.quantile(values, quantile, method="inverted_cdf")
    least = pinball_loss(values, np.full(len(values), best), quantile=quantile)
    for value in actual:
        assert pinball_loss(values, np.full(len(values), value), quantile=quantile) >= least - 1e-6


def test_unknown_actuals_are_left_out() -> None:
    """A NaN among the actuals changes no score."""
    known, path = [100.0, np.nan, 300.0], [110.0, 1e9, 270.0]
    assert wape(known, path) == pytest.approx(0.1)
    assert coverage(known, path) == 0.5
    assert pinball_loss(known, path, quantile=0.5) == pytest.approx(10.0)


@pytest.mark.parametrize("score", [wape, coverage, lambda a, p: pinball_loss(a, p, quantile=0.9)])
@pytest.mark.parametrize(("actual", "path"), [([1.0, 2.0], [1.0]), ([], []), ([np.nan], [1.0])])
def test_unequal_or_empty_paths_are_the_callers_mistake(
    score: Callable[[list[float], list[float]], float | None], actual: list[float], path: list[float]
) -> None:
    """A shape that does not fit, or no known actual, raises instead of scoring."""
    with pytest.raises(ValueError, match=r"one value per step|at least one"):
        score(actual, path)


@given(actual=rates, quantile=fractions, shifts=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40))
def test_many_paths_at_once_have_the_losses_of_each_alone(
    actual: list[float], quantile: float, shifts: list[float]
) -> None:
    """The losses of many paths against the same actuals are those of each path by itself, to the last digit."""
    values = np.array(actual)
    paths = values + np.array(shifts)[:, None]
    alone = [pinball_loss(values, path, quantile=quantile) for path in paths]
    assert pinball_losses(values, paths, quantile=quantile).tolist() == alone
