"""Discovered workloads of consumer groups as ConsumerGroupScalers."""

from collections.abc import Mapping

from manifests.objects import Document, Imported, scaler
from recommender.cluster.discovery import Found, NotFound


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
