"""Session: the decision code of one group, stepped from outside, row by row.

For notebooks, replays and anybody's own simulator. It keeps what the live loop keeps (history, fitted forecaster,
last advice) and calls the very same pure `recommend`.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from cost_model.backlog import late_by_pause
from cost_model.capacity import group_capacity
from cost_model.learned import Learned
from cost_model.profile import Capacity, GroupProfile
from forecasting.blend import BlendForecaster
from forecasting.forecast import Forecast
from forecasting.forecaster import FittedForecaster, Forecaster
from forecasting.history import GroupInterval, History, HistoryBuffer
from forecasting.persistence import PersistenceForecaster
from forecasting.refusal import Refusal
from forecasting.units import MessagesPerSecond, Partitions, Replicas, Seconds
from recommender.careful import TIME_LIMIT_SECONDS, ForecasterFailure, fit_carefully, forecast_carefully
from recommender.decision import DecisionSettings
from recommender.fallback import FallbackPolicy
from recommender.gate import REVIEW_AFTER, review, seen_from
from recommender.grade import Command, Grader, MeasuredPause
from recommender.known_capacity import KnownCapacity
from recommender.question import STEP_SECONDS
from recommender.recommend import day_one, recommend
from recommender.recommendation import Decision, GateStanding, GradedMove, PromisedPrice, Recommendation, TrackRecord
from recommender.trust import Trust
from recommender.utilization import TargetUtilization

# Fitting takes a hundred times as long as forecasting, and a day's shape does not change within the hour.
REFIT_AFTER = timedelta(hours=1)
# Lag worth this much more than what a commit interval leaves is a surprise.
SURPRISING_LAG_SECONDS = 2.0

_log = structlog.get_logger()


class Session:
    """Observe rows of one group in time order; ask for a recommendation at any moment.

    `profile.capacity` may be None: it is then learnt from windows in which the group worked at its limit, and until one
    was seen the answer is a `Refusal`. `history` holds earlier base rows, oldest first; `outcomes` are moves that were
    graded before, oldest first: they teach as they were kept, and rows up to the newest of them do not teach again.

    A forecaster that fails, talks nonsense or takes longer than `forecaster_seconds` for an answer is replaced by
    persistence, saying so, until it is to be fitted again.
    """

    def __init__(
        self,
        profile: GroupProfile,
        settings: DecisionSettings,
        history: Iterable[GroupInterval] = (),
        *,
        forecaster: Forecaster | None = None,
        previous: Recommendation | None = None,
        outcomes: Iterable[GradedMove] = (),
        forecaster_seconds: float = TIME_LIMIT_SECONDS,
    ) -> None:
        self._profile = profile
        self._settings = settings
        self._forecaster = forecaster if forecaster is not None else BlendForecaster()
        self._buffer = HistoryBuffer(profile.cluster, profile.group)
        self._forecaster_seconds = forecaster_seconds
        self._fitted: FittedForecaster | Refusal | ForecasterFailure | None = None
        self._fitted_at: datetime | None = None
        self._capacity: Capacity | None = profile.capacity
        self._known_capacity = KnownCapacity(profile)
        self._previous = previous
        self._decided_at: datetime | None = None
        self._latest: GroupInterval | None = None
        self._learned: Learned | None = None
        self._untaught = list(outcomes)
        self._taught_until = max((move.graded_at for move in self._untaught), default=None)
        self._graded: list[GradedMove] = []
        self._grader = Grader(profile=profile, max_lag_seconds=settings.max_lag_seconds)
        self._fallback: FallbackPolicy | None = None
        self._target_utilization = TargetUtilization(
            most=settings.target_utilization, commit_interval_seconds=profile.commit_interval_seconds
        )
        self._trust = Trust()
        self._gate = previous.forecast.gate if previous is not None else None
        self.reviewed_at = self._gate.reviewed_at if self._gate is not None else None
        self._persistence: FittedForecaster | Refusal | None = None
        self._scored_minute: datetime | None = None
        for row in history:
            self.observe(row)

    def observe(self, row: GroupInterval) -> None:
        """Take the next base row of the feature table; it may not be older than the one before."""
        self._buffer.append(row)
        self._latest = row
        capacity = self._capacity.p50 if self._capacity is not None else None
        move = self._grader.observe(row, capacity)
        if self._capacity is None:
            return
        self._target_utilization.observe(row, self._capacity.p20, likely=self._capacity.p50)
        if move is not None and (self._taught_until is None or move.graded_at > self._taught_until):
            self._untaught.append(move)
            self._graded.append(move)
        self._learned = replace(self.learned, target_utilization=self._target_utilization.value)
        if self._settings.fallback_policy and self._previous is not None:
            fallback = self._fallback_of(self._capacity)
            fallback.learned, fallback.capacity = self._learned, self._capacity.p50
            fallback.observe(row)

    def measured(self, stop: MeasuredPause) -> None:
        """Take what was measured of a rebalance; the move that caused it is graded by it."""
        self._grader.measured(stop)

    @property
    def learned(self) -> Learned:
        """What the group's moves have taught so far; while the capacity is unknown, the priors."""
        if self._capacity is None:
            return Learned.assumed(
                rebalance_pause_seconds=self._settings.rebalance_pause_prior_seconds,
                risk=self._settings.price_per_replica_hour,
            )
        learned = self._learned if self._learned is not None else day_one(self._settings, self._capacity)
        late_price = self._settings.prices(self._capacity.p50).price_per_late_message
        for move in self._untaught:
            learned = learned.after(move.outcome, late_price=late_price)
        self._untaught.clear()
        self._learned = learned
        return learned

    def drain_outcomes(self) -> tuple[GradedMove, ...]:
        """The moves that were graded since this was last asked, for whoever keeps them."""
        graded = tuple(self._graded)
        self._graded.clear()
        return graded

    def _fallback_of(self, capacity: Capacity) -> FallbackPolicy:
        if self._fallback is None:
            self._fallback = FallbackPolicy(
                profile=self._profile,
                capacity=capacity.p50,
                prices=self._settings.prices(capacity.p50),
                max_lag_seconds=self._settings.max_lag_seconds,
                learned=self.learned,
            )
        return self._fallback

    def due(self, now: datetime) -> bool:
        """Whether it is time for a decision: a cycle has passed, or more arrives than the group was left to carry."""
        if self._decided_at is None or (now - self._decided_at).total_seconds() >= self._settings.cycle_seconds:
            return True
        return self._surprised()

    def _surprised(self) -> bool:
        row, capacity = self._latest, self._capacity
        if row is None or row.in_rebalance:
            return False
        if row.members == 0 and self._profile.scale_to_zero is not None:
            return (row.lag_messages or 0.0) >= self._profile.scale_to_zero.activation_lag_messages
        if capacity is None or not row.members:
            return False
        rate = row.produce_messages_per_second or 0.0
        carried = group_capacity(Replicas(row.members), partitions=Partitions(row.partitions), capacity=capacity.p50)
        behind = (row.lag_messages or 0.0) > (self._profile.commit_interval_seconds + SURPRISING_LAG_SECONDS) * rate
        return rate > self._settings.target_utilization * carried or behind

    def recommend(self, now: datetime, *, with_sensitivity: bool = False) -> Decision:
        """Advice from all that was observed until `now`, or a refusal that says what is missing.

        `with_sensitivity`: also what would reverse the decision, which takes a few times as long as the decision.
        """
        self._decided_at = now
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
        self._capacity = self._known_capacity.look(history, surprised=self._surprised())
        decision = recommend(
            history,
            forecast,
            replace(self._profile, capacity=self._capacity),
            self._settings,
            previous=self._previous,
            now=now,
            learned=self.learned,
            track_record=TrackRecord(
                fallback_policy=self._fallback.standing if self._fallback is not None else None,
                gate=self._gate,
                forecast_skill=self._trust.skill,
                forecast_trusted=self._trust.trusted if self._trust.skill is not None else None,
                forecaster_failure=self._trouble,
            ),
            with_sensitivity=with_sensitivity,
            fallback_replicas=self._fallback.wanted if self._fallback and self._fallback.exhausted else None,
        )
        if isinstance(decision, Recommendation):
            self._previous = decision
            graded = decision.reason not in {"warming_up", "idle", "activating"}
            if decision.action != "hold" and decision.execute_at <= now and graded:
                self._grader.commanded(
                    Command(
                        at=now,
                        from_replicas=decision.current_replicas,
                        to_replicas=decision.desired_replicas,
                        rebalance_pause_seconds=decision.rebalance_impact.rebalance_pause_seconds,
                        late_messages=late_by_pause(
                            Seconds(decision.rebalance_impact.rebalance_pause_seconds),
                            produce=MessagesPerSecond(decision.observed.produce_messages_per_second),
                            capacity=group_capacity(
                                Replicas(decision.desired_replicas),
                                partitions=self._profile.partitions,
                                capacity=decision.capacity.p50,
                            ),
                            limit=Seconds(self._settings.max_lag_seconds),
                        ),
                        stopped_share=1.0
                        if self._profile.protocol == "eager"
                        else max(decision.rebalance_impact.moved_partition_fraction, 0.05),
                        recommendation_id=decision.recommendation_id,
                        promised=PromisedPrice(
                            chosen=decision.chosen.total,
                            stay=decision.stay.total,
                            horizon_seconds=decision.horizon_seconds,
                            currency=decision.currency,
                        ),
                    )
                )
        return decision

    def review(self, now: datetime) -> GateStanding | None:
        """Take decisions of the last days again from each history tier, and choose one.

        It takes as long as a few hundred decisions: for when `review_due`. None, too little is known: the highest
        history_tier.
        """
        self.reviewed_at = now
        history = self._buffer.history()
        if history is None or self._capacity is None:
            return None
        before = self._gate
        self._gate = review(
            history,
            self._forecaster,
            replace(self._profile, capacity=self._capacity),
            self._settings,
            learned=self.learned,
            within_seconds=self._forecaster_seconds,
        )
        if self._gate is None or before is None or self._gate.history_tier != before.history_tier:
            self._fitted_at = None
        return self._gate

    def review_due(self, now: datetime) -> bool:
        """Whether the last review is half a day old, or none was made."""
        return self.reviewed_at is None or now >= self.reviewed_at + REVIEW_AFTER

    def _forecast(self, history: History) -> Forecast | Refusal:
        """From the model fitted within the last hour of data, or persistence while that is better or all there is."""
        due = self._fitted_at is None or history.end_at >= self._fitted_at + REFIT_AFTER
        if due or isinstance(self._fitted, Refusal):
            self._fit(history)
        steps = self._settings.horizon_seconds // STEP_SECONDS
        persistence = self._persisting(history, steps=steps)
        if self._fitted is None or isinstance(self._fitted, ForecasterFailure):
            return persistence
        if isinstance(self._fitted, Refusal):
            return self._fitted
        limit = self._forecaster_seconds
        forecast = forecast_carefully(self._fitted, self._seen(history), steps=steps, within_seconds=limit)
        if isinstance(forecast, ForecasterFailure):
            self._fitted = self._told(forecast)
            return persistence
        if isinstance(persistence, Refusal) or isinstance(forecast, Refusal):
            return forecast
        if self._scored_minute != history.end_at:
            self._scored_minute = history.end_at
            minute = int(history.end_at.timestamp()) // STEP_SECONDS
            self._trust.seen(float(history.produce_messages_per_second[-1]), minute=minute)
            self._trust.note(forecast, persistence, minute=minute)
        gated = self._gate is not None and self._gate.history_tier == "reactive"
        return forecast if self._trust.trusted and not gated else persistence

    def _seen(self, history: History) -> History:
        """What the history tier in force looks back on."""
        return history if self._gate is None else seen_from(history, self._gate.history_tier)

    def _fit(self, history: History) -> None:
        fitted = fit_carefully(self._forecaster, self._seen(history), within_seconds=self._forecaster_seconds)
        self._fitted = self._told(fitted) if isinstance(fitted, ForecasterFailure) else fitted
        self._fitted_at = history.end_at
        self._persistence = PersistenceForecaster().fit(history)

    def _persisting(self, history: History, *, steps: int) -> Forecast | Refusal:
        """That all stays as it is, from the last fit; a history that was too short for one may suffice by now."""
        if self._persistence is None or isinstance(self._persistence, Refusal):
            self._persistence = PersistenceForecaster().fit(history)
        if isinstance(self._persistence, Refusal):
            return self._persistence
        return self._persistence.forecast(history, steps=steps)

    @property
    def _trouble(self) -> str | None:
        """What is published of a forecaster that is not listened to."""
        if not isinstance(self._fitted, ForecasterFailure):
            return None
        return f"Forecaster {self._forecaster.name} is not used: {self._fitted.why}; arrivals are taken to stay."

    def _told(self, trouble: ForecasterFailure) -> ForecasterFailure:
        _log.warning(
            "failing_forecaster",
            cluster=self._profile.cluster,
            group=self._profile.group,
            forecaster=self._forecaster.name,
            why=trouble.why,
        )
        return trouble
