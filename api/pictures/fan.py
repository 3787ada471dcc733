"""The fan: what came, what was expected of it before, and what is expected now."""

from collections.abc import Sequence
from functools import partial

from api import schemas as wire
from api.pictures.picture import Column, Option, Picture, Table, Theme, millis, value_axis
from api.pictures.timeline import ENDS_AT, MINUTE, Span, expected_minutes, line, minutes, over_time, present, span_of
from api.words import UNKNOWN, clock, duration, number

_RATE = "produce_messages_per_second"


def fan(day: wire.GroupDay, advice: wire.RecommendationV1 | None, before: Sequence[wire.RecommendationV1]) -> Picture:
    """The produce rate of the day with the bands that were expected, and the forecast in force.

    `before` is advice of earlier instants, oldest first: each forecast is shown until the next one was made.
    """
    span = span_of(day, advice)
    came = {minute.ends_at: minute.produce_messages_per_second for minute in day.minutes}
    bands = {at: band for each in (*before, *([advice] if advice else ())) for _, at, band in expected_minutes(each)}
    rows = []
    for at in sorted(came.keys() | {at for at in bands if at > span.begins_at - MINUTE}):
        low, middle, high = bands.get(at, (None, None, None))
        rate = came.get(at)
        rows.append((at, rate, low, middle, high, _is_outside(rate, low, high)))
    columns = (
        ENDS_AT,
        Column(name="produce_messages_per_second", title="Produced, messages/s"),
        Column(name="p05", title="Expected at least, messages/s"),
        Column(name="p50", title="Expected, messages/s"),
        Column(name="p95", title="Expected at most, messages/s"),
        Column(name="outside", title="Outside of the band"),
    )
    table = Table(columns=columns, rows=tuple(rows))
    return Picture(
        name="fan",
        title="Produced and expected",
        sentence=_sentence(table, span),
        table=table,
        draw=partial(_draw, span=span),
    )


def _is_outside(rate: float | None, low: float | None, high: float | None) -> bool | None:
    return None if rate is None or low is None or high is None else not low <= rate <= high


def _sentence(table: Table, span: Span) -> str:
    known = [
        (at, rate) for at, rate in zip(table.column("ends_at"), table.column(_RATE), strict=True) if rate is not None
    ]
    now = f"{number(known[-1][1])} messages/s came in the minute until {clock(known[-1][0])}" if known else ""
    ahead = [
        (high, at)
        for at, high in zip(table.column("ends_at"), table.column("p95"), strict=True)
        if at > span.now and high
    ]
    peak = ""
    if ahead:
        (most, at), span_ahead = max(ahead), duration((span.ends_at - span.now).total_seconds())
        peak = f"at most {number(most)} are expected in the next {span_ahead}, at {clock(at)}"
    judged = [outside for outside in table.column("outside") if outside is not None]
    held = f"{1.0 - sum(judged) / len(judged):.0%} of {len(judged):,} minutes were inside of the band" if judged else ""
    told = "; ".join(part for part in (now, peak, held) if part) or f"the produce rate is {UNKNOWN}"
    return f"{told[0].upper()}{told[1:]}."


def _draw(table: Table, theme: Theme, *, span: Span) -> Option:
    at = table.column("ends_at")
    low, middle, high = (table.column(name) for name in ("p05", "p50", "p95"))
    width = [None if most is None else most - least for least, most in zip(low, high, strict=True)]
    came = minutes(at, table.column(_RATE))
    missed = [
        [millis(instant), rate]
        for instant, rate, outside in zip(at, table.column(_RATE), table.column("outside"), strict=True)
        if outside
    ]
    blue, ink = theme.series[0], theme.text
    bare = {"lineStyle": {"opacity": 0}, "tooltip": {"show": False}, "silent": True, "stack": "band"}
    option = over_time(theme, span, y_axis=value_axis(theme, "messages/s"))
    option["legend"] |= {"data": ["Produced", "Expected", "90 % band", "Outside of the band"]}
    option["series"] = [
        line("5 %", minutes(at, low), **bare),
        line(
            "90 % band",
            minutes(at, width),
            areaStyle={"color": blue, "opacity": 0.22},
            itemStyle={"color": blue},
            **bare,
        ),
        line("Expected at least", minutes(at, low), lineStyle={"color": blue, "width": 1, "opacity": 0.5}),
        line("Expected at most", minutes(at, high), lineStyle={"color": blue, "width": 1, "opacity": 0.5}),
        line(
            "Expected",
            minutes(at, middle),
            lineStyle={"color": blue, "width": 2, "type": "dashed"},
            itemStyle={"color": blue},
        ),
        line("Produced", came, lineStyle={"color": ink, "width": 1.5}, itemStyle={"color": ink})
        | {"markLine": present(theme, span)},
        {
            "name": "Outside of the band",
            "type": "scatter",
            "symbol": "diamond",
            "symbolSize": 5,
            "itemStyle": {"color": theme.bad},
            "data": missed,
        },
    ]
    return option
