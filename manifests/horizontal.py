"""HorizontalPodAutoscalers of Kubernetes: a ConsumerGroupScaler, and the v2 form of HPAs in removed versions."""

from typing import Any

from manifests.objects import (
    Document,
    Imported,
    least_replicas,
    scaler,
    target_of,
    without_equivalent,
)

API_GROUP = "autoscaling"
# Versions that Kubernetes has removed: v2beta1 in 1.25, v2beta2 in 1.26.
REMOVED = ("autoscaling/v2beta1", "autoscaling/v2beta2")
# Names of the group's label in the metrics of exporters.
GROUP_LABELS = ("group", "consumergroup", "consumer_group", "group_id", "groupId")

_REASONS = {
    "behavior": "what a move costs decides, not a window; rivals of a replay have their own",
    "metrics": "arrivals are forecast and priced; the metrics stay with the HPA",
}

_TWO_WRITERS = (
    "it still scales the same workload: remove it before mode is Apply, or have it follow lagcast_due_replicas, "
    "as lagcast export hpa prints it"
)


def horizontal(source: Document, *, cluster: str, group: str | None) -> Imported:
    """Import an HPA of any version. The consumer group comes from the labels of its metrics, else from `group`."""
    spec = source["spec"]
    made = Imported()
    if source["apiVersion"] in REMOVED:
        words = f"Kubernetes has removed {source['apiVersion']}: here it is as autoscaling/v2"
        made += Imported(documents=(modern(source),), warnings=(words,))
    consumed = _group_of(spec) or group
    if consumed is None:
        words = "no label of its metrics names a consumer group: name it with --group, one HPA a run"
        return made + Imported(warnings=(words,))
    target, warnings = target_of(spec["scaleTargetRef"], path="spec.scaleTargetRef")
    least, said = least_replicas(spec.get("minReplicas"), path="spec.minReplicas")
    taken = ("scaleTargetRef", "minReplicas", "maxReplicas")
    warnings += said + without_equivalent(spec, taken=taken, path="spec", reasons=_REASONS)
    warnings += (_TWO_WRITERS,)
    document = scaler(
        source,
        name=str(source["metadata"]["name"]),
        cluster=cluster,
        group=consumed,
        target=target,
        least=least,
        most=spec["maxReplicas"],
    )
    return made + Imported(documents=(document,), warnings=warnings)


def modern(source: Document) -> Document:
    """An HPA of a version that Kubernetes has removed, as autoscaling/v2; any other object as it is."""
    if source.get("apiVersion") not in REMOVED:
        return source
    metrics = _modern_metrics(source["spec"])
    return {**source, "apiVersion": "autoscaling/v2", "spec": source["spec"] | {"metrics": metrics}}


def _group_of(spec: Document) -> str | None:
    """The consumer group in the label selector of a metric."""
    for metric in spec.get("metrics", []):
        block = metric.get(str(metric["type"]).lower(), {})
        selector = block.get("metricSelector") or block.get("selector") or block.get("metric", {}).get("selector") or {}
        labels = selector.get("matchLabels", {})
        for label in GROUP_LABELS:
            if label in labels:
                return str(labels[label])
    return None


def _modern_metrics(spec: Document) -> list[dict[str, Any]]:
    """The metrics as v2 has them: the name under `metric`, the number under `target`.

    >>> old = {"type": "Pods", "pods": {"metricName": "lag", "targetAverageValue": 10000}}
    >>> _modern_metrics({"metrics": [old]})
    [{'type': 'Pods', 'pods': {'metric': {'name': 'lag'}, 'target': {'type': 'AverageValue', 'averageValue': 10000}}}]
    """
    return [{**metric, _key(metric): _modern(metric[_key(metric)])} for metric in spec.get("metrics", [])]


def _key(metric: Document) -> str:
    kind = str(metric["type"])
    return kind[0].lower() + kind[1:]


def _modern(block: Document) -> dict[str, Any]:
    if isinstance(block.get("target"), dict) and "type" in block["target"]:
        return dict(block)  # v2beta2 has the fields of v2 already
    numbers = {
        "targetAverageValue": ("AverageValue", "averageValue"),
        "targetValue": ("Value", "value"),
        "targetAverageUtilization": ("Utilization", "averageUtilization"),
    }
    kept = {key: block[key] for key in ("name", "container") if key in block}
    if "metricName" in block:
        selector = block.get("metricSelector") or block.get("selector")
        kept["metric"] = {"name": block["metricName"], **({"selector": selector} if selector else {})}
    if "target" in block:  # of an object in v2beta1: which object it is
        kept["describedObject"] = block["target"]
    # The average of a metric of type Object takes precedence over its value, which is always present.
    for old, (kind, key) in numbers.items():
        if old in block:
            kept["target"] = {"type": kind, key: block[old]}
            break
    return kept
