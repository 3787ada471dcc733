"""Bars of parts that add up: one row for each of several things, cheapest first, with its sum in figures at its end."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from api.pictures.patterns import filled
from api.pictures.picture import Option, Theme, base, name_axis, value_axis


class Look(NamedTuple):
    """How a part is shown: its title, the number of its colour in the theme, and its pattern."""

    title: str
    colour: int
    pattern: str

    def style(self, theme: Theme, pattern: str | None = None) -> Option:
        """The style of its area, or of an area with another pattern."""
        return filled(theme, theme.series[self.colour], pattern or self.pattern)


class Row(NamedTuple):
    """One row: its name, whether it is the one to look at, its sum, and the words at its end."""

    name: str
    is_bold: bool
    total: float
    words: str


def bar(theme: Theme, look: Look, values: Sequence[Any]) -> Option:
    """One part in all rows; ECharts stacks what is negative to the left of 0."""
    return {
        "name": look.title,
        "type": "bar",
        "stack": "row",
        "barMaxWidth": 26,
        "itemStyle": look.style(theme) | {"borderColor": theme.page, "borderWidth": 1},
        "data": list(values),
    }


def stacked(theme: Theme, rows: Sequence[Row], bars: Sequence[Option], *, unit: str, room: int) -> Option:
    """The option of rows and their parts; `room` is that for the words at their ends, in pixels."""
    names: list[Option] = [
        {"value": row.name, "textStyle": {"fontWeight": "bold" if row.is_bold else "normal", "color": theme.text}}
        for row in rows
    ]
    option = base(theme)
    option["legend"] |= {"data": [each["name"] for each in bars]}
    option["tooltip"] |= {"axisPointer": {"type": "shadow"}}
    return option | {
        "grid": option["grid"] | {"right": room},
        "xAxis": value_axis(theme, unit, nameLocation="middle", nameGap=28),
        "yAxis": name_axis(theme, [], inverse=True) | {"data": names},
        "series": [*bars, _totals(theme, rows)],
    }


def _totals(theme: Theme, rows: Sequence[Row]) -> Option:
    """A mark where the parts of each row add up to, which is not the end of its bar where a part is negative."""
    return {
        "name": "Total",
        "type": "scatter",
        "symbol": "rect",
        "symbolSize": [2, 26],
        "itemStyle": {"color": theme.text},
        "data": [
            {
                "value": [row.total, number],
                "label": {"show": True, "position": "right", "formatter": row.words, "color": theme.text},
            }
            for number, row in enumerate(rows)
        ],
    }
