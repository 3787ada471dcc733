"""A picture: a table, a sentence about it, and the function that draws it; and what all pictures have in common."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from typing import Any

# Most points of one series: a browser draws twenty such series in a tenth of a second, and a report stays small.
MOST_POINTS = 2000
# Functions that an option may name as {"$fn": NAME}; static/lagcast.js has them, JSON has none.
FUNCTIONS = frozenset({"bar_of_span", "label_beside_others", "label_of_day", "label_of_span", "rounded"})

Cell = str | float | bool | datetime | None
Option = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of a page in `#rrggbb`, those of series first to last; each differs from `page` by 3 to 1 or more."""

    name: str
    page: str
    text: str
    quiet: str
    line: str
    shade: str
    series: tuple[str, ...]
    bad: str
    good: str


# Okabe and Ito (2008), Color Universal Design, darkened on white until they differ from the page by 3 to 1.
LIGHT = Theme(
    name="light",
    page="#ffffff",
    text="#1c2430",
    quiet="#55606e",
    line="#d5dae0",
    shade="#e8ecf1",
    series=("#0072b2", "#c55a00", "#00805e", "#a8477f", "#6b7a00", "#3f7ea8"),
    bad="#c23b22",
    good="#00805e",
)
DARK = Theme(
    name="dark",
    page="#14181d",
    text="#e4e8ed",
    quiet="#a3adb9",
    line="#333c47",
    shade="#262e37",
    series=("#56b4e9", "#e69f00", "#2fc79a", "#dd8fbd", "#d6ca3c", "#8fb8d0"),
    bad="#ff7f66",
    good="#2fc79a",
)
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its name as in the API, units in it, and its title for people."""

    name: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a picture shows, as rows; None is a value that is not known."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def column(self, name: str) -> tuple[Any, ...]:
        """The values of one column, one for each row. Errors: ValueError on a name that no column has."""
        index = [column.name for column in self.columns].index(name)
        return tuple(row[index] for row in self.rows)

    def csv(self) -> str:
        """The table with a header of names; instants in RFC 3339, what is not known is empty."""
        text = StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow([column.name for column in self.columns])
        rows.writerows([_written(cell) for cell in row] for row in self.rows)
        return text.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One picture: `draw` makes its option from `table`; `sentence` says the same in words, for who cannot see it."""

    name: str
    title: str
    sentence: str
    table: Table
    draw: Callable[[Table, Theme], Option]

    def option(self, theme: Theme = LIGHT) -> Option:
        """The option for ECharts."""
        return self.draw(self.table, theme)


def millis(at: datetime) -> int:
    """An instant as ECharts' time axis takes it.

    >>> millis(datetime(1970, 1, 1, 0, 1, tzinfo=UTC))
    60000
    """
    return round(at.timestamp() * 1000)


def base(theme: Theme) -> Option:
    """What every option has: colours, the font of the page, patterns besides hue, and no movement."""
    return {
        "backgroundColor": "transparent",
        "color": list(theme.series),
        "textStyle": {"color": theme.text, "fontFamily": "system-ui, sans-serif"},
        "animation": False,
        "useUTC": True,
        "aria": {"enabled": True, "decal": {"show": False}},
        "grid": {"left": 8, "right": 16, "top": 40, "bottom": 8, "outerBoundsMode": "same"},
        "legend": {
            "type": "scroll",
            "icon": "roundRect",
            "itemWidth": 14,
            "itemHeight": 8,
            "top": 0,
            "left": 0,
            # Its own guess of a line's height is 4 where no font has Chinese signs, and letters are cut.
            "textStyle": {"color": theme.text, "lineHeight": 14},
            "inactiveColor": theme.quiet,
        },
        "tooltip": {
            "trigger": "axis",
            # Drawn, not HTML: the page's own policy lets no element have a style of its own.
            "renderMode": "richText",
            "backgroundColor": theme.page,
            "borderColor": theme.line,
            "textStyle": {"color": theme.text},
            "valueFormatter": {"$fn": "rounded"},
            "confine": True,
        },
    }


def value_axis(theme: Theme, name: str, **more: Any) -> Option:  # noqa: ANN401  # whatever an axis takes
    """An axis of figures with its quantity and unit."""
    return _axis(theme, name) | {"type": "value", "splitLine": {"lineStyle": {"color": theme.line}}} | more


def time_axis(theme: Theme, **more: Any) -> Option:  # noqa: ANN401  # whatever an axis takes
    """An axis of instants: hours, and the date where a day begins."""
    dates = dict.fromkeys(("year", "month", "day"), "{bold|{yyyy}-{MM}-{dd}}")
    formats = dates | {"hour": "{HH}:{mm}", "minute": "{HH}:{mm}", "second": "{HH}:{mm}:{ss}"}
    axis = _axis(theme, "")
    axis["axisLabel"] |= {"formatter": formats, "hideOverlap": True, "rich": {"bold": {"fontWeight": "bold"}}}
    return axis | {"type": "time", "splitLine": {"show": False}} | more


def name_axis(theme: Theme, names: Sequence[str], **more: Any) -> Option:  # noqa: ANN401  # whatever an axis takes
    """An axis of names, such as plans."""
    axis = _axis(theme, "") | {"type": "category", "data": list(names)}
    return axis | more


def _axis(theme: Theme, name: str) -> Option:
    return {
        "name": name,
        "nameTextStyle": {"color": theme.quiet, "align": "left"},
        "axisLabel": {"color": theme.quiet},
        "axisLine": {"lineStyle": {"color": theme.line}},
        "axisTick": {"lineStyle": {"color": theme.line}},
    }


def _written(cell: Cell) -> str | float:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(cell, bool):
        return str(cell).lower()
    return cell
