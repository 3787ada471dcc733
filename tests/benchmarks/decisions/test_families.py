"""Load families against simple scalers: which draws play in which world, their table, and the command."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.decisions import families as command
from benchmarks.decisions import family_draws
from benchmarks.decisions.document import imported_by
from benchmarks.decisions.families_page import families_page, family_table
from benchmarks.decisions.family_draws import (
    FIRST_TUNING_SEED,
    SIMPLE_SCALERS,
    placed_draws,
    play_draw,
    purpose_of,
)
from benchmarks.decisions.family_standings import FamilySummary, family_summaries, worst_draws
from benchmarks.decisions.load_families import LOAD_FAMILIES, Draw, drawn
from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.tournament import Run, family_of
from benchmarks.decisions.worlds import WORLDS
from replay.policies.catalogue import CATALOGUE
from tests.benchmarks.decisions.made_runs import run as run_of

# Costs of two draws by hand: useful-counts is cheapest on average, KEDA's threshold of 2,000 the cheapest of KEDA's.
COSTS = {
    LAGCAST: (3.0, 6.0),
    "fixed-ceiling": (8.0, 8.0),
    "useful-counts": (4.0, 5.0),
    "rate-1.25": (2.0, 8.0),
    "hpa-10000": (20.0, 20.0),
    "hpa-behavior-2000": (20.0, 20.0),
    "keda-500": (9.0, 9.0),
    "keda-2000": (7.0, 9.0),
    "keda-10000": (30.0, 30.0),
}
MOVES = {LAGCAST: (4, 6), "keda-500": (500, 500), "keda-2000": (100, 120)}


def run(load: str, policy: str, seed: int, cost: float, *, moves: int = 0) -> Run:
    """A run with this cost, all of it for pods, in the world of the seed."""
    made = run_of(policy, cost, world=("tight", "fine")[seed % 2], seed=seed, moves=moves, rebalances=moves)
    return replace(made, trace=load, day="2026-05-06T00:00:00+00:00", seconds_of_cpu=2.0)


def runs_of(load: str) -> list[Run]:
    """The two draws of one load."""
    return [
        run(load, policy, seed, costs[seed], moves=MOVES.get(policy, (0, 0))[seed])
        for seed in (0, 1)
        for policy, costs in COSTS.items()
    ]


# Draws


def test_seeds_are_for_reporting_or_for_tuning() -> None:
    """Below 1000 and from 1000 on; never both at once."""
    assert FIRST_TUNING_SEED == 1000
    assert [purpose_of(seeds) for seeds in (range(50), range(950, 1000), range(1000, 1050))] == [
        "reporting",
        "reporting",
        "tuning",
    ]
    with pytest.raises(ValueError, match="seeds 999 to 1000 are partly for reporting"):
        purpose_of(range(999, 1001))


@given(first=st.integers(0, 2000), draws=st.integers(1, 20), worlds=st.integers(1, len(WORLDS)))
def test_worlds_take_turns(first: int, draws: int, worlds: int) -> None:
    """Each family plays in every world in turn, with a daily shape in the same one, for any number of draws."""
    names = list(WORLDS)[:worlds]
    placed = placed_draws(range(first, first + draws), names)
    assert len({each.key for each in placed}) == len(placed) == draws * 2 * len(LOAD_FAMILIES)
    world_of = {(each.draw.family, each.draw.seed, each.draw.with_daily): each.world for each in placed}
    for family in LOAD_FAMILIES:
        plain = [world_of[family, seed, False] for seed in range(first, first + draws)]
        assert plain == [world_of[family, seed, True] for seed in range(first, first + draws)]
        assert all(later != earlier for earlier, later in pairwise(plain)) or worlds == 1
        assert len(set(plain)) == min(worlds, draws)
    assert placed_draws(range(first, first + draws + 5), names)[: len(placed)] == placed


def test_scalers_are_known_and_simple() -> None:
    """All are rivals of the tournament, and the fixed ceiling is one of them."""
    assert set(SIMPLE_SCALERS) <= set(CATALOGUE)
    assert "fixed-ceiling" in SIMPLE_SCALERS
    assert {family_of(name) for name in SIMPLE_SCALERS} >= {"hpa", "hpa-behavior", "keda", "useful-counts", "rate"}


def test_loads_are_in_the_digest_and_the_page_is_not() -> None:
    """A change of the loads plays all runs again; a change of the page plays none."""
    files = imported_by(command.ROOT)
    assert {"benchmarks/decisions/load_families.py", "replay/plant/plant.py", "replay/policies/keda.py"} <= files
    assert not {"benchmarks/decisions/families_page.py", "benchmarks/decisions/family_standings.py"} & files


# Standings


@pytest.fixture(name="summary")
def summary_fixture() -> FamilySummary:
    """The two draws of bursts."""
    (summary,) = family_summaries(runs_of("bursts"))
    return summary


def test_the_cheapest_scaler_is_that_of_the_least_mean_cost(summary: FamilySummary) -> None:
    """4 and 5 against 2 and 8: useful-counts. Lagcast's mean of 4.5 is as much, and 4.5 / 8 of the ceiling."""
    assert (summary.cheapest, summary.to_cheapest, summary.to_fixed) == ("useful-counts", 1.0, 4.5 / 8.0)
    assert (summary.cost, summary.to_hindsight) == (4.5, None)


