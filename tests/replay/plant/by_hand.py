"""Plants that are driven by hand: commands at given seconds, and the totals of the one day."""

from replay.plant import DayTotals, Plant
from replay.trace import Trace
from replay.world import World


def totals(plant: Plant) -> DayTotals:
    """The totals of a plant that has run within one day."""
    (day,) = plant.day_totals()
    return day


def commanded(world: World, trace: Trace, *commands: tuple[int, int], replicas: int, seed: int = 1) -> Plant:
    """A plant at the end of its trace that got each command `(second, replicas)` in between."""
    plant = Plant(world=world, trace=trace, seed=seed, replicas=replicas)
    for second, replicas_wanted in commands:
        plant.advance(second - plant.time_seconds)
        plant.scale(replicas_wanted)
    plant.advance(plant.remaining_seconds)
    return plant
