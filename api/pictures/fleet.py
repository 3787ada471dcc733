"""The fleet: each group as large as what it costs, and the darker the more its advice would save."""

from collections.abc import Mapping, Sequence
from functools import partial

from api import schemas as wire
from api.pictures.patterns import mixed
from api.pictures.picture import MOST_POINTS, Column, Option, Picture, Table, Theme, base
from api.words import amount, number, short

# So many groups have a box of their own, and all others one together.
BOXES = min(500, MOST_POINTS - 1)
_SECONDS_PER_HOUR = 3600.0


def fleet(groups: Sequence[wire.GroupSummary], ledgers: Mapping[str, wire.GroupLedger]) -> tuple[Picture, ...]:
    """One picture for each currency, `pod-hours` among them where nobody has named a price; ledgers are by group key.

    A group without a ledger is in none of them: what it costs is not known yet.
    """
    currencies = dict.fromkeys(ledgers[each.group_key].ledger.currency for each in groups if each.group_key in ledgers)
    uncounted = sum(each.group_key not in ledgers for each in groups)
    return tuple(_picture(groups, ledgers, currency, uncounted) for currency in currencies)


def _picture(
    groups: Sequence[wire.GroupSummary], ledgers: Mapping[str, wire.GroupLedger], currency: str, uncounted: int
) -> Picture:
    columns = (
        Column(name="group_id", title="Group"),
        Column(name="cluster", title="Cluster"),
        Column(name="namespace", title="Namespace"),
        Column(name="cost_per_hour", title=f"Cost, {currency}/h"),
        Column(name="saving", title=f"Saving of its advice, {currency}"),
    )
    rows = [
        (each.group_id, each.cluster, each.namespace, spend, each.saving if each.currency == currency else None)
        for each in groups
        if each.group_key in ledgers and (spend := _per_hour(ledgers[each.group_key], currency)) is not None
    ]
    rows.sort(key=lambda row: -row[3])
    return Picture(
        name="fleet",
        title="What groups cost, and where advice would save",
        sentence=_sentence(rows, currency, uncounted),
        table=Table(columns=columns, rows=tuple(rows)),
        draw=partial(_draw, currency=currency),
    )


def _per_hour(sent: wire.GroupLedger, currency: str) -> float | None:
    """What was paid by the hour; None in another currency, and of a ledger that begins only now."""
    seconds = (sent.issued_at - sent.ledger.since_at).total_seconds()
    if sent.ledger.currency != currency or seconds <= 0:
        return None
    return sent.ledger.paid.total * _SECONDS_PER_HOUR / seconds


def _sentence(rows: Sequence[tuple[str, str, str | None, float, float | None]], currency: str, uncounted: int) -> str:
    total, savings = sum(row[3] for row in rows), sum(row[4] or 0.0 for row in rows)
    begin = f"{len(rows)} group{'' if len(rows) == 1 else 's'} cost{'s' if len(rows) == 1 else ''} "
    saves = f"the advice in force would save {amount(savings, currency)} over its horizon"
    most = max(rows, key=lambda row: row[4] or 0.0, default=None)
    where = f", most of it in {short(most[0])}" if most is not None and (most[4] or 0.0) > 0 and len(rows) > 1 else ""
    left_out = f" Nothing is counted yet for {uncounted} more." if uncounted else ""
    return f"{begin}{amount(total, f'{currency}/h')} together; {saves}{where}.{left_out}"


def _draw(table: Table, theme: Theme, *, currency: str) -> Option:
    option = base(theme)
    del option["grid"], option["legend"]
    most = max((saving for saving in table.column("saving") if saving is not None), default=0.0)
    option["tooltip"] |= {"trigger": "item"}
    return option | {
        "visualMap": {
            "type": "continuous",
            "dimension": 1,
            "min": 0,
            "max": max(most, 1e-9),  # a scale from 0 to 0 has no colours
            # Half of the colour at most: text on it differs from it by 4.5 to 1 in both themes.
            "inRange": {"color": [theme.shade, mixed(theme.page, theme.series[0], 0.5)]},
            "outOfRange": {"color": theme.page},
            "text": [f"saves {amount(most, currency)}", "0"],
            "orient": "horizontal",
            "left": 0,
            "top": 0,
            "itemHeight": 120,
            "textStyle": {"color": theme.text},
            "calculable": False,
        },
        "series": [
            {
                "type": "treemap",
                "name": "Groups",
                "top": 36,
                "left": 0,
                "right": 0,
                "bottom": 0,
                "animation": False,  # its own default moves
                "roam": False,
                "nodeClick": False,
                "breadcrumb": {"show": False},
                "itemStyle": {"borderColor": theme.line, "borderWidth": 1, "gapWidth": 2},
                "label": {"show": True, "color": theme.text, "lineHeight": 16, "overflow": "truncate"},
                "data": _boxes(table, currency),
            }
        ],
    }


def _boxes(table: Table, currency: str) -> list[Option]:
    """A box for each of the most expensive groups, and one for all others."""
    shown = list(zip(*(table.column(name) for name in ("group_id", "cost_per_hour", "saving")), strict=True))
    boxes = [_box(name, cost, saving, currency) for name, cost, saving in shown[:BOXES]]
    if others := shown[BOXES:]:
        known = [saving for *_, saving in others if saving is not None]
        boxes.append(_box(f"{len(others)} others", sum(each[1] for each in others), sum(known), currency))
    return boxes


def _box(name: str, cost: float, saving: float | None, currency: str) -> Option:
    saves = f"saves {number(saving)}" if saving is not None else "saving unknown"
    return {
        "name": name,
        "value": [cost, saving],
        "label": {"formatter": f"{{b}}\n{number(cost)} {currency}/h\n{saves}"},
        "tooltip": {"formatter": f"{{b}}: {number(cost)} {currency}/h, {saves}"},
    }
