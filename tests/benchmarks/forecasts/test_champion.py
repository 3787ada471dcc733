"""The champion: the best of a range, the simplest within noise, without candidates that refuse."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmarks.forecasts.champion import RANGES, Championship, championship
from forecasting.backtest import history_of
from forecasting.blend import BlendForecaster
from forecasting.forecast import Forecast
from forecasting.forecaster import FittedForecaster, Forecaster
from forecasting.history import History
from forecasting.history_tier import refuse_short
from forecasting.persistence import PersistenceForecaster
from forecasting.refusal import Refusal
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from forecasting.units import FloatArray

MakeLoad = Callable[..., FloatArray]
MakeHistory = Callable[[FloatArray], History]

DAY = 1440
PERSISTENCE, SEASON, BLEND = PersistenceForecaster(), SeasonalNaiveForecaster(), BlendForecaster()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusing:
    """A forecaster that always needs a year."""

    name: str = "refusing"

    def fit(self, history: History) -> FittedForecaster | Refusal:
        """Refuse."""
        return refuse_short(history, needed_minutes=365 * DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """Persistence under another name, which is never better and never worse."""

    name: str = "renamed"

    def fit(self, history: History) -> FittedForecaster | Refusal:
        """Fit as persistence does."""
        return PERSISTENCE.fit(history)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wavering:
    """Persistence, a thousandth higher in even minutes and a thousandth lower in odd ones."""

    name: str = "wavering"
    fitted: FittedForecaster | None = None

    def fit(self, history: History) -> "Wavering | Refusal":
        """Fit as persistence does."""
        fitted = PERSISTENCE.fit(history)
        return fitted if isinstance(fitted, Refusal) else Wavering(fitted=fitted)

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """Forecast as persistence does, with a difference of a thousandth."""
        assert self.fitted is not None
        answer = self.fitted.forecast(history, steps=steps)
        if isinstance(answer, Refusal):
            return answer
        return replace(answer, paths=answer.paths * (1.001 if history.end_at.minute % 2 == 0 else 0.999))


def champions_of(candidates: tuple[Forecaster, ...], known: History) -> Championship:
    result = championship(candidates, known)
    assert isinstance(result, Championship), result
    return result


def test_a_steep_wave_has_its_season_for_champion_far_ahead(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Persistence wins no range beyond twenty minutes if the load repeats itself with little noise."""
    result = champions_of((PERSISTENCE, SEASON), history(daily_load(minutes=6 * DAY, noise=0.02)))
    assert result.champions[-1] == "seasonal_naive"
    persistence, season = result.standings
    assert season.losses[-1] < persistence.losses[-1]
    assert result.champion(step=60) == result.champion(step=500) == "seasonal_naive"


@pytest.mark.slow
@given(seed=st.integers(0, 1000))
@example(seed=848)  # here the thousandth was outside of two standard errors
@settings(max_examples=5)
def test_a_difference_within_noise_goes_to_the_first_given(seed: int) -> None:
    """A forecaster that differs from persistence by a thousandth, up and down in turn, takes no range from it."""
    noise = 1000.0 * np.exp(np.random.default_rng(seed).normal(0.0, 0.1, 6 * DAY))
    known = history_of(noise, end_at=datetime(2026, 1, 5, tzinfo=UTC))
    assert champions_of((PERSISTENCE, Wavering()), known).champions == ("persistence",) * len(RANGES)


@pytest.mark.slow
@given(seed=st.integers(0, 1000))
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_of_equals_the_first_given_wins(seed: int, daily_load: MakeLoad, history: MakeHistory) -> None:
    """Two candidates with equal forecasts have equal losses, and the order decides."""
    known = history(daily_load(minutes=4 * DAY, seed=seed))
    for order in ((PERSISTENCE, Renamed()), (Renamed(), PERSISTENCE)):
        result = champions_of(order, known)
        assert result.champions == (order[0].name,) * len(RANGES)
        assert result.standings[0].losses == result.standings[1].losses


