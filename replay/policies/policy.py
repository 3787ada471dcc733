"""The port that every policy implements: look at the group each 15 s, return how many replicas it should have."""

from typing import Protocol

from replay.plant.plant import Observation


class Policy(Protocol):
    """A way of scaling one group. It sees what a real one could see, and remembers what it likes."""

    def decide(self, seen: Observation) -> int:
        """The replicas to request now; the present count is `seen.replicas`."""
        ...
