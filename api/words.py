"""Figures in words, as pages and pictures show them: each with its unit; what is not known as that word, never as 0."""

import re
from datetime import datetime
from math import floor, log10

UNKNOWN = "unknown"


def number(value: float | None, *, digits: int = 3) -> str:
    """A figure to so many digits, thousands apart.

    >>> number(12345.6), number(0.01234), number(8), number(0.09999999), number(None)
    ('12,300', '0.0123', '8', '0.100', 'unknown')
    """
    if value is None:
        return UNKNOWN
    rounded = float(f"{value:.{digits - 1}e}")
    if rounded == 0:
        return "0"
    decimals = digits - 1 - floor(log10(abs(rounded)))
    return f"{rounded:,.{max(decimals, 0)}f}".removesuffix(f".{'0' * decimals}")


def amount(value: float | None, currency: str | None) -> str:
    """A price in its currency, or in pod-hours where nobody has named a price.

    >>> amount(0.97123, "USD"), amount(-1.5, "pod-hours"), amount(None, "USD")
    ('0.971 USD', '-1.50 pod-hours', 'unknown')
    """
    if value is None:
        return UNKNOWN
    return f"{number(value)} {currency}"


def duration(seconds: float | None) -> str:
    """A span in the largest unit that it fills.

    >>> [duration(seconds) for seconds in (0.4, 12, 90, 5400, 200_000, None)]
    ['0.4 s', '12 s', '90 s', '1.5 h', '2.3 d', 'unknown']
    """
    if seconds is None:
        return UNKNOWN
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length or (unit == "h" and seconds >= length):
            return f"{seconds / length:.1f} {unit}".replace(".0 ", " ")
    return f"{seconds:.1f} s".replace(".0 ", " ")


def instant(at: datetime | None) -> str:
    """An instant by the second, with its zone.

    >>> from datetime import UTC
    >>> instant(datetime(2026, 1, 5, 12, tzinfo=UTC))
    '2026-01-05 12:00:00 UTC'
    """
    return UNKNOWN if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def minute(at: datetime | None) -> str:
    """An instant by the minute, with its zone.

    >>> from datetime import UTC
    >>> minute(datetime(2026, 1, 5, 12, tzinfo=UTC))
    '2026-01-05 12:00 UTC'
    """
    return UNKNOWN if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def clock(at: datetime) -> str:
    """The minute of an instant, where its day and zone stand beside it.

    >>> from datetime import UTC
    >>> clock(datetime(2026, 1, 5, 12, tzinfo=UTC))
    '12:00'
    """
    return f"{at:%H:%M}"


def short(name: str, *, most: int = 32) -> str:
    """A name for a sentence: of a longer one its beginning and its end.

    >>> short("orders"), short("payments-" * 20 + "eu-west")
    ('orders', 'payments-payment...yments-eu-west')
    """
    half = (most - 3) // 2
    return name if len(name) <= most else f"{name[: most - 3 - half + 1]}...{name[-half:]}"


def code_in_words(code: str) -> str:
    """A code for machines as people read it.

    >>> code_in_words("CheaperToStay"), code_in_words("short_history")
    ('cheaper to stay', 'short history')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", code).replace("_", " ").lower()
