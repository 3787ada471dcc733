"""Causes: why messages wait, told from the rows since they began to."""

from cost_model.physics.skew import carried_by_count
from forecasting.history import GroupInterval
from recommender.deciding.context import DecisionContext
from recommender.deciding.recommendation import LagCause

# A group that consumes less than this share of what its replicas carry stands still: commits come late by a row.
STANDING_STILL = 0.1
# One row shows throughput to about 15 %; replicas that do less than this share of what they carry have become weaker.
WEAKENED = 0.8


def cause_of(context: DecisionContext) -> LagCause | None:
    """The cause of most of the messages that wait beyond the promise; None where none does, or none is seen.

    In each row since the backlog began, messages are left because the group stood still (`restart_backlog`), because
    its replicas did less than they carry (`capacity_drop`), or because more was produced than they carry (`load`). A
    backlog that began before the newest quarter of an hour, and drains, has none.
    """
    limit = context.settings.max_lag_seconds * context.produce_messages_per_second
    if context.at_zero or context.backlog_messages <= limit:
        return None
    left: dict[LagCause, float] = {"restart_backlog": 0.0, "capacity_drop": 0.0, "load": 0.0}
    for row in _rows_behind(context, limit):
        cause, messages = _left_in(row, context)
        left[cause] += messages
    most = max(left, key=lambda cause: left[cause])
    return most if left[most] > 0.0 else None


def _rows_behind(context: DecisionContext, limit: float) -> list[GroupInterval]:
    """The newest rows, from the last one on in which no more than the limit waited."""
    rows = list(context.history.recent)
    kept = context.profile.commits_every_seconds * context.produce_messages_per_second
    within = [
        place for place, row in enumerate(rows) if row.lag_messages is not None and row.lag_messages <= limit + kept
    ]
    return rows[within[-1] + 1 :] if within else rows


def _left_in(row: GroupInterval, context: DecisionContext) -> tuple[LagCause, float]:
    """Why the row left messages, and how many."""
    rate, done = row.produce_messages_per_second, row.consume_messages_per_second
    came = context.produce_messages_per_second if rate is None else rate
    seconds = row.interval_seconds
    (carried,) = carried_by_count(context.profile, (row.members or 0,), capacity=context.capacity.p50)
    if row.in_rebalance or not row.members or done is None or done < STANDING_STILL * carried:
        return "restart_backlog", max(0.0, came - (done or 0.0)) * seconds
    if done < WEAKENED * min(carried, came):
        return "capacity_drop", (min(carried, came) - done) * seconds
    return "load", max(0.0, came - float(carried)) * seconds
