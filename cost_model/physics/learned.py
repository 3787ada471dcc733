"""Estimates from a group's own moves: rebalance pause, risk of a move, kind of leave, target utilization.

On day one everything is a prior, with the source "assumed", or "similar_groups" where groups of the same kind have
taught a better one; each graded move shifts it, and from the third on the source is "measured". The start-up time is
"detected" where only the pods of the workload show it.
"""

from dataclasses import dataclass, replace
from math import exp, log
from typing import Literal

from cost_model.physics.pods import PodStartUp
from cost_model.physics.similar import SimilarGroups

Source = Literal["assumed", "similar_groups", "measured"]
StartUpSource = Literal["assumed", "similar_groups", "detected", "measured"]

# A prior counts as much as this many moves.
PRIOR_MOVES = 3.0
# The prior of the rebalance pause counts less: groups differ a hundredfold, moves of one group by half, so that the
# first move weighs more than all of the prior.
PRIOR_PAUSES = 0.5
# What similar groups have taught counts as much as one move: the second move of the group itself outweighs it.
SIMILAR_MOVES = 1.0
# Weight of a move in one direction for the other one, as a share of a move.
OTHER_DIRECTION = 0.5
# Samples come every 15 s, so that a stop under this many seconds cannot be distinguished from none.
LEAST_SEEN_SECONDS = 0.5
# Kubernetes notes the steps of a pod in whole seconds.
LEAST_START_UP_SECONDS = 1.0
# Leavers send LeaveGroup unless they are killed: before any was seen, one in thirty is assumed to be ungraceful, with
# the weight of one and a half moves. One ungraceful leave makes it 0.42.
PRIOR_LEAVERS = 1.5
PRIOR_UNGRACEFUL = 0.05
# Even after harmless moves, the next one may not be: a tenth of the prior risk stays.
LEAST_RISK_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBelief:
    """A positive quantity assumed log-normal: the mean of its logarithm, and its weight in moves."""

    mean_log: float
    weight: float

    @classmethod
    def around(cls, value: float, *, weight: float = PRIOR_MOVES) -> "LogBelief":
        """The prior before anything was observed."""
        return cls(mean_log=log(value), weight=weight)

    @property
    def value(self) -> float:
        """The quantity's median."""
        return exp(self.mean_log)

    def seen(self, value: float, *, weight: float = 1.0) -> "LogBelief":
        """The belief after one more observation."""
        total = self.weight + weight
        return LogBelief(mean_log=(self.mean_log * self.weight + log(value) * weight) / total, weight=total)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveOutcome:
    """One move that is over: its expected effects, and those that the rows show.

    `rebalance_pause_seconds` is the whole group's work that was lost, in seconds of the load; `late_messages` those
    that waited longer than promised while it settled; None where a lack of replicas hides the effect of the move.
    `ungraceful` is true if leavers were removed only when their session ran out; None where no member left or this
    could not be measured. `start_up_seconds` is None unless replicas were added up to the advised count.
    `advised_as` is the id of the advice for the move; None: the move was not advised, and nothing was expected.
    """

    from_replicas: int
    to_replicas: int
    expected_rebalance_pause_seconds: float
    rebalance_pause_seconds: float | None
    expected_late_messages: float
    late_messages: float | None
    ungraceful: bool | None = None
    start_up_seconds: float | None = None
    advised_as: str | None = None

    @property
    def up(self) -> bool:
        """True if replicas were added."""
        return self.to_replicas > self.from_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The beliefs of one group.

    `risk` is the price of one move beyond the model's expectation, in currency;
    `target_utilization` the share of capacity that quiet minutes allow, None while nothing is known. `pause_prior` is
    the part of both pauses that was assumed; `similar` is what has taken its place, None where nothing has.
    `start_up_seen` is the start-up time in the group's own moves, `pod_start_up` that of its pods; neither is used
    where the owner has set one, `start_up_set`.
    """

    pause_scale_out: LogBelief
    pause_scale_in: LogBelief
    risk_prior: float
    risk_excess: float = 0.0
    moves: int = 0
    ungraceful_seen: float = 0.0
    graceful_seen: float = 0.0
    start_up_seen: LogBelief | None = None
    target_utilization: float | None = None
    pause_prior: LogBelief | None = None
    similar: SimilarGroups | None = None
    pod_start_up: PodStartUp | None = None
    start_up_set: bool = False

    @classmethod
    def assumed(cls, *, rebalance_pause_seconds: float, risk: float) -> "Learned":
        """Day one: the priors."""
        stop = LogBelief.around(rebalance_pause_seconds, weight=PRIOR_PAUSES)
        return cls(pause_scale_out=stop, pause_scale_in=stop, risk_prior=risk, pause_prior=stop)

    def starting_from(self, similar: SimilarGroups) -> "Learned":
        """The beliefs with what similar groups have taught in place of the assumed; own moves keep their weight."""
        return replace(
            self,
            pause_scale_out=self._restarted(self.pause_scale_out, similar.pause_scale_out_seconds),
            pause_scale_in=self._restarted(self.pause_scale_in, similar.pause_scale_in_seconds),
            pause_prior=None,
            similar=similar,
        )

    def _restarted(self, pause: LogBelief, prior_seconds: float) -> LogBelief:
        """The pause with this prior in place of the assumed one."""
        if self.pause_prior is None:
            return pause
        own_weight = pause.weight - self.pause_prior.weight
        own = pause.mean_log * pause.weight - self.pause_prior.mean_log * self.pause_prior.weight
        total = own_weight + SIMILAR_MOVES
        return LogBelief(mean_log=(own + log(prior_seconds) * SIMILAR_MOVES) / total, weight=total)

    @property
    def source(self) -> Source:
        """The source of the estimates: "measured" once the group's own moves outweigh the priors."""
        if self.moves >= PRIOR_MOVES:
            return "measured"
        return "assumed" if self.similar is None else "similar_groups"

    @property
    def start_up(self) -> LogBelief | None:
        """The start-up time that plans use: that of own moves, else of the pods, else of similar groups.

        None: that of the profile, as set or assumed.
        """
        if self.start_up_set:
            return None
        if self.start_up_seen is not None:
            return self.start_up_seen
        if self.pod_start_up is not None:
            return LogBelief.around(max(self.pod_start_up.start_up_seconds, LEAST_START_UP_SECONDS))
        if self.similar is not None and self.similar.start_up_seconds is not None:
            return LogBelief.around(self.similar.start_up_seconds, weight=SIMILAR_MOVES)
        return None

    @property
    def start_up_source(self) -> StartUpSource:
        """The source of `start_up`: "measured" from the first move of the group's own on; "assumed" for None."""
        if self.start_up is None:
            return "assumed"
        if self.start_up_seen is not None:
            return "measured"
        return "similar_groups" if self.pod_start_up is None else "detected"

    @property
    def risk(self) -> float:
        """The price of one move's risk: the prior, outweighed by the measured costs of moves beyond expectation."""
        prior = self.risk_prior if self.similar is None else self.similar.risk_share * self.risk_prior
        known = (PRIOR_MOVES * prior + self.risk_excess) / (PRIOR_MOVES + self.moves)
        return max(known, LEAST_RISK_SHARE * self.risk_prior)

    @property
    def ungraceful_share(self) -> float | None:
        """Share of leavers that leave ungracefully, None before one was seen here or in similar groups."""
        seen, shared = self.leavers_seen, None if self.similar is None else self.similar.ungraceful_share
        if shared is not None:
            return (self.ungraceful_seen + shared * PRIOR_LEAVERS) / (seen + PRIOR_LEAVERS)
        return None if seen == 0.0 else (self.ungraceful_seen + PRIOR_UNGRACEFUL) / (seen + PRIOR_LEAVERS)

    @property
    def leavers_seen(self) -> float:
        """Leaves of which it was seen whether they were graceful."""
        return self.ungraceful_seen + self.graceful_seen

    @property
    def own_pauses_seconds(self) -> tuple[float, float] | None:
        """The pauses of the group's own moves, up and down, without any prior; None before the first was measured."""
        prior = self.pause_prior
        if prior is None or self.pause_scale_out.weight <= prior.weight:
            return None
        up, down = (
            exp((pause.mean_log * pause.weight - prior.mean_log * prior.weight) / (pause.weight - prior.weight))
            for pause in (self.pause_scale_out, self.pause_scale_in)
        )
        return up, down

    def after(self, outcome: MoveOutcome, *, late_price: float) -> "Learned":
        """The beliefs after one more move."""
        pause_scale_out, pause_scale_in = self.pause_scale_out, self.pause_scale_in
        if outcome.rebalance_pause_seconds is not None:
            stop = max(outcome.rebalance_pause_seconds, LEAST_SEEN_SECONDS)
            own, other = (1.0, OTHER_DIRECTION) if outcome.up else (OTHER_DIRECTION, 1.0)
            pause_scale_out = pause_scale_out.seen(stop, weight=own)
            pause_scale_in = pause_scale_in.seen(stop, weight=other)
        # Unknown values are taken as expected.
        late = outcome.expected_late_messages if outcome.late_messages is None else outcome.late_messages
        excess = late_price * (late - outcome.expected_late_messages)
        start_up = self.start_up_seen
        if outcome.start_up_seconds is not None and outcome.start_up_seconds > 0.0:
            start_up = (start_up or LogBelief.around(outcome.start_up_seconds)).seen(outcome.start_up_seconds)
        return replace(
            self,
            pause_scale_out=pause_scale_out,
            pause_scale_in=pause_scale_in,
            risk_excess=self.risk_excess + excess,
            moves=self.moves + 1,
            ungraceful_seen=self.ungraceful_seen + (outcome.ungraceful is True),
            graceful_seen=self.graceful_seen + (outcome.ungraceful is False),
            start_up_seen=start_up,
        )
