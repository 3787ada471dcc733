"""Standings: means, intervals and ratios of runs whose figures can be computed by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.decisions.bars import bars_of, bars_section
from benchmarks.decisions.run import hopeless
from benchmarks.decisions.standings import overall_of, standing_of, summaries_of, variant_ratios, with_pauses
from benchmarks.decisions.tournament import Run
from tests.benchmarks.decisions.made_runs import run


@pytest.fixture(name="runs")
def runs_fixture() -> list[Run]:
    """Two seeds: lagcast 2 and 4, useful-counts 4 and 3, flink 1 and 9, HPA 10, fixed 6, hindsight 2; a variant 3."""
    costs = {
        "lagcast": (2.0, 4.0),
        "useful-counts": (4.0, 3.0),
        "flink": (1.0, 9.0),
        "fixed-ceiling": (6.0, 6.0),
        "hindsight": (2.0, 2.0),
    }
    runs = [run(policy, cost, seed=seed) for policy, pair in costs.items() for seed, cost in enumerate(pair)]
    runs += [
        run("hpa-10000", 10.0, seed=seed, mean_lag_messages=400, mean_replicas=20, rebalances=8) for seed in (0, 1)
    ]
    runs += [run("lagcast-no-cost", 3.0)]
    return [replace(each, rebalances=2) if each.policy == "lagcast" else each for each in runs]


def test_the_best_rival_is_chosen_by_its_mean_over_seeds(runs: list[Run]) -> None:
    """Flink won a seed, but useful-counts has the lowest mean, 3.5; neither lagcast nor hindsight is a rival."""
    (scenario,) = summaries_of(runs)
    assert (scenario.best_rival, scenario.seeds, scenario.lost_seeds) == ("useful-counts", 2, 1)
    assert not scenario.is_lost
    assert [standing.policy for standing in scenario.standings][:3] == ["hindsight", "lagcast", "useful-counts"]


def test_ratios_are_those_of_means(runs: list[Run]) -> None:
    """Lagcast's mean is 3: 1.5 x hindsight, 0.857 x useful-counts, 0.5 x fixed, 0.3 x HPA; the absent have none."""
    (scenario,) = summaries_of(runs)
    assert scenario.cost_to_hindsight == 1.5
    assert scenario.cost_to_best_rival == pytest.approx(3.0 / 3.5)
    assert scenario.cost_to_fixed == 0.5
    assert scenario.cost_to_hpa == pytest.approx(0.3)
    assert (scenario.lag_to_hpa, scenario.replicas_to_hpa, scenario.rebalances_to_hpa) == (0.25, 0.5, 0.25)
    assert scenario.rebalances_to_keda is None


def test_intervals_are_students(runs: list[Run]) -> None:
    """Two seeds that differ by 2: t with one degree of freedom is 12.706, times sqrt(2) / sqrt(2); equal ones: 0."""
    (scenario,) = summaries_of(runs)
    assert standing_of(scenario, "lagcast").cost.half_width == pytest.approx(12.706, abs=1e-3)
    assert standing_of(scenario, "hindsight").cost.half_width == 0.0
    (single,) = summaries_of([each for each in runs if each.seed == 0])
    assert standing_of(single, "lagcast").cost.half_width is None


def test_a_variant_is_compared_with_lagcast_under_its_own_seed(runs: list[Run]) -> None:
    """It is 3 against 2, not against the mean of 3; it has no standing where others have two seeds."""
    assert variant_ratios(runs, "lagcast-no-cost") == {("load", "fine"): 1.5}
    with pytest.raises(ValueError, match="'lagcast-no-cost' did not play under every seed of load in fine"):
        standing_of(summaries_of(runs)[0], "lagcast-no-cost")


