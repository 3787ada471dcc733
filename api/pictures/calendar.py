"""When in the week: the mean of a quantity in each hour of each weekday."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from math import isfinite
from statistics import fmean

from api.pictures.picture import Column, Option, Picture, Table, Theme, base, name_axis
from api.words import number

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS = range(24)
UNKNOWN = "Nothing measured"


def calendar(
    measured: Iterable[tuple[datetime, float | None]],
    quantity: Column,
    *,
    title: str,
    zone: tzinfo = UTC,
    zone_name: str = "UTC",
) -> Picture:
    """A cell for each hour of the week; where nothing was measured it is struck through.

    What is None or no number is taken as not measured. The title of the quantity names its unit.
    """
    seen: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for at, value in measured:
        if value is not None and isfinite(value):
            local = at.astimezone(zone)
            seen[local.weekday(), local.hour].append(value)
    cells = [(day, hour) for day in range(7) for hour in HOURS]
    rows = tuple((WEEKDAYS[day], hour, fmean(seen[day, hour]) if (day, hour) in seen else None) for day, hour in cells)
    return Picture(
        name="calendar",
        title=title,
        sentence=_sentence(rows, quantity, zone_name),
        table=Table(
            columns=(Column(name="weekday", title="Day"), Column(name="hour", title=f"Hour, {zone_name}"), quantity),
            rows=rows,
        ),
        draw=partial(_draw, zone_name=zone_name),
    )


def _sentence(rows: Sequence[tuple[str, int, float | None]], quantity: Column, zone_name: str) -> str:
    known = [(value, f"{day} {hour:02}:00") for day, hour, value in rows if value is not None]
    if not known:
        return f"{quantity.title}: nothing was measured."
    (high, busiest), (low, quietest) = max(known), min(known)
    unknown = len(rows) - len(known)
    missing = f" Nothing was measured in {unknown} of {len(rows)} hours." if unknown else ""
    range_ = f"{number(high)} at most, {busiest} {zone_name}, and {number(low)} at least, {quietest}"
    return f"{quantity.title}: {range_}.{missing}"


def _draw(table: Table, theme: Theme, *, zone_name: str) -> Option:
    quantity = table.columns[-1]
    days, hours, values = (table.column(column.name) for column in table.columns)
    known = [value for value in values if value is not None]
    least, most = (min(known), max(known)) if known else (0.0, 0.0)
    unknown = [
        [hour, WEEKDAYS.index(day)] for day, hour, value in zip(days, hours, values, strict=True) if value is None
    ]
    option = base(theme)
    del option["legend"]
    option["tooltip"] |= {"trigger": "item"}
    return option | {
        "xAxis": name_axis(theme, [f"{hour:02}" for hour in HOURS])
        | {"name": f"hour of the day, {zone_name}", "nameLocation": "middle", "nameGap": 28},
        "yAxis": name_axis(theme, WEEKDAYS, inverse=True),
        "visualMap": {
            "type": "continuous",
            "seriesIndex": 0,
            "min": least,
            "max": most if most > least else least + 1.0,  # a scale without a length has no colours
            "text": [f"{number(most)} {quantity.title}", number(least)],
            "inRange": {"color": [theme.shade, theme.series[0]]},
            "orient": "horizontal",
            "left": 0,
            "top": 0,
            "itemHeight": 120,
            "calculable": False,
            "textStyle": {"color": theme.text},
        },
        "series": [
            {
                "type": "heatmap",
                "name": quantity.title,
                "itemStyle": {"borderColor": theme.page, "borderWidth": 1},
                "data": [
                    [hour, WEEKDAYS.index(day), value]
                    for day, hour, value in zip(days, hours, values, strict=True)
                    if value is not None
                ],
            },
            {
                "type": "scatter",
                "name": UNKNOWN,
                "symbol": "path://M0,10L10,0",
                "symbolSize": 10,
                "silent": True,
                "itemStyle": {"color": "transparent", "borderColor": theme.quiet, "borderWidth": 1.5},
                "data": unknown,
            },
        ],
    }
