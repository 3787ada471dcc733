"""Session: the decision code of one group, stepped from outside, row by row.

For notebooks, replays and anybody's own simulator. It keeps what the live loop keeps (history, fitted forecaster,
last advice) and calls the very same pure `recommend`.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from cost_model.calibrate import capacity_seen
from cost_model.profile import Capacity, GroupProfile
from forecasting.blend import BlendForecaster
from forecasting.forecast import Forecast
from forecasting.forecaster import FittedForecaster, Forecaster
from forecasting.history import GroupInterval, History, HistoryBuffer
from forecasting.refusal import Refusal
from recommender.decision import DecisionSettings
from recommender.recommend import STEP_SECONDS, recommend
from recommender.recommendation import Decision, Recommendation

# Fitting takes a hundred times as long as forecasting, and a day's shape does not change within the hour.
REFIT_AFTER = timedelta(hours=1)


class Session:
    """Observe rows of one group in time order; ask for a recommendation at any moment.

    `profile.capacity` may be None: it is then learnt from windows in which the group worked at its limit, and until one
    was seen the answer is a `Refusal`. `history` holds earlier base rows, oldest first.
    """

    def __init__(
        self,
        profile: GroupProfile,
        settings: DecisionSettings,
        history: Iterable[GroupInterval] = (),
        *,
        forecaster: Forecaster | None = None,
        previous: Recommendation | None = None,
    ) -> None:
        self._profile = profile
        self._settings = settings
        self._forecaster = forecaster if forecaster is not None else BlendForecaster()
        self._buffer = HistoryBuffer(profile.cluster, profile.group)
        self._fitted: FittedForecaster | Refusal | None = None
        self._fitted_at: datetime | None = None
        self._capacity: Capacity | None = profile.capacity
        self._previous = previous
        for row in history:
            self._buffer.append(row)

    def observe(self, row: GroupInterval) -> None:
        """Take the next base row of the feature table; it may not be older than the one before."""
        self._buffer.append(row)

    def recommend(self, now: datetime) -> Decision:
        """Advice from all that was observed until `now`, or a refusal that says what is missing."""
        history = self._buffer.history()
        if history is None:
            return Refusal(
                cluster=self._profile.cluster,
                group=self._profile.group,
                reason="no_data",
                sentence="No whole minute of this group has been observed.",
                evidence=(("history_seconds", 0.0),),
                remedy="Observe at least 30 minutes of rows.",
                refused_at=now,
            )
        forecast = self._forecast(history)
        decision = recommend(
            history,
            forecast,
            replace(self._profile, capacity=self._capacity),
            self._settings,
            previous=self._previous,
            now=now,
        )
        if isinstance(decision, Recommendation):
            self._previous = decision
        return decision

    def _forecast(self, history: History) -> Forecast | Refusal:
        """From the model fitted within the last hour of data; a refused fit is tried again each time."""
        due = self._fitted_at is None or history.end_at >= self._fitted_at + REFIT_AFTER
        if due or isinstance(self._fitted, Refusal) or self._fitted is None:
            self._fitted, self._fitted_at = self._forecaster.fit(history), history.end_at
            if self._profile.capacity is None:
                self._capacity = capacity_seen(history, self._profile)
        if isinstance(self._fitted, Refusal):
            return self._fitted
        return self._fitted.forecast(history, steps=self._settings.horizon_seconds // STEP_SECONDS)
