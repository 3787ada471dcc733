"""Source of a group's forecasts: the model fitted last, and beside it that the produce rate stays as it is."""

from datetime import datetime, timedelta

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
from recommender.following.experts import WITH_FORECAST
from recommender.following.kept_account import Proof

# Fitting takes a hundred times as long as forecasting, and a day's shape does not change within the hour.
REFIT_AFTER = timedelta(hours=1)
# A proof takes as long as three fits. A load that loses its season, or gets one, is noticed within a quarter of a day.
PROVE_AFTER = timedelta(hours=6)


class Forecasts:
    """Forecasts of the same minutes: the model's, and that the produce rate stays as it is; each may be a refusal.

    The second one is made when it is first asked for: two of three minutes pass without, and it takes a quarter of the
    time of both. It stands for a `model` that fails, too, which is None.
    """

    def __init__(
        self, model: Forecast | Refusal | None, persistence: FittedForecaster | Refusal, *, steps: int = 0
    ) -> None:
        self._model = model
        self._persistence = persistence
        self._steps = steps
        self._persisting: Forecast | Refusal | None = None

    def of(self, planner: int, history: History) -> Forecast | Refusal:
        """The one that this kind of plans gets, of `experts.PLANNERS`; `history` is the one that both are made of."""
        if planner == WITH_FORECAST and self._model is not None:
            return self._model
        if isinstance(self._persistence, Refusal):
            return self._persistence
        if self._persisting is None:
            self._persisting = self._persistence.forecast(history, steps=self._steps)
        return self._persisting


class ForecastSource:
    """Fits `forecaster` once an hour of data, and uses persistence where it fails.

    A forecaster that fails or gives impossible values is not called until its next fit. All calls of the forecaster go
    through `caller`.
    """

    def __init__(self, forecaster: Forecaster, settings: DecisionSettings, *, caller: Caller) -> None:
        self._forecaster = forecaster
        self._settings = settings
        self._caller = caller
        self._fitted: FittedForecaster | Refusal | ForecasterFailure | None = None
        self._fitted_at: datetime | None = None
        self._persistence: FittedForecaster | Refusal | None = None
        self._proof: Proof | None = None
        self._proof_due_at: datetime | None = None
        self._latest: tuple[datetime, Forecasts] | None = None

    def latest(self, end_at: datetime) -> Forecasts | None:
        """The last forecasts if they are of a history that ends then: rows come four times as often as minutes."""
        return self._latest[1] if self._latest is not None and self._latest[0] == end_at else None

    def forecasts(self, history: History, *, may_refit: bool = True) -> Forecasts:
        """The next horizon in minutes; of a history that ends as the one before does, the same as before.

        Where it may not, only the first fit and its proof are made, and those after a refusal: `refit` makes the rest.
        """
        known = self.latest(history.end_at)
        if known is None:
            if may_refit or self._fitted is None or isinstance(self._fitted, Refusal):
                self.refit(history)
            known = self._made(history)
            self._latest = history.end_at, known
        return known

    @property
    def refit_due_at(self) -> datetime | None:
        """The end of the history with which the next fit or proof is due; None where the first fit is still to come."""
        if self._fitted_at is None:
            return None
        fit_due_at = self._fitted_at + REFIT_AFTER
        return fit_due_at if self._proof_due_at is None else min(fit_due_at, self._proof_due_at)

    def refit(self, history: History) -> None:
        """Fit the forecaster where that is due, and prove it where that is: the next forecasts are by it."""
        if (
            self._fitted_at is None
            or isinstance(self._fitted, Refusal)
            or history.end_at >= self._fitted_at + REFIT_AFTER
        ):
            self._fit(history)
        self._prove(history)
        self._latest = None

    def _made(self, history: History) -> Forecasts:
        if self._persistence is None or isinstance(self._persistence, Refusal):  # it was too short for one
            self._persistence = PersistenceForecaster().fit(history)
        return Forecasts(self._by_model(history), self._persistence, steps=self._horizon_steps)

    def _by_model(self, history: History) -> Forecast | Refusal | None:
        """The model's forecast; None where it fails, or has not been closer than persistence."""
        fitted, steps = self._fitted, self._horizon_steps
        if isinstance(fitted, Refusal):
            return fitted
        if fitted is None or isinstance(fitted, ForecasterFailure):
            return None
        if self._proof is not None and not self._proof.is_proven:
            return None
        forecast = self._caller(lambda: checked_forecast(fitted, history, steps=steps))
        if isinstance(forecast, ForecasterFailure):
            self._fitted = forecast
            return None
        return forecast

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

    @property
    def _horizon_steps(self) -> int:
        return self._settings.horizon_seconds // STEP_SECONDS

    def _prove(self, history: History) -> None:
        """Compare the forecaster with persistence out of sample, every few hours, once there is a season to learn."""
        if isinstance(self._fitted, Refusal | ForecasterFailure) or history_tier_of(history) in (None, "reactive"):
            self._proof_due_at = None
            return
        if self._proof is None or history.end_at >= self._proof.proven_at + PROVE_AFTER:
            steps = self._horizon_steps
            answer = self._caller(lambda: is_proven(self._forecaster, history, steps=steps))
            self._proof = Proof(history.end_at, is_proven=answer is True)
        self._proof_due_at = self._proof.proven_at + PROVE_AFTER

    def _fit(self, history: History) -> None:
        self._fitted = self._caller(lambda: self._forecaster.fit(history))
        self._fitted_at = history.end_at
        self._persistence = PersistenceForecaster().fit(history)
