"""A user's own autoscaler as a rival: the manifest of an HPA or of a ScaledObject, step for step.

Its metrics are replaced by the group's lag in messages, the metric of a replay; each such assumption is a note.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from replay.plant import Observation
from replay.policies.hpa import (
    DOWN,
    STABILISATION_SECONDS,
    UP,
    BehaviorRules,
    Direction,
    LegacyRules,
    Rules,
    ScalingPolicy,
    Tolerance,
    is_near,
    reconcile,
    wanted_for,
    wanted_for_value,
)
from replay.policies.hpa_cpu import HpaCpu
from replay.policies.keda import capped_lag, even_lag, whole_lag

Document = Mapping[str, Any]
Want = Callable[[Observation], int | None]

# Defaults of an HPA; of a ScaledObject.
_HPA_CPU_PERCENT = 80
_KEDA_MOST, _KEDA_THRESHOLD = 100, 10
_SUFFIXES = {"m": "0.001", "k": "1e3", "M": "1e6", "G": "1e9", "Ki": "1024", "Mi": "1048576", "Gi": "1073741824"}


class DeclaredError(ValueError):
    """A manifest from which no rival can be made; the sentence names the fault and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The autoscaler of a manifest: a `Policy`, and a sentence for each difference of the replay."""

    wants: tuple[Want, ...]
    rules: Rules
    notes: tuple[str, ...] = ()

    def decide(self, seen: Observation) -> int:
        """One pass of the HPA over all its metrics."""
        wants = [want(seen) for want in self.wants]
        return reconcile(wants, rules=self.rules, replicas=seen.replicas, now_seconds=seen.time_seconds)


def declared_hpa(spec: Document, *, ceiling: int) -> Declared:
    """The autoscaler of the `spec` of an autoscaling/v2 HPA; `ceiling` is the most replicas that the world has.

    Errors: DeclaredError.
    """
    behavior = spec.get("behavior")
    most, notes = _most(spec["maxReplicas"], ceiling, named="maxReplicas")
    near, wants = tolerance_of(behavior), list[Want]()
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": _HPA_CPU_PERCENT}}
    for metric in spec.get("metrics") or [{"type": "Resource", "resource": resource}]:
        want, note = _want_of(metric, near)
        notes += (note,)
        wants += [] if want is None else [want]
    if not wants:
        message = f"none of its metrics can be replayed: {'; '.join(notes)}"
        raise DeclaredError(message)
    rules = rules_of(behavior, least=max(1, spec.get("minReplicas", 1)), most=most)
    return Declared(wants=tuple(wants), rules=rules, notes=notes)


def declared_scaled_object(spec: Document, *, ceiling: int) -> Declared:
    """The autoscaler of a ScaledObject's `spec`; only triggers of Kafka are used. Errors: DeclaredError."""
    most, notes = _most(spec.get("maxReplicaCount", _KEDA_MOST), ceiling, named="maxReplicaCount")
    least = spec.get("minReplicaCount", 0)
    if least < 1:
        notes += (f"minReplicaCount is {least}: it is replayed with 1, because simulated groups are never empty",)
    behavior = spec.get("advanced", {}).get("horizontalPodAutoscalerConfig", {}).get("behavior")
    near, wants = tolerance_of(behavior), list[Want]()
    for number, trigger in enumerate(spec.get("triggers", [])):
        if trigger["type"] not in ("kafka", "apache-kafka"):
            notes += (f"triggers[{number}] of type {trigger['type']} is left out: a replay has the lag only",)
            continue
        metadata = trigger["metadata"]
        threshold = int(metadata.get("lagThreshold", _KEDA_THRESHOLD))
        metric: Callable[..., int] = capped_lag
        if _is_true(metadata, "allowIdleConsumers"):
            metric = whole_lag
        elif _is_true(metadata, "ensureEvenDistributionOfPartitions"):
            metric = even_lag
        lagging_only = _is_true(metadata, "limitToPartitionsWithLag")
        wants.append(partial(_kafka_want, threshold=threshold, metric=metric, lagging_only=lagging_only, near=near))
    if not wants:
        message = "it has no trigger of type kafka, and a replay has the lag only"
        raise DeclaredError(message)
    return Declared(wants=tuple(wants), rules=rules_of(behavior, least=max(1, least), most=most), notes=notes)


