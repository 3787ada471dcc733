"""Policies against each other on the same load: what each pays for replicas, and how many messages are late."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from api.pictures.picture import Column, Option, Picture, Table, Theme, base, value_axis
from api.words import amount

# Whether a policy is one of others, of ours, or knew the future, which no policy does.
Part = Literal["rival", "ours", "bound"]
FRONT = "Best for their lateness"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfPolicy:
    """What one policy paid on one day, the last of which may be a part of a day, and the share of its late messages."""

    begins_at: datetime
    ends_at: datetime
    cost: float
    late_share: float

    @property
    def hours(self) -> float:
        """How long it is."""
        return (self.ends_at - self.begins_at) / timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One policy in a contest: its cost by item, the share of its messages that were late, and what else it did.

    `days` are empty where they are not known, as in a document that was written before there were any.
    """

    policy: str
    replicas: float
    late: float
    duplicates: float
    late_share: float
    wait_p99_seconds: float
    moves: int
    part: Part = "rival"
    days: tuple[DayOfPolicy, ...] = ()

    @property
    def total(self) -> float:
        """The sum of the items."""
        return self.replicas + self.late + self.duplicates


def league(standings: Sequence[Standing], *, currency: str) -> Picture:
    """Each policy as a point; a line joins those of which no other is both cheaper and less often late.

    Several may be ours, under different settings: the sentence is of the cheapest.
    """
    columns = (
        Column(name="policy", title="Policy"),
        Column(name="late_percent", title="Late messages, %"),
        Column(name="replicas", title=f"Cost of replicas, {currency}"),
        Column(name="late", title=f"Cost of late messages, {currency}"),
        Column(name="duplicates", title=f"Cost of duplicates, {currency}"),
        Column(name="total", title=f"Cost, {currency}"),
        Column(name="wait_p99_seconds", title="Wait that 99 % of messages stay under, s"),
        Column(name="moves", title="Moves"),
        Column(name="part", title="Part"),
    )
    rows = tuple(
        (
            each.policy,
            each.late_share * 100,
            each.replicas,
            each.late,
            each.duplicates,
            each.total,
            each.wait_p99_seconds,
            each.moves,
            each.part,
        )
        for each in standings
    )
    return Picture(
        name="league",
        title="What replicas cost, and how many messages are late",
        sentence=_sentence(standings, currency),
        table=Table(columns=columns, rows=rows),
        draw=partial(_draw, currency=currency),
    )


def _sentence(standings: Sequence[Standing], currency: str) -> str:
    ours = min((each for each in standings if each.part == "ours"), key=lambda each: each.total, default=None)
    rivals = sorted((each for each in standings if each.part == "rival"), key=lambda each: each.total)
    if ours is None or not rivals:
        return "There is nobody to compare with."
    best, costs = rivals[0], f"{ours.policy} costs {amount(ours.total, currency)} with all its items"
    others = f"{best.policy}, the cheapest of {len(rivals)} others, costs {amount(best.total, currency)}"
    bound = "".join(
        f" {each.policy} would cost {amount(each.total, currency)}." for each in standings if each.part == "bound"
    )
    return f"{costs}; {others}.{bound}"


def _draw(table: Table, theme: Theme, *, currency: str) -> Option:
    option = base(theme)
    option["tooltip"] |= {"trigger": "item"}
    return option | {
        "grid": option["grid"] | {"right": 96},
        "xAxis": value_axis(theme, "late messages, %", nameLocation="middle", nameGap=28, min=0),
        "yAxis": value_axis(theme, f"cost of replicas, {currency}", scale=True),
        "series": [
            _points(table, theme, "rival", "Others", symbol="circle", size=11, colour=theme.series[1]),
            _points(table, theme, "ours", "Ours", symbol="diamond", size=20, colour=theme.series[0]),
            _points(table, theme, "bound", "Knows the future", symbol="triangle", size=13, colour=theme.quiet),
            {
                "name": FRONT,
                "type": "line",
                "step": "end",
                "symbol": "none",
                "silent": True,
                "lineStyle": {"color": theme.quiet, "type": "dashed", "width": 1.5},
                "itemStyle": {"color": theme.quiet},
                "data": _front(table),
            },
        ],
    }


def _points(table: Table, theme: Theme, part: str, name: str, *, symbol: str, size: int, colour: str) -> Option:
    shown = table.columns[1:-1]
    return {
        "name": name,
        "type": "scatter",
        "symbol": symbol,
        "symbolSize": size,
        "itemStyle": {"color": colour, "borderColor": theme.page, "borderWidth": 1, "opacity": 1},
        "label": {
            "show": True,
            "position": "top",  # the front goes to the right and down, and strikes no name through
            "align": "left",
            "formatter": "{b}",
            "lineHeight": 14,  # as in legends
            "color": theme.text,
        },
        "labelLayout": {"$fn": "label_beside_others"},
        "dimensions": [{"name": column.name, "displayName": column.title} for column in shown],
        "encode": {"x": "late_percent", "y": "replicas", "tooltip": [column.name for column in shown]},
        "data": [{"name": row[0], "value": list(row[1:-1])} for row in table.rows if row[-1] == part],
    }


def _front(table: Table) -> list[list[float]]:
    """Corners of the staircase, left to right, of the policies that do not know the future."""
    points = zip(table.column("late_percent"), table.column("replicas"), table.column("part"), strict=True)
    corners: list[list[float]] = []
    for late, replicas, _ in sorted(point for point in points if point[2] != "bound"):
        if not corners or replicas < corners[-1][1]:
            corners.append([late, replicas])
    return corners
