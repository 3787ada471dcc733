"""How good forecasts were, by how far they looked ahead: their error, and how often what came lay in their band."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from api.pictures.picture import Column, Option, Picture, Table, Theme, base, value_axis
from api.words import number
from forecasting.backtest import Backtest

NOMINAL_PERCENT = 90.0
# Lines differ by dash and by mark where their colours are not seen.
_DASHES = ("solid", "dashed", "dotted")
_MARKS = ("circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect")


def errors(judged: Sequence[Backtest], *, steps: Sequence[int], ours: str) -> Picture:
    """The error of each model at these steps, one a minute: its pinball loss as a share of what came on average."""

    def share(result: Backtest, step: int) -> float:
        return float(result.pinball_losses(steps=[step]).mean() / np.nanmean(result.actuals) * 100.0)

    table = _table(judged, steps, share)
    return Picture(
        name="forecast_errors",
        title="How far off forecasts were",
        sentence=_best_sentence(table, ours),
        table=table,
        draw=partial(_draw, ours=ours, quantity="pinball loss, % of the mean load", nominal=None),
    )


def coverages(judged: Sequence[Backtest], *, steps: Sequence[int], ours: str) -> Picture:
    """The share of what came that lay between p05 and p95 of each model at these steps, one a minute: 90 % is right."""
    table = _table(judged, steps, lambda result, step: float(result.band_coverages(steps=[step])[0] * 100.0))
    return Picture(
        name="forecast_coverages",
        title="How often what came lay in the 90 % band",
        sentence=_coverage_sentence(table, ours),
        table=table,
        draw=partial(_draw, ours=ours, quantity="inside the 90 % band, %", nominal=NOMINAL_PERCENT),
    )


def _table(judged: Sequence[Backtest], steps: Sequence[int], measure: Callable[[Backtest, int], float]) -> Table:
    """A row for each step and a column for each model; None where nothing is known of what came."""
    figures = [
        [measure(result, step) if np.isfinite(result.actuals[:, step - 1]).any() else None for step in steps]
        for result in judged
    ]
    columns = (
        Column(name="minutes_ahead", title="Minutes ahead"),
        *(Column(name=result.model, title=f"{result.model}, %") for result in judged),
    )
    return Table(columns=columns, rows=tuple(zip(steps, *figures, strict=True)))


def _best_sentence(table: Table, ours: str) -> str:
    """Ours beside the best of the others where forecasts look furthest."""
    known = [row for row, figure in enumerate(table.column(ours)) if figure is not None]
    if not known:
        return f"Nothing came yet that {ours} can be held against."
    figures = {column.name: table.column(column.name)[known[-1]] for column in table.columns}
    minutes, figure = figures.pop("minutes_ahead"), figures.pop(ours)
    begin = f"At {minutes} min ahead {ours} is off by {number(figure)} % of the mean load"
    best = min(((value, model) for model, value in figures.items() if value is not None), default=None)
    return begin + (f"; the best other model, {best[1]}, by {number(best[0])} %." if best is not None else ".")


def _coverage_sentence(table: Table, ours: str) -> str:
    known = [value for value in table.column(ours) if value is not None]
    if not known:
        return f"Nothing came yet that the band of {ours} can be held against."
    return f"Of what came, {number(min(known))} to {number(max(known))} % lay in the band of {ours}, and 90 % should."


def _draw(table: Table, theme: Theme, *, ours: str, quantity: str, nominal: float | None) -> Option:
    option = base(theme)
    minutes = table.column("minutes_ahead")
    lines = []
    for number_, column in enumerate(table.columns[1:]):
        colour = theme.series[number_ % len(theme.series)]
        lines.append(
            {
                "name": column.name,
                "type": "line",
                "symbol": _MARKS[number_ % len(_MARKS)],
                "symbolSize": 7,
                "lineStyle": {
                    "color": colour,
                    "type": _DASHES[number_ % len(_DASHES)],
                    "width": 3 if column.name == ours else 1.5,
                },
                "itemStyle": {"color": colour},
                "data": [list(pair) for pair in zip(minutes, table.column(column.name), strict=True)],
            }
        )
    if nominal is not None:
        lines.append(
            {
                "name": f"{nominal:g} %",
                "type": "line",
                "symbol": "none",
                "silent": True,
                "lineStyle": {"color": theme.text, "type": "dotted", "width": 1.5},
                "itemStyle": {"color": theme.text},
                "data": [[minute, nominal] for minute in minutes],
            }
        )
    return option | {
        "xAxis": value_axis(theme, "minutes ahead", nameLocation="middle", nameGap=28, min=0),
        "yAxis": value_axis(theme, quantity, scale=True),
        "series": lines,
    }
