"""To stay or to scale: each plan as one bar, item by item, so that it is seen where a plan is dear."""

from functools import partial

from api import schemas as wire
from api.pictures.bars import Look, Row, bar, stacked
from api.pictures.picture import Column, Option, Picture, Table, Theme
from api.plans import ITEMS, Plan, plans_of
from api.words import amount, clock, duration, number

# Of each item: its title, which of the theme's colours it has, and its pattern. Replica time is of one colour, used or
# not; so are messages that are late, whatever the cause.
_LOOKS = {
    "replicas": Look("Replicas", 0, "plain"),
    "late": Look("Late messages", 1, "rising"),
    "pause_late": Look("Late by a pause", 1, "dense"),
    "backlog": Look("Backlog", 4, "squares"),
    "duplicates": Look("Duplicates", 3, "dots"),
    "start_up": Look("Start-up", 0, "falling"),
    "restore": Look("Restored state", 2, "level"),
    "risk": Look("Risk of moves", 5, "upright"),
}


def waterfall(advice: wire.RecommendationV1) -> Picture:
    """What each plan costs, item by item, cheapest first; items that cost nothing in any plan are left out."""
    plans, currency, horizon = plans_of(advice), advice.cost.currency, duration(advice.cost.horizon_seconds)
    items = [item for item in ITEMS if any(getattr(plan.items, item) for plan in plans)]
    columns = [
        Column(name="plan", title="Plan"),
        Column(name="desired_replicas", title="Replicas"),
        Column(name="execute_at", title="From"),
        *(Column(name=item, title=f"{_LOOKS[item].title}, {currency}") for item in items),
        Column(name="total", title=f"Total, {currency}"),
        Column(name="chosen", title="Advised"),
    ]
    rows = [
        (
            _name(plan),
            plan.replicas,
            plan.execute_at if plan.execute_at is not None else "stays",
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
    return f"{costs}, {how} {_replicas(moves[0])}; the largest part of {what} is {_LOOKS[largest].title.lower()}."


def _replicas(plan: Plan) -> str:
    return f"{plan.replicas} replica{'' if plan.replicas == 1 else 's'}"


def _draw(table: Table, theme: Theme, *, unit: str) -> Option:
    names = [column.name for column in table.columns]
    bars = [bar(theme, _LOOKS[item], table.column(item)) for item in ITEMS if item in names]
    shown = zip(table.column("plan"), table.column("chosen"), table.column("total"), strict=True)
    rows = [Row(plan, chosen, total, number(total)) for plan, chosen, total in shown]
    return stacked(theme, rows, bars, unit=unit, room=64)
