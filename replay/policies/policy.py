"""The port that every policy implements: look at the group each 15 s, return how many replicas it should have."""

from typing import Protocol

from replay.plant.plant import Observation


class Policy(Protocol):
    """A policy that scales one group. It sees only what is visible from outside, and may keep state."""

    def decide(self, seen: Observation) -> int:
        """The replicas to request now; the present count is `seen.replicas`."""
        ...
