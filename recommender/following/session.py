"""Session: the decision code of one group, stepped from outside, row by row.

For notebooks, replays and other simulators. It keeps the same state as the live loop (history, fitted forecaster,
last advice) and calls the same pure `recommend`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from cost_model.physics.capacity import group_capacity
from cost_model.physics.learned import Learned
from cost_model.physics.pods import PodStartUp
from cost_model.physics.profile import Capacity, GroupProfile
from cost_model.physics.similar import SimilarGroups
from forecasting.blend import BlendForecaster
from forecasting.forecaster import Forecaster
from forecasting.history import GroupInterval, History, HistoryBuffer, Minutes, PackedHistory
from forecasting.refusal import Refusal
from forecasting.units import Partitions, Replicas, Seconds
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.hold import Hold
from recommender.deciding.inputs import DecisionInputs
from recommender.deciding.recommend import planned_replicas
from recommender.deciding.recommendation import (
    Decision,
    GradedMove,
    LedgerStanding,
    Recommendation,
    SensitivityOf,
    TrackRecord,
)
from recommender.following.capacity import CapacityTracker
from recommender.following.careful import Caller, call
from recommender.following.experts import PLANNERS, WITH_FORECAST, Experts, FollowedPolicy
from recommender.following.forecast_source import Forecasts, ForecastSource
from recommender.following.grading import MeasuredPause
from recommender.following.kept_account import AccountSlot
from recommender.following.ledger import Ledger, LedgerDay
from recommender.following.moves import MoveLearner

# The ledger counts a day, and shadows remember a quarter of an hour more; the rows just before tell them whether the
# group stands still. What is older would be followed and forgotten, two fifths of a first start with 28 days.
LEDGER_PAST = timedelta(days=1)
SHADOWS_PAST = LEDGER_PAST + timedelta(hours=1)
# This many seconds of lag beyond a commit interval are a surprise.
SURPRISING_LAG_SECONDS = 2.0


class Session:
    """Observes rows of one group in time order, and gives a recommendation at any moment.

    `profile.capacity` may be None: it is then learnt from windows in which the group worked at its limit, and before
    the first of them the result is a `Refusal`. `history` holds earlier base rows, oldest first; `outcomes` are moves
    that were graded before, oldest first: learning uses them as stored, and rows up to the newest of them are not used
    again. `account` is what `drain_account` gave in the last day, oldest first: with it a session goes on as the one
    before would have; rows that came while no advice was valid are charged to nobody. `before` are rows before all of
    `history`, of which minutes are enough: what moves and scalers did in them is in `outcomes` and `account`. With
    `past_unread` the group has more history than is given here, and nothing that has work is removed.

    A forecaster that fails, gives impossible values or exceeds the time limit of `caller` is replaced by persistence
    until it is fitted again, and the advice contains a sentence on it. The default `caller` has no time limit.
    """

    def __init__(
        self,
        profile: GroupProfile,
        settings: DecisionSettings,
        history: Iterable[GroupInterval] = (),
        *,
        before: Minutes | None = None,
        forecaster: Forecaster | None = None,
        previous: Recommendation | None = None,
        outcomes: Iterable[GradedMove] = (),
        account: Sequence[AccountSlot] = (),
        caller: Caller = call,
        past_unread: bool = False,
    ) -> None:
        self._past_unread = past_unread
        self._profile = profile
        self._settings = settings
        self._buffer = HistoryBuffer(profile.cluster, profile.group)
        self._unpacked: History | None = None  # from the forecast to the decision that uses it
        if before is not None:
            self._buffer.begin(before)
        self._capacity = CapacityTracker(profile)
        self._forecasts = ForecastSource(
            forecaster if forecaster is not None else BlendForecaster(),
            settings,
            caller=caller,
        )
        self._moves = MoveLearner(profile, settings, outcomes)
        self._previous = previous
        self._experts: Experts | None = None
        self._decided_at: datetime | None = None
        self._inputs: DecisionInputs | None = None
        self._latest: GroupInterval | None = None
        self._cluster_seen_at: datetime | None = None
        self._ledger: Ledger | None = None
        rows = tuple(history)
        self._account = tuple(account) if settings.fallback_policy else ()
        self._counted_until: datetime | None = None
        self._kept = self._account[-1].state if self._account else None
        if self._kept is not None:
            self._forecasts.resume(self._kept.proof)
            self._capacity.resume(self._kept.measured)
        self._advised_until = None if previous is None else previous.valid_until
        self._past_until = rows[-1].interval_end_at if rows else None
        for row in rows:
            self.observe(row)
        self._resume_utilization()
        self._advised_until = None
        limit = self._capacity.limit
        if self._account and limit is not None:
            self._resume(limit)

    def observe(self, row: GroupInterval, *, may_replay: bool = True) -> None:
        """Take the next base row of the feature table; it may not be older than the one before.

        Where it may not, a replay of the shadows that becomes due is left to `catch_up`.
        """
        if self._kept is not None and row.interval_end_at > self._kept.seen_until:
            self._resume_utilization()
        self._unpacked = None
        self._buffer.append(row)
        self._capacity.observe(row)
        self._latest = row
        # What moves did, and what scalers would have cost, is known only by what a replica can do.
        capacity = self._capacity.limit
        self._moves.observe(row, capacity)
        if capacity is not None and self._settings.fallback_policy:
            self._compare(row, capacity, may_replay=may_replay)
        if capacity is not None and self._is_within(LEDGER_PAST, row):
            self._count(row, capacity)

    def measured(self, stop: MeasuredPause) -> None:
        """Take the measured pause of a rebalance; the move that caused it is graded by it."""
        self._moves.measured(stop)

    @property
    def learned(self) -> Learned:
        """Results of the group's moves so far; while the capacity is unknown, the priors."""
        return self._moves.learned

    @property
    def own_lessons(self) -> Learned:
        """Results of the group's own moves alone, as they may teach groups of the same kind."""
        return self._moves.own

    def start_from(self, similar: SimilarGroups | None) -> None:
        """Begin from what groups of the same kind have learned, instead of what is assumed of every group."""
        self._moves.start_from(similar)

    def see_workload(self, pods: PodStartUp | None, *, seen_at: datetime | None) -> None:
        """Take the start-up time that the group's pods show, and when the cluster was last seen; None: not shown."""
        self._moves.see_pods(pods)
        self._cluster_seen_at = seen_at

    def drain_outcomes(self) -> tuple[GradedMove, ...]:
        """The moves that were graded since the last call, to be stored."""
        return self._moves.drain_outcomes()

    def drain_account(self) -> tuple[AccountSlot, ...]:
        """What has changed of the account of who is followed since the last call, oldest first, to be stored."""
        slots = () if self._experts is None else self._experts.drain_account()
        proof, measured = self._forecasts.proof, self._capacity.measured
        return tuple(slot._replace(state=slot.state._replace(proof=proof, measured=measured)) for slot in slots)

    def keep_again(self) -> None:
        """What `drain_outcomes` and `drain_account` gave last was not stored: the next calls give it too."""
        self._moves.keep_again()
        if self._experts is not None:
            self._experts.keep_again()

    def retract(self, decision: Decision) -> None:
        """Take back the last decision, which could not be stored, so that nobody was told of it."""
        self.keep_again()
        if self._previous is decision and self._inputs is not None:
            self._previous = self._inputs.previous
            self._moves.retract(self._inputs.now)

    def _compare(self, row: GroupInterval, capacity: Capacity, *, may_replay: bool) -> None:
        """Pass the row to the shadows too; they begin with the first row that shows members."""
        if self._account and row.interval_end_at > self._account[-1].state.decided_after:
            self._resume(capacity)
        if self._counted_until is not None and row.interval_end_at <= self._counted_until:
            return
        if self._experts is None and row.members and self._is_within(SHADOWS_PAST, row):
            self._experts = self._new_experts(capacity, members=row.members)
        if self._experts is not None:
            is_advised = self._advised_until is None or row.interval_end_at <= self._advised_until
            self._experts.observe(
                row, capacity=capacity.p50, learned=self.learned, is_advised=is_advised, may_replay=may_replay
            )

    def _is_within(self, past: timedelta, row: GroupInterval) -> bool:
        """True if the row is not older than this part of the rows that the session began with."""
        return self._past_until is None or row.interval_end_at > self._past_until - past

    def _resume_utilization(self) -> None:
        """Go on with the target utilization that was kept, once the rows are observed that it was kept with."""
        kept, self._kept = self._kept, None
        if kept is not None and kept.target_utilization is not None:
            self._moves.resume(kept.target_utilization)

    def _resume(self, capacity: Capacity) -> None:
        """Go on with the account that was kept, from the end of its rows."""
        state = self._account[-1].state
        if self._experts is None:
            self._experts = self._new_experts(capacity, members=state.members)
        self._experts.resume(self._account)
        self._account, self._counted_until = (), state.seen_until

    def _new_experts(self, capacity: Capacity, *, members: int) -> Experts:
        return Experts(
            self._profile,
            capacity=capacity.p50,
            prices=self._settings.prices(capacity.p50),
            max_lag_seconds=self._settings.max_lag_seconds,
            learned=self.learned,
            members=members,
        )

    def _count(self, row: GroupInterval, capacity: Capacity) -> None:
        """Count the row in the ledger too, which begins with the first row that shows members."""
        if self._ledger is None and row.members:
            self._ledger = Ledger(
                self._profile,
                capacity=capacity.p50,
                max_lag_seconds=self._settings.max_lag_seconds,
                learned=self.learned,
                members=row.members,
            )
        if self._ledger is not None:
            self._ledger.observe(row, capacity=capacity.p50, learned=self.learned)

    def _ledger_at(self, capacity: Capacity | None) -> LedgerStanding | None:
        if self._ledger is None or capacity is None:
            return None
        return self._ledger.standing(self._settings.prices(capacity.p50))

    def due(self, now: datetime) -> bool:
        """True if a decision is due: a cycle has passed, or the produce rate exceeds the group's target capacity."""
        if self._decided_at is None or (now - self._decided_at).total_seconds() >= self._settings.cycle_seconds:
            return True
        return self._surprised() or self._wanted_otherwise()

    def _wanted_otherwise(self) -> bool:
        """True if the fallback policy that is followed has another count than the advice in force."""
        wanted = None if self._experts is None else self._experts.wanted
        return wanted is not None and self._previous is not None and wanted != self._previous.desired_replicas

    def _surprised(self) -> bool:
        row, limit = self._latest, self._capacity.limit
        if row is None or row.in_rebalance:
            return False
        if row.members == 0 and self._profile.scale_to_zero is not None:
            return (row.lag_messages or 0.0) >= self._profile.scale_to_zero.activation_lag_messages
        if not row.members:
            return False
        rate = row.produce_messages_per_second or 0.0
        if (row.lag_messages or 0.0) > (self._profile.commits_every_seconds + SURPRISING_LAG_SECONDS) * rate:
            return True
        if limit is None:
            return False
        carried = group_capacity(Replicas(row.members), partitions=Partitions(row.partitions), capacity=limit.p50)
        return rate > self._settings.target_utilization * carried

    def recommend(self, now: datetime, *, sensitivity: SensitivityOf = "none") -> Decision:
        """Advice from all rows until `now`, or a refusal that names the missing data.

        `sensitivity`: of which decisions the changes that reverse them are told, a search that takes a few times as
        long as the decision.
        """
        return self.decide(self.forecast(now), now=now, sensitivity=sensitivity)

    def forecast(self, now: datetime, *, may_refit: bool = True) -> Forecasts:
        """The forecasts of the produce rate, for `decide`; or refusals.

        Where it may not, a refit that is due is left to `catch_up`.
        """
        packed = self._buffer.packed()
        if packed is None:
            return Forecasts(None, self._nothing_observed(now))
        latest = self._forecasts.latest(packed.end_at)
        if latest is not None:
            return latest
        self._unpacked = packed.unpacked()
        return self._forecasts.forecasts(self._unpacked, may_refit=may_refit)

    @property
    def behind_since(self) -> datetime | None:
        """Since when there is something for `catch_up` to do; None where nothing is due by what was observed."""
        refit_due_at, end_at = self._forecasts.refit_due_at, self._buffer.end_at
        replay_due_at = None if self._experts is None else self._experts.replay_due_at
        if refit_due_at is None or end_at is None or refit_due_at > end_at:
            return replay_due_at
        return refit_due_at if replay_due_at is None else min(refit_due_at, replay_due_at)

    def catch_up(self) -> None:
        """Do what was put off, and the first fit: 0.1 to 1 s of processor time for a forecaster that has weeks.

        The forecaster is fitted, and proven, where that is due; the shadows are replayed where that is.
        """
        if self._experts is not None and self._experts.replay_due_at is not None:
            self._experts.replay()
        packed, refit_due_at = self._buffer.packed(), self._forecasts.refit_due_at
        if packed is not None and (refit_due_at is None or refit_due_at <= packed.end_at):
            self._forecasts.refit(packed.unpacked())

    def decide(
        self, forecasts: Forecasts, *, now: datetime, sensitivity: SensitivityOf = "none", hold: Hold | None = None
    ) -> Decision:
        """Advice for a group with this forecast, under `hold` if one is in force: the second half of `recommend`."""
        self._decided_at, self._inputs = now, None
        packed = self._buffer.packed()
        if packed is None:
            return self._nothing_observed(now)
        history, self._unpacked = self._unpacked or packed.unpacked(), None  # 0.8 MB, and fifty groups rest together
        capacity = self._capacity.look(history, surprised=self._surprised())
        limit = self._capacity.limit
        if limit is not None:
            self._moves.teach(limit)
        profile, experts = self._as_measured(capacity), self._experts
        followed = FollowedPolicy(WITH_FORECAST, None) if experts is None else experts.choose()
        inputs = self._inputs = DecisionInputs(
            history=packed,
            forecast=forecasts.of(followed.planner, history),
            profile=profile,
            settings=self._settings,
            previous=self._previous,
            now=now,
            learned=self.learned,
            hold=hold,
            fallback_replicas=followed.replicas,
            track_record=TrackRecord(
                fallback_policy=None if experts is None else experts.standing,
                forecast_value=None if experts is None else experts.forecast_value(proven=self._forecasts.proven),
                ledger=self._ledger_at(limit),
                forecaster_failure=self.forecaster_failure,
                cluster_seen_at=self._cluster_seen_at,
                past_unread=self._past_unread,
            ),
        )
        decision = inputs.decide(sensitivity=sensitivity, history=history)
        if experts is not None and isinstance(decision, Recommendation):
            for planner in PLANNERS:
                experts.plan(
                    planner,
                    partial(self._planned, planner, forecasts=forecasts, history=history, profile=profile, now=now),
                )
        if isinstance(decision, Recommendation):
            self._previous = decision
            self._moves.commanded(decision, now=now)
        return decision

    def rest(self) -> None:
        """Take less memory until the next row, for 0.1 ms: a thousand groups wait for most of the time."""
        self._unpacked = None
        if self._experts is not None:
            self._experts.rest()
        if self._ledger is not None:
            self._ledger.rest()

    @property
    def inputs(self) -> DecisionInputs | None:
        """What the last decision was made from; None before the first, and where nothing was observed."""
        return self._inputs

    @property
    def history(self) -> PackedHistory | None:
        """What was observed so far; None before a whole minute was."""
        return self._buffer.packed()

    @property
    def ledger_day(self) -> LedgerDay | None:
        """What was counted in the last day; None before the capacity is known."""
        return None if self._ledger is None else self._ledger.day()

    def _as_measured(self, capacity: Capacity | None) -> GroupProfile:
        """The profile with this capacity, and with the start-up time that own moves, pods or similar groups show.

        In whole seconds, so that cached results for the group's moves can be used until the next move.
        """
        start_up = self.learned.start_up
        seconds = self._profile.start_up_seconds if start_up is None else Seconds(round(start_up.value))
        return replace(self._profile, capacity=capacity, start_up_seconds=seconds)

    def _planned(
        self,
        planner: int,
        replicas: int,
        backlog_messages: float,
        *,
        forecasts: Forecasts,
        history: History,
        profile: GroupProfile,
        now: datetime,
    ) -> int:
        """The count that these plans would choose for a copy of the group."""
        return planned_replicas(
            history,
            forecasts.of(planner, history),
            profile,
            self._settings,
            now=now,
            learned=self.learned,
            replicas=replicas,
            backlog_messages=backlog_messages,
        )

    def _nothing_observed(self, now: datetime) -> Refusal:
        return Refusal(
            cluster=self._profile.cluster,
            group=self._profile.group,
            reason="no_data",
            sentence="No whole minute of this group has been observed.",
            evidence=(("history_seconds", 0.0),),
            remedy="Observe at least 3 minutes of rows.",
            refused_at=now,
        )

    @property
    def forecaster_failure(self) -> str | None:
        """A sentence on a forecaster that is not used, with the reason; None while it is used."""
        return self._forecasts.failure
