"""Comparisons of lagcast with itself: deliberately wrong forecasters, and the forecast without the cost model."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.decisions.forecasters import ADVERSARIAL, CONSTANT, RANDOM, REVERSED, Foresight, PatternForecaster
from benchmarks.decisions.tournament import history_rows
from benchmarks.decisions.uncosted import Uncosted
from forecasting.backtest import history_of as bare_history
from forecasting.forecast import Forecast
from forecasting.history import History, HistoryBuffer
from forecasting.refusal import Refusal
from forecasting.units import FloatArray
from replay.contest import Contest
from replay.sampling import Names
from replay.trace import Trace
from replay.world import World

START_AT = datetime(2026, 1, 5, tzinfo=UTC)
NAMES = Names("test", "orders")
WRONG = (ADVERSARIAL, REVERSED, CONSTANT, RANDOM)

Worlds = Callable[..., World]
Loads = Callable[..., Trace]
Contests = Callable[[World, Trace], Contest]


def history_of(trace: Trace) -> History:
    """The known history after the trace, almost without noise as its rates are high."""
    buffer = HistoryBuffer(*NAMES)
    for row in history_rows(trace, 24, 0, NAMES):
        buffer.append(row)
    history = buffer.history()
    assert history is not None
    return history


@pytest.fixture(name="day")
def day_fixture(load: Loads) -> History:
    """A day that rises from 1e6 to 2.44e6 messages/s, a thousand a minute."""
    return history_of(load(*(1e6 + 1e3 * np.arange(1_440))))


def median_of(forecaster: PatternForecaster, history: History, steps: int = 60) -> FloatArray:
    """The median of the forecast that the fitted forecaster makes."""
    fitted = forecaster.fit(history)
    assert not isinstance(fitted, Refusal)
    forecast = fitted.forecast(history, steps=steps)
    assert isinstance(forecast, Forecast)
    return forecast.path(0.5)


def test_the_adversary_forecasts_high_where_the_day_was_low(day: History) -> None:
    """The day began at its lowest rate: the forecast begins at the highest, and falls as the day rose."""
    path = median_of(ADVERSARIAL, day)
    assert path[0] == pytest.approx(2.439e6, rel=1e-3)
    assert path[-1] - path[0] == pytest.approx(-59e3, rel=0.05)


def test_the_reversed_day_runs_back(day: History) -> None:
    """The forecast of the next minute is the rate of the last one."""
    assert median_of(REVERSED, day) == pytest.approx(day.produce_messages_per_second[:-61:-1])


def test_the_constant_is_the_mean_of_the_day(day: History) -> None:
    """It is 1.7195 million at any hour."""
    assert median_of(CONSTANT, day) == pytest.approx(np.full(60, 1.7195e6), rel=1e-3)


def test_the_random_one_repeats_itself_at_one_origin_only(day: History, load: Loads) -> None:
    """Rates lie between the day's least and greatest; they are equal at the same origin and differ at another."""
    path = median_of(RANDOM, day)
    assert (path == median_of(RANDOM, day)).all()
    assert path.min() >= day.produce_messages_per_second.min()
    assert path.max() <= day.produce_messages_per_second.max()
    later = history_of(load(*(1e6 + 1e3 * np.arange(1_441))))
    assert (path != median_of(RANDOM, later)).all()


@pytest.mark.parametrize("forecaster", WRONG, ids=lambda forecaster: forecaster.name)
def test_all_are_sure_of_themselves(forecaster: PatternForecaster, day: History) -> None:
    """Quantiles ascend and are close: the p90 is 6.6 % above the median, at every step."""
    forecast = forecaster.forecast(day, steps=90)
    assert isinstance(forecast, Forecast)
    assert forecast.steps == 90
    assert (np.diff(forecast.paths, axis=0) >= 0.0).all()
    assert forecast.path(0.9) == pytest.approx(1.0662 * forecast.path(0.5), rel=1e-3)


@pytest.mark.parametrize("forecaster", WRONG, ids=lambda forecaster: forecaster.name)
def test_less_than_half_an_hour_is_refused(forecaster: PatternForecaster, load: Loads) -> None:
    """Twenty-nine minutes are too few, thirty are enough."""
    assert isinstance(forecaster.fit(history_of(load(*[1e3] * 29))), Refusal)
    assert forecaster.fit(history_of(load(*[1e3] * 30))) is forecaster


