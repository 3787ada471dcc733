"""Probing: a group that was never at its limit runs on fewer replicas for some minutes, to show what they can do.

Without a backlog, rows show only what replicas did, not what they could have done. Plans fill such a group a few per
cent further than it was ever seen to be filled, and where bursts are rare it never is: it stays several times too large
for days. A probe removes replicas one useful count at a time, at a quiet time, and holds each count until the rows have
shown it. What it may cost if replicas can do no more than they have shown is known beforehand, and bounded.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from cost_model.physics.calibrate import LOOK_BACK_MINUTES, seconds_to_show, shown_by_replica, was_behind
from cost_model.physics.capacity import SATURATED_LAG_SECONDS
from cost_model.physics.skew import carried_by_count
from forecasting.history import MINUTE_SECONDS
from forecasting.units import SECONDS_PER_HOUR
from recommender.deciding.context import DecisionContext
from recommender.deciding.pace import last_grown_at, rest_seconds, taken_back
from recommender.deciding.proposal import Proposal

# A probe that fails has to cost less than the replicas that it removes earn within this time. What it teaches is
# remembered for a day, and nearly all probes of a group succeed: only the last one fails.
EARNED_WITHIN_HOURS = 12.0
# Quiet is a quarter of an hour that is no busier than the middle minute of the last day; the tenth lets a steady load
# be probed too.
QUIET_MINUTES = 15
QUIET_FACTOR = 1.1
# A count is worth a probe if it fills replicas so much further than they were seen to be filled.
TELLING_FACTOR = 1.05
# A count that others were soon added to is not gone to again for so long. On a growing load each probe was taken back
# after three minutes, and begun again after six: 90 moves in seven hours.
TAKEN_BACK_MINUTES = 60
# A capacity that was never reached is measured again this often.
MEASURED_WITHIN_SECONDS = 300.0
# Rows come every 15 s: so long the lag may grow unseen.
ROW_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _CapacityProbe:
    """A count to go to, and what it costs if replicas can do no more than they have shown; prices in currency.

    `removed` replicas are saved against the count that what is known would call for.
    """

    aim: int
    removed: int
    each_messages_per_second: float
    late_messages: float
    price: float
    earned_per_hour: float

    @property
    def pays(self) -> bool:
        """True if the price is earned within the stated time."""
        return self.price <= EARNED_WITHIN_HOURS * self.earned_per_hour


def probed(proposal: Proposal, context: DecisionContext) -> Proposal:
    """The next step of a probe, or the wait for what the present count shows; else the proposal as it is.

    A plan that removes replicas now is a step as good as any.
    """
    removes = proposal.target < context.replicas and proposal.command_at <= context.now
    if proposal.choice is None or removes or not _may_probe(context):
        return proposal
    shows_at = _shows_at(context)
    waiting = shows_at is not None and context.now < shows_at
    probe = _probe(context, most=context.replicas if waiting else context.replicas - 1)
    if probe is None or not probe.pays:
        return proposal
    smaller = [count for count in context.useful_replicas if count < context.replicas]
    target = context.replicas if waiting or not smaller else smaller[-1]
    if target < context.replicas and _was_taken_back(context, target):
        return proposal
    return replace(
        proposal,
        target=target,
        command_at=context.now,
        reason="probing",
        binding_rule="probing",
        sentences=(*proposal.sentences, _sentence(probe, context)),
    )


def _shows_at(context: DecisionContext) -> datetime | None:
    """When the present count has shown what it can: settled is enough where it is no fuller than ever."""
    if context.last_move_at is None:
        return None
    shown = shown_by_replica(context.capacity)
    (carried,) = carried_by_count(context.profile, (context.replicas,), capacity=shown)
    rest = rest_seconds(context.profile, context.settings, removing=True)
    if (_quiet_rate(context) or 0.0) > TELLING_FACTOR * carried:
        rest = max(rest, seconds_to_show(context.profile) + MEASURED_WITHIN_SECONDS)
    return context.last_move_at + timedelta(seconds=rest)


def _may_probe(context: DecisionContext) -> bool:
    """True where the capacity is only a lower bound, nothing is wrong, and the time is quiet.

    Nor may anything wait beyond what the stop of a removal has left.
    """
    capacity, rate = context.capacity, _quiet_rate(context)
    if capacity.source != "unsaturated_windows" or context.finding is not None or rate is None:
        return False
    most_messages = (SATURATED_LAG_SECONDS + _own_stop_seconds(context)) * rate
    waits = context.backlog_messages > most_messages or context.behind_seconds > 0.0
    return not waits and not was_behind(context.history, context.profile, shown=shown_by_replica(capacity))


def _own_stop_seconds(context: DecisionContext) -> float:
    """Seconds of the load that wait after a removal because it stopped the group, however many replicas are left."""
    shows_at = _shows_at(context)
    settles = shows_at is not None and context.now < shows_at and last_grown_at(context.history) is None
    return context.learned.pause_scale_in.value if settles else 0.0


def _was_taken_back(context: DecisionContext, replicas: int) -> bool:
    """True if the group went to so few within the last hour, and grew again before that could show anything."""
    minutes = int((seconds_to_show(context.profile) + MEASURED_WITHIN_SECONDS) // MINUTE_SECONDS)
    return taken_back(context.history, replicas=replicas, within_minutes=minutes, look_back_minutes=TAKEN_BACK_MINUTES)


def _quiet_rate(context: DecisionContext) -> float | None:
    """The produce rate of the last quarter of an hour; None where it is busier than the middle minute of the day."""
    day = context.history.produce_messages_per_second[-LOOK_BACK_MINUTES:]
    latest = day[-QUIET_MINUTES:]
    if not np.isfinite(latest).any():
        return None
    rate, middle = float(np.nanmean(latest)), float(np.nanmedian(day))
    return rate if 0.0 < rate <= QUIET_FACTOR * middle else None


def _probe(context: DecisionContext, *, most: int) -> _CapacityProbe | None:
    """The largest count up to `most` that shows more than is known, with its price; None where there is none."""
    rate, shown = _quiet_rate(context), shown_by_replica(context.capacity)
    counts = [count for count in context.useful_replicas if count <= most]
    if rate is None or not counts:
        return None
    carried = carried_by_count(context.profile, counts, capacity=shown)
    telling = [count for count, did in zip(counts, carried.tolist(), strict=True) if rate > TELLING_FACTOR * did]
    if not telling:
        return None
    aim = telling[-1]
    late_messages = _late_if_wrong(context, carried=float(carried[counts.index(aim)]))
    prices, removed = context.settings.prices(context.capacity.p50), _without_probing(context) - aim
    start_up_hours = context.profile.start_up_seconds / SECONDS_PER_HOUR
    return _CapacityProbe(
        aim=aim,
        each_messages_per_second=rate / carried[counts.index(aim)] * shown,
        late_messages=late_messages,
        price=late_messages * prices.price_per_late_message
        + 2.0 * context.learned.risk
        + removed * start_up_hours * prices.price_per_replica_hour,
        removed=removed,
        earned_per_hour=removed * prices.price_per_replica_hour,
    )


def _without_probing(context: DecisionContext) -> int:
    """The count that carries the expected rate by what is known, or the present one if that is larger."""
    wanted = _highest_expected(context) / context.settings.target_utilization
    carried = carried_by_count(context.profile, context.useful_replicas, capacity=context.capacity.p20)
    enough = int(np.searchsorted(carried, wanted))
    return max(context.replicas, context.useful_replicas[min(enough, carried.size - 1)])


def _late_if_wrong(context: DecisionContext, *, carried: float) -> float:
    """Late messages of the way there and back, if the smaller group can do no more than it has shown, `carried`.

    The lag is noticed when it exceeds a commit interval, two seconds and the stop of the removal, and grows for a row
    and a start-up more; the move back stops the group once again. All that arrives from then on is late until all
    replicas have caught up.
    """
    profile, limit = context.profile, context.settings.max_lag_seconds
    produced = max(_highest_expected(context), carried)
    growth = 1.0 - carried / produced
    pause = context.learned.pause_scale_out.value
    noticed = profile.commits_every_seconds / 2.0 + SATURATED_LAG_SECONDS + context.learned.pause_scale_in.value
    grown = 0.0 if growth == 0.0 else noticed + growth * (ROW_SECONDS + profile.start_up_seconds)
    (most,) = carried_by_count(profile, context.useful_replicas[-1:], capacity=context.capacity.p20)
    drain = produced / max(float(most) - produced, 0.01 * float(most))
    late_before = max(0.0, grown - limit)
    late_after = max(0.0, grown + pause - limit) - late_before
    late_seconds = (late_before / growth if late_before > 0.0 else 0.0) + late_after
    removing = max(0.0, context.learned.pause_scale_in.value - limit)
    return produced * (late_seconds + (late_before + late_after) * drain + removing * (1.0 + drain))


def _highest_expected(context: DecisionContext) -> float:
    """The produce rate that is expected at most while one count shows what it can do."""
    ahead = context.forecast.path(0.95)[context.passed_minutes :]
    minutes = int(seconds_to_show(context.profile) // MINUTE_SECONDS) + 1
    return max(_quiet_rate(context) or 0.0, float(ahead[:minutes].max(initial=0.0)))


def _sentence(probe: _CapacityProbe, context: DecisionContext) -> str:
    hours, shown = probe.price / probe.earned_per_hour, shown_by_replica(context.capacity)
    return (
        f"Probing: no replica was ever at its limit, and each has shown {shown:,.0f}/s; at {probe.aim} each would have "
        f"to do {probe.each_messages_per_second:,.0f}/s. If that is too much, about "
        f"{probe.late_messages:,.0f} messages are late and the way there and back costs {probe.price:.3f} "
        f"{context.settings.unit_of_cost}, which {probe.removed} replicas less earn in {hours:.1f} h."
    )
