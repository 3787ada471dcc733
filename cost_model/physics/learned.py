"""Estimates from a group's own moves: rebalance pause, risk of a move, kind of leave, target utilization.

On day one everything is a prior, with the source "assumed"; each graded move shifts it, and from the third on the
source is "measured".
"""

from dataclasses import dataclass, replace
from math import exp, log
from typing import Literal

Source = Literal["assumed", "measured"]

# A prior counts as much as this many moves.
PRIOR_MOVES = 3.0
# The prior of the rebalance pause counts less: groups differ a hundredfold, moves of one group by half, so that the
# first move weighs more than all of the prior.
PRIOR_PAUSES = 0.5
# Weight of a move in one direction for the other one, as a share of a move.
OTHER_DIRECTION = 0.5
# Samples come every 15 s, so that a stop under this many seconds cannot be distinguished from none.
LEAST_SEEN_SECONDS = 0.5
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

    `risk` is the price of one move beyond the model's expectation, in currency; `late_cost` the lateness of all moves;
    `target_utilization` the share of capacity that quiet minutes allow, None while nothing is known.
    """

    pause_scale_out: LogBelief
    pause_scale_in: LogBelief
    risk_prior: float
    risk_excess: float = 0.0
    late_cost: float = 0.0
    moves: int = 0
    ungraceful_seen: float = 0.0
    graceful_seen: float = 0.0
    start_up: LogBelief | None = None
    target_utilization: float | None = None

    @classmethod
    def assumed(cls, *, rebalance_pause_seconds: float, risk: float) -> "Learned":
        """Day one: the priors."""
        stop = LogBelief.around(rebalance_pause_seconds, weight=PRIOR_PAUSES)
        return cls(pause_scale_out=stop, pause_scale_in=stop, risk_prior=risk)

    @property
    def source(self) -> Source:
        """The source of the estimates: "measured" once the group's own moves outweigh the priors."""
        return "measured" if self.moves >= PRIOR_MOVES else "assumed"

    @property
    def risk(self) -> float:
        """The price of one move's risk: the prior, outweighed by the measured costs of moves beyond expectation."""
        known = (PRIOR_MOVES * self.risk_prior + self.risk_excess) / (PRIOR_MOVES + self.moves)
        return max(known, LEAST_RISK_SHARE * self.risk_prior)

    @property
    def usual_late_cost(self) -> float:
        """The cost of one move's lateness, in currency, expected or not: the prior risk, then the mean."""
        return (PRIOR_MOVES * self.risk_prior + self.late_cost) / (PRIOR_MOVES + self.moves)

    @property
    def ungraceful_share(self) -> float | None:
        """Share of leavers that leave ungracefully, or None before the first leave was seen."""
        seen = self.ungraceful_seen + self.graceful_seen
        return None if seen == 0.0 else (self.ungraceful_seen + PRIOR_UNGRACEFUL) / (seen + PRIOR_LEAVERS)

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
        start_up = self.start_up
        if outcome.start_up_seconds is not None and outcome.start_up_seconds > 0.0:
            start_up = (start_up or LogBelief.around(outcome.start_up_seconds)).seen(outcome.start_up_seconds)
        return replace(
            self,
            pause_scale_out=pause_scale_out,
            pause_scale_in=pause_scale_in,
            risk_excess=self.risk_excess + excess,
            late_cost=self.late_cost + late_price * late,
            moves=self.moves + 1,
            ungraceful_seen=self.ungraceful_seen + (outcome.ungraceful is True),
            graceful_seen=self.graceful_seen + (outcome.ungraceful is False),
            start_up=start_up,
        )
