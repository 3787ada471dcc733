"""lagcast as it is, and with one part changed or left out, by name: how each is made for a contest."""

from collections.abc import Callable, Sequence

from forecasting.history import GroupInterval
from recommender.decision import DecisionSettings
from replay.policies.lagcast import Lagcast
from replay.policies.policy import Policy
from replay.policies.uncosted import Uncosted
from replay.sampling import Names
from replay.world import World

LAGCAST = "lagcast"

Maker = Callable[[World, DecisionSettings, Names, Sequence[GroupInterval]], Policy]


def _lagcast(world: World, settings: DecisionSettings, names: Names, history: Sequence[GroupInterval]) -> Policy:
    return Lagcast(world, settings, names=names, history=history)


def _uncosted(world: World, _: DecisionSettings, names: Names, history: Sequence[GroupInterval]) -> Policy:
    return Uncosted(world, names=names, history=history)


OURS: dict[str, Maker] = {
    LAGCAST: _lagcast,
    "lagcast-no-cost": _uncosted,
}
