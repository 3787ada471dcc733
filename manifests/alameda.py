"""AlamedaScalers of Federator.ai, both versions: one ConsumerGroupScaler for each consumer group that they name."""

from collections.abc import Sequence

from manifests.objects import (
    SCALED_KINDS,
    Document,
    Imported,
    least_replicas,
    scaler,
    target_of,
    without_equivalent,
)

API_GROUP = "autoscaling.containers.ai"
POLICIES = {"stable": "Stable", "compact": "Compact"}

_METRICS = "offsets are read from Kafka itself, no exporter is needed"
_TOPICS = "all topics are watched to which the group commits"
_FIRST_VERSION = {
    "scalingTool": "advice is the same whatever carries it out",
    "type": "only groups are looked at",
    "selector": "the workload is that of each consumer group",
}
_KAFKA = {"exporterNamespace": _METRICS, "topics": _TOPICS}


def first_version(source: Document, beside: Sequence[Document], *, cluster: str) -> Imported:
    """Import an AlamedaScaler v1alpha1; its workloads are found by their labels, among the documents `beside` it."""
    spec = source["spec"]
    kafka = spec.get("kafka")
    if kafka is None:
        return Imported(warnings=("it names no Kafka group, and is left out",))
    warnings = without_equivalent(
        spec, taken=("kafka", "policy", "enableExecution"), path="spec", reasons=_FIRST_VERSION
    )
    warnings += without_equivalent(kafka, taken=("consumerGroups",), path="spec.kafka", reasons=_KAFKA)
    made = Imported(warnings=warnings)
    groups = kafka.get("consumerGroups", [])
    for number, group in enumerate(groups):
        path = f"spec.kafka.consumerGroups[{number}]"
        target, warnings = _labelled(source, group.get("resource", {}), beside, path=f"{path}.resource")
        least, said = least_replicas(group.get("minReplicas"), path=f"{path}.minReplicas")
        document = scaler(
            source,
            name=_name(source, number, len(groups)),
            cluster=cluster,
            group=group["name"],
            target=target,
            least=least,
            most=group.get("maxReplicas"),
            policy=POLICIES.get(str(spec.get("policy", "")).lower()),
        )
        warnings += without_equivalent(
            group,
            taken=("name", "resource", "minReplicas", "maxReplicas"),
            path=path,
            reasons={"majorTopic": _TOPICS},
        )
        made += Imported(documents=(document,), warnings=warnings + said)
        if spec.get("enableExecution"):
            made += _execution(document)
    return made


def second_version(source: Document, *, cluster: str | None) -> Imported:
    """Import an AlamedaScaler v1alpha2, whose controllers name their workloads; `cluster` overrides its clusterName."""
    spec = source["spec"]
    made = Imported(warnings=without_equivalent(spec, taken=("clusterName", "controllers"), path="spec", reasons={}))
    controllers = spec.get("controllers") or []
    for number, controller in enumerate(controllers):
        path = f"spec.controllers[{number}]"
        if controller.get("type") != "kafka":
            words = f"{path}.type is {controller.get('type')}: only consumer groups are advised on"
            made += Imported(warnings=(words,))
            continue
        made += _controller(
            source,
            controller,
            name=_name(source, number, len(controllers)),
            cluster=cluster or spec["clusterName"],
            path=path,
        )
    return made


def _controller(source: Document, controller: Document, *, name: str, cluster: str, path: str) -> Imported:
    kafka = controller["kafka"]
    group, bounds = kafka["consumerGroup"], kafka.get("hpaParameters") or {}
    target, warnings = target_of(group, path=f"{path}.kafka.consumerGroup")
    least, said = least_replicas(bounds.get("minReplicas"), path=f"{path}.kafka.hpaParameters.minReplicas")
    warnings += said
    if "groupId" not in group:
        warnings += (
            f"{path}.kafka.consumerGroup has no groupId: it is {group['name']!r} now, as its workload; check it",
        )
    document = scaler(
        source,
        name=name,
        namespace=group.get("namespace"),
        cluster=cluster,
        group=group.get("groupId", group["name"]),
        target=target,
        least=least,
        most=bounds.get("maxReplicas"),
    )
    warnings += without_equivalent(
        controller,
        taken=("type", "kafka", "enableExecution"),
        path=path,
        reasons={"scaling": "advice is the same whatever carries it out"},
    )
    warnings += without_equivalent(
        kafka, taken=("consumerGroup", "hpaParameters"), path=f"{path}.kafka", reasons=_KAFKA
    )
    warnings += without_equivalent(
        group,
        taken=("namespace", "name", "kind", "groupId"),
        path=f"{path}.kafka.consumerGroup",
        reasons={"topic": _TOPICS},
    )
    made = Imported(documents=(document,), warnings=warnings)
    return made + _execution(document) if controller.get("enableExecution") else made


def _labelled(
    source: Document, resource: Document, beside: Sequence[Document], *, path: str
) -> tuple[Document | None, tuple[str, ...]]:
    """The one workload of the same namespace whose pods have the labels that `resource` selects."""
    labels = resource.get("kubernetes", {}).get("selector", {}).get("matchLabels", {})
    if not labels:
        return None, (f"{path} selects no workload by labels: no target, so only advice",)
    namespace = source.get("metadata", {}).get("namespace", "default")
    matching = [
        {"apiVersion": document["apiVersion"], "kind": document["kind"], "name": document["metadata"]["name"]}
        for document in beside
        if document["kind"] in SCALED_KINDS
        and document["metadata"].get("namespace", "default") == namespace
        and labels.items() <= document["spec"]["template"]["metadata"].get("labels", {}).items()
    ]
    if len(matching) == 1:
        return matching[0], ()
    selected = ",".join(f"{key}={value}" for key, value in labels.items())
    found = ", ".join(f"{each['kind']}/{each['name']}" for each in matching) or "none"
    sentence = f"{path} selects {selected}: of the workloads in this file {found}; name one in spec.target"
    return None, (sentence,)


def _name(source: Document, number: int, count: int) -> str:
    name = str(source["metadata"]["name"])
    return name if count == 1 else f"{name}-{number + 1}"


def _execution(document: Document) -> Imported:
    metadata = document["metadata"]
    patch = f"kubectl patch cgs {metadata['name']} -n {metadata['namespace']} --type=merge -p "
    sentence = (
        "enableExecution is true: mode is Recommend all the same; to act, install the executor and run "
        f"""{patch}'{{"spec":{{"mode":"Apply"}}}}'"""
    )
    return Imported(warnings=(sentence,))
