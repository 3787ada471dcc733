"""The plans of advice that are shown: the one that is advised, staying, and the cheapest others."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from api import schemas as wire
from api.parts import CostItems

# The items of a price, in the order in which they are added up.
ITEMS = ("replicas", "late", "pause_late", "backlog", "duplicates", "start_up", "restore", "risk")
PLANS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One plan that was priced: its count, its instant (None: it stays), and whether it is the one that is advised."""

    replicas: int
    execute_at: datetime | None
    items: CostItems
    is_chosen: bool = False
    note: str = ""


def plans_of(advice: wire.RecommendationV1) -> tuple[Plan, ...]:
    """The plan that is advised, staying, and others up to `PLANS` that move, cheapest first."""
    return tuple(sorted(_plans(advice), key=lambda plan: (plan.items.total, not plan.is_chosen)))


def _plans(advice: wire.RecommendationV1) -> Iterator[Plan]:
    cost, stays = advice.cost, advice.desired_replicas == advice.current_replicas
    at = None if stays else advice.execute_at
    yield Plan(replicas=advice.desired_replicas, execute_at=at, items=cost.chosen, is_chosen=True, note="advised")
    if not stays:
        yield Plan(replicas=advice.current_replicas, execute_at=None, items=cost.stay, note="stay")
    shown = {(advice.desired_replicas, at)}
    for each in advice.alternatives:
        plan = (each.desired_replicas, each.execute_at)
        if each.execute_at is None or plan in shown or len(shown) > PLANS:
            continue
        shown.add(plan)
        yield Plan(replicas=each.desired_replicas, execute_at=each.execute_at, items=each)
