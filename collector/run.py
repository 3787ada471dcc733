"""The collector's loop: a round every 15 seconds, and a file every minute or, for live use, every round."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Protocol

import structlog

from collector.errors import AdapterError, RejectedError
from collector.kafka_admin import Collected
from collector.sample import OffsetSample
from forecasting.columns import BASE_INTERVAL_SECONDS

# A round starts this long before its grid instant. Its rows carry the instant of the reading, and belong to the
# interval that ends at the next grid instant: read at 12:00:14.0 or 12:00:14.3, they count for 12:00:15. Aimed at the
# grid itself, they would fall on either side of it, two into one interval and none into the next.
_LEAD = timedelta(seconds=1)
# One file per minute and group set: 1,440 a day; one file per round would be 5,760.
FILE_SECONDS = 60
# After its clock was set back, the loop waits for so much longer than until the old time comes again: messages of those
# minutes would be counted within the seconds between two stamps, 315 s of them within 15 s as 21 times the load. Of
# readings that are more than a minute apart no rate is made.
_GAP_SECONDS = 60
# Kafka lists the groups that its user may describe, and leaves out the others.
NO_GROUP = RejectedError(
    "no group is listed: there is none yet, or this user may see none; grant this user Describe on Group '*'"
)

_log = structlog.get_logger(__name__)


class Collector(Protocol):
    """The source of samples."""

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        """One sample for each partition of the groups (None: of all groups), and an error for each group that failed.

        Errors: AdapterError if the source did not answer at all.
        """
        ...


def collect_forever(
    collector: Collector,
    sink: Callable[[Sequence[OffsetSample]], object],
    *,
    groups: Sequence[str] | None = None,
    interval_seconds: int = BASE_INTERVAL_SECONDS,
    file_seconds: int = FILE_SECONDS,
    silence: AdapterError | None = NO_GROUP,
    clock: Callable[[], datetime],
    wait: Callable[[float], bool],
    on_collected: Callable[[Collected], object] = lambda _: None,
) -> None:
    """Collect on the grid of `interval_seconds`, pass each `file_seconds` of samples to `sink` until `wait` is true.

    The result of each round, errors of groups included, is passed to `on_collected` first. `silence` is the error of a
    round over all groups that has neither samples nor errors; None where such rounds are usual.

    `wait(seconds)` sleeps that long and is true if the loop should stop: `threading.Event().wait`, with the event set
    by a signal handler. At the end the remaining samples are passed to `sink` as well. If the clock is set back, the
    loop waits, for rows of a time already written would count twice, and a minute longer, for a row without a rate.
    A source that has something new at certain instants only, as its rounds tell, is read just after them.
    Errors: AdapterError of the first round, when usually the settings are wrong; later ones are logged, and the other
    groups go on. A group's error is logged when it begins and when it is over, not in every round between. An error of
    the sink ends the loop.
    """
    batch: list[OffsetSample] = []
    grid_at = _next_grid(clock() + _LEAD, interval_seconds)
    has_read = False
    due_at: datetime | None = None
    failures = _Failures()
    try:
        while True:
            until_round = grid_at - _LEAD - clock()
            if has_read and until_round > timedelta(seconds=interval_seconds) + _LEAD:
                grid_at += timedelta(seconds=interval_seconds * ceil(_GAP_SECONDS / interval_seconds))
                _log.warning("clock_set_back", next_round_at=grid_at.isoformat())
                until_round = grid_at - _LEAD - clock()
            later_seconds = _later_seconds(grid_at - _LEAD, due_at, interval_seconds)
            if wait(max(0.0, until_round.total_seconds() + later_seconds)):
                break
            if clock() < grid_at - 2 * _LEAD:  # set back while the loop waited
                continue
            try:
                collected = collector.collect(groups, now=clock())
                has_read = True
            except AdapterError as error:
                if not has_read:
                    raise
                _log.warning("round_failed", error=str(error))
            else:
                due_at = collected.due_at
                batch += collected.samples
                on_collected(collected)
                is_silent = groups is None and not (collected.samples or collected.errors)
                failures.report((silence,) if is_silent and silence is not None else collected.errors)
            usually_now = clock() - timedelta(seconds=later_seconds)
            following_at = max(
                grid_at + timedelta(seconds=interval_seconds), _next_grid(usually_now + _LEAD, interval_seconds)
            )
            if _file_number(following_at, file_seconds) != _file_number(grid_at, file_seconds):
                whole, batch = batch, []
                sink(whole)
            grid_at = following_at
    finally:
        if batch:
            sink(batch)


class _Failures:
    """The errors of the last round, so that only changes are logged: a line every 15 s would be 5,760 a day."""

    def __init__(self) -> None:
        self._told: frozenset[tuple[str | None, str]] = frozenset()

    def report(self, errors: Sequence[AdapterError]) -> None:
        """Log the errors that are new in this round, and the groups whose error is over."""
        current = frozenset((error.group, str(error)) for error in errors)
        for error in errors:
            if (error.group, str(error)) not in self._told:
                _log.warning("group_failed", group=error.group, error=str(error))
        over = {group for group, _ in self._told} - {group for group, _ in current}
        for group in sorted(over, key=str):
            _log.info("group_failure_over", group=group)
        self._told = current


def _next_grid(at: datetime, interval_seconds: int) -> datetime:
    """The first grid instant after `at`.

    >>> _next_grid(datetime(2026, 1, 5, 12, 0, 14, 200_000, tzinfo=UTC), 15).isoformat()
    '2026-01-05T12:00:15+00:00'
    """
    return datetime.fromtimestamp((at.timestamp() // interval_seconds + 1) * interval_seconds, tz=UTC)


def _later_seconds(usual_at: datetime, due_at: datetime | None, interval_seconds: int) -> float:
    """How much later than usual a round is, so that it comes when something new is due; less than an interval.

    >>> usual_at = datetime(2026, 1, 5, 12, 0, 14, tzinfo=UTC)
    >>> [_later_seconds(usual_at, usual_at + timedelta(seconds=due), 15) for due in (-26, 0, 7.5)]
    [4.0, 0.0, 7.5]
    """
    return 0.0 if due_at is None else (due_at - usual_at).total_seconds() % interval_seconds


def _file_number(grid_at: datetime, file_seconds: int) -> int:
    """The number of a grid instant's file: 12:00:15 to 12:01:00 share one, as each reading precedes its instant."""
    return -int(-grid_at.timestamp() // file_seconds)
