"""The results of a tournament: means over seeds with intervals, ratios, and every scenario that lagcast lost."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median, stdev

from scipy.stats import t

from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.tournament import Run
from benchmarks.decisions.worlds import ALL_WORLDS, Pauses
from replay.hindsight import HINDSIGHT
from replay.policies.catalogue import CATALOGUE

FIXED = "fixed-ceiling"
# Settings that users copy from one deployment to the next, and those of the white paper.
PUBLISHED_HPA, PUBLISHED_KEDA = "hpa-10000", "keda-10000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over seeds; the true one lies within `half_width` of it with 95 % (Student's t), None for one seed."""

    mean: float
    half_width: float | None


def mean_of(values: Sequence[float]) -> Mean:
    """The mean, and the half-width of its interval.

    >>> mean_of([1.0, 2.0, 3.0])                       # t(2 degrees of freedom) is 4.303; 4.303 x 1 / sqrt(3)
    Mean(mean=2.0, half_width=2.48)
    >>> mean_of([5.0])
    Mean(mean=5.0, half_width=None)
    """
    if len(values) == 1:
        return Mean(mean=values[0], half_width=None)
    half_width = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return Mean(mean=fmean(values), half_width=half_width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One policy's means over the seeds of a scenario; units are those of `Run`."""

    policy: str
    cost: Mean
    pods: float
    mean_replicas: float
    mean_lag_messages: float
    wait_p95: float
    wait_p99: float
    late_share: float
    moves: float
    rebalances: float
    paused_partition_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSummary:
    """One trace in one world, over all seeds. `to_...` is lagcast's mean over that of the other; None: not played.

    `best_rival` is the rival of the least mean cost, chosen afterwards, targets swept. `lost_seeds`: those under which
    it was cheaper than lagcast.
    """

    trace: str
    world: str
    seeds: int
    standings: tuple[Standing, ...]
    best_rival: str
    cost_to_hindsight: float
    cost_to_best_rival: float
    cost_to_fixed: float | None
    cost_to_hpa: float | None
    lag_to_hpa: float | None
    replicas_to_hpa: float | None
    rebalances_to_hpa: float | None
    rebalances_to_keda: float | None
    lost_seeds: int

    @property
    def is_lost(self) -> bool:
        """True where the best rival was cheaper."""
        return self.cost_to_best_rival > 1.0


def standing_of(scenario: ScenarioSummary, policy: str) -> Standing:
    """The standing of one policy.

    Errors: ValueError where it did not play under every seed.
    """
    for standing in scenario.standings:
        if standing.policy == policy:
            return standing
    message = f"'{policy}' did not play under every seed of {scenario.trace} in {scenario.world}"
    raise ValueError(message)


def summaries_of(runs: Iterable[Run]) -> list[ScenarioSummary]:
    """A summary for each trace and world, in the order in which they first come."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.trace, run.world), []).append(run)
    return [_summary(group) for group in groups.values()]


def _summary(runs: list[Run]) -> ScenarioSummary:
    seeds = len({run.seed for run in runs})
    by_policy: dict[str, list[Run]] = {}
    for run in runs:
        by_policy.setdefault(run.policy, []).append(run)
    # Variants play under one seed only; their means would be those of a different day.
    standings = {policy: _standing(policy, group) for policy, group in by_policy.items() if len(group) == seeds}
    ours = standings[LAGCAST]
    best = min(
        (standings[policy] for policy in standings if policy in CATALOGUE), key=lambda standing: standing.cost.mean
    )

    def ratio(policy: str, figure: Callable[[Standing], float]) -> float | None:
        """Lagcast's figure over that of a policy; None where it has none."""
        theirs = figure(standings[policy]) if policy in standings else 0.0
        return figure(ours) / theirs if theirs > 0.0 else None

    return ScenarioSummary(
        trace=runs[0].trace,
        world=runs[0].world,
        seeds=seeds,
        standings=tuple(sorted(standings.values(), key=lambda standing: standing.cost.mean)),
        best_rival=best.policy,
        cost_to_hindsight=ours.cost.mean / standings[HINDSIGHT].cost.mean,
        cost_to_best_rival=ours.cost.mean / best.cost.mean,
        cost_to_fixed=ratio(FIXED, _cost),
        cost_to_hpa=ratio(PUBLISHED_HPA, _cost),
        lag_to_hpa=ratio(PUBLISHED_HPA, lambda standing: standing.mean_lag_messages),
        replicas_to_hpa=ratio(PUBLISHED_HPA, lambda standing: standing.mean_replicas),
        rebalances_to_hpa=ratio(PUBLISHED_HPA, lambda standing: standing.rebalances),
        rebalances_to_keda=ratio(PUBLISHED_KEDA, lambda standing: standing.rebalances),
        lost_seeds=sum(
            ours.cost > theirs.cost
            for ours in by_policy[LAGCAST]
            for theirs in by_policy[best.policy]
            if ours.seed == theirs.seed
        ),
    )


def _cost(standing: Standing) -> float:
    return standing.cost.mean


def _standing(policy: str, runs: list[Run]) -> Standing:
    return Standing(
        policy=policy,
        cost=mean_of([run.cost for run in runs]),
        pods=fmean(run.pods for run in runs),
        mean_replicas=fmean(run.mean_replicas for run in runs),
        mean_lag_messages=fmean(run.mean_lag_messages for run in runs),
        wait_p95=fmean(run.wait_p95 for run in runs),
        wait_p99=fmean(run.wait_p99 for run in runs),
        late_share=fmean(run.late_share for run in runs),
        moves=fmean(run.moves for run in runs),
        rebalances=fmean(run.rebalances for run in runs),
        paused_partition_seconds=fmean(run.paused_partition_seconds for run in runs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """Lagcast over several scenarios, each counting once, by ratios of mean costs."""

    scenarios: int
    lost: int
    median_to_hindsight: float
    mean_to_hindsight: float
    worst_to_hindsight: float
    mean_to_best_rival: float
    worst_to_best_rival: float
    worst_trace: str
    worst_world: str


def overall_of(scenarios: Sequence[ScenarioSummary]) -> Overall | None:
    """The scenarios as one; None where there are none."""
    if not scenarios:
        return None
    to_hindsight = [scenario.cost_to_hindsight for scenario in scenarios]
    worst = max(scenarios, key=lambda scenario: scenario.cost_to_best_rival)
    return Overall(
        scenarios=len(scenarios),
        lost=sum(scenario.is_lost for scenario in scenarios),
        median_to_hindsight=median(to_hindsight),
        mean_to_hindsight=fmean(to_hindsight),
        worst_to_hindsight=max(to_hindsight),
        mean_to_best_rival=fmean(scenario.cost_to_best_rival for scenario in scenarios),
        worst_to_best_rival=worst.cost_to_best_rival,
        worst_trace=worst.trace,
        worst_world=worst.world,
    )


def with_pauses(scenarios: Iterable[ScenarioSummary], pauses: Pauses) -> list[ScenarioSummary]:
    """The scenarios in worlds whose pauses are slow, or real."""
    return [scenario for scenario in scenarios if ALL_WORLDS[scenario.world].pauses == pauses]


def variant_ratios(runs: Iterable[Run], variant: str) -> dict[tuple[str, str], float]:
    """The cost of a variant of lagcast over that of lagcast, under the same seed, by trace and world."""
    runs = list(runs)
    costs = {(run.trace, run.world, run.seed): run.cost for run in runs if run.policy == LAGCAST}
    return {
        (run.trace, run.world): run.cost / costs[run.trace, run.world, run.seed]
        for run in runs
        if run.policy == variant
    }
