"""Source of a group's forecasts: the model fitted last, and beside it that the produce rate stays as it is."""

from datetime import datetime, timedelta
from typing import NamedTuple

from forecasting.forecast import Forecast
from forecasting.forecaster import FittedForecaster, Forecaster
from forecasting.history import History
from forecasting.history_tier import history_tier_of
from forecasting.persistence import PersistenceForecaster
from forecasting.proof import is_proven
from forecasting.refusal import Refusal
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.question import STEP_SECONDS
from recommender.following.careful import Caller, ForecasterFailure, checked_forecast
from recommender.following.kept_account import Proof

# Fitting takes a hundred times as long as forecasting, and a day's shape does not change within the hour.
REFIT_AFTER = timedelta(hours=1)
# A proof takes as long as three fits. A load that loses its season, or gets one, is noticed within a quarter of a day.
PROVE_AFTER = timedelta(hours=6)
# A proof takes about three fits at each of its cuts.
_FITS_OF_A_PROOF = 3


class Forecasts(NamedTuple):
    """Forecasts of the same minutes: the model's, and that the produce rate stays as it is; each may be a refusal.

    Where the model fails, both are the second one.
    """

    model: Forecast | Refusal
    persistence: Forecast | Refusal


class ForecastSource:
    """Fits `forecaster` once an hour of data, and uses persistence where it fails.

    A forecaster that fails or gives impossible values is not called until its next fit. All calls of the forecaster go
    through `caller`. `fits` counts the fits that were made, and those of proofs.
    """

    def __init__(self, forecaster: Forecaster, settings: DecisionSettings, *, caller: Caller) -> None:
        self.fits = 0
        self._forecaster = forecaster
        self._settings = settings
        self._caller = caller
        self._fitted: FittedForecaster | Refusal | ForecasterFailure | None = None
        self._fitted_at: datetime | None = None
        self._persistence: FittedForecaster | Refusal | None = None
        self._proof: Proof | None = None
        self._latest: tuple[datetime, Forecasts] | None = None

    def latest(self, end_at: datetime) -> Forecasts | None:
        """The last forecasts if they are of a history that ends then: rows come four times as often as minutes."""
        return self._latest[1] if self._latest is not None and self._latest[0] == end_at else None

    def forecasts(self, history: History, *, may_refit: bool = True) -> Forecasts:
        """The next horizon in minutes; of a history that ends as the one before does, the same as before.

        Where it may not, the next fit and the next proof are put off, for as long again at most.
        """
        known = self.latest(history.end_at)
        if known is None:
            known = self._made(history, put_off=not may_refit)
            self._latest = history.end_at, known
        return known

    def _made(self, history: History, *, put_off: bool) -> Forecasts:
        if isinstance(self._fitted, Refusal) or _is_due(history, self._fitted_at, REFIT_AFTER, put_off=put_off):
            self._fit(history)
        steps = self._settings.horizon_seconds // STEP_SECONDS
        persistence = self._persisting(history, steps=steps)
        if self._fitted is None or isinstance(self._fitted, ForecasterFailure):
            return Forecasts(persistence, persistence)
        if isinstance(self._fitted, Refusal):
            return Forecasts(self._fitted, persistence)
        self._prove(history, steps=steps, put_off=put_off)
        if self._proof is not None and not self._proof.is_proven:
            return Forecasts(persistence, persistence)
        fitted = self._fitted
        forecast = self._caller(lambda: checked_forecast(fitted, history, steps=steps))
        if isinstance(forecast, ForecasterFailure):
            self._fitted = forecast
            return Forecasts(persistence, persistence)
        return Forecasts(forecast, persistence)

    @property
    def proven(self) -> bool:
        """True while the forecaster works and has beaten persistence out of sample."""
        works = not isinstance(self._fitted, ForecasterFailure)
        return works and self._proof is not None and self._proof.is_proven

    @property
    def proof(self) -> Proof | None:
        """The last proof, to be kept; None before there was one."""
        return self._proof

    def resume(self, proof: Proof | None) -> None:
        """Go on with a proof that was kept: it is as old as it would be without a restart."""
        self._proof = proof

    @property
    def failure(self) -> str | None:
        """A sentence on a forecaster that is not used, with the reason; None while it is used."""
        if not isinstance(self._fitted, ForecasterFailure):
            return None
        return f"Forecaster {self._forecaster.name} is not used: {self._fitted.why}; arrivals are taken to stay."

    def _prove(self, history: History, *, steps: int, put_off: bool) -> None:
        """Compare the forecaster with persistence out of sample, every few hours, once there is a season to learn."""
        proven_at = None if self._proof is None else self._proof.proven_at
        due = _is_due(history, proven_at, PROVE_AFTER, put_off=put_off)
        if not due or history_tier_of(history) in (None, "reactive"):
            return
        self.fits += _FITS_OF_A_PROOF
        answer = self._caller(lambda: is_proven(self._forecaster, history, steps=steps))
        self._proof = Proof(history.end_at, is_proven=answer is True)

    def _fit(self, history: History) -> None:
        self._fitted = self._caller(lambda: self._forecaster.fit(history))
        self._fitted_at = history.end_at
        self.fits += 1
        self._persistence = PersistenceForecaster().fit(history)

    def _persisting(self, history: History, *, steps: int) -> Forecast | Refusal:
        """The persistence forecast of the last fit; fitted again where the history was too short for one."""
        if self._persistence is None or isinstance(self._persistence, Refusal):
            self._persistence = PersistenceForecaster().fit(history)
        if isinstance(self._persistence, Refusal):
            return self._persistence
        return self._persistence.forecast(history, steps=steps)


def _is_due(history: History, done_at: datetime | None, after: timedelta, *, put_off: bool) -> bool:
    """True if so much of the history is newer than what was done last; twice as much where it is put off."""
    return done_at is None or history.end_at >= done_at + (2 if put_off else 1) * after
