"""How the load spreads over partitions, beside what one replica consumes: no replica can share a partition."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import fmean
from types import MappingProxyType

from api import schemas as wire
from api.pictures.patterns import filled
from api.pictures.picture import MOST_POINTS, Column, Option, Picture, Table, Theme, base, name_axis, value_axis
from api.words import number

PARTITIONS, CAPACITY, LAG = "Produced", "One replica", "Lag"


def partition_skew(sent: wire.GroupPartitions) -> Picture:
    """The partitions of a group on the wire, with their lags."""
    names = [f"{load.topic}-{load.partition}" for load in sent.loads]
    rates = zip(names, (load.produce_messages_per_second for load in sent.loads), strict=True)
    lags = dict(zip(names, (load.lag_messages for load in sent.loads), strict=True))
    picture = skew(rates, sent.capacity_messages_per_second_per_replica, lags)
    left_out = sent.partitions - len(sent.loads)
    more = f" The {left_out:,} least busy ones are left out." if left_out else ""
    return replace(picture, sentence=picture.sentence + more)


def skew(
    rates: Iterable[tuple[str, float | None]],
    capacity: float | None,
    lags: Mapping[str, int | None] = MappingProxyType({}),
) -> Picture:
    """Partitions by what is produced into each, in messages/s, the busiest first; those of unknown rate are last.

    `rates`: `TOPIC-PARTITION` and its rate. `capacity`: that of a replica in messages/s, None where it is not known.
    `lags`: by the same name the messages that wait.
    """
    rows = sorted(rates, key=lambda row: (row[1] is None, -(row[1] or 0.0), row[0]))
    columns = (
        Column(name="partition", title="Partition"),
        Column(name="produce_messages_per_second", title="Produced, messages/s"),
        Column(name="capacity_messages_per_second_per_replica", title="Capacity of a replica, messages/s"),
        Column(name="lag_messages", title="Lag, messages"),
    )
    return Picture(
        name="skew",
        title="How the load spreads over partitions",
        sentence=f"{_sentence(rows, capacity)}{_waiting(lags)}",
        table=Table(columns=columns, rows=tuple((name, rate, capacity, lags.get(name)) for name, rate in rows)),
        draw=_draw,
    )


def _sentence(rows: list[tuple[str, float | None]], capacity: float | None) -> str:
    known = [rate for _, rate in rows if rate is not None]
    mean = fmean(known) if known else 0.0
    if not mean:
        return "Nothing is known to be produced into any partition."
    name, most = rows[0][0], known[0]
    busiest = f"The busiest of {len(rows)} partitions, {name}, gets {number(most)} messages/s, {most / mean:.1f} times"
    if capacity is None:
        return f"{busiest} the mean; what one replica consumes is not known."
    above = sum(rate > capacity for rate in known)
    more = f"{above} get{'s' if above == 1 else ''} more than that"
    return f"{busiest} the mean; one replica consumes {number(capacity)}, and {more}."


def _waiting(lags: Mapping[str, int | None]) -> str:
    """Where most messages wait."""
    known = {name: lag for name, lag in lags.items() if lag is not None}
    if not known:
        return ""
    total, worst = sum(known.values()), max(known, key=known.__getitem__)
    if not total:
        return " No message waits in any of them."
    return f" Of {number(total)} waiting messages {number(known[worst])} are in {worst}."


def _draw(table: Table, theme: Theme) -> Option:
    names, rates, capacities, lags = (table.column(column.name)[:MOST_POINTS] for column in table.columns)
    over = filled(theme, theme.bad, "rising")
    bars = [
        {"value": rate, "itemStyle": over} if rate is not None and most is not None and rate > most else rate
        for rate, most in zip(rates, capacities, strict=True)
    ]
    option = base(theme)
    option["tooltip"] |= {"axisPointer": {"type": "shadow"}}
    return option | {
        "xAxis": name_axis(theme, names, name="partition", nameLocation="middle", nameGap=28),
        "yAxis": [
            value_axis(theme, "messages/s", min=0),
            value_axis(theme, "lag, messages", min=0, splitLine={"show": False}),
        ],
        "series": [
            {"name": PARTITIONS, "type": "bar", "itemStyle": filled(theme, theme.series[0]), "data": bars},
            {
                "name": CAPACITY,
                "type": "line",
                "symbol": "none",
                "lineStyle": {"color": theme.text, "type": "dashed", "width": 1.5},
                "itemStyle": {"color": theme.text},
                "data": list(capacities),
            },
            {
                "name": LAG,
                "type": "scatter",
                "yAxisIndex": 1,
                "symbol": "diamond",
                "symbolSize": 7,
                "itemStyle": {"color": theme.series[1]},
                "data": list(lags),
            },
        ],
    }
