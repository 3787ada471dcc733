"""Instants on the command line: RFC 3339, a date, or `latest`; and the only clock of the process."""

from datetime import UTC, date, datetime

from cli.errors import InputError


def read_clock() -> datetime:
    """The present, in UTC. Code below the command line receives `now` as an argument and reads no clock."""
    return datetime.now(UTC)  # noqa: TID251  # the process entry point is where the clock is read


def parse_instant(text: str, *, option: str) -> datetime:
    """An instant in UTC from RFC 3339 (`2026-05-12T08:40:00Z`) or a date (its midnight).

    >>> parse_instant("2026-05-12T10:40:00+02:00", option="--now").isoformat()
    '2026-05-12T08:40:00+00:00'

    Errors: InputError naming the option, the value and the form; also for an instant without a zone, which could be
    hours off.
    """
    form = "write it as 2026-05-12T08:40:00Z"
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{option} {text!r} is no instant; {form}"
        raise InputError(message) from error
    if instant.tzinfo is not None:
        return instant.astimezone(UTC)
    if len(text) == len("2026-05-12"):
        return instant.replace(tzinfo=UTC)
    message = f"{option} {text!r} names no time zone; {form}"
    raise InputError(message)


def parse_date(text: str, *, option: str) -> date:
    """A day from `2026-05-12`.

    Errors: InputError naming the option, the value and the form.
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        message = f"{option} {text!r} is no date; write it as 2026-05-12"
        raise InputError(message) from error
