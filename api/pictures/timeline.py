"""What the pictures of one group's day share: the span of their axis, its colours, and where the present is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api import schemas as wire
from api.pictures.picture import Column, Option, Theme, base, millis, time_axis

# Room for the figures of the axis, the same in all pictures, so that an instant stands above itself in the next one.
LEFT_PIXELS = 64
# How far a picture looks ahead, where nothing is advised: as far as advice does by default.
_AHEAD = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ENDS_AT = Column(name="ends_at", title="Minute until (UTC)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From the first instant that is shown to the last one, with the present between them."""

    begins_at: datetime
    now: datetime
    ends_at: datetime


def span_of(day: wire.GroupDay, advice: wire.RecommendationV1 | None) -> Span:
    """From the first thing that is known of the day to the end of the forecast."""
    known = [each[0] for each in (_firsts(day.minutes, "ends_at"), _firsts(day.standings, "since_at")) if each]
    ahead = _AHEAD if advice is None else timedelta(seconds=advice.forecast.horizon_seconds)
    return Span(begins_at=min(known, default=day.since_at), now=day.until_at, ends_at=day.until_at + ahead)


def over_time(theme: Theme, span: Span, *, y_axis: Option) -> Option:
    """An option with the axis of time of that span, and one of figures."""
    option = base(theme)
    return option | {
        "grid": {"left": LEFT_PIXELS, "right": 16, "top": 56, "bottom": 28},
        "xAxis": time_axis(theme, min=millis(span.begins_at), max=millis(span.ends_at)),
        "yAxis": y_axis,
    }


def step_line(name: str, data: list[list[Any]], **more: Any) -> Option:  # noqa: ANN401  # whatever a series takes
    """A line that keeps its height until the next point; None breaks it."""
    return line(name, data, step="end", **more)


def line(name: str, data: list[list[Any]], **more: Any) -> Option:  # noqa: ANN401  # whatever a series takes
    """A line through points (instant, value); None breaks it."""
    return {"name": name, "type": "line", "showSymbol": False, "connectNulls": False, "data": data} | more


def minutes(ends_at: Sequence[datetime], values: Sequence[float | None]) -> list[list[float | None]]:
    """The points of a series of minutes; where minutes are missing between two of them, the line is broken."""
    points: list[list[float | None]] = []
    before: datetime | None = None
    for at, value in zip(ends_at, values, strict=True):
        if before is not None and at - before > MINUTE:
            points.append([millis(before + MINUTE), None])
        points.append([millis(at), None if value is None else round(value, 6)])
        before = at
    return points


def expected_minutes(
    advice: wire.RecommendationV1,
) -> Iterator[tuple[int, datetime, tuple[float, float, float]]]:
    """Of each minute of a forecast: how many ahead it is, its end, and p05, p50 and p95.

    A forecast of longer steps has the same ones in all minutes of a step.
    """
    paths, step_minutes = advice.forecast.produce_messages_per_second, max(1, advice.forecast.step_seconds // 60)
    first = advice.issued_at.replace(second=0, microsecond=0)
    for step, band in enumerate(zip(paths.p05, paths.p50, paths.p95, strict=True)):
        for ahead in range(step * step_minutes + 1, (step + 1) * step_minutes + 1):
            yield ahead, first + ahead * MINUTE, band


def unseen(day: wire.GroupDay, *, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The spans from `since` to `until`, of a minute and more, of which the day has no minute."""
    known_until = since
    ends = [*((minute.ends_at - MINUTE, minute.ends_at) for minute in day.minutes), (until, until)]
    for begins_at, ends_at in ends:
        if begins_at - known_until >= MINUTE:
            yield known_until, begins_at
        known_until = ends_at


def present(theme: Theme, span: Span) -> Option:
    """A mark at the present, for one of the series."""
    return {
        "silent": True,
        "symbol": "none",
        "lineStyle": {"color": theme.quiet, "type": "dashed"},
        "label": {"formatter": "now", "color": theme.quiet, "position": "end", "rotate": 0, "distance": 2},
        "data": [{"xAxis": millis(span.now)}],
    }


def _firsts(items: tuple[Any, ...], name: str) -> list[datetime]:
    return [getattr(items[0], name)] if items else []
