"""A small fleet with a group of each kind that decisions distinguish: two hours of its rows, and settings."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import exp, sin

from forecasting.history import GroupInterval
from tests.feature_folder import steady_row

BEGAN_AT = datetime(2026, 5, 4, 10, tzinfo=UTC)
FIRST_AT = BEGAN_AT + timedelta(hours=2)
SECOND_AT = FIRST_AT + timedelta(minutes=15)

CONFIG = """\
decision: {price_per_replica_hour: 0.1}
groups:
  "*": {capacity_messages_per_second_per_replica: 1000}
  "off": {mode: "off"}
  zero: {scale_to_zero: {enabled: true}}
  learned: {capacity_messages_per_second_per_replica: null}
  bound: {capacity_messages_per_second_per_replica: null}
"""
# Groups that move every ten minutes: three teach the others of their kind what a rebalance takes.
TEACHERS = ("teacher-a", "teacher-b", "teacher-c", "teacher-d")
DECIDED = (
    *("bound", "broken", "eager", "growing", "idle", "incremental", "learned", "nothing-known", "pupil", "silent"),
    *(*TEACHERS, "zero", "ü/ %"),
)


def rows_between(since: datetime, until: datetime) -> Iterator[GroupInterval]:
    """The rows of all groups that end after `since` and no later than `until`."""
    for step in range(1, int((until - BEGAN_AT).total_seconds()) // 15 + 1):
        at = BEGAN_AT + timedelta(seconds=15 * step)
        if at > since:
            yield from _rows(step, at)


def _rows(step: int, at: datetime) -> Iterator[GroupInterval]:
    swing = 1.0 + 0.1 * sin(step / 37.0) + 0.02 * ((7919 * step) % 13 - 6) / 6
    yield _row("bound", at, rate=3000.0 * swing)
    yield _row("eager", at, rate=6000.0 * swing, group_protocol="classic", group_assignor="range")
    yield _row("growing", at, rate=2000.0 * exp(step / 450.0), members=6)
    yield _row("idle", at, rate=0.0)
    yield _row("incremental", at, rate=4000.0 * swing, group_protocol="consumer", group_assignor="uniform")
    yield _at_its_limit(step, at)
    yield _row("nothing-known", at, rate=None, lag_messages=None, lag_seconds=None, members=None)
    yield _row("off", at, rate=2000.0)
    yield _row("pupil", at, rate=5000.0 * swing)
    yield _row("ü/ %", at, rate=11_000.0 * swing)
    yield _row("zero", at, rate=0.0 if step > 120 else 500.0)
    yield _row("broken", at, rate=4000.0)
    if step % 100 == 0:
        yield _row("broken", at, rate=4000.0)  # twice the same interval, which is refused
    if at <= FIRST_AT - timedelta(minutes=40):
        yield _row("silent", at, rate=4000.0)
    for number, teacher in enumerate(TEACHERS):
        yield _moving(teacher, number, step, at, rate=(4000.0 + 500.0 * number) * swing)


def _moving(group: str, number: int, step: int, at: datetime, *, rate: float) -> GroupInterval:
    """A group that goes from eight members to ten and back, each time with a stop of some seconds."""
    since_move = step % 40
    stopped_seconds = (6.0 + number) * max(0.0, 1.0 - since_move / 3.0) if step >= 40 else 0.0
    members = 10 if step // 40 % 2 else 8
    return _row(group, at, rate=rate, members=members, lag_messages=rate * (2.5 + stopped_seconds))


def _at_its_limit(step: int, at: datetime) -> GroupInterval:
    """A group that was late for ten minutes, so that its rows show what a replica can do."""
    behind = max(0, min(step - 200, 40) - max(0, step - 240) * 2)
    return _row(
        "learned",
        at,
        rate=14_000.0 if 200 <= step < 240 else 7000.0,
        consume_messages_per_second=12_000.0 if behind else 7000.0,
        lag_messages=17_500.0 + 30_000.0 * behind,
        lag_seconds=2.5 + 4.0 * behind,
    )


def _row(group: str, at: datetime, *, rate: float | None, **changes: object) -> GroupInterval:
    steady = steady_row(group, at)
    known: dict[str, object] = {
        **{name: getattr(steady, name) for name in GroupInterval.__dataclass_fields__},
        "produce_messages_per_second": rate,
        "consume_messages_per_second": rate,
        "lag_messages": None if rate is None else 2.5 * rate,
    }
    return GroupInterval(**(known | changes))  # type: ignore[arg-type]  # rows check their types
