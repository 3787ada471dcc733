"""P7: a count that another writer changes is reported and left alone, also after a restart, until it is handed over."""

from collections.abc import Callable
from datetime import timedelta
from math import inf
from typing import Any

import pytest
from structlog.testing import capture_logs

from executor.carry_out import Executor
from executor.errors import ScaleError
from executor.plan import Act, Held
from forecasting.refusal import Refusal
from recommender.configuring.settings import TargetSettings
from recommender.deciding.recommendation import Recommendation

# Classes of the conftest beside; test modules cannot import one another.
Cluster = Any
Service = Any
MakeAdvice = Callable[..., Recommendation]
MakeExecutor = Callable[..., Executor]


@pytest.fixture(name="acted")
def acted_fixture(service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice) -> Executor:
    """An executor that has just set the eight replicas of the advice, for a group with an object."""
    cluster.add_scaler()
    service.store.save(due_advice())
    acting = executor()
    acting.run_once(None)
    return acting


def _held(acting: Executor) -> Held:
    (held,) = acting.run_once(None)
    assert isinstance(held, Held), held
    return held


def _status(cluster: Cluster) -> dict[str, Any]:
    status: dict[str, Any] = cluster.scalers[0]["status"]
    return status


def test_the_status_has_what_was_applied_last(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The object's status has count, advice and instant of the last move, and no conflict."""
    cluster.add_scaler()
    advice = due_advice()
    service.store.save(advice)
    executor().run_once(None)
    applied = _status(cluster)["lastApplied"]
    assert (applied["replicas"], applied["recommendationId"]) == (8, "r-1")
    assert applied["workload"] == "Deployment/orders-consumer"
    assert (
        advice.execute_at.strftime("%Y-%m-%dT%H:%M:%SZ") <= applied["at"] <= f"{advice.valid_until:%Y-%m-%dT%H:%M:%SZ}"
    )
    assert "conflict" not in _status(cluster)


def test_a_count_that_is_changed_back_is_found_without_due_advice(
    service: Service, cluster: Cluster, due_advice: MakeAdvice, acted: Executor
) -> None:
    """When another writer sets six again and the advice is to stay, the object and one Event report the conflict."""
    cluster.write(6)
    service.store.save(due_advice(recommendation_id="r-2", action="hold", desired_replicas=6))
    for _ in range(3):
        held = _held(acted)
        assert (held.reason, held.conflict) == ("conflicted", "ChangedByOthers")
    conflict = _status(cluster)["conflict"]
    assert conflict["reason"] == "ChangedByOthers"
    assert conflict["message"].startswith("kubectl (at 2026-01-05T12:00:00Z) changed the workload from 8 to 6 replicas")
    assert [event["reason"] for event in cluster.events] == ["ScaledOnAdvice", "ScaleWithheld"]
    assert cluster.events[1]["message"] == conflict["message"]


@pytest.mark.usefixtures("acted")
def test_a_move_that_was_undone_is_not_repeated_after_a_restart(cluster: Cluster, executor: MakeExecutor) -> None:
    """There is no second patch and no second Event, whether the move was undone before the executor ended or after."""
    cluster.write(6)
    for _ in range(3):
        assert _held(executor()).conflict == "ChangedByOthers"
    assert len(cluster.patches) == 1
    assert [event["reason"] for event in cluster.events] == ["ScaledOnAdvice", "ScaleWithheld"]


@pytest.mark.usefixtures("acted")
def test_an_executor_goes_on_after_a_restart_from_the_count_it_set(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """With the eight replicas set by the executor before it, the next advice is carried out."""
    service.store.save(due_advice(recommendation_id="r-2", current_replicas=8, desired_replicas=12))
    executor().run_once(None)
    assert cluster.replicas == 12


@pytest.mark.usefixtures("acted")
def test_another_workload_has_no_conflict(service: Service, cluster: Cluster, executor: MakeExecutor) -> None:
    """Neither the applied count nor a conflict of the earlier workload applies to a new target."""
    cluster.write(6)
    assert _held(executor()).conflict == "ChangedByOthers"
    service.set(target=TargetSettings(namespace="shop", kind="StatefulSet", name="orders-consumer"))
    cluster.owner_sets(target={"name": "orders-consumer", "kind": "StatefulSet"})
    executor().run_once(None)
    assert cluster.replicas == 8
    assert _status(cluster)["lastApplied"]["workload"] == "StatefulSet/orders-consumer"
    assert "conflict" not in _status(cluster)


def test_the_owner_hands_a_workload_over_again_by_its_mode(service: Service, cluster: Cluster, acted: Executor) -> None:
    """After a look at the object in the mode Recommend, moves start from the count that was set meanwhile."""
    cluster.write(6)
    assert _held(acted).reason == "conflicted"
    service.set(mode="recommend")
    assert _held(acted).reason == "conflicted"
    cluster.owner_sets(mode="Recommend")
    assert _held(acted).reason == "mode"
    assert _status(cluster) == {}
    service.set(mode="apply")
    cluster.owner_sets(mode="Apply")
    acted.run_once(None)
    assert (cluster.replicas, len(cluster.patches)) == (8, 2)


def test_an_autoscaler_that_is_deleted_is_no_conflict(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The object names an autoscaler while it exists; after it is deleted moves start from the count that it left."""
    cluster.add_scaler()
    service.store.save(due_advice())
    cluster.autoscaled = True
    acting = executor()
    assert _held(acting).conflict == "Autoscaled"
    assert "HorizontalPodAutoscaler shop/keda-hpa-orders-consumer" in _status(cluster)["conflict"]["message"]
    cluster.write(7, manager="kube-controller-manager")
    acting.run_once(None)
    cluster.autoscaled = False
    service.store.save(due_advice(recommendation_id="r-2", current_replicas=7))
    acting.run_once(None)
    assert cluster.replicas == 8
    assert "conflict" not in _status(cluster)


@pytest.mark.parametrize(
    ("marks", "manager", "tool"),
    [
        ({"labels": {"argocd.argoproj.io/instance": "shop"}}, "argocd-controller", "Argo CD"),
        (
            {"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/x"}},
            "argocd-application-controller",
            "Argo CD",
        ),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}}, "kustomize-controller", "Flux"),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "shop"}}, "helm-controller", "Flux"),
    ],
)
def test_a_count_that_is_declared_in_git_is_left_alone(
    *,
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    marks: dict[str, dict[str, str]],
    manager: str,
    tool: str,
) -> None:
    """A tool of GitOps that has the count among its fields would set it back, so the move is held."""
    service.store.save(due_advice())
    cluster.marks, cluster.owners = marks, (manager,)
    held = _held(executor())
    assert held.conflict == "DeclaredInGit"
    assert held.sentence.startswith(tool)
    assert held.sentence.endswith("leave them out of what it applies")
    assert cluster.patches == []


def test_a_manifest_in_git_without_a_count_is_no_conflict(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """A workload from Git whose manifest has no replicas is scaled."""
    service.store.save(due_advice())
    cluster.marks = {"labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}}
    executor().run_once(None)
    assert cluster.replicas == 8


def test_a_second_executor_goes_on_from_the_count_of_the_first(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Its field manager identifies the count as one of an executor, also where no record was written."""
    cluster.add_scaler()
    cluster.refuses_writes = inf
    service.store.save(due_advice())
    acting = executor()
    with capture_logs() as logs:
        acting.run_once(None)
    assert "state_not_recorded" in [line["event"] for line in logs]
    service.store.save(due_advice(recommendation_id="r-2", current_replicas=8, desired_replicas=12))
    executor().run_once(None)
    assert cluster.replicas == 12


def test_a_status_write_that_failed_is_repeated_in_the_same_look(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The record of a move is written in the look that made it, so that an executor that then ends leaves it behind."""
    cluster.add_scaler()
    cluster.refuses_writes = 1
    service.store.save(due_advice())
    with capture_logs() as logs:
        executor().run_once(None)
    assert [line["event"] for line in logs] == ["acted", "state_not_recorded"]
    assert _status(cluster)["lastApplied"]["replicas"] == 8


def test_a_status_that_could_not_be_written_is_written_later(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """A status that could not be written is written with the next look at the workload."""
    cluster.add_scaler()
    cluster.refuses_writes = inf
    service.store.save(due_advice())
    acting = executor()
    acting.run_once(None)
    cluster.refuses_writes = 0
    acting.run_once(None)
    assert _status(cluster)["lastApplied"]["replicas"] == 8


def test_an_object_that_was_made_again_gets_the_record(
    service: Service, cluster: Cluster, due_advice: MakeAdvice, acted: Executor
) -> None:
    """An object that was deleted and applied again is distinguished by its uid, and gets what was applied after it."""
    cluster.add_scaler(uid="another")
    service.store.save(due_advice(recommendation_id="r-2", current_replicas=8, desired_replicas=12))
    with capture_logs() as logs:
        acted.run_once(None)
    assert [line["event"] for line in logs] == ["acted", "state_not_recorded"]
    assert _status(cluster)["lastApplied"]["replicas"] == 12


def test_an_object_that_is_made_later_is_found(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Where the resource is installed after the executor's first look, the first record is written to it."""
    acting = executor()
    service.store.save(due_advice(action="hold", desired_replicas=6))
    acting.run_once(None)
    cluster.add_scaler()
    service.store.save(due_advice(recommendation_id="r-2"))
    acting.run_once(None)
    assert _status(cluster)["lastApplied"]["replicas"] == 8


def test_without_the_records_nothing_is_changed(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The error names the right to grant if the objects may not be listed."""
    service.store.save(due_advice())
    cluster.forbidden = True
    (failed,) = executor().run_once(None)
    assert isinstance(failed, ScaleError)
    assert "ConsumerGroupScalers of namespace shop" in str(failed)
    assert "apply deploy/manifests/executor/target-role.yaml" in str(failed)


def test_an_executor_that_only_reports_writes_nothing(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """In the mode recommend and in a dry run the record of another executor stays."""
    kept = {
        "lastApplied": {
            "recommendationId": "r-0",
            "workload": "Deployment/orders-consumer",
            "replicas": 9,
            "at": "2026-01-05T12:00:00Z",
        }
    }
    cluster.add_scaler(**kept)
    service.store.save(due_advice())
    executor(mode="recommend").run_once(None)
    executor(dry_run=True).run_once(None)
    assert (_status(cluster), cluster.events, cluster.patches) == (kept, [], [])


def test_a_workload_with_nothing_due_is_read_once_for_each_decision(
    *,
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    refusal: Callable[..., Refusal],
    wall_clock: Callable[..., Any],
) -> None:
    """The workload is read once for each advice or refusal, not once for each look."""
    service.store.save(due_advice(action="hold", desired_replicas=6))
    acting, path = executor(), "/apis/apps/v1/namespaces/shop/deployments/orders-consumer"
    for _ in range(3):
        acting.run_once(None)
    assert cluster.reads[path] == 1
    service.store.save(refusal(refused_at=wall_clock() - timedelta(seconds=1)))
    for _ in range(3):
        acting.run_once(None)
    assert cluster.reads[path] == 2


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ({"kind": "DaemonSet"}, "DaemonSet of apps/v1 has no /scale"),
        ({"kind": "Rollout"}, "Rollout of apps/v1 is not known to the cluster"),
        ({"kind": "Rollout", "api_version": "argoproj.io/v1alpha1"}, "Rollout of argoproj.io/v1alpha1 is not known"),
        ({"kind": "ReplicationController", "api_version": "v1"}, "ReplicationController of v1 cannot be scaled"),
        (
            {"name": "gone"},
            "could not read Deployment shop/gone: the API server answered 404 Not Found; does it exist?",
        ),
    ],
)
def test_a_workload_that_cannot_be_scaled_is_one_sentence(
    *,
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    target: dict[str, str],
    sentence: str,
) -> None:
    """An unknown kind, one without a /scale and a missing workload are one sentence each, and nothing is written."""
    service.set(target=TargetSettings(**({"namespace": "shop", "name": "orders-consumer"} | target)))
    words = {"kind": "kind", "name": "name", "api_version": "apiVersion"}
    cluster.owner_sets(target={"name": "orders-consumer"} | {words[word]: value for word, value in target.items()})
    service.store.save(due_advice())
    (failed,) = executor().run_once(None)
    assert isinstance(failed, ScaleError)
    assert sentence in str(failed)
    assert (cluster.patches, cluster.events) == ([], [])


def test_kinds_are_requested_once(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The kinds with a /scale are requested once, and the first answer is kept."""
    service.store.save(due_advice())
    acting = executor()
    for _ in range(3):
        acting.run_once(None)
    assert cluster.reads["/apis/apps/v1"] == 1


PARTIAL = {"conflict": {"reason": "Autoscaled"}}


def test_a_status_that_another_group_has_in_parts_stops_no_other_group(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Anybody who may write the status of an object of the namespace can leave a conflict without its instant there."""
    cluster.add_scaler()
    (own,) = cluster.scalers
    other = {"cluster": "prod-eu", "groupId": "payments"}
    odd = [{**own, "metadata": {**own["metadata"], "name": f"odd-{spec}"}} for spec in range(3)]
    cluster.scalers += [
        {**odd[0], "spec": other, "status": PARTIAL},
        {**odd[1], "spec": {}},
        {**odd[2], "spec": None, "status": None},
    ]
    service.store.save(due_advice())
    (act,) = executor().run_once(None)
    assert isinstance(act, Act), act
    assert len(cluster.patches) == 1


def test_a_group_whose_own_record_cannot_be_read_is_left_alone_until_it_can(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Without its record nobody knows who has set the count: nothing is patched, and the sentence has the next step."""
    cluster.add_scaler(**PARTIAL)
    service.store.save(due_advice())
    acting = executor()
    (failed,) = acting.run_once(None)
    assert isinstance(failed, ScaleError)
    assert "remove lastApplied and conflict from it" in str(failed)
    assert cluster.patches == []
    cluster.scalers[0]["status"] = {}
    (act,) = acting.run_once(None)
    assert isinstance(act, Act), act
