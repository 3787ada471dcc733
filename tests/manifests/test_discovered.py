"""Discovered workloads become objects where it is certain which group they run."""

from manifests.discovered import scalers_of
from recommender.cluster.discovery import Found, NotFound, Workload


def found(kind: str, *, shared_with: tuple[str, ...] = ()) -> Found:
    """One member in the one pod of `shop/consumer`."""
    workload = Workload(namespace="shop", kind=kind, name="consumer", api_version="apps/v1", has_scale=True)
    return Found(workload=workload, members=1, pods=1, replicas=1, shared_with=shared_with)


def test_two_workloads_of_one_name_become_two_objects() -> None:
    """A Deployment and a StatefulSet of the same name become two objects with different names."""
    made = scalers_of({"clicks": found("StatefulSet"), "audit": found("Deployment")}, cluster="prod")
    assert [document["metadata"]["name"] for document in made.documents] == ["consumer", "consumer-statefulset"]
    assert [document["spec"]["groupId"] for document in made.documents] == ["audit", "clicks"]
    assert made.warnings == ()


def test_an_uncertain_workload_is_a_sentence() -> None:
    """A group without a workload, or with one that runs another group too, is a sentence and no object."""
    nowhere = NotFound(reason="no_target", sentence="The group has no members now.", members=0)
    shared = found("Deployment", shared_with=("orders",))
    made = scalers_of({"audit": nowhere, "clicks": shared}, cluster="prod")
    assert made.documents == ()
    assert made.warnings == (
        "group 'audit': The group has no members now.",
        f"group 'clicks': {shared.workload} runs orders too, and is scaled for one.",
    )
