"""Source of a group's forecast: the model fitted last, or persistence while that is better or all there is."""

from datetime import datetime, timedelta

from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from forecasting.forecast import Forecast
from forecasting.forecaster import FittedForecaster, Forecaster
from forecasting.history import History
from forecasting.persistence import PersistenceForecaster
from forecasting.refusal import Refusal
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.question import STEP_SECONDS
from recommender.deciding.recommendation import GateStanding, TrackRecord
from recommender.following.careful import Caller, ForecasterFailure, checked_forecast
from recommender.following.gate import REVIEW_AFTER, review, seen_from
from recommender.following.trust import Trust

# Fitting takes a hundred times as long as forecasting, and a day's shape does not change within the hour.
REFIT_AFTER = timedelta(hours=1)


class ForecastSource:
    """Fits `forecaster` once an hour of data, and uses persistence where it fails, loses or costs money.

    A forecaster that fails or gives impossible values is not called until its next fit. `standing` is the review
    that was made before, if one was. All calls of the forecaster go through `caller`.
    """

    def __init__(
        self, forecaster: Forecaster, settings: DecisionSettings, *, standing: GateStanding | None, caller: Caller
    ) -> None:
        self._forecaster = forecaster
        self._settings = settings
        self._caller = caller
        self._fitted: FittedForecaster | Refusal | ForecasterFailure | None = None
        self._fitted_at: datetime | None = None
        self._persistence: FittedForecaster | Refusal | None = None
        self._trust = Trust()
        self._scored_minute: datetime | None = None
        self._standing = standing
        self._reviewed_at = None if standing is None else standing.reviewed_at

    def forecast(self, history: History) -> Forecast | Refusal:
        """The next horizon in minutes, or the refusal."""
        due = self._fitted_at is None or history.end_at >= self._fitted_at + REFIT_AFTER
        if due or isinstance(self._fitted, Refusal):
            self._fit(history)
        steps = self._settings.horizon_seconds // STEP_SECONDS
        persistence = self._persisting(history, steps=steps)
        if self._fitted is None or isinstance(self._fitted, ForecasterFailure):
            return persistence
        if isinstance(self._fitted, Refusal):
            return self._fitted
        fitted, seen = self._fitted, self._seen(history)
        forecast = self._caller(lambda: checked_forecast(fitted, seen, steps=steps))
        if isinstance(forecast, ForecasterFailure):
            self._fitted = forecast
            return persistence
        if isinstance(persistence, Refusal) or isinstance(forecast, Refusal):
            return forecast
        self._score(history, forecast, persistence)
        gated = self._standing is not None and self._standing.history_tier == "reactive"
        return forecast if self._trust.trusted and not gated else persistence

    def review(
        self, history: History | None, profile: GroupProfile, *, learned: Learned, now: datetime
    ) -> GateStanding | None:
        """Make decisions of the last days again from each history tier, and choose one.

        `profile` has the known capacity. None where too little is known: then the highest history tier is used.
        """
        self._reviewed_at = now
        if history is None or profile.capacity is None:
            return None
        before = self._standing
        self._standing = review(
            history, self._forecaster, profile, self._settings, learned=learned, caller=self._caller
        )
        if self._standing is None or before is None or self._standing.history_tier != before.history_tier:
            self._fitted_at = None
        return self._standing

    @property
    def reviewed_at(self) -> datetime | None:
        """Instant of the last review, or of the last attempt; None before the first one."""
        return self._reviewed_at

    def review_due(self, now: datetime) -> bool:
        """True if the last review is half a day old, or none was made."""
        return self._reviewed_at is None or now >= self._reviewed_at + REVIEW_AFTER

    @property
    def failure(self) -> str | None:
        """A sentence on a forecaster that is not used, with the reason; None while it is used."""
        if not isinstance(self._fitted, ForecasterFailure):
            return None
        return f"Forecaster {self._forecaster.name} is not used: {self._fitted.why}; arrivals are taken to stay."

    @property
    def track_record(self) -> TrackRecord:
        """The record of recent forecasts, as it is published, without the fallback policy."""
        skill = self._trust.skill
        return TrackRecord(
            gate=self._standing,
            forecast_skill=skill,
            forecast_trusted=self._trust.trusted if skill is not None else None,
            forecaster_failure=self.failure,
        )

    def _score(self, history: History, forecast: Forecast, persistence: Forecast) -> None:
        """Once a minute, score the forecasts of it, and note those of the minutes to come."""
        if self._scored_minute == history.end_at:
            return
        self._scored_minute = history.end_at
        minute = int(history.end_at.timestamp()) // STEP_SECONDS
        self._trust.seen(float(history.produce_messages_per_second[-1]), minute=minute)
        self._trust.note(forecast, persistence, minute=minute)

    def _seen(self, history: History) -> History:
        """The part of the history that the tier in force uses."""
        return history if self._standing is None else seen_from(history, self._standing.history_tier)

    def _fit(self, history: History) -> None:
        seen = self._seen(history)
        self._fitted = self._caller(lambda: self._forecaster.fit(seen))
        self._fitted_at = history.end_at
        self._persistence = PersistenceForecaster().fit(history)

    def _persisting(self, history: History, *, steps: int) -> Forecast | Refusal:
        """The persistence forecast of the last fit; fitted again where the history was too short for one."""
        if self._persistence is None or isinstance(self._persistence, Refusal):
            self._persistence = PersistenceForecaster().fit(history)
        if isinstance(self._persistence, Refusal):
            return self._persistence
        return self._persistence.forecast(history, steps=steps)
