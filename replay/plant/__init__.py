"""The simulated group, per partition and event by event. Nothing here may know the cost model."""

from replay.plant.plant import GRID_SECONDS, DayTotals, Observation, Plant

__all__ = ["GRID_SECONDS", "DayTotals", "Observation", "Plant"]
