"""To stay or to scale: each plan as one bar, item by item, so that it is seen where a plan is dear."""

from functools import partial

from api import schemas as wire
from api.pictures.patterns import filled
from api.pictures.picture import Column, Option, Picture, Table, Theme, base, name_axis, value_axis
from api.plans import ITEMS, Plan, plans_of
from api.words import amount, clock, duration, number

# Of each item: its title, which of the theme's colours it has, and its pattern. Replica time is of one colour, used or
# not; so are messages that are late, whatever the cause.
_LOOKS = {
    "replicas": ("Replicas", 0, "plain"),
    "late": ("Late messages", 1, "plain"),
    "pause_late": ("Late by a pause", 1, "rising"),
    "backlog": ("Backlog", 4, "plain"),
    "duplicates": ("Duplicates", 3, "dots"),
    "start_up": ("Start-up", 0, "falling"),
    "restore": ("Restored state", 2, "level"),
    "risk": ("Risk of moves", 5, "upright"),
}


def waterfall(advice: wire.RecommendationV1) -> Picture:
    """What each plan costs, item by item, cheapest first; items that cost nothing in any plan are left out."""
    plans, currency, horizon = plans_of(advice), advice.cost.currency, duration(advice.cost.horizon_seconds)
    items = [item for item in ITEMS if any(getattr(plan.items, item) for plan in plans)]
    columns = [
        Column(name="plan", title="Plan"),
        Column(name="desired_replicas", title="Replicas"),
        Column(name="execute_at", title="From"),
        *(Column(name=item, title=f"{_LOOKS[item][0]}, {currency}") for item in items),
        Column(name="total", title=f"Total, {currency}"),
        Column(name="chosen", title="Advised"),
    ]
    rows = [
        (
            _name(plan),
            plan.replicas,
            plan.execute_at,
            *(getattr(plan.items, item) for item in items),
            plan.items.total,
            plan.is_chosen,
        )
        for plan in plans
    ]
    return Picture(
        name="waterfall",
        title="What each plan costs",
        sentence=_sentence(plans, currency, horizon),
        table=Table(columns=tuple(columns), rows=tuple(rows)),
        draw=partial(_draw, unit=f"{currency} over {horizon}"),
    )


def _name(plan: Plan) -> str:
    return f"stay at {plan.replicas}" if plan.execute_at is None else f"{plan.replicas} from {clock(plan.execute_at)}"


def _sentence(plans: tuple[Plan, ...], currency: str, horizon: str) -> str:
    """Staying beside the cheapest plan that moves, and the largest item of the dearer one."""
    stay = next(plan for plan in plans if plan.execute_at is None)
    costs = f"Staying at {_replicas(stay)} costs {amount(stay.items.total, currency)} over {horizon}"
    moves = sorted(
        (plan for plan in plans if plan.execute_at is not None), key=lambda plan: (not plan.is_chosen, plan.items.total)
    )
    if not moves:
        return f"{costs}; no other plan was priced."
    difference = stay.items.total - moves[0].items.total
    how = f"{number(abs(difference))} {'more' if difference > 0 else 'less'} than" if difference else "as much as"
    dearer = stay if difference > 0 else moves[0]
    largest = max(ITEMS, key=lambda item: float(getattr(dearer.items, item)))
    what = "what staying costs" if dearer is stay else "what that move costs"
    return f"{costs}, {how} {_replicas(moves[0])}; the largest part of {what} is {_LOOKS[largest][0].lower()}."


def _replicas(plan: Plan) -> str:
    return f"{plan.replicas} replica{'' if plan.replicas == 1 else 's'}"


def _draw(table: Table, theme: Theme, *, unit: str) -> Option:
    names = [column.name for column in table.columns]
    items = [item for item in ITEMS if item in names]
    bars = [_bar(theme, item, table.column(item)) for item in items]
    plans: list[Option] = [
        {"value": plan, "textStyle": {"fontWeight": "bold" if chosen else "normal", "color": theme.text}}
        for plan, chosen in zip(table.column("plan"), table.column("chosen"), strict=True)
    ]
    option = base(theme)
    option["legend"] |= {"data": [bar["name"] for bar in bars]}
    option["tooltip"] |= {"axisPointer": {"type": "shadow"}}
    return option | {
        "grid": option["grid"] | {"right": 64},
        "xAxis": value_axis(theme, unit, nameLocation="middle", nameGap=28),
        "yAxis": name_axis(theme, [], inverse=True) | {"data": plans},
        "series": [*bars, _totals(theme, table.column("total"))],
    }


def _bar(theme: Theme, item: str, values: tuple[float, ...]) -> Option:
    """One item of all plans; ECharts stacks what is negative to the left of 0."""
    title, colour, pattern = _LOOKS[item]
    return {
        "name": title,
        "type": "bar",
        "stack": "plan",
        "barMaxWidth": 26,
        "itemStyle": filled(theme, theme.series[colour], pattern) | {"borderColor": theme.page, "borderWidth": 1},
        "data": list(values),
    }


def _totals(theme: Theme, values: tuple[float, ...]) -> Option:
    """A mark with its figure where each plan's items add up to."""
    return {
        "name": "Total",
        "type": "scatter",
        "symbol": "rect",
        "symbolSize": [2, 26],
        "itemStyle": {"color": theme.text},
        "data": [
            {
                "value": [total, row],
                "label": {"show": True, "position": "right", "formatter": number(total), "color": theme.text},
            }
            for row, total in enumerate(values)
        ],
    }
