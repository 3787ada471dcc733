"""Windows: hours in which a group is not made smaller, or not moved at all, despite any saving."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

Effect = Literal["no_scale_in", "no_moves"]

# Longer than a week, a window that opens weekly would never close.
LONGEST_SECONDS = 7 * 86400.0
_SOME_INSTANT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One window that opens again and again. Errors: ValueError for a schedule or a time zone that is none."""

    schedule: str
    """Opening times, in the five fields of cron: minute, hour, day of month, month, day of week. `0 22 * * 5` is Friday
    at 22:00. No default: quiet hours differ."""

    duration_seconds: float
    """Seconds that it stays open: up to 604800, a week."""

    effect: Effect = "no_scale_in"
    """`no_scale_in`: nothing is removed; `no_moves`: nothing is added either. Default: the former, which costs replicas
    and no lateness."""

    time_zone: str = "UTC"
    """Time zone of the schedule, such as `Europe/Berlin`; it keeps daylight saving time. Default: UTC."""

    def __post_init__(self) -> None:
        if not 0 < self.duration_seconds <= LONGEST_SECONDS:
            message = f"duration_seconds is {self.duration_seconds:g}; it has to be above 0 and at most 604800, a week"
            raise ValueError(message)
        try:
            zone = ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            message = f"time_zone is {self.time_zone!r}, which is not known; one is Europe/Berlin"
            raise ValueError(message) from error
        if len(self.schedule.split()) != 5:
            message = f"schedule is {self.schedule!r}; it has to have the five fields of cron, such as 0 22 * * 5"
            raise ValueError(message)
        try:
            next(CronSim(self.schedule, _SOME_INSTANT.astimezone(zone)))
        except (CronSimError, StopIteration) as error:
            reason = str(error) or "it never comes"
            message = f"schedule is {self.schedule!r}, which is not a valid cron schedule ({reason}); one is 0 22 * * 5"
            raise ValueError(message) from error

    def opens_after(self, instant: datetime) -> datetime:
        """The next opening later than `instant`."""
        return next(CronSim(self.schedule, instant.astimezone(ZoneInfo(self.time_zone)))).astimezone(UTC)

    def closes_after(self, instant: datetime) -> datetime | None:
        """The end of the opening at `instant`; None where it is closed. Openings that overlap count as one."""
        length = timedelta(seconds=self.duration_seconds)
        opened = self.opens_after(instant - length)
        if opened > instant:
            return None
        while (again := self.opens_after(opened)) <= instant:
            opened = again
        return opened + length

    def forbids(self, *, removing: bool) -> bool:
        """True if a move in that direction has to wait while the window is open."""
        return removing or self.effect == "no_moves"


def closed_by(windows: Iterable[Window], instant: datetime, *, removing: bool) -> tuple[Window, datetime] | None:
    """The window that forbids a move in that direction at `instant` and closes last, and when it closes; None: none."""
    standing = [
        (closes_at, window)
        for window in windows
        if window.forbids(removing=removing) and (closes_at := window.closes_after(instant)) is not None
    ]
    if not standing:
        return None
    closes_at, window = max(standing, key=lambda each: each[0])
    return window, closes_at


def open_until(windows: Iterable[Window], instant: datetime, latest: datetime, *, removing: bool) -> datetime:
    """End of the time in which a move allowed at `instant` may wait: `latest`, or earlier where a window opens."""
    opening = [window.opens_after(instant) for window in windows if window.forbids(removing=removing)]
    return min([latest, *opening])