@given(hours=st.integers(1, 50), steps=st.integers(1, 200))
def test_any_history_gives_finite_rates_within_the_known_ones(hours: int, steps: int) -> None:
    """For any past and horizon no rate is negative, unknown or above the greatest known rate."""
    rates = np.random.default_rng(hours).uniform(0.0, 1e4, hours * 60)
    trace = Trace(
        name="t", start_at=datetime.fromisoformat("2026-01-05T00:00Z"), step_seconds=60, messages_per_second=rates
    )
    history = history_of(trace)
    for forecaster in WRONG:
        path = median_of(forecaster, history, steps)
        assert len(path) == steps
        assert np.isfinite(path).all()
        assert path.min() >= 0.0
        assert path.max() <= history.produce_messages_per_second[-1_440:].max() * (1.0 + 1e-9)


def moves_of(policy: Uncosted, contest: Contest) -> Iterator[tuple[int, int]]:
    """Each change that the policy requests, with its second."""
    plant = contest.plant()
    while plant.remaining_seconds > 0:
        plant.advance(15)
        seen = plant.observation()
        requested = policy.decide(seen)
        if requested != seen.replicas:
            yield plant.time_seconds, requested
            plant.scale(requested)


def test_without_a_cost_model_the_useful_counts_decide(calm_world: Worlds, load: Loads, contest: Contests) -> None:
    """A steady 450 messages/s, its p90 at most 480, over 0.85 is under 600: six after a minute, and for ever."""
    world = calm_world()
    known = load(*[450.0] * 2_880)
    judged = Trace(name="judged", start_at=known.end_at, step_seconds=60, messages_per_second=np.full(30, 450.0))
    policy = Uncosted(world, names=NAMES, history=history_rows(known, 24, 0, NAMES))
    assert list(moves_of(policy, replace(contest(world, judged), start_replicas=24))) == [(60, 6)]


def test_without_a_cost_model_it_goes_up_at_once(calm_world: Worlds, load: Loads, contest: Contests) -> None:
    """A load that trebles: more replicas within two minutes of it, and none fewer for ten minutes after it."""
    world = calm_world()
    known = load(*[400.0] * 2_880)
    rates = np.concatenate([np.full(20, 400.0), np.full(20, 1_200.0), np.full(30, 400.0)])
    judged = Trace(name="judged", start_at=known.end_at, step_seconds=60, messages_per_second=rates)
    policy = Uncosted(world, names=NAMES, history=history_rows(known, 24, 0, NAMES))
    moves = list(moves_of(policy, contest(world, judged)))
    ups = [second for (second, count), (_, before) in zip(moves[1:], moves, strict=False) if count > before]
    assert ups
    assert 1_200 < ups[0] <= 1_200 + 120
    downs = [second for (second, count), (_, before) in zip(moves[1:], moves, strict=False) if count < before]
    assert all(second >= 2_400 + 540 for second in downs)


def test_without_a_forecast_the_count_stays(calm_world: Worlds, load: Loads, contest: Contests) -> None:
    """Twenty minutes are too few for any forecast, so there is no move."""
    world = calm_world()
    policy = Uncosted(world, names=NAMES)
    assert list(moves_of(policy, contest(world, load(*[400.0] * 20)))) == []


def test_foresight_returns_the_true_rates() -> None:
    """Minute 10 of a day of 0, 1, 2, ... messages/s is followed by 10, 11 and 12; after the last one it goes on."""
    foresight = Foresight(rates=np.arange(1440.0), start_at=START_AT)
    known = bare_history(np.arange(10.0), end_at=START_AT + timedelta(minutes=10))
    assert foresight.fit(known).forecast(known, steps=3).path(0.5).tolist() == [10.0, 11.0, 12.0]
    late = bare_history(np.arange(10.0), end_at=START_AT + timedelta(minutes=1439))
    assert foresight.forecast(late, steps=2).path(0.99).tolist() == [1439.0, 1439.0]
