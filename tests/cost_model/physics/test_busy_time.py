"""Capacity from the time that consumers spend working, and what is believed when a backlog says otherwise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.busy_time import capacity_from_busy_time
from forecasting.units import FloatArray

WINDOWS = 60
AGES: FloatArray = 60.0 * np.arange(WINDOWS, dtype=np.float64)[::-1]


def _windows(*, lagging: int = 0, lagging_rate: float = 100.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rates, idle time and lag of a replica of 100 messages/s that is asked for 20 to 80; the last ones lag."""
    random = np.random.default_rng(2)
    rates = random.uniform(20.0, 80.0, WINDOWS)
    capacity = 100.0 * np.exp(random.normal(0.0, 0.05, WINDOWS))
    idle: FloatArray = 1.0 - rates / capacity
    lag = np.zeros(WINDOWS)
    if lagging:
        rates[-lagging:], idle[-lagging:], lag[-lagging:] = lagging_rate, 0.0, 45.0
    return rates, idle, lag


def test_capacity_is_seen_without_any_backlog() -> None:
    """Busy 20 to 80 % of the time: 100 messages/s within 3 %, where the rates themselves say 50."""
    found = capacity_from_busy_time(*_windows(), AGES)
    assert found is not None
    assert found.p50 == pytest.approx(100.0, rel=0.03)
    assert found.p20 < found.p50 < found.p90
    assert (found.source, found.age_seconds) == ("busy_time", 0.0)


@pytest.mark.parametrize(
    ("lagging", "rate", "source", "median"),
    [
        (5, 70.0, "saturated_windows", 70.0),  # 30 % less than busy time says: work in other threads
        (5, 130.0, "saturated_windows", 130.0),
        (5, 95.0, "busy_time", 100.0),  # they agree to 15 %
        (1, 70.0, "busy_time", 100.0),  # one window may be an outlier
    ],
)
def test_what_was_consumed_under_a_long_lag_wins(lagging: int, rate: float, source: str, median: float) -> None:
    """With 30 s of lag a replica does what it can; that is trusted where busy time differs by more than 15 %."""
    rates, idle, lag = _windows(lagging=lagging, lagging_rate=rate)
    idle[-lagging:] = np.nan if lagging > 1 else idle[-lagging:]
    found = capacity_from_busy_time(rates, idle, lag, AGES)
    assert found is not None
    assert found.source == source
    assert found.p50 == pytest.approx(median, rel=0.04)


def test_a_replica_that_is_hardly_busy_tells_nothing() -> None:
    """At 5 % of busy time a percent of noise is a fifth of the capacity: None, as with too few windows."""
    rates = np.full(WINDOWS, 5.0)
    assert capacity_from_busy_time(rates, np.full(WINDOWS, 0.95), np.zeros(WINDOWS), AGES) is None
    assert capacity_from_busy_time(*(series[:9] for series in (*_windows(), AGES))) is None
    assert capacity_from_busy_time(rates, np.full(WINDOWS, np.nan), np.zeros(WINDOWS), AGES) is None


@given(st.floats(1e-3, 1e6))
def test_another_unit_of_messages_is_the_same_capacity(factor: float) -> None:
    """Rates times a factor: the band times that factor."""
    rates, idle, lag = _windows()
    one, other = (capacity_from_busy_time(by * rates, idle, lag, AGES) for by in (1.0, factor))
    assert one is not None
    assert other is not None
    assert (other.p20, other.p90) == pytest.approx((factor * one.p20, factor * one.p90))
