"""The simulated group, per partition and event by event. Nothing here may import the cost model."""

from replay.plant.arrivals import Arrivals, draw_arrivals
from replay.plant.observation import DayTotals, Observation
from replay.plant.plant import GRID_SECONDS, Plant

__all__ = ["GRID_SECONDS", "Arrivals", "DayTotals", "Observation", "Plant", "draw_arrivals"]