def rules_of(
    behavior: Document | None, *, least: int, most: int, stabilisation_seconds: float = STABILISATION_SECONDS
) -> Rules:
    """The rules of a `behavior` as Kubernetes writes it; `stabilisation_seconds` is the controller's own window."""
    if behavior is None:
        return LegacyRules(least=least, most=most, stabilisation_seconds=stabilisation_seconds)
    up = _direction(behavior.get("scaleUp", {}), UP, window_seconds=0)
    down = _direction(behavior.get("scaleDown", {}), DOWN, window_seconds=stabilisation_seconds)
    return BehaviorRules(least=least, most=most, up=up, down=down)


def tolerance_of(behavior: Document | None) -> Tolerance:
    """The tolerance of a metric around its target, in either direction."""
    said = behavior or {}
    halves = {"down": said.get("scaleDown", {}), "up": said.get("scaleUp", {})}
    given = {way: number_of(half["tolerance"]) for way, half in halves.items() if "tolerance" in half}
    return partial(is_near, **given)


def number_of(quantity: object) -> float:
    """A quantity as Kubernetes writes it. Errors: DeclaredError.

    >>> number_of("10k"), number_of("100m"), number_of(25), number_of("1Ki")
    (10000.0, 0.1, 25.0, 1024.0)
    """
    text = str(quantity)
    suffix = next((each for each in sorted(_SUFFIXES, key=len, reverse=True) if text.endswith(each)), "")
    try:
        return float(Decimal(text.removesuffix(suffix)) * Decimal(_SUFFIXES.get(suffix, "1")))
    except InvalidOperation as error:
        message = f"{text!r} is no quantity; write a number such as 10000 or 10k"
        raise DeclaredError(message) from error


def _most(requested: int, ceiling: int, *, named: str) -> tuple[int, tuple[str, ...]]:
    if requested <= ceiling:
        return requested, ()
    return ceiling, (f"{named} is {requested}: it is replayed with {ceiling}, as many as there are partitions",)


def _want_of(metric: Document, near: Tolerance) -> tuple[Want | None, str]:
    """The count by one metric, and its note."""
    kind = str(metric["type"])
    block = metric[kind[0].lower() + kind[1:]]
    target = block["target"]
    if kind in ("Resource", "ContainerResource"):
        if block["name"] != "cpu" or "averageUtilization" not in target:
            return None, f"its {kind} metric {block['name']} is left out: a replay has the utilisation of CPU only"
        percent = target["averageUtilization"]
        want = HpaCpu(target_percent=percent, rules=LegacyRules()).want
        return want, f"CPU is taken for the share of its capacity that a replica uses; the target is {percent} %"
    name = block["metric"]["name"]
    if "averageValue" in target:
        wanted = number_of(target["averageValue"])
        said = f"its metric {name} is taken for the group's lag in messages, {wanted:,g} a replica"
        return partial(_average_want, target=wanted, near=near), said
    wanted = number_of(target["value"])
    said = f"its metric {name} is taken for the group's lag in messages, {wanted:,g} of the whole group"
    return partial(_value_want, target=wanted, near=near), said


def _average_want(seen: Observation, *, target: float, near: Tolerance) -> int:
    return wanted_for(float(seen.lag_messages.sum()), target=target, replicas=seen.replicas, near=near)


def _value_want(seen: Observation, *, target: float, near: Tolerance) -> int:
    lag, ready = float(seen.lag_messages.sum()), min(seen.ready_members, seen.replicas)
    return wanted_for_value(lag, target=target, replicas=seen.replicas, ready=ready, near=near)


def _kafka_want(
    seen: Observation, *, threshold: int, metric: Callable[..., int], lagging_only: bool, near: Tolerance
) -> int:
    lag = seen.lag_messages
    partitions = int((lag > 0).sum()) if lagging_only else len(lag)
    reported = metric(int(lag.sum()), threshold_messages=threshold, partitions=partitions)
    return wanted_for(reported, target=threshold, replicas=seen.replicas, near=near)


def _direction(said: Document, default: Direction, *, window_seconds: float) -> Direction:
    policies: Sequence[Document] = said.get("policies") or ()
    return Direction(
        window_seconds=said.get("stabilizationWindowSeconds", window_seconds),
        policies=tuple(map(_policy, policies)) or default.policies,
        select=said.get("selectPolicy", "Max"),
    )


def _policy(said: Document) -> ScalingPolicy:
    value, kind = said["value"], said["type"]
    return ScalingPolicy(
        pods=value if kind == "Pods" else None,
        percent=value if kind == "Percent" else None,
        period_seconds=said["periodSeconds"],
    )


def _is_true(metadata: Document, name: str) -> bool:
    """True if a switch of a trigger is on: its metadata are strings."""
    return str(metadata.get(name, "false")).lower() == "true"
