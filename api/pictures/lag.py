"""Lag in seconds over the day, with the promise, rebalances behind it, and what nobody saw left open."""

from functools import partial

from api import schemas as wire
from api.pictures.picture import Column, Option, Picture, Table, Theme, millis, value_axis
from api.pictures.timeline import ENDS_AT, MINUTE, Span, line, minutes, over_time, present, span_of
from api.words import clock, duration

# A logarithm has no 0: what is less stands at the bottom.
LEAST_SECONDS = 0.1


def lag(day: wire.GroupDay, advice: wire.RecommendationV1 | None) -> Picture:
    """The lag of each minute, and how much of it was in a rebalance."""
    columns = (
        ENDS_AT,
        Column(name="lag_seconds", title="Lag, s"),
        Column(name="lag_messages", title="Lag, messages"),
        Column(name="in_rebalance_fraction", title="Part in a rebalance"),
    )
    rows = tuple(
        (minute.ends_at, minute.lag_seconds, minute.lag_messages, minute.in_rebalance_fraction)
        for minute in day.minutes
    )
    table = Table(columns=columns, rows=rows)
    return Picture(
        name="lag",
        title="Lag",
        sentence=_sentence(table, day.max_lag_seconds),
        table=table,
        draw=partial(_draw, span=span_of(day, advice), promise=day.max_lag_seconds),
    )


def _sentence(table: Table, promise: float | None) -> str:
    known = [
        (seconds, at)
        for at, seconds in zip(table.column("ends_at"), table.column("lag_seconds"), strict=True)
        if seconds is not None
    ]
    if not known:
        return "The lag of the last day is not known."
    highest, at = max(known)
    told = f"The highest lag was {duration(highest)}, in the minute until {clock(at)}"
    if promise is not None:
        kept = sum(seconds <= promise for seconds, _ in known)
        told += f"; {kept:,} of {len(known):,} minutes were within the promise of {duration(promise)}"
    rebalancing = sum(share > 0.0 for share in table.column("in_rebalance_fraction"))
    return f"{told}; {rebalancing} had a rebalance in them."


def _draw(table: Table, theme: Theme, *, span: Span, promise: float | None) -> Option:
    instants = table.column("ends_at")
    values = [None if seconds is None else max(seconds, LEAST_SECONDS) for seconds in table.column("lag_seconds")]
    points = minutes(instants, values)
    shares = zip(instants, table.column("in_rebalance_fraction"), strict=True)
    axis = value_axis(theme, "seconds", type="log", min=LEAST_SECONDS)
    option = over_time(theme, span, y_axis=axis)
    colour = theme.series[0]
    areas = [
        [
            {"xAxis": millis(at - MINUTE), "itemStyle": {"color": theme.series[1], "opacity": 0.3}},
            {"xAxis": millis(at)},
        ]
        for at, share in shares
        if share > 0.0
    ]
    option["series"] = [
        line("Lag", points, lineStyle={"color": colour, "width": 1.5}, itemStyle={"color": colour})
        | {"markArea": {"silent": True, "data": areas}, "markLine": _marks(theme, span, promise)}
    ]
    return option


def _marks(theme: Theme, span: Span, promise: float | None) -> Option:
    marks = present(theme, span)
    if promise is not None:
        label = {"formatter": f"promise {duration(promise)}", "position": "insideStartTop", "color": theme.bad}
        marks["data"].append({"yAxis": promise, "lineStyle": {"color": theme.bad}, "label": label})
    return marks
