"""Discovered workloads of consumer groups as ConsumerGroupScalers."""

from collections.abc import Mapping, Sequence

from manifests.objects import Document, Imported, scaler
from recommender.cluster.discovery import Found, NotFound
from recommender.cluster.scaler import place_of


def scalers_of(answers: Mapping[str, Found | NotFound], *, cluster: str) -> Imported:
    """An object for each group with a workload of its own, and a sentence for each group without one."""
    made: dict[tuple[str, str], Document] = {}
    warnings = []
    for group, answer in sorted(answers.items()):
        if not isinstance(answer, Found):
            warnings.append(f"group {group!r}: {answer.sentence}")
            continue
        workload = answer.workload
        if answer.shared_with:
            others = ", ".join(answer.shared_with)
            warnings.append(f"group {group!r}: {workload} runs {others} too, and is scaled for one.")
            continue
        target = {"apiVersion": workload.api_version, "kind": workload.kind, "name": workload.name}
        name = workload.name
        if (workload.namespace, name) in made:  # a Deployment and a StatefulSet may share a name
            name = f"{name}-{workload.kind.lower()}"
        made[workload.namespace, name] = scaler(
            {}, name=name, namespace=workload.namespace, cluster=cluster, group=group, target=target
        )
    return Imported(documents=tuple(made.values()), warnings=tuple(warnings))


def missing_scalers(
    answers: Mapping[str, Found | NotFound], existing: Sequence[Document], *, cluster: str
) -> tuple[Document, ...]:
    """Objects for those groups that none of the existing ones is about, nor its target, under names that are free."""
    groups = {(each["spec"]["cluster"], each["spec"]["groupId"]) for each in existing}
    targets = {_target_of(each) for each in existing}
    places = {place_of(each) for each in existing}
    return tuple(
        made
        for made in scalers_of(answers, cluster=cluster).documents
        if (cluster, made["spec"]["groupId"]) not in groups
        and _target_of(made) not in targets
        and place_of(made) not in places
    )


def _target_of(document: Document) -> tuple[str, str, str] | None:
    target = document["spec"].get("target")
    if target is None:
        return None
    return document["metadata"]["namespace"], target.get("kind", "Deployment"), target["name"]
