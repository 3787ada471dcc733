"""The rivals' formulas alone: counts by CPU, Flink's rates and alignment, and the seasonal model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.policies.flink import Load, Minute, aligned, processing_rate
from replay.policies.hpa_cpu import wanted_for_cpu
from replay.policies.seasonal import fit, forecast_minutes


@pytest.mark.parametrize(
    ("busy", "ready", "unready", "target", "wanted"),
    [
        (0.5, 8, 0, 50, 8),
        (0.549, 8, 0, 50, 8),  # int(54.9)/50 is 1.08
        (0.56, 8, 0, 50, 9),  # 8 x 56/50 = 8.96
        (0.20, 8, 0, 80, 2),  # 8 x 20/80
        (0.60, 4, 0, 20, 12),
        (0.20, 4, 4, 80, 1),  # down: what is not ready is left out, 4 x 20/80
        (0.90, 6, 2, 50, 11),  # up: two count as idle; int(67.5)/50 x 8 = 10.7
        (0.90, 4, 4, 50, 8),  # up: with four idle 45/50, near enough
        (0.90, 4, 6, 50, 10),  # up: with six idle 36/50: the direction has turned
        (0.0, 8, 0, 80, 0),
        (0.9, 0, 8, 80, None),
    ],
)
def test_cpu_utilisation_wants(busy: float, ready: int, unready: int, target: int, wanted: int | None) -> None:
    """The wanted count is utilization over target times the ready pods; pods that are not ready only limit growth."""
    replicas = ready + unready
    want = wanted_for_cpu(busy, ready=ready, unready=unready, target_percent=target, replicas=replicas)
    assert want == wanted


@given(
    busy=st.floats(0.0, 1.0),
    ready=st.integers(0, 60),
    unready=st.integers(0, 60),
    target=st.sampled_from([20, 80]),
)
def test_pods_that_are_not_ready_never_raise_the_want(busy: float, ready: int, unready: int, target: int) -> None:
    """Pods that are not ready give no more than if all were as busy as the ready ones, and no fewer than needed."""
    replicas = ready + unready
    want = wanted_for_cpu(busy, ready=ready, unready=unready, target_percent=target, replicas=replicas)
    if want is not None:
        all_ready = wanted_for_cpu(busy, ready=replicas, unready=0, target_percent=target, replicas=replicas)
        assert all_ready is not None
        assert 0 <= want <= max(all_ready, replicas)


def minute(*, rate: float, lag: float = 0.0, busy: float = 0.5) -> Minute:
    """A minute at this many messages/s."""
    return Minute(produced=60.0 * rate, consumed=60.0 * rate, lag=lag, busy_share=busy)


def test_flink_needs_catching_up_restart_and_utilisation() -> None:
    """18,000 of lag in 1,800 s are 10; 700/0.7 are 1,000; 300 s of restart at 700 in 1,800 s are 117."""
    load = Load(arriving=700.0, consumed=700.0, lag=18_000.0)
    assert load.needed(0.7, with_restart=False) == 1_010.0
    assert load.needed(0.7, with_restart=True) == 1_127.0
    assert load.needed(1.0, with_restart=False) == 710.0


@pytest.mark.parametrize(
    ("lag", "rate", "outside"),
    # 700 at 40 % and the restart are 1,867. With 210,000 of lag (300 s) 117 more, above it no rate is too high.
    [
        (0, 699, True),
        (0, 700, False),
        (0, 1_867, False),
        (0, 1_868, True),
        (210_000, 2_000, True),
        (210_001, 9e9, False),
    ],
)
def test_flink_acts_outside_its_bounds_only(lag: float, rate: float, *, outside: bool) -> None:
    """It also never scales in while it drains more than five minutes of backlog."""
    assert Load(arriving=700.0, consumed=700.0, lag=lag).out_of_bounds(rate) is outside


def test_flink_uses_the_rate_measured_under_lag() -> None:
    """700 at 50 % busy time are 1,400, unless two minutes with 30 s of lag show a rate lower by more than 15 %."""
    calm, lagging = minute(rate=700.0), minute(rate=700.0, lag=21_000.0)
    assert processing_rate([calm] * 14 + [lagging]) == pytest.approx(1_400.0)
    assert processing_rate([calm] * 13 + [lagging] * 2) == pytest.approx(700.0)
    busier = minute(rate=700.0, lag=21_000.0, busy=0.9)
    assert processing_rate([busier] * 15) == pytest.approx(700.0 / 0.9)
    assert processing_rate([minute(rate=0.0, busy=0.0)] * 15) is None


@pytest.mark.parametrize(
    ("wanted", "replicas", "partitions", "most", "count"),
    [
        (13, 8, 24, 24, 24),  # 24 // 13 is 1, and stays so up to 24
        (9, 8, 24, 24, 12),  # 24 // 9 is 2; 12 divides
        (4, 8, 24, 24, 4),
        (5, 8, 24, 24, 6),
        (15, 19, 40, 40, 14),  # nothing up to 19; the fewest with 2 whole partitions each
        (21, 20, 40, 30, 21),  # nothing up to 30
        (3, 2, 7, 3, 3),
        (8, 8, 24, 24, 8),
    ],
)
def test_flink_aligns_with_the_partitions(wanted: int, replicas: int, partitions: int, most: int, count: int) -> None:
    """To a divisor or useful count above the wanted count, in the move's direction; else to the useful count below."""
    assert aligned(wanted, replicas=replicas, partitions=partitions, most=most) == count