def test_the_worst_draw_is_beside_the_same_scaler(summary: FamilySummary) -> None:
    """6 against its 5 and 3 against its 4, not against the 2 of another."""
    assert [(draw.seed, draw.to_cheapest, draw.to_fixed) for draw in summary.draws] == [
        (0, 3.0 / 4.0, 3.0 / 8.0),
        (1, 6.0 / 5.0, 6.0 / 8.0),
    ]
    assert (summary.worst_to_cheapest, summary.worst_to_fixed) == (1.2, 0.75)
    assert [draw.seed for draw in worst_draws([summary], 1)] == [1]


def test_moves_are_beside_those_of_the_cheapest_keda(summary: FamilySummary) -> None:
    """4 and 6 moves stand beside 100 and 120."""
    assert (summary.moves, summary.keda, summary.keda_moves) == (5.0, "keda-2000", 110.0)


def test_hindsight_counts_where_it_played_in_every_draw() -> None:
    """3 and 3 are two thirds of 4.5; a single draw of hindsight is not compared."""
    both = [*runs_of("bursts"), *(run("bursts", "hindsight", seed, 3.0) for seed in (0, 1))]
    assert family_summaries(both)[0].to_hindsight == 1.5
    assert family_summaries(both[:-1])[0].to_hindsight is None


def test_families_come_in_their_order_without_and_with_a_daily_shape() -> None:
    """The order of the draws does not matter."""
    runs = [each for load in ("on-off", "bursts-daily", "bursts") for each in runs_of(load)]
    assert [(each.load, each.with_daily) for each in family_summaries(runs)] == [
        ("bursts", False),
        ("bursts-daily", True),
        ("on-off", False),
    ]


def test_a_missed_bar_is_marked() -> None:
    """1.0 is within 1.03 and beyond 0.92 with a daily shape; all is within 1.01 times the ceiling."""
    lines = family_table(family_summaries([*runs_of("bursts"), *runs_of("bursts-daily")])).splitlines()
    assert "| bursts | useful-counts | 2 | 4.50 | 1.000 | 1.200 | 0.562 | 0.750 | - | 5 | 110 |" in lines
    assert "| bursts-daily | useful-counts | 2 | 4.50 | **1.000** (missed) | 1.200 | 0.562 |" in lines[-1]
    dear = [replace(each, cost=8.5) if each.policy == LAGCAST else each for each in runs_of("bursts")]
    assert family_table(family_summaries(dear)).count("(missed)") == 2


@pytest.mark.parametrize(("first", "purpose"), [(0, "reporting"), (1000, "tuning")])
def test_the_page_names_its_seeds_and_their_purpose(first: int, purpose: str) -> None:
    """Seeds are below 1000 or from 1000 on; the page has the sentences of the families and of the played worlds."""
    runs = [replace(each, seed=first + each.seed) for each in runs_of("bursts")]
    page = families_page(json.loads(command.text_of(runs)))
    assert f"**Seeds.** {first} to {first + 1}, for {purpose}." in page
    assert f"| bursts | fine | useful-counts | {first + 1} | 1.200 | 0.750 |" in page
    assert all(each.sentence in page for each in LOAD_FAMILIES.values())
    assert "| tight |" in page
    assert "| cooperative |" not in page


# The command


def test_a_draw_that_is_in_the_file_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All draws of one seed are in the file: the table is printed at once, and again as a page."""
    out = tmp_path / "families.json"
    held = [
        replace(each, seed=7, world="fine")
        for placed in placed_draws(range(7, 8), ["fine"])
        for each in runs_of(placed.draw.load)[: len(COSTS)]
    ]
    out.write_text(command.text_of(held))
    words = ["families", "--draws", "1", "--seeds-from", "7", "--worlds", "fine", "--out", str(out)]
    monkeypatch.setattr("sys.argv", words)
    assert command.main() == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [f"12 of 12 are in {out}"]
    assert printed.out == family_table(family_summaries(held))
    monkeypatch.setattr("sys.argv", ["families", "--page", str(out)])
    assert command.main() == 0
    assert printed.out in capsys.readouterr().out


def test_seeds_for_both_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2, and the sentence has the reason."""
    monkeypatch.setattr("sys.argv", ["families", "--draws", "100", "--seeds-from", "950"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "seeds 950 to 1049 are partly for reporting" in capsys.readouterr().err


@pytest.mark.slow
def test_a_draw_is_played_by_every_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a load of one whole day lagcast and each scaler play once, the ceiling has its price, and known runs stay."""
    monkeypatch.setattr(family_draws, "drawn", partial(drawn, days=1))
    (placed, *_) = placed_draws(range(1000, 1001), ["real-quick"])
    known = [run("bursts", policy, 1000, 1.0) for policy in (LAGCAST, *SIMPLE_SCALERS[2:])]
    runs: Sequence[Run] = play_draw(placed, known, hindsight=False)
    assert [each.policy for each in runs] == [LAGCAST, *SIMPLE_SCALERS]
    assert {each.trace for each in runs} == {Draw(family="bursts", with_daily=False, seed=0).load}
    costs = {each.policy: each.cost for each in runs}
    assert costs["fixed-ceiling"] >= 40 * 24 * 0.05
    assert (costs[LAGCAST], costs["keda-500"]) == (1.0, 1.0)