def test_overall_each_scenario_counts_once(runs: list[Run]) -> None:
    """The mean is of 1.5, 1 and 2 times hindsight; the second lost to none, the third to useful-counts at half cost."""
    more = [
        *(
            run("lagcast", 2.0, world="tight"),
            run("useful-counts", 2.0, world="tight"),
            run("hindsight", 2.0, world="tight"),
        ),
        run("lagcast", 4.0, world="real-long"),
        run("useful-counts", 2.0, world="real-long"),
        run("hindsight", 2.0, world="real-long"),
    ]
    scenarios = summaries_of([*runs, *more])
    overall = overall_of(scenarios)
    assert overall is not None
    assert (overall.scenarios, overall.lost) == (3, 1)
    assert (overall.median_to_hindsight, overall.mean_to_hindsight, overall.worst_to_hindsight) == (1.5, 1.5, 2.0)
    assert overall.mean_to_best_rival == pytest.approx((3.0 / 3.5 + 1.0 + 2.0) / 3)
    assert (overall.worst_to_best_rival, overall.worst_world) == (2.0, "real-long")
    assert [scenario.world for scenario in with_pauses(scenarios, "slow")] == ["fine", "tight"]
    assert overall_of([]) is None


@given(factor=st.floats(0.01, 100.0))
def test_the_currency_does_not_matter(factor: float) -> None:
    """All costs times a factor give the same rival and the same ratios."""
    runs = [run("lagcast", 3.0), run("useful-counts", 4.0), run("flink", 5.0), run("hindsight", 2.0)]
    (plain,) = summaries_of(runs)
    (expensive,) = summaries_of([replace(each, cost=factor * each.cost) for each in runs])
    assert expensive.best_rival == plain.best_rival
    assert expensive.cost_to_hindsight == pytest.approx(plain.cost_to_hindsight)
    assert expensive.cost_to_best_rival == pytest.approx(plain.cost_to_best_rival)


def test_each_bar_names_its_worst_scenario(runs: list[Run]) -> None:
    """Reversed at 3.9 beside useful-counts' 4 keeps 1.1; a capacity learned for 2.2 instead of 2 does not keep 1.05."""
    runs = [replace(each, cost=2.5) if each.policy == "fixed-ceiling" and each.seed == 1 else each for each in runs]
    runs += [run("lagcast-reversed", 3.9), run("lagcast-learned-capacity", 2.2)]
    values = {bar.figure: bar.values for bar in bars_of(summaries_of(runs), runs)}
    assert values["cost / fixed over-provision"] == {("load", "fine"): pytest.approx(3.0 / 4.25)}
    assert values["wrong forecasts: cost / the cheaper of fixed and useful-counts"] == {
        ("load", "fine", "lagcast-reversed"): pytest.approx(3.9 / 4.0)
    }
    assert values["rebalances / HPA's, slow pauses"] == {("load", "fine"): 0.25}
    assert values["rebalances / HPA's, real pauses"] == {}
    section = bars_section(summaries_of(runs), runs, [])
    assert "| rebalances / HPA's, slow pauses | 0.1 | **0.250** | load, fine | 1 of 1 |" in section
    assert "| capacity learned: cost / known | 1.05 | **1.100** | load, fine | 1 of 1 |" in section
    assert "KEDA" not in section.partition("| figure")[2]
    assert "Of 2 single days lagcast cost no more than the best rival of that very day on 0" in section
    assert "more than 2 %\nmore expensive than the fixed ceiling on 1." in section
    assert "| load | fine | 0 | flink | 2.000 | 0.333 |" in section
    without = [each for each in runs if each.policy != "useful-counts"]
    values = {bar.figure: bar.values for bar in bars_of(summaries_of(without), without)}
    assert values["wrong forecasts: cost / the cheaper of fixed and useful-counts"] == {}
    assert bars_section([], [], []) == ""
    assert "load, fine" not in bars_section(summaries_of(runs), runs, ["load"])


def test_rivals_without_a_chance_are_spared_the_other_seeds() -> None:
    """A rival at twice the best cost of its trace and world in the first seed is left out, unless a figure has it."""
    costs = {
        "useful-counts": 10.0,
        "keda-1000": 19.0,
        "keda-2000": 21.0,
        "hpa-10000": 90.0,
        "lagcast": 99.0,
        "hindsight": 1.0,
    }
    runs = [run(policy, cost) for policy, cost in costs.items()] + [run("keda-1000", 99.0, seed=1)]
    spared = hopeless(runs)
    assert spared == {("load", "fine", "keda-2000")}