@given(partitions=st.integers(1, 130), data=st.data())
def test_flink_never_turns_a_move_around(partitions: int, data: st.DataObject) -> None:
    """An aligned higher count is at least the present one, a lower one at most it, and both are within the bounds."""
    wanted, replicas = (data.draw(st.integers(1, partitions), label=label) for label in ("wanted", "replicas"))
    count = aligned(wanted, replicas=replicas, partitions=partitions, most=partitions)
    assert 1 <= count <= partitions
    assert (count - replicas) * (wanted - replicas) >= 0


def test_the_seasonal_model_finds_its_coefficients() -> None:
    """4,000 minutes generated with 0.6 and -0.4 give these coefficients."""
    random = np.random.default_rng(3)
    change = random.normal(0.0, 1.0, 4_000)
    for minute in range(17, len(change)):
        change[minute] += 0.6 * change[minute - 1] - 0.4 * (change[minute - 16] - 0.6 * change[minute - 17])
    assert fit(change) == pytest.approx((0.6, -0.4), abs=0.04)


def test_the_seasonal_model_continues_the_rest_of_a_change() -> None:
    """On noise of a known model its error is lower than that of last season's values."""
    random = np.random.default_rng(5)
    series = np.zeros(400)
    for minute in range(32, 400):
        change = [series[minute - back] - series[minute - back - 16] for back in (1, 16)]
        series[minute] = series[minute - 16] + 0.8 * change[0] - 0.3 * change[1] + random.normal()
    series += 100.0
    origins = range(100, 395)
    ours = [forecast_minutes(series[:origin], steps=1)[0] - series[origin] for origin in origins]
    naive = [series[origin - 16] - series[origin] for origin in origins]
    assert np.abs(ours).mean() < 0.8 * np.abs(naive).mean()


@given(minutes=st.lists(st.floats(0.0, 1e9), min_size=1, max_size=70), steps=st.integers(1, 16))
def test_a_forecast_is_finite_and_not_negative(minutes: list[float], steps: int) -> None:
    """This holds for any series, and the model's input array is not changed."""
    series = np.array(minutes)
    forecast = forecast_minutes(series, steps=steps)
    assert forecast.shape == (steps,)
    assert np.isfinite(forecast).all()
    assert (forecast >= 0.0).all()
    assert series.tolist() == minutes
