"""Trust: the recent skill of a forecaster against persistence, a constant produce rate.

Each minute both forecasts are noted at two leads; when the minute has come, both are scored. A forecaster that has lost
for a while is not used until it has won again.
"""

from collections import deque
from dataclasses import dataclass, field
from math import isnan

import numpy as np

from forecasting.forecast import Forecast
from forecasting.scores import pinball_losses

# Scored quantiles: the middle, and one that plans are made for.
QUANTILES = (0.5, 0.9)
LEADS = (5, 20)
# Two hours of minutes at two leads; less than half an hour of them is too little.
MOST_SCORES = 240
LEAST_SCORES = 40
# Trust is lost at a tenth worse than persistence, and won back at equal.
LOST_RATIO = 1.1


@dataclass(frozen=True, slots=True)
class _Claim:
    due_minute: int
    forecast: tuple[float, ...]
    persistence: tuple[float, ...]


@dataclass(slots=True)
class Trust:
    """Running scores of one forecaster against persistence."""

    trusted: bool = True
    _claims: deque[_Claim] = field(default_factory=deque)
    _scores: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=MOST_SCORES))

    def note(self, forecast: Forecast, persistence: Forecast, *, minute: int) -> None:
        """Keep both forecasts of the minutes to come; `minute` is the last one seen."""
        for lead in LEADS:
            if lead <= forecast.steps and lead <= persistence.steps:
                predicted = tuple(float(forecast.path(q)[lead - 1]) for q in QUANTILES)
                stays = tuple(float(persistence.path(q)[lead - 1]) for q in QUANTILES)
                self._claims.append(_Claim(minute + lead, predicted, stays))

    def seen(self, rate: float, *, minute: int) -> None:
        """Score all claims about a minute that has come; a minute without a known rate (NaN) is not scored."""
        due = [claim for claim in self._claims if claim.due_minute == minute]
        self._claims = deque(claim for claim in self._claims if claim.due_minute > minute)
        if due and not isnan(rate):
            self._scores.extend(_losses(rate, due))
        if len(self._scores) >= LEAST_SCORES:
            own, other = (sum(score[side] for score in self._scores) for side in (0, 1))
            self.trusted = own <= other * (LOST_RATIO if self.trusted else 1.0)

    @property
    def skill(self) -> float | None:
        """1 minus the ratio of losses: above 0 where the forecaster is better; None while too little was scored."""
        if len(self._scores) < LEAST_SCORES:
            return None
        own, other = (sum(score[side] for score in self._scores) for side in (0, 1))
        return 1.0 - own / other if other > 0.0 else None


def _losses(rate: float, claims: list[_Claim]) -> list[tuple[float, float]]:
    """Losses of the forecast and of persistence for each claim, summed over the scored quantiles."""
    predicted = np.array([side for claim in claims for side in (claim.forecast, claim.persistence)])
    came = np.array([rate])
    losses = [pinball_losses(came, predicted[:, [row]], quantile=quantile) for row, quantile in enumerate(QUANTILES)]
    return [(float(own), float(other)) for own, other in np.sum(losses, axis=0).reshape(-1, 2)]
