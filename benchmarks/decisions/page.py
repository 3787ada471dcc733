"""The page of a tournament, from the runs in its JSON alone."""

from pathlib import Path

from benchmarks.command import aged, table
from benchmarks.decisions.bars import bars_section
from benchmarks.decisions.document import Document, runs_in
from benchmarks.decisions.ours import LAGCAST, OURS
from benchmarks.decisions.picture import draw
from benchmarks.decisions.standings import (
    Mean,
    ScenarioSummary,
    Standing,
    overall_of,
    standing_of,
    summaries_of,
    variant_ratios,
    with_pauses,
)
from benchmarks.decisions.tournament import Run
from benchmarks.decisions.whitepaper_page import whitepaper_section
from benchmarks.decisions.worlds import ALL_WORLDS, Pauses
from replay.hindsight import HINDSIGHT
from replay.policies.catalogue import CATALOGUE

# The bars of the figures. The best plan knew the load, and near-random loads cannot be forecast; the best rival is
# chosen afterwards. Where pauses are slow, fewer moves save most; where they are quick, little can be saved.
MOST_TO_HINDSIGHT_MEDIAN = 1.12
MOST_TO_HINDSIGHT_MEAN = 1.30
MOST_TO_BEST_RIVAL = {"slow": 0.88, "real": 0.95}
MOST_TO_ANY_BEST_RIVAL = 1.05

INTRODUCTION = """# Decisions, compared

Every policy goes through the same simulated consumer group: the same arrivals, the same start-up times, the same
prices. The group is simulated per partition and event by event, by code that shares nothing with lagcast's cost model.
All of this page is written from one JSON document, [decisions-bench.json](decisions-bench.json) beside it, and that by
one command:

    make bench-decisions TRACES=DIR OUT=FILE
    python -m benchmarks.decisions --page FILE > docs/decisions-bench.md

- **Scale.** One consumer does 1,000 messages/s, there may be 40 of them, and all begin with 40. Each load is rescaled
  so that its busiest minutes (one in a thousand) take nine tenths of what 40 do. A pod-hour costs 0.05, a message that
  waits longer than 10 s 5e-7, a duplicate 1e-7. Offsets are committed each 5 s; everybody may decide each 15 s.
- **Seeds.** {seeds} for each trace and world; each judges another day, counted back from the end of the load, and draws
  everything at random anew. What came before that day, fifteen days at most, is lagcast's history. A load of less than
  two days is judged whole, without history. `+/-` is the half-width of a 95 % interval of the mean over seeds
  (Student's t); seeds judge different days, so it holds the difference between days as well.
- **Rivals.** {policies} of {known_policies} policies: fixed counts, HPA on lag and on CPU, KEDA, each with its target
  swept; a reconstruction of Federator's formula, Flink's, a produce-rate rule and a rule that knows capacity and the
  useful replica counts. The *best rival* is the policy with the least mean cost in that very trace and world, chosen
  afterwards: nobody could have known which. Rivals twice as expensive as the best one under the first seed do not play
  under the others. {left_out}
- **Hindsight** is the best plan found by a search that sees the whole load, each plan replayed like everybody else's:
  an upper bound of the optimum, not the optimum.
- **Tuned on.** lagcast's target utilization, prices and pauses were chosen on {tuned_on}, and on generated loads that
  are not here. {tuned_on_shown}

Versions: {versions}.
"""

OVERALL = """## Overall

A scenario is one trace in one world; its ratios are those of mean costs over seeds. The bars: cost / hindsight
at most {median:g} in the median and {mean:g} on average; cost / best rival on average at most {slow:g} where pauses are
slow and {real:g} where they are as measured, and never above {worst:g}. What misses its bar is marked.

"""


def write_page(document: Document, picture: Path) -> None:
    """The page on stdout, its picture in a file."""
    runs, published = runs_in(document, "runs"), runs_in(document, "whitepaper_runs")
    scenarios, tuned_on = summaries_of(runs), document["tuned_on"]
    parts = [_introduction(document, runs)]
    if scenarios:
        draw(scenarios, picture)
        parts += [
            _overall(scenarios, tuned_on),
            f"![Cost of pods against late messages, one panel for each world]({picture.name})\n",
            bars_section(scenarios, runs, tuned_on),
            _losses(scenarios),
            *(_world(name, scenarios, tuned_on) for name in ALL_WORLDS),
            _variants(runs, document["variants_played_in"]),
        ]
    if published:
        parts.append(whitepaper_section(published))
    print(aged("\n".join(part for part in parts if part), document), end="")


