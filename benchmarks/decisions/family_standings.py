"""The results of load families: lagcast beside the cheapest simple scaler of each family, and its worst draws."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.decisions.family_draws import SIMPLE_SCALERS
from benchmarks.decisions.load_families import LOAD_FAMILIES, Draw
from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.standings import FIXED
from benchmarks.decisions.tournament import Run, family_of
from replay.hindsight import HINDSIGHT

# The bars of a family's figures. Where there is no daily shape, a forecast can know little.
MOST_TO_CHEAPEST = 1.03
MOST_TO_CHEAPEST_WITH_DAILY = 0.92
MOST_TO_FIXED = 1.01


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleDraw:
    """Lagcast's cost on one draw, over that of its family's cheapest simple scaler and of the fixed ceiling."""

    load: str
    world: str
    seed: int
    to_cheapest: float
    to_fixed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilySummary:
    """One family, with or without a daily shape, over its draws: means, and ratios of means.

    `cheapest` is the simple scaler of the least mean cost over the draws, `keda` the cheapest of KEDA's, both chosen
    afterwards. `to_hindsight` is None where hindsight did not play in every draw.
    """

    load: str
    with_daily: bool
    draws: tuple[SingleDraw, ...]
    cost: float
    cheapest: str
    to_cheapest: float
    to_fixed: float
    to_hindsight: float | None
    moves: float
    keda: str
    keda_moves: float

    @property
    def most_to_cheapest(self) -> float:
        """The bar of `to_cheapest`."""
        return MOST_TO_CHEAPEST_WITH_DAILY if self.with_daily else MOST_TO_CHEAPEST

    @property
    def worst_to_cheapest(self) -> float:
        """The draw that is worst beside the cheapest simple scaler."""
        return max(draw.to_cheapest for draw in self.draws)

    @property
    def worst_to_fixed(self) -> float:
        """The draw that is worst beside the fixed ceiling."""
        return max(draw.to_fixed for draw in self.draws)


def family_summaries(runs: Iterable[Run]) -> list[FamilySummary]:
    """A summary for each family without and with a daily shape that was played."""
    by_load: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        by_load.setdefault(run.trace, {}).setdefault(run.policy, []).append(run)
    loads = {
        Draw(family=family, with_daily=with_daily, seed=0).load: with_daily
        for family in LOAD_FAMILIES
        for with_daily in (False, True)
    }
    return [_summary(load, by_load[load], with_daily=loads[load]) for load in loads if load in by_load]


def worst_draws(summaries: Iterable[FamilySummary], most: int) -> list[SingleDraw]:
    """The draws on which lagcast is worst beside the simple scaler of their family."""
    return sorted((draw for each in summaries for draw in each.draws), key=lambda draw: -draw.to_cheapest)[:most]


def _summary(load: str, by_policy: Mapping[str, Sequence[Run]], *, with_daily: bool) -> FamilySummary:
    ours = by_policy[LAGCAST]
    costs = {policy: fmean(run.cost for run in runs) for policy, runs in by_policy.items() if len(runs) == len(ours)}
    cheapest = min(SIMPLE_SCALERS, key=lambda policy: costs[policy])
    keda = min((policy for policy in SIMPLE_SCALERS if family_of(policy) == "keda"), key=lambda policy: costs[policy])
    by_draw = {policy: {(run.world, run.seed): run.cost for run in by_policy[policy]} for policy in (cheapest, FIXED)}
    return FamilySummary(
        load=load,
        with_daily=with_daily,
        draws=tuple(
            SingleDraw(
                load=load,
                world=run.world,
                seed=run.seed,
                to_cheapest=run.cost / by_draw[cheapest][run.world, run.seed],
                to_fixed=run.cost / by_draw[FIXED][run.world, run.seed],
            )
            for run in ours
        ),
        cost=costs[LAGCAST],
        cheapest=cheapest,
        to_cheapest=costs[LAGCAST] / costs[cheapest],
        to_fixed=costs[LAGCAST] / costs[FIXED],
        to_hindsight=costs[LAGCAST] / costs[HINDSIGHT] if HINDSIGHT in costs else None,
        moves=fmean(run.moves for run in ours),
        keda=keda,
        keda_moves=fmean(run.moves for run in by_policy[keda]),
    )
