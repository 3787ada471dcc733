"""Replicas over the day: the group's, those that were advised, and what others would have had, hindsight among them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from api import schemas as wire
from api.pictures.patterns import filled
from api.pictures.picture import Cell, Column, Option, Picture, Table, Theme, millis, value_axis
from api.pictures.timeline import Span, over_time, present, span_of, step_line
from api.words import clock, code_in_words, number

_QUARTER = timedelta(minutes=15)
HAS, ADVISED, HINDSIGHT, PAID = "members", "desired_replicas", "hindsight_replicas", "paid"
OVER, UNDER = "More than needed", "Fewer than needed"
# Of the scalers of a ledger these are drawn at first; all of them can be chosen in the legend.
SHOWN = ("hpa-behavior-2000", "keda-2000")


def replicas(day: wire.GroupDay, advice: wire.RecommendationV1 | None) -> Picture:
    """The counts where they changed; those of simulated scalers as means of a quarter of an hour."""
    span = span_of(day, advice)
    scalers = tuple(name for name in (day.quarters[-1].replicas if day.quarters else {}) if name != PAID)
    series: dict[str, dict[datetime, float | None]] = {
        HAS: _minutes(day, HAS),
        ADVISED: _advised(day, advice, span),
        HINDSIGHT: _minutes(day, HINDSIGHT),
    }
    for scaler in scalers:
        series[scaler] = _of_scaler(day, scaler)
    instants = sorted({at for values in series.values() for at in values})
    columns = (
        Column(name="at", title="From (UTC)"),
        Column(name=HAS, title="Members"),
        Column(name=ADVISED, title="Advised replicas"),
        Column(name=HINDSIGHT, title="Cheapest replicas, known afterwards"),
        *(Column(name=scaler, title=f"{scaler}, simulated") for scaler in scalers),
    )
    rows = tuple(_rows(instants, series))
    return Picture(
        name="replicas",
        title="Replicas",
        sentence=_sentence(day, series, advice),
        table=Table(columns=columns, rows=rows),
        draw=partial(_draw, span=span, useful=() if advice is None else advice.useful_replicas),
    )


def _minutes(day: wire.GroupDay, name: str) -> dict[datetime, float | None]:
    """The counts of this name where they changed, and None where nothing was seen."""
    found: dict[datetime, float | None] = {}
    before: tuple[datetime, int | None] | None = None
    for minute in day.minutes:
        begins_at = minute.ends_at - timedelta(minutes=1)
        if before is not None and begins_at > before[0]:
            found[before[0]] = None
        count = getattr(minute, name)
        if before is None or begins_at > before[0] or count != before[1]:
            found[begins_at] = count
        before = minute.ends_at, count
    if before is not None:
        found[before[0]] = before[1]
    return found


def _advised(day: wire.GroupDay, advice: wire.RecommendationV1 | None, span: Span) -> dict[datetime, float | None]:
    """The advised counts where they changed, None for refusals; and what is advised from the present on."""
    found: dict[datetime, float | None] = {each.since_at: each.desired_replicas for each in day.standings}
    if advice is not None:
        found[max(span.now, advice.execute_at)] = advice.desired_replicas
        found[span.ends_at] = advice.desired_replicas
    return found


def _of_scaler(day: wire.GroupDay, scaler: str) -> dict[datetime, float | None]:
    found: dict[datetime, float | None] = {}
    for quarter in day.quarters:
        found[quarter.begins_at] = round(quarter.replicas[scaler], 2)
        found.setdefault(quarter.begins_at + _QUARTER, None)
    return found


def _rows(
    instants: Sequence[datetime], series: Mapping[str, Mapping[datetime, float | None]]
) -> Sequence[tuple[Cell, ...]]:
    """A row for each instant at which one of the counts changed, with all of them."""
    rows: list[tuple[Cell, ...]] = []
    latest: dict[str, float | None] = dict.fromkeys(series)
    for at in instants:
        latest |= {name: values[at] for name, values in series.items() if at in values}
        rows.append((at, *latest.values()))
    return rows


def _sentence(
    day: wire.GroupDay, series: Mapping[str, Mapping[datetime, float | None]], advice: wire.RecommendationV1 | None
) -> str:
    counts = [count for count in series[HAS].values() if count is not None]
    told = []
    if advice is not None and advice.desired_replicas != advice.current_replicas:
        told.append(
            f"{advice.current_replicas} now, {advice.desired_replicas} advised from {clock(advice.execute_at)} on"
        )
    elif advice is not None:
        told.append(f"{advice.current_replicas} now, as advised")
    if counts:
        told.append(f"in the last day the group had {_range(counts)}")
    for scaler in SHOWN:
        means = [count for count in series.get(scaler, {}).values() if count is not None]
        if means:
            told.append(f"{code_in_words(scaler)} would have had {_range(means)}")
    told += _beside_hindsight(day)
    text = "; ".join(told) or "nothing is known of the group's replicas yet"
    return f"{text[0].upper()}{text[1:]}."


def _beside_hindsight(day: wire.GroupDay) -> list[str]:
    """How many replica-hours the group had beyond the cheapest plan, and how many it lacked; nothing if unknown."""
    beyond = [
        minute.members - minute.hindsight_replicas
        for minute in day.minutes
        if minute.members is not None and minute.hindsight_replicas is not None
    ]
    if not beyond:
        return []
    over, under = (sum(max(0, sign * count) for count in beyond) / 60 for sign in (1, -1))
    seen = f"in the {number(len(beyond) / 60)} h of which both are known"
    too = f"{number(over)} replica-hours too many, and {number(under)} too few"
    return [f"beside the cheapest plan, known afterwards, it had {too}, {seen}"]


def _range(counts: Sequence[float]) -> str:
    low, high = round(min(counts)), round(max(counts))
    return f"{low}" if low == high else f"{low} to {high}"


def _draw(table: Table, theme: Theme, *, span: Span, useful: tuple[int, ...]) -> Option:
    at = [millis(instant) for instant in table.column("at")]
    names = [column.name for column in table.columns][1:]

    def points(name: str) -> list[list[float | None]]:
        return [[instant, count] for instant, count in zip(at, table.column(name), strict=True)]

    option = over_time(theme, span, y_axis=value_axis(theme, "replicas", minInterval=1, min=0))
    others = [name for name in names if name not in {HAS, ADVISED, HINDSIGHT}]
    ordered = [*(name for name in SHOWN if name in others), *(name for name in others if name not in SHOWN)]
    option["legend"] |= {"selected": {name: name in SHOWN for name in others}}
    highest = max((count for name in names for count in table.column(name) if count is not None), default=0)
    dashes = ("dotted", "dashed")
    option["series"] = [
        step_line("Members", points(HAS), lineStyle={"color": theme.text, "width": 2}, itemStyle={"color": theme.text})
        | {"markLine": present(theme, span)},
        step_line(
            "Advised",
            points(ADVISED),
            lineStyle={"color": theme.series[0], "width": 2},
            itemStyle={"color": theme.series[0]},
        )
        | {"markLine": _useful(theme, useful, highest)},
        *_hindsight(table, theme, points(HINDSIGHT)),
        *(
            step_line(
                name,
                points(name),
                lineStyle={"color": _colour(theme, place), "width": 1.5, "type": dashes[place % 2]},
                itemStyle={"color": _colour(theme, place)},
            )
            for place, name in enumerate(ordered)
        ),
    ]
    drawn = (each["name"] for each in option["series"] if "tooltip" not in each)
    option["legend"]["data"] = list(drawn)
    return option


def _hindsight(table: Table, theme: Theme, points: list[list[float | None]]) -> list[Option]:
    """The cheapest counts as a line, and what the group had beyond and below them as areas of two patterns."""
    if all(count is None for _, count in points):
        return []
    line = step_line(
        "Hindsight",
        points,
        lineStyle={"color": theme.series[3], "width": 1.5, "type": "dashed"},
        itemStyle={"color": theme.series[3]},
    )
    both = [
        None if has is None or cheapest is None else (has, cheapest)
        for has, cheapest in zip(table.column(HAS), table.column(HINDSIGHT), strict=True)
    ]
    instants = [at for at, _ in points]
    areas = []
    for name, sign, colour, pattern in ((OVER, 1, theme.series[1], "rising"), (UNDER, -1, theme.bad, "falling")):
        floor = [None if pair is None else min(pair) for pair in both]
        height = [None if pair is None else max(0.0, sign * (pair[0] - pair[1])) for pair in both]
        stacked = {"stack": name, "silent": True, "lineStyle": {"width": 0}}
        areas += [
            # What an area stands on is not drawn, not told beside it, and not in the legend.
            step_line(
                f"{name}, from",
                _zipped(instants, floor),
                **stacked,
                itemStyle={"opacity": 0},
                tooltip={"show": False},
            ),
            step_line(
                name,
                _zipped(instants, height),
                **stacked,
                areaStyle={"opacity": 0.45},
                itemStyle=filled(theme, colour, pattern),
            ),
        ]
    return [line, *areas]


def _zipped(instants: Sequence[float | None], values: Sequence[float | None]) -> list[list[float | None]]:
    return [[at, value] for at, value in zip(instants, values, strict=True)]


def _colour(theme: Theme, place: int) -> str:
    return theme.series[1 + place % (len(theme.series) - 1)]


def _useful(theme: Theme, useful: tuple[int, ...], highest: float) -> Option:
    """Faint lines at the counts that help; between two of them the busiest replica has as much to do."""
    return {
        "silent": True,
        "symbol": "none",
        "label": {"show": False},
        "lineStyle": {"color": theme.line, "type": "solid", "width": 1},
        "data": [{"yAxis": count} for count in useful if count <= highest * 1.25],
    }