@pytest.mark.slow
@given(place=st.integers(0, 2))
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_candidate_that_refuses_changes_nothing_for_the_others(
    place: int, daily_load: MakeLoad, history: MakeHistory
) -> None:
    """At any place in the order it has no standing; its sentence is kept and reported."""
    known = history(daily_load(minutes=4 * DAY))
    others: list[Forecaster] = [PERSISTENCE, SEASON]
    among = champions_of((*others[:place], Refusing(), *others[place:]), known)
    alone = champions_of(tuple(others), known)
    assert (among.standings, among.champions) == (alone.standings, alone.champions)
    assert [name for name, _ in among.refused] == ["refusing"]
    assert among.sentence.endswith("Left out: refusing.")


@pytest.mark.slow
def test_the_same_history_has_the_same_champions(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Two championships on equal histories agree to the last digit."""
    first, second = (champions_of((PERSISTENCE, SEASON, BLEND), history(daily_load(minutes=5 * DAY))) for _ in range(2))
    assert first == second


def test_a_multiple_of_the_load_has_the_same_champions(daily_load: MakeLoad, history: MakeHistory) -> None:
    """Losses scale with the load, ranks do not."""
    load = daily_load(minutes=5 * DAY)
    once, scaled = (champions_of((PERSISTENCE, SEASON), history(k * load)) for k in (1.0, 1e4))
    assert once.champions == scaled.champions
    for one, other in zip(once.standings, scaled.standings, strict=True):
        assert other.losses == pytest.approx([1e4 * loss for loss in one.losses])


def test_hours_with_an_unknown_minute_are_not_scored(daily_load: MakeLoad, history: MakeHistory) -> None:
    """A gap of ten hours removes its origins, and does not turn a loss into 0."""
    load = daily_load(minutes=5 * DAY)
    whole = champions_of((PERSISTENCE,), history(load))
    load[-1000:-400] = np.nan
    gapped = champions_of((PERSISTENCE,), history(load))
    assert gapped.origins < whole.origins
    assert np.isfinite(gapped.standings[0].losses).all()


def test_too_short_a_history_and_only_refusing_candidates_are_refusals(
    daily_load: MakeLoad, history: MakeHistory
) -> None:
    """Two days, no known minute, or candidates that all refuse give a refusal with a sentence."""
    short, unknown, enough = daily_load(minutes=2 * DAY), np.full(3 * DAY, np.nan), daily_load(minutes=4 * DAY)
    for rates in (short, unknown, np.empty(0)):
        refusal = championship((PERSISTENCE,), history(rates))
        assert isinstance(refusal, Refusal)
        evidence = dict(refusal.evidence)
        assert evidence["history_seconds"] < evidence["limit_seconds"]
    assert isinstance(championship((Refusing(),), history(enough)), Refusal)


@pytest.mark.parametrize("candidates", [(), (PERSISTENCE, PersistenceForecaster())])
def test_no_candidate_and_one_name_twice_are_the_callers_mistake(
    candidates: tuple[Forecaster, ...], daily_load: MakeLoad, history: MakeHistory
) -> None:
    """Two candidates of one name, or none, raise an error."""
    with pytest.raises(ValueError, match="candidates are"):
        championship(candidates, history(daily_load(minutes=4 * DAY)))


def test_three_days_hold_a_seasonal_candidate(daily_load: MakeLoad, history: MakeHistory) -> None:
    """No origin lies in the first two days, so that a candidate that needs two days refuses at none."""
    assert not champions_of((PERSISTENCE, SEASON), history(daily_load(minutes=3 * DAY))).refused


def test_standings_follow_the_order_given(daily_load: MakeLoad, history: MakeHistory) -> None:
    """One row for each candidate, one loss for each range."""
    standings = champions_of((SEASON, PERSISTENCE), history(daily_load(minutes=4 * DAY))).standings
    assert [standing.model for standing in standings] == ["seasonal_naive", "persistence"]
    assert all(len(standing.losses) == len(RANGES) for standing in standings)
