"""Policies day by day on the same load: what each has paid, and how many of its messages were late."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle

from api.pictures.league import DayOfPolicy, Part, Standing
from api.pictures.picture import Cell, Column, Option, Picture, Table, Theme, base, millis, time_axis, value_axis
from api.pictures.timeline import LEFT_PIXELS, line
from api.words import amount, number

_HOURS_PER_DAY = 24
# Lines of rivals differ in more than their colour; ours and the bound have the marks of the league.
_MARKS = ("circle", "rect")
_DASHES = ("solid", "dashed", "dotted")


def by_day(standings: Sequence[Standing], *, currency: str) -> tuple[Picture, ...]:
    """What each has paid, and how many messages were late, under one cursor; shaded are the days that ours lost.

    One of the standings is ours, and all have the same days. No picture where there is nobody to compare with, or no
    second day: the league says all of a single one.
    """
    parts = {each.policy: each.part for each in standings}
    if not {"ours", "rival"} <= set(parts.values()) or len(standings[0].days) < 2:
        return ()
    # A policy may pay ten times what another does: where equal distances are equal ratios, each is seen.
    cost_axis = {"name": f"cost of a day, {currency}, log scale", "type": "log", "logBase": 2}
    return (
        Picture(
            name="days",
            title="What each policy has paid, day by day",
            sentence=_sentence_on_costs(standings, currency),
            table=_table(standings, lambda day: day.cost, currency),
            draw=partial(_draw, parts=parts, axis=cost_axis),
        ),
        Picture(
            name="late-days",
            title="How many messages were late, day by day",
            sentence=_sentence_on_late(standings),
            table=_table(standings, lambda day: day.late_share * 100, "%"),
            draw=partial(_draw, parts=parts, axis={"name": "late messages, %", "min": 0}),
        ),
    )


def _table(standings: Sequence[Standing], figure: Callable[[DayOfPolicy], float], unit: str) -> Table:
    """A row for each day: the figure of every policy, who paid least without knowing the future, and if ours lost."""
    (ours,) = (each for each in standings if each.part == "ours")
    columns = (
        Column(name="begins_at", title="Day from (UTC)"),
        Column(name="hours", title="Hours"),
        *(Column(name=each.policy, title=f"{each.policy}, {unit}") for each in standings),
        Column(name="paid_least", title="Paid least"),
        Column(name="lost", title=f"Lost by {ours.policy}"),
    )
    rows: list[tuple[Cell, ...]] = []
    for index, day in enumerate(ours.days):
        best = _best_rival(standings, index)
        lost = best.days[index].cost < day.cost
        figures = [figure(each.days[index]) for each in standings]
        rows.append((day.begins_at, day.hours, *figures, best.policy if lost else ours.policy, lost))
    return Table(columns=columns, rows=tuple(rows))


def _best_rival(standings: Sequence[Standing], index: int) -> Standing:
    return min((each for each in standings if each.part == "rival"), key=lambda each: each.days[index].cost)


def _sentence_on_costs(standings: Sequence[Standing], currency: str) -> str:
    (ours,) = (each for each in standings if each.part == "ours")
    best = [_best_rival(standings, index) for index in range(len(ours.days))]
    more = [day.cost - rival.days[index].cost for index, (day, rival) in enumerate(zip(ours.days, best, strict=True))]
    lost = sum(each > 0 for each in more)
    last = ours.days[-1]
    part = "" if last.hours == _HOURS_PER_DAY else f" The last day is {number(last.hours)} h long."
    if not lost:
        return f"{ours.policy} has paid least on each of {len(more)} days.{part}"
    most = more.index(max(more))
    which = "The day that it lost is shaded:" if lost == 1 else "The days that it lost are shaded; it lost most on"
    return (
        f"{ours.policy} has paid least on {len(more) - lost} of {len(more)} days.{part} {which} "
        f"{ours.days[most].begins_at:%Y-%m-%d}, {amount(more[most], currency)} to {best[most].policy}."
    )


def _sentence_on_late(standings: Sequence[Standing]) -> str:
    worst = {each.policy: max(day.late_share for day in each.days) * 100 for each in standings}
    (ours,) = (each.policy for each in standings if each.part == "ours")
    rivals = [each.policy for each in standings if each.part == "rival"]
    best = min(rivals, key=lambda policy: worst[policy])
    who = best if len(rivals) == 1 else f"{best}, the best of {len(rivals)} others in this,"
    return (
        f"On its worst day {ours} had {number(worst[ours])} % of its messages late, "
        f"and {who} had {number(worst[best])} %."
    )


def _draw(table: Table, theme: Theme, *, parts: Mapping[str, Part], axis: Option) -> Option:
    begins = [millis(at) for at in table.column("begins_at")]
    ends = [begin + round(hours * 3_600_000) for begin, hours in zip(begins, table.column("hours"), strict=True)]
    option = base(theme)
    del option["legend"]["icon"]  # so that it has the line and the mark of each
    option["legend"] |= {"itemWidth": 28}
    option["tooltip"] |= {"order": "valueAsc", "axisPointer": {"label": {"formatter": {"$fn": "label_of_day"}}}}
    looks = _looks(theme, parts)
    series = []
    for policy, look in looks.items():
        values = (value if value > 0 or axis.get("type") != "log" else None for value in table.column(policy))
        points = [
            [(begin + end) // 2, value, begin, end] for begin, end, value in zip(begins, ends, values, strict=True)
        ]
        # A point is in the middle of its day, so that the cursor finds the day on which it stands.
        series.append(line(policy, points, showSymbol=True, encode={"x": 0, "y": 1, "tooltip": 1}) | look)
        if parts[policy] == "ours":
            lost = zip(begins, ends, table.column("lost"), strict=True)
            series[-1]["markArea"] = {
                "silent": True,
                "itemStyle": {"color": theme.quiet, "opacity": 0.15},
                "data": [[{"xAxis": begin}, {"xAxis": end}] for begin, end, is_lost in lost if is_lost],
            }
    days = time_axis(theme, min=min(begins, default=None), max=max(ends, default=None))
    days["axisTick"] |= {"customValues": [*begins, *ends[-1:]]}
    days["axisLabel"] |= {"customValues": [(begin + end) // 2 for begin, end in zip(begins, ends, strict=True)]}
    days["axisLabel"] |= {"formatter": "{yyyy}-{MM}-{dd}", "margin": 12}
    return option | {
        "grid": {"left": LEFT_PIXELS, "right": 40, "top": 56, "bottom": 32},
        "xAxis": days,
        "yAxis": value_axis(theme, **axis),
        "series": series,
    }


def _looks(theme: Theme, parts: Mapping[str, Part]) -> dict[str, Option]:
    """How each policy's line is drawn, by its name: ours widest and above the others."""
    colours = (*theme.series[1:5], theme.text)  # the last of the series is too near to the first, which is ours
    of_rivals = zip(cycle(colours), cycle(_MARKS), cycle(_DASHES), strict=False)
    looks: dict[str, Option] = {}
    for policy, part in parts.items():
        width, size, above = 1.5, 8, 2
        if part == "ours":
            colour, mark, dash = theme.series[0], "diamond", "solid"
            width, size, above = 3.0, 13, 3
        elif part == "bound":
            colour, mark, dash = theme.quiet, "triangle", "dashed"
        else:
            colour, mark, dash = next(of_rivals)
        looks[policy] = {
            "symbol": mark,
            "symbolSize": size,
            "z": above,
            "lineStyle": {"color": colour, "width": width, "type": dash},
            "itemStyle": {"color": colour},
        }
    return looks
