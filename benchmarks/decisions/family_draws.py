"""Plays draws of the load families: which seeds, in which world, against which simple scalers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.decisions.load_families import LOAD_FAMILIES, Draw, drawn
from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.tournament import Run, play_scenario, rescaled, scenario_of

# Loads from this seed on are for tuning lagcast. Those below are for the report, and are never tuned on.
FIRST_TUNING_SEED = 1000
# All begin with all replicas, so that a fixed count is the ceiling.
SIMPLE_SCALERS = (
    "fixed-ceiling",
    "useful-counts",
    "rate-1.25",
    "hpa-10000",
    "hpa-behavior-2000",
    "keda-500",
    "keda-2000",
    "keda-10000",
)

Purpose = Literal["reporting", "tuning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedDraw:
    """A draw, and the world in which it plays."""

    draw: Draw
    world: str

    @property
    def key(self) -> tuple[str, str, int]:
        """Trace, world and seed of its runs."""
        return self.draw.load, self.world, self.draw.seed


def purpose_of(seeds: range) -> Purpose:
    """The purpose of the seeds.

    Errors: ValueError where some are for reporting and some for tuning.

    >>> purpose_of(range(50)), purpose_of(range(1000, 1002))
    ('reporting', 'tuning')
    """
    if seeds.start < FIRST_TUNING_SEED < seeds.stop:
        message = (
            f"seeds {seeds.start} to {seeds.stop - 1} are partly for reporting and partly, from {FIRST_TUNING_SEED} "
            "on, for tuning: ask for fewer draws"
        )
        raise ValueError(message)
    return "tuning" if seeds.start >= FIRST_TUNING_SEED else "reporting"


def placed_draws(seeds: range, worlds: Sequence[str]) -> list[PlacedDraw]:
    """Every family without and with a daily shape under every seed, the first seed of all first.

    Worlds take turns, from seed to seed and from family to family; both loads of a family are in the same world. The
    world of a draw does not depend on how many draws there are.
    """
    return [
        PlacedDraw(
            draw=Draw(family=family, with_daily=with_daily, seed=seed), world=worlds[(seed + place) % len(worlds)]
        )
        for seed in seeds
        for place, family in enumerate(LOAD_FAMILIES)
        for with_daily in (False, True)
    ]


def play_draw(placed: PlacedDraw, known: Sequence[Run], *, hindsight: bool) -> list[Run]:
    """The runs of lagcast and the simple scalers on the last day of the draw; `known` ones are not played again."""
    trace = rescaled(drawn(placed.draw))
    scenario = scenario_of(trace, placed.world, placed.draw.seed, (LAGCAST, *SIMPLE_SCALERS))
    return play_scenario(scenario, known, hindsight=hindsight)
