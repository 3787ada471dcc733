"""How good the forecasts of a day were, by how far they looked ahead: their error, and what came inside their band."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from api import schemas as wire
from api.pictures.picture import Column, Option, Picture, Table, Theme, base, value_axis
from api.pictures.timeline import expected_minutes
from api.words import number

# Minutes ahead up to which forecasts are judged together.
BORDERS = (5, 15, 30, 60)
NOMINAL_PERCENT = 90.0


class _Judged(NamedTuple):
    """One minute of one forecast: so many minutes ahead, what was expected, and what came."""

    ahead: int
    low: float
    middle: float
    high: float
    constant: float
    came: float


def accuracy(day: wire.GroupDay, before: Sequence[wire.RecommendationV1]) -> Picture:
    """Forecasts of earlier advice against what came; beside them the error of a rate that stays as it was."""
    judged = list(_judged(day, before))
    columns = (
        Column(name="minutes_ahead", title="Minutes ahead, up to"),
        Column(name="error_percent", title="Error of the forecast, %"),
        Column(name="constant_error_percent", title="Error of a constant rate, %"),
        Column(name="inside_percent", title="Inside of the 90 % band, %"),
        Column(name="minutes", title="Minutes"),
    )
    rows = []
    for since, until in zip((0, *BORDERS), BORDERS, strict=False):
        these = [each for each in judged if since < each.ahead <= until]
        came = sum(each.came for each in these)
        if came > 0.0:
            error = sum(abs(each.came - each.middle) for each in these)
            constant = sum(abs(each.came - each.constant) for each in these)
            inside = sum(each.low <= each.came <= each.high for each in these)
            rows.append((until, 100 * error / came, 100 * constant / came, 100 * inside / len(these), len(these)))
    table = Table(columns=columns, rows=tuple(rows))
    return Picture(
        name="accuracy", title="How good the forecasts were", sentence=_sentence(table), table=table, draw=_draw
    )


def _judged(day: wire.GroupDay, before: Sequence[wire.RecommendationV1]) -> Iterator[_Judged]:
    came = {minute.ends_at: minute.produce_messages_per_second for minute in day.minutes}
    for advice in before:
        constant = advice.observed.produce_messages_per_second
        for ahead, ends_at, (low, middle, high) in expected_minutes(advice):
            rate = came.get(ends_at)
            if rate is not None:
                yield _Judged(ahead, low, middle, high, constant, rate)


def _sentence(table: Table) -> str:
    if not table.rows:
        return "No forecast of the last day can be held against what came yet."
    ahead, error, constant, inside, _ = (table.column(column.name)[-1] for column in table.columns)
    return (
        f"Up to {ahead} minutes ahead forecasts were off by {number(error)} % of what came, a constant rate by "
        f"{number(constant)} %; {number(inside)} % came inside of the 90 % band."
    )


def _draw(table: Table, theme: Theme) -> Option:
    ahead = table.column("minutes_ahead")
    looks = (
        ("Error of the forecast", "error_percent", theme.series[0], "solid"),
        ("Error of a constant rate", "constant_error_percent", theme.series[1], "dashed"),
        ("Inside of the 90 % band", "inside_percent", theme.series[2], "solid"),
    )
    option = base(theme)
    lines: list[Option] = [
        {
            "name": name,
            "type": "line",
            "symbolSize": 7,
            "lineStyle": {"color": colour, "type": dash},
            "itemStyle": {"color": colour},
            "data": [list(point) for point in zip(ahead, table.column(column), strict=True)],
        }
        for name, column, colour, dash in looks
    ]
    lines[-1]["markLine"] = {
        "silent": True,
        "symbol": "none",
        "lineStyle": {"color": theme.quiet, "type": "dotted"},
        "label": {"formatter": "90 %", "color": theme.quiet, "position": "insideEndTop"},
        "data": [{"yAxis": NOMINAL_PERCENT}],
    }
    return option | {
        "xAxis": value_axis(theme, "minutes ahead", nameLocation="middle", nameGap=28, min=0),
        "yAxis": value_axis(theme, "%", min=0),
        "series": lines,
    }