def shown(mean: Mean) -> str:
    """A mean and its half-width."""
    return f"{mean.mean:,.2f}" if mean.half_width is None else f"{mean.mean:,.2f} +/- {mean.half_width:,.2f}"


def ratio(value: float | None) -> str:
    """A ratio, or a dash where there is nothing to compare with."""
    return "-" if value is None else f"{value:.3f}"


def held(value: float, bar: float | None) -> str:
    """A ratio, marked where it misses its bar."""
    return ratio(value) if bar is None or value <= bar else f"**{value:.3f}** (missed)"


def _introduction(document: Document, runs: list[Run]) -> str:
    return INTRODUCTION.format(
        seeds=len({run.seed for run in runs}),
        policies=len({run.policy for run in runs if run.policy in CATALOGUE}),
        known_policies=len(CATALOGUE),
        left_out=_left_out(runs),
        tuned_on=", ".join(f"`{name}`" for name in document["tuned_on"]),
        tuned_on_shown="Those that are here are shown, but the overall figures are given without them first."
        if {run.trace for run in runs} & set(document["tuned_on"])
        else "None of these is on this page.",
        versions=", ".join(f"{name} {version}" for name, version in document["versions"].items()),
    )


def _left_out(runs: list[Run]) -> str:
    """The policies that were not selected for this run; empty where all played."""
    missing = [policy for policy in CATALOGUE if policy not in {run.policy for run in runs}]
    return f"Not played in this run: {', '.join(missing)}." if missing else "All of them played."


def _overall(scenarios: list[ScenarioSummary], tuned_on: list[str]) -> str:
    unseen = [scenario for scenario in scenarios if scenario.trace not in tuned_on]
    rows = []
    groups = (("not tuned on", unseen), *([("all", scenarios)] if len(unseen) < len(scenarios) else []))
    for words, group in groups:
        for pauses in ("slow", "real", None):
            figures = overall_of(group if pauses is None else with_pauses(group, _pauses(pauses)))
            if figures is not None:
                rows.append(
                    (
                        words,
                        pauses or "both",
                        str(figures.scenarios),
                        str(figures.lost),
                        held(figures.median_to_hindsight, MOST_TO_HINDSIGHT_MEDIAN),
                        held(figures.mean_to_hindsight, MOST_TO_HINDSIGHT_MEAN),
                        ratio(figures.worst_to_hindsight),
                        held(figures.mean_to_best_rival, MOST_TO_BEST_RIVAL.get(pauses or "")),
                        (
                            f"{held(figures.worst_to_best_rival, MOST_TO_ANY_BEST_RIVAL)} "
                            f"({figures.worst_trace}, {figures.worst_world})"
                        ),
                    )
                )
    head = (
        *("loads", "pauses", "scenarios", "lost", "cost / hindsight, median", "mean", "worst"),
        *("cost / best rival, mean", "worst"),
    )
    said = OVERALL.format(
        median=MOST_TO_HINDSIGHT_MEDIAN,
        mean=MOST_TO_HINDSIGHT_MEAN,
        **MOST_TO_BEST_RIVAL,
        worst=MOST_TO_ANY_BEST_RIVAL,
    )
    return said + table(head, rows, words=2)


def _pauses(word: str) -> Pauses:
    return "slow" if word == "slow" else "real"


def _losses(scenarios: list[ScenarioSummary]) -> str:
    lost = sorted(
        (scenario for scenario in scenarios if scenario.is_lost), key=lambda scenario: -scenario.cost_to_best_rival
    )
    rows = [
        (
            *(scenario.trace, scenario.world, scenario.best_rival, shown(standing_of(scenario, LAGCAST).cost)),
            shown(standing_of(scenario, scenario.best_rival).cost),
            *(ratio(scenario.cost_to_best_rival), f"{scenario.lost_seeds} of {scenario.seeds}"),
        )
        for scenario in lost
    ]
    head = ("trace", "world", "best rival", "lagcast", "best rival's cost", "ratio", "seeds lost")
    said = (
        f"{len(lost)} of {len(scenarios)} scenarios, the worst first.\n\n{table(head, rows, words=3)}"
        if rows
        else "None.\n"
    )
    return f"## Every scenario that lagcast lost\n\n{said}"


