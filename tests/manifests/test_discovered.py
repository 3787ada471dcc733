"""Discovered workloads become objects where it is certain which group they run."""

from manifests.discovered import missing_scalers, scalers_of
from manifests.objects import Document, scaler
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


def existing(name: str, *, group: str, target: str | None, cluster: str = "prod") -> Document:
    """An object of the namespace shop, whose kind of target is left out."""
    named = None if target is None else {"name": target}
    return scaler({}, name=name, namespace="shop", cluster=cluster, group=group, target=named)


def test_only_what_is_missing_is_made() -> None:
    """No object for a group that has one, nor for a workload that another object names, nor under its name."""
    answers = {"orders": found("Deployment")}
    (made,) = missing_scalers(answers, [], cluster="prod")
    assert made == scalers_of(answers, cluster="prod").documents[0]
    for there in (
        existing("mine", group="orders", target=None),
        existing("mine", group="audit", target="consumer"),
        existing("consumer", group="audit", target=None),
    ):
        assert missing_scalers(answers, [there], cluster="prod") == ()
    elsewhere = existing("mine", group="orders", target=None, cluster="test")
    assert missing_scalers(answers, [elsewhere], cluster="prod") == (made,)
