"""The part of the page with lagcast's figures against their bars, beside its cost over hindsight and best rival."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.standings import FIXED, ScenarioSummary, variant_ratios, with_pauses
from benchmarks.decisions.tournament import Run
from replay.policies.catalogue import CATALOGUE

USEFUL_COUNTS = "useful-counts"
WRONG_FORECASTS = ("lagcast-reversed", "lagcast-constant", "lagcast-random", "lagcast-adversarial")
LEARNED_CAPACITY = "lagcast-learned-capacity"

INTRODUCTION = """## Other bars

On loads that were not tuned on. The lag of a group is what an exporter sees, end minus committed offsets: what
arrives in the 5 s between two commits is in it, whoever scales, so where HPA keeps up no lag can be a hundredth of its.
Capacity is learned from the first minute of the judged day on, and the learning counts.

"""

DAYS = """Of {days} single days lagcast cost no more than the best rival of that very day on {won}, and more than 2 %
more expensive than the fixed ceiling on {harmed}. The worst:

| trace | world | seed | best rival of the day | cost / best rival | / fixed |
|---|---|---:|---|---:|---:|
{rows}
"""
MOST_TO_FIXED = 1.02
WORST_DAYS = 6

Place = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One figure of each scenario, by trace and world (and variant), and the highest value that it should have."""

    figure: str
    most: float
    values: Mapping[tuple[str, ...], float]


def bars_section(scenarios: Sequence[ScenarioSummary], runs: Sequence[Run], tuned_on: Sequence[str]) -> str:
    """A line for each figure: its worst scenario, and how many miss the bar."""
    unseen = [scenario for scenario in scenarios if scenario.trace not in tuned_on]
    bars = [bar for bar in bars_of(unseen, [run for run in runs if run.trace not in tuned_on]) if bar.values]
    if not bars:
        return ""
    lines = ["| figure | bar | worst | where | missed |", "|---|---:|---:|---|---:|"]
    for bar in bars:
        where, worst = max(bar.values.items(), key=lambda each: each[1])
        missed = sum(value > bar.most for value in bar.values.values())
        shown = f"**{worst:.3f}**" if missed else f"{worst:.3f}"
        lines.append(f"| {bar.figure} | {bar.most:g} | {shown} | {', '.join(where)} | {missed} of {len(bar.values)} |")
    return INTRODUCTION + "\n".join(lines) + "\n\n" + _days(runs)


def _days(runs: Sequence[Run]) -> str:
    """The results of single days, on all loads: means over days hide the bad ones."""
    by_day: dict[tuple[str, str, int], dict[str, float]] = {}
    for run in runs:
        by_day.setdefault((run.trace, run.world, run.seed), {})[run.policy] = run.cost
    found = []
    for (trace, world, seed), costs in by_day.items():
        best = min((policy for policy in costs if policy in CATALOGUE), key=lambda policy: costs[policy])
        ours = costs[LAGCAST]
        found.append((ours / costs[best], ours / costs.get(FIXED, float("inf")), trace, world, seed, best))
    found.sort(reverse=True)
    rows = [
        f"| {trace} | {world} | {seed} | {best} | {to_best:.3f} | {to_fixed:.3f} |"
        for to_best, to_fixed, trace, world, seed, best in found[:WORST_DAYS]
    ]
    return DAYS.format(
        days=len(found),
        won=sum(day[0] <= 1.0 for day in found),
        harmed=sum(day[1] > MOST_TO_FIXED for day in found),
        rows="\n".join(rows),
    )


def bars_of(scenarios: Sequence[ScenarioSummary], runs: Sequence[Run]) -> tuple[Bar, ...]:
    """The figures that have a bar of their own."""
    slow, real = with_pauses(scenarios, "slow"), with_pauses(scenarios, "real")
    wrong: dict[tuple[str, ...], float] = {
        (*place, variant): ratio for variant in WRONG_FORECASTS for place, ratio in _to_simple(runs, variant).items()
    }
    return (
        Bar(figure="cost / fixed over-provision", most=MOST_TO_FIXED, values=_known(scenarios, "cost_to_fixed")),
        Bar(figure="mean lag / that of HPA at 10,000", most=0.01, values=_known(scenarios, "lag_to_hpa")),
        Bar(figure="rebalances / HPA's, slow pauses", most=0.1, values=_known(slow, "rebalances_to_hpa")),
        Bar(figure="rebalances / KEDA's, slow pauses", most=0.1, values=_known(slow, "rebalances_to_keda")),
        Bar(figure="rebalances / HPA's, real pauses", most=1.0, values=_known(real, "rebalances_to_hpa")),
        Bar(figure="rebalances / KEDA's, real pauses", most=1.0, values=_known(real, "rebalances_to_keda")),
        Bar(figure="wrong forecasts: cost / the cheaper of fixed and useful-counts", most=1.1, values=wrong),
        Bar(
            figure="capacity learned: cost / known",
            most=1.05,
            values=dict[tuple[str, ...], float](variant_ratios(runs, LEARNED_CAPACITY).items()),
        ),
    )


def _known(scenarios: Iterable[ScenarioSummary], figure: str) -> dict[tuple[str, ...], float]:
    values = {(scenario.trace, scenario.world): getattr(scenario, figure) for scenario in scenarios}
    return {place: value for place, value in values.items() if value is not None}


def _to_simple(runs: Sequence[Run], variant: str) -> dict[Place, float]:
    """The variant's cost over that of the cheaper of the two policies that need no forecast, under the same seed."""
    costs = {(run.trace, run.world, run.seed, run.policy): run.cost for run in runs}
    return {
        (run.trace, run.world): run.cost
        / min(costs[run.trace, run.world, run.seed, policy] for policy in (FIXED, USEFUL_COUNTS))
        for run in runs
        if run.policy == variant
        and all((run.trace, run.world, run.seed, policy) in costs for policy in (FIXED, USEFUL_COUNTS))
    }
