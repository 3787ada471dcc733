"""The compared models: every model by its name, with its term and its kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from benchmarks.forecasts.boosting import BoostingForecaster
from benchmarks.forecasts.fourier import FourierForecaster
from benchmarks.forecasts.naive import DAY_STEPS, WEEK_STEPS, LongNaiveForecaster
from benchmarks.forecasts.rivals import LONG_RIVALS, SHORT_RIVALS, Rival
from forecasting.blend import BlendForecaster
from forecasting.forecaster import Forecaster
from forecasting.long_term import LongTermForecaster
from forecasting.persistence import PersistenceForecaster
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from forecasting.short_term import ShortTermForecaster
from forecasting.smoothing import SmoothingForecaster

TermName = Literal["short", "long"]
# `ours` is compared with the bars; a `part` of ours is shown; `naive` and `statsforecast` are the rivals.
Family = Literal["ours", "part", "naive", "statsforecast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A horizon and its resolution: `steps` of `step_minutes`, judged also in `spans` of steps.

    `history_minutes` is the longest history at an origin, `least_days` the shortest trace, `least_past_days` the
    shortest part of it before the first origin, `usual_past_days` that part where the trace is long enough for it.
    """

    steps: int
    step_minutes: int
    spans: dict[str, tuple[int, int]]
    history_minutes: int
    least_days: int
    least_past_days: int
    usual_past_days: int

    @property
    def minutes(self) -> int:
        """The minutes from the origin to the end of the last step."""
        return self.steps * self.step_minutes


TERMS: dict[TermName, Term] = {
    "short": Term(
        steps=60,
        step_minutes=1,
        spans={"1-5 min": (0, 5), "6-20 min": (5, 20), "21-60 min": (20, 60)},
        history_minutes=14 * 1440,
        least_days=9,
        least_past_days=6,
        usual_past_days=14,
    ),
    "long": Term(
        steps=2016,
        step_minutes=5,
        spans={
            "to 1 h": (0, 12),
            "1-6 h": (12, 72),
            "6 h-1 d": (72, 288),
            "1-3 d": (288, 864),
            "3-7 d": (864, 2016),
        },
        history_minutes=35 * 1440,
        least_days=15,
        least_past_days=7,
        usual_past_days=14,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One model: its constructor, and the minutes after which it is fitted again (0: at each origin)."""

    make: Callable[[], Forecaster]
    term: TermName
    family: Family
    refit_minutes: int = 360


def _long_naive(name: str, season_steps: int | None) -> Callable[[], Forecaster]:
    return lambda: LongNaiveForecaster(name=name, season_steps=season_steps)


def _fresh(rival: Rival, term: TermName) -> Contender:
    return Contender(make=lambda: rival, term=term, family="statsforecast", refit_minutes=0)


MODELS: dict[str, Contender] = {
    "persistence": Contender(make=PersistenceForecaster, term="short", family="naive"),
    "seasonal_naive": Contender(make=SeasonalNaiveForecaster, term="short", family="naive"),
    "smoothing": Contender(make=SmoothingForecaster, term="short", family="part"),
    "fourier": Contender(make=FourierForecaster, term="short", family="part"),
    "boosting": Contender(make=BoostingForecaster, term="short", family="part"),
    "short_term": Contender(make=ShortTermForecaster, term="short", family="part"),
    "seasonal_short_blend": Contender(make=BlendForecaster, term="short", family="ours"),
    "persistence_long": Contender(make=_long_naive("persistence_long", None), term="long", family="naive"),
    "naive_day": Contender(make=_long_naive("naive_day", DAY_STEPS), term="long", family="naive"),
    "naive_week": Contender(make=_long_naive("naive_week", WEEK_STEPS), term="long", family="naive"),
    "long_term": Contender(make=LongTermForecaster, term="long", family="ours"),
    **{rival.name: _fresh(rival, "short") for rival in SHORT_RIVALS},
    **{rival.name: _fresh(rival, "long") for rival in LONG_RIVALS},
}
