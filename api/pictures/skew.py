"""How the load spreads over partitions, beside what one replica consumes: no replica can share a partition."""

from collections.abc import Iterable
from statistics import fmean

from api.pictures.patterns import filled
from api.pictures.picture import MOST_POINTS, Column, Option, Picture, Table, Theme, base, name_axis, value_axis
from api.words import number

PARTITIONS, CAPACITY = "Produced", "One replica"


def skew(rates: Iterable[tuple[str, float | None]], capacity: float | None) -> Picture:
    """Partitions by what is produced into each, in messages/s, the busiest first; those of unknown rate are last.

    `rates`: `TOPIC-PARTITION` and its rate. `capacity`: that of a replica in messages/s, None where it is not known.
    """
    rows = sorted(rates, key=lambda row: (row[1] is None, -(row[1] or 0.0), row[0]))
    columns = (
        Column(name="partition", title="Partition"),
        Column(name="produce_messages_per_second", title="Produced, messages/s"),
        Column(name="capacity_messages_per_second_per_replica", title="Capacity of a replica, messages/s"),
    )
    return Picture(
        name="skew",
        title="How the load spreads over partitions",
        sentence=_sentence(rows, capacity),
        table=Table(columns=columns, rows=tuple((name, rate, capacity) for name, rate in rows)),
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


def _draw(table: Table, theme: Theme) -> Option:
    names, rates, capacities = (table.column(column.name)[:MOST_POINTS] for column in table.columns)
    over = filled(theme, theme.bad, "rising")
    bars = [
        {"value": rate, "itemStyle": over} if rate is not None and most is not None and rate > most else rate
        for rate, most in zip(rates, capacities, strict=True)
    ]
    option = base(theme)
    option["tooltip"] |= {"axisPointer": {"type": "shadow"}}
    return option | {
        "xAxis": name_axis(theme, names, name="partition", nameLocation="middle", nameGap=28),
        "yAxis": value_axis(theme, "messages/s", min=0),
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
        ],
    }
