"""Learning from a group's moves: each is watched and graded, and changes the beliefs that price the next one.

A move can be graded only where the capacity of a replica is known, because a shortage builds up lag as well. A move
that is over before that is kept, and used for learning as soon as the capacity is known.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from cost_model.physics.backlog import late_by_pause
from cost_model.physics.capacity import group_capacity
from cost_model.physics.learned import Learned
from cost_model.physics.pods import PodStartUp
from cost_model.physics.profile import Capacity, GroupProfile
from cost_model.physics.similar import SimilarGroups
from forecasting.history import GroupInterval
from forecasting.units import MessagesPerSecond, Replicas, Seconds
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommend import day_one
from recommender.deciding.recommendation import GradedMove, PromisedPrice, Recommendation
from recommender.following.grading import Command, Grader, MeasuredPause
from recommender.following.utilization import TargetUtilization

# Advice for these reasons starts a group, or repeats an earlier move: there is no move to grade.
NOT_GRADED = frozenset({"warming_up", "idle", "activating"})
# The risk of a move has a price that does not depend on the capacity of a replica.
ANY_CAPACITY = MessagesPerSecond(1.0)
# Even a move of which no assignor was expected to move partitions stops something.
LEAST_STOPPED_SHARE = 0.05


class MoveLearner:
    """Follows one group's rows and commands, and learns from its moves.

    `outcomes` are moves that were graded before, oldest first: learning uses them as stored, and rows up to the newest
    of them are not used again.
    """

    def __init__(self, profile: GroupProfile, settings: DecisionSettings, outcomes: Iterable[GradedMove]) -> None:
        self._profile = profile
        self._settings = settings
        self._grader = Grader(profile=profile, max_lag_seconds=settings.max_lag_seconds)
        self._target_utilization = TargetUtilization(
            most=settings.target_utilization, commit_interval_seconds=profile.commits_every_seconds
        )
        self._untaught = list(outcomes)
        self._taught_until = max((move.graded_at for move in self._untaught), default=None)
        self._graded: list[GradedMove] = []
        self._drained: tuple[GradedMove, ...] = ()
        self._learned: Learned | None = None
        self._similar: SimilarGroups | None = None
        self._pods: PodStartUp | None = None
        self._resumed_utilization: float | None = None
        if profile.capacity is not None:
            self.teach(profile.capacity)

    @property
    def learned(self) -> Learned:
        """The beliefs so far, from similar groups, pods and own moves; while the capacity is unknown, the priors."""
        own = self.own if self._pods is None else replace(self.own, pod_start_up=self._pods)
        return own if self._similar is None else own.starting_from(self._similar)

    def start_from(self, similar: SimilarGroups | None) -> None:
        """Take what similar groups have taught as the prior; None: what is assumed."""
        self._similar = similar

    def see_pods(self, pods: PodStartUp | None) -> None:
        """Take the start-up time that the group's pods show; None: they show none."""
        self._pods = pods

    @property
    def own(self) -> Learned:
        """The beliefs from assumed priors and the group's own moves alone, as they may teach other groups."""
        if self._learned is None:
            assumed = Learned.assumed(
                rebalance_pause_seconds=self._settings.rebalance_pause_prior_seconds,
                risk=self._settings.prices(ANY_CAPACITY).price_per_move,
            )
            return self._as_set(assumed)
        return self._learned

    def _as_set(self, learned: Learned) -> Learned:
        """The same beliefs; a start-up time that the owner has set is not learned."""
        return replace(learned, start_up_set="start_up_seconds" in self._profile.configured)

    def observe(self, row: GroupInterval, capacity: Capacity | None) -> None:
        """Take the next row; `capacity` is that of one replica as far as known by now."""
        if capacity is None:
            self._grader.observe(row, None)
            return
        self._target_utilization.observe(row, capacity.p20, likely=capacity.p50)
        self._take(self._grader.observe(row, capacity.p50))
        learned, target_utilization = self.teach(capacity), self._target_utilization.value
        if learned.target_utilization != target_utilization:
            learned = replace(learned, target_utilization=target_utilization)
        self._learned = learned

    def resume(self, target_utilization: float) -> None:
        """Go on with this target utilization, which rows have taught that are not observed again."""
        self._target_utilization.value = min(target_utilization, self._target_utilization.most)
        self._resumed_utilization = self._target_utilization.value
        if self._learned is not None:
            self._learned = replace(self._learned, target_utilization=self._resumed_utilization)

    def teach(self, capacity: Capacity) -> Learned:
        """The beliefs after all moves that are over, those that waited for a capacity included."""
        for move in self._grader.grade_waiting(capacity.p50):
            self._take(move)
        learned = self._learned
        if learned is None:
            learned = self._as_set(day_one(self._settings, capacity))
            learned = replace(learned, target_utilization=self._resumed_utilization)
        if self._untaught:
            late_price = self._settings.prices(capacity.p50).price_per_late_message
            for move in self._untaught:
                learned = learned.after(move.outcome, late_price=late_price)
            self._untaught.clear()
        self._learned = learned
        return learned

    def measured(self, stop: MeasuredPause) -> None:
        """Take the measured pause of a rebalance; the move that caused it is graded by it."""
        self._grader.measured(stop)

    def commanded(self, advice: Recommendation, *, now: datetime) -> None:
        """Watch the move that is advised for `now`, if there is one that can be graded."""
        if advice.action != "hold" and advice.execute_at <= now and advice.reason not in NOT_GRADED:
            self._grader.commanded(self._command(advice, now=now))

    def drain_outcomes(self) -> tuple[GradedMove, ...]:
        """The moves that were graded since the last call, oldest first."""
        self._drained, self._graded = tuple(self._graded), []
        return self._drained

    def keep_again(self) -> None:
        """What was drained last was not stored: it is drained again."""
        self._graded[:0], self._drained = self._drained, ()

    def retract(self, at: datetime) -> None:
        """Watch no move that was advised at that instant: nobody was told of it."""
        self._grader.retract(at)

    def _take(self, move: GradedMove | None) -> None:
        if move is not None and (self._taught_until is None or move.graded_at > self._taught_until):
            self._untaught.append(move)
            self._graded.append(move)

    def _command(self, advice: Recommendation, *, now: datetime) -> Command:
        rebalance_pause_seconds = advice.rebalance_impact.rebalance_pause_seconds
        moved_share = max(advice.rebalance_impact.moved_partition_fraction, LEAST_STOPPED_SHARE)
        carried = group_capacity(
            Replicas(advice.desired_replicas), partitions=self._profile.partitions, capacity=advice.capacity.p50
        )
        return Command(
            at=now,
            from_replicas=advice.current_replicas,
            to_replicas=advice.desired_replicas,
            rebalance_pause_seconds=rebalance_pause_seconds,
            late_messages=late_by_pause(
                Seconds(rebalance_pause_seconds),
                produce=MessagesPerSecond(advice.observed.produce_messages_per_second),
                capacity=carried,
                limit=Seconds(self._settings.max_lag_seconds),
            ),
            stopped_share=1.0 if self._profile.protocol == "eager" else moved_share,
            recommendation_id=advice.recommendation_id,
            promised=PromisedPrice(
                chosen=advice.chosen.total,
                stay=advice.stay.total,
                horizon_seconds=advice.horizon_seconds,
                currency=advice.currency,
            ),
        )
