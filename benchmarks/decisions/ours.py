"""Makes the policies of a contest by name: lagcast as it is, and variants with one part changed or left out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from benchmarks.decisions.forecasters import ADVERSARIAL, CONSTANT, RANDOM, REVERSED
from benchmarks.decisions.uncosted import Uncosted
from forecasting.forecaster import Forecaster
from forecasting.history import GroupInterval
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from recommender.deciding.decision import DecisionSettings
from replay.policies.lagcast import Lagcast
from replay.policies.policy import Policy
from replay.sampling import Names
from replay.world import World

LAGCAST = "lagcast"
# Without a history.
COLD = "lagcast-cold"
# With the fewest and the most replicas set, and nothing else.
ONLY_BOUNDS_SET = "lagcast-only-bounds-set"

Maker = Callable[[World, DecisionSettings, Names, Sequence[GroupInterval]], Policy]


def _lagcast(
    world: World,
    settings: DecisionSettings,
    names: Names,
    history: Sequence[GroupInterval],
    *,
    forecaster: Forecaster | None = None,
    fallback_policy: bool = True,
    capacity_known: bool = True,
    only_bounds_set: bool = False,
) -> Policy:
    return Lagcast(
        world,
        replace(settings, fallback_policy=fallback_policy),
        names=names,
        history=history,
        forecaster=forecaster,
        capacity_known=capacity_known,
        only_bounds_set=only_bounds_set,
    )


def _cold(world: World, settings: DecisionSettings, names: Names, _: Sequence[GroupInterval]) -> Policy:
    return Lagcast(world, settings, names=names)


def _uncosted(world: World, _: DecisionSettings, names: Names, history: Sequence[GroupInterval]) -> Policy:
    return Uncosted(world, names=names, history=history)


OURS: dict[str, Maker] = {
    LAGCAST: _lagcast,
    COLD: _cold,
    "lagcast-no-cost": _uncosted,
    "lagcast-naive": partial(_lagcast, forecaster=SeasonalNaiveForecaster()),
    "lagcast-adversarial": partial(_lagcast, forecaster=ADVERSARIAL),
    "lagcast-adversarial-unguarded": partial(_lagcast, forecaster=ADVERSARIAL, fallback_policy=False),
    "lagcast-reversed": partial(_lagcast, forecaster=REVERSED),
    "lagcast-constant": partial(_lagcast, forecaster=CONSTANT),
    "lagcast-random": partial(_lagcast, forecaster=RANDOM),
    "lagcast-learned-capacity": partial(_lagcast, capacity_known=False),
    ONLY_BOUNDS_SET: partial(_lagcast, only_bounds_set=True),
}
