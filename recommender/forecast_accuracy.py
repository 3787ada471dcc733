"""ForecastAccuracy: how a group's published forecasts compare with the produce rates that came, horizon by horizon.

Pure, and fed with the group's advice in the order in which it was published.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import NamedTuple

from forecasting.history import MINUTE_SECONDS
from forecasting.units import SECONDS_PER_HOUR
from recommender.deciding.recommendation import Recommendation

# How far ahead forecasts are judged: these seconds after they were made.
HORIZONS_SECONDS = (300, 900, 1800, 3600)
# Older minutes count half with each of these, as they do where the value of a forecast is measured.
HALF_LIFE_SECONDS = 6.0 * SECONDS_PER_HOUR
# A forecast each so many minutes is judged: at most 22 wait for their minutes, 1 MB for a hundred groups.
_EVERY_MINUTES = 5


class _Awaited(NamedTuple):
    """What one forecast said of one minute, beside the produce rate that was observed when it was made."""

    minute: int
    p05: float
    p50: float
    p95: float
    constant: float


class _Sums(NamedTuple):
    """Faded sums over the minutes of one horizon, as they were at `minute`: errors, actuals, minutes in the band."""

    minute: int = 0
    error: float = 0.0
    constant_error: float = 0.0
    actual: float = 0.0
    inside: float = 0.0
    minutes: float = 0.0

    def at(self, minute: int) -> "_Sums":
        """The sums some minutes later."""
        fade = 0.5 ** ((minute - self.minute) * MINUTE_SECONDS / HALF_LIFE_SECONDS)
        return _Sums(minute, *(fade * value for value in self[1:]))

    def with_actual(self, awaited: _Awaited, actual: float) -> "_Sums":
        """The sums with one more minute."""
        before = self.at(awaited.minute)
        return before._replace(
            error=before.error + abs(actual - awaited.p50),
            constant_error=before.constant_error + abs(actual - awaited.constant),
            actual=before.actual + actual,
            inside=before.inside + (awaited.p05 <= actual <= awaited.p95),
            minutes=before.minutes + 1.0,
        )


@dataclass(slots=True)
class ForecastAccuracy:
    """The accuracy of one group's forecasts since the first advice; may be read by other threads.

    The actual of a minute is the mean of the produce rates that advice observed in it. A minute without any, as while a
    group is refused, is not judged.
    """

    _awaited: dict[int, deque[_Awaited]] = field(default_factory=lambda: {each: deque() for each in HORIZONS_SECONDS})
    _sums: Mapping[int, _Sums] = field(default_factory=dict)
    _minute: int = 0
    _observed: list[float] = field(default_factory=list)
    _judged_from: datetime | None = None

    def add(self, advice: Recommendation) -> None:
        """Take the next advice: what it observed of its minute, and what it expects of later ones."""
        minute = _minute_of(advice.observed.as_of)
        if minute > self._minute:
            self._judge()
            self._minute, self._observed = minute, []
        self._observed.append(advice.observed.produce_messages_per_second)
        self._await(advice)

    @property
    def error_ratio(self) -> Mapping[int, float]:
        """By horizon in seconds, the sum of the medians' errors over the sum of actuals, where anything came."""
        return {horizon: sums.error / sums.actual for horizon, sums in self._sums.items() if sums.actual > 0.0}

    @property
    def skill_ratio(self) -> float | None:
        """The part of a constant produce rate's error that forecasts have avoided, over all horizons; below 0: added.

        None before anything was judged, and where a constant produce rate was right.
        """
        sums = tuple(self._sums.values())
        constant = sum(each.constant_error for each in sums)
        return 1.0 - sum(each.error for each in sums) / constant if constant > 0.0 else None

    @property
    def coverage_ratio(self) -> float | None:
        """The share of minutes between p05 and p95 of their forecasts, over all horizons; None before any was judged.

        It is 0.9 where the bands are right.
        """
        sums = tuple(self._sums.values())
        minutes = sum(each.minutes for each in sums)
        return sum(each.inside for each in sums) / minutes if minutes > 0.0 else None

    def _judge(self) -> None:
        """Judge what was awaited of the minute that is over; what was awaited of earlier ones was not observed."""
        sums = dict(self._sums)
        for horizon, awaited in self._awaited.items():
            while awaited and awaited[0].minute <= self._minute:
                said = awaited.popleft()
                if said.minute == self._minute and self._observed:
                    actual = sum(self._observed) / len(self._observed)
                    sums[horizon] = sums.get(horizon, _Sums(said.minute)).with_actual(said, actual)
        # All horizons fade to the same minute, so that their sums can be added.
        self._sums = {horizon: each.at(self._minute) for horizon, each in sums.items()}

    def _await(self, advice: Recommendation) -> None:
        """Await the minutes of the advice's forecast; a forecast that was published before is awaited once."""
        forecast = advice.forecast
        made_at = forecast.origin_at
        if made_at is None or (self._judged_from is not None and made_at <= self._judged_from):
            return
        if _minute_of(made_at) % _EVERY_MINUTES:
            return
        self._judged_from = made_at
        for horizon, awaited in self._awaited.items():
            step = horizon // forecast.step_seconds - 1
            if 0 <= step < len(forecast.p50):
                minute = _minute_of(made_at) + horizon // MINUTE_SECONDS
                constant = advice.observed.produce_messages_per_second
                awaited.append(_Awaited(minute, forecast.p05[step], forecast.p50[step], forecast.p95[step], constant))


def _minute_of(ends_at: datetime) -> int:
    """The number of the minute in which an interval ends; that which ends at 12:01:00 is in the minute until 12:01."""
    return ceil(ends_at.timestamp() / MINUTE_SECONDS)