def _world(name: str, scenarios: list[ScenarioSummary], tuned_on: list[str]) -> str:
    here = [scenario for scenario in scenarios if scenario.world == name]
    if not here:
        return ""
    kind = ALL_WORLDS[name]
    return (
        f"## World {name}\n\n{kind.sentence} Pauses: {kind.pauses}.\n\n{_against(here, tuned_on)}\n"
        f"Lateness and movement, lagcast first, the best rival second:\n\n{_lateness(here)}\n"
        "Cost as a multiple of hindsight's, of each family's best policy in that trace:\n\n"
        f"{_families(here)}"
    )


def _against(scenarios: list[ScenarioSummary], tuned_on: list[str]) -> str:
    head = (
        *("trace", "best rival", "lagcast", "best rival's cost", "hindsight", "/ hindsight", "/ best rival", "/ fixed"),
        *("/ hpa-10000", "lag / hpa's", "replicas / hpa's", "rebalances / hpa's", "/ keda-10000's"),
    )
    rows = [
        (
            scenario.trace + (" (tuned on)" if scenario.trace in tuned_on else ""),
            scenario.best_rival,
            *(shown(standing_of(scenario, policy).cost) for policy in (LAGCAST, scenario.best_rival, HINDSIGHT)),
            *map(
                ratio,
                (scenario.cost_to_hindsight, scenario.cost_to_best_rival, scenario.cost_to_fixed, scenario.cost_to_hpa),
            ),
            *map(
                ratio,
                (
                    scenario.lag_to_hpa,
                    scenario.replicas_to_hpa,
                    scenario.rebalances_to_hpa,
                    scenario.rebalances_to_keda,
                ),
            ),
        )
        for scenario in scenarios
    ]
    return table(head, rows, words=2)


def _lateness(scenarios: list[ScenarioSummary]) -> str:
    head = ("trace", "mean replicas", "mean lag", "wait p95", "wait p99", "late", "moves", "rebalances", "paused")

    def pair(scenario: ScenarioSummary, word: str, figure: str) -> str:
        both = (standing_of(scenario, policy) for policy in (LAGCAST, scenario.best_rival))
        return " / ".join(format(getattr(standing, figure), word) for standing in both)

    rows = [
        (
            scenario.trace,
            pair(scenario, ".1f", "mean_replicas"),
            pair(scenario, ",.0f", "mean_lag_messages"),
            pair(scenario, ".1f", "wait_p95") + " s",
            pair(scenario, ".1f", "wait_p99") + " s",
            pair(scenario, ".3%", "late_share"),
            pair(scenario, ".0f", "moves"),
            pair(scenario, ".0f", "rebalances"),
            pair(scenario, ",.0f", "paused_partition_seconds") + " partition-s",
        )
        for scenario in scenarios
    ]
    return table(head, rows)


def _families(scenarios: list[ScenarioSummary]) -> str:
    families = list(dict.fromkeys(entry.family for entry in CATALOGUE.values()))

    def best(scenario: ScenarioSummary, family: str) -> Standing | None:
        here = [
            standing
            for standing in scenario.standings
            if standing.policy in CATALOGUE and CATALOGUE[standing.policy].family == family
        ]
        return min(here, key=lambda standing: standing.cost.mean, default=None)

    rows = []
    for scenario in scenarios:
        bound = standing_of(scenario, HINDSIGHT).cost.mean
        bests = [best(scenario, family) for family in families]
        figures = ["-" if each is None else f"{each.cost.mean / bound:.2f}" for each in bests]
        rows.append((scenario.trace, f"{scenario.cost_to_hindsight:.2f}", *figures))
    return table(("trace", LAGCAST, *families), rows)


def _variants(runs: list[Run], where: Document) -> str:
    variants = [policy for policy in OURS if policy != LAGCAST and any(run.policy == policy for run in runs)]
    ratios = {variant: variant_ratios(runs, variant) for variant in variants}
    scenarios = list(dict.fromkeys(scenario for figures in ratios.values() for scenario in figures))
    rows = [(*scenario, *(ratio(ratios[variant].get(scenario)) for variant in variants)) for scenario in scenarios]
    return (
        "## lagcast with a part changed or left out\n\n"
        f"Cost over that of lagcast as it is, in the worlds {' and '.join(where['worlds'])} under seed {where['seed']} "
        "only.\n\n"
        f"{table(('trace', 'world', *variants), rows, words=2)}"
    )
