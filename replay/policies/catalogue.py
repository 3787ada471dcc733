"""Every rival that lagcast is compared with, by name: its description, and its construction for a world."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from replay.policies.fixed import Fixed
from replay.policies.flink import Flink
from replay.policies.hpa import BehaviorRules, Hpa, LegacyRules, Rules, Tolerance, is_near, is_near_before_1_33
from replay.policies.hpa_cpu import HpaCpu
from replay.policies.keda import Keda, capped_lag, even_lag
from replay.policies.pcc import Pcc
from replay.policies.policy import Policy
from replay.policies.rate import RateBased
from replay.policies.useful_counts import UsefulCounts
from replay.world import World

HPA_TARGETS_MESSAGES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
KEDA_THRESHOLDS_MESSAGES = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
# The target of the public demo's HPA, and a common target.
CPU_TARGETS_PERCENT = (20, 80)
PUBLISHED_TARGET_MESSAGES = 10_000
PUBLISHED_CPU_PERCENT = 20

# Makes a policy for a world in which the group begins with so many replicas.
Maker = Callable[[World, int], Policy]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """One rival. The policies of a family differ in a setting only, and the best of them is quoted.

    `published`: the setting is in a public paper, log or demo, or is a product's own default; the others are ours.
    """

    family: str
    published: bool
    make: Maker


def _rules(kind: Callable[..., Rules], world: World) -> Rules:
    return kind(least=world.min_replicas, most=world.replica_ceiling)


def _hpa(
    world: World, _: int, *, target: int, kind: Callable[..., Rules] = LegacyRules, near: Tolerance = is_near
) -> Hpa:
    return Hpa(target_messages=target, rules=_rules(kind, world), near=near)


def _hpa_cpu(world: World, _: int, *, percent: int, kind: Callable[..., Rules]) -> HpaCpu:
    return HpaCpu(target_percent=percent, rules=_rules(kind, world))


def _keda(world: World, _: int, *, threshold: int, metric: Callable[..., int]) -> Keda:
    rules = LegacyRules(least=world.min_replicas, most=world.replica_ceiling)
    return Keda(threshold_messages=threshold, rules=rules, metric=metric)


def _sweeps() -> dict[str, PolicyEntry]:
    """The families with a setting to sweep."""
    policies = {}
    for target in HPA_TARGETS_MESSAGES:
        published = target == PUBLISHED_TARGET_MESSAGES
        policies[f"hpa-{target}"] = PolicyEntry(family="hpa", published=published, make=partial(_hpa, target=target))
        make = partial(_hpa, target=target, kind=BehaviorRules)
        policies[f"hpa-behavior-{target}"] = PolicyEntry(family="hpa-behavior", published=False, make=make)
    for percent in CPU_TARGETS_PERCENT:
        published = percent == PUBLISHED_CPU_PERCENT
        make_cpu = partial(_hpa_cpu, percent=percent, kind=LegacyRules)
        policies[f"hpa-cpu-{percent}"] = PolicyEntry(family="hpa-cpu", published=published, make=make_cpu)
        make_cpu = partial(_hpa_cpu, percent=percent, kind=BehaviorRules)
        policies[f"hpa-cpu-behavior-{percent}"] = PolicyEntry(family="hpa-cpu-behavior", published=False, make=make_cpu)
    for threshold in KEDA_THRESHOLDS_MESSAGES:
        for family, metric in (("keda", capped_lag), ("keda-even", even_lag)):
            make_keda = partial(_keda, threshold=threshold, metric=metric)
            policies[f"{family}-{threshold}"] = PolicyEntry(family=family, published=False, make=make_keda)
    return policies


# "fixed" keeps the first count, "fixed-ceiling" is the over-provision of the 2019 white paper: the maximum. "hpa-2019"
# is that paper's HPA: a target of 10,000 and the comparison of the tolerance in that version. The rest of its manifest
# is unknown.
CATALOGUE: dict[str, PolicyEntry] = {
    "fixed": PolicyEntry(
        family="fixed", published=False, make=lambda _, first_replicas: Fixed(replicas=first_replicas)
    ),
    "fixed-ceiling": PolicyEntry(
        family="fixed-ceiling", published=True, make=lambda world, _: Fixed(replicas=world.replica_ceiling)
    ),
    "hpa-2019": PolicyEntry(
        family="hpa-2019",
        published=True,
        make=partial(_hpa, target=PUBLISHED_TARGET_MESSAGES, near=is_near_before_1_33),
    ),
    **_sweeps(),
    "pcc": PolicyEntry(family="pcc", published=True, make=lambda world, _: Pcc(world=world, capacity_seen=False)),
    "pcc-max": PolicyEntry(family="pcc", published=False, make=lambda world, _: Pcc(world=world, capacity_seen=True)),
    "flink": PolicyEntry(family="flink", published=True, make=lambda world, _: Flink(world=world)),
    "rate-1.25": PolicyEntry(family="rate", published=False, make=lambda world, _: RateBased(world=world)),
    "useful-counts": PolicyEntry(
        family="useful-counts", published=False, make=lambda world, _: UsefulCounts(world=world)
    ),
}
