"""P7: whoever else changes a count is reported and left alone, over the executor's own end too, until handed over."""

from collections.abc import Callable
from datetime import timedelta
from math import inf
from typing import Any

import pytest
from structlog.testing import capture_logs

from executor.carry_out import Executor
from executor.errors import ScaleError
from executor.plan import Held
from forecasting.refusal import Refusal
from recommender.configuring.settings import TargetSettings
from recommender.deciding.recommendation import Recommendation

# Classes of the conftest beside; test modules cannot import one another.
Cluster = Any
Service = Any
MakeAdvice = Callable[..., Recommendation]
MakeExecutor = Callable[..., Executor]


def _held(acting: Executor) -> Held:
    (held,) = acting.run_once(None)
    assert isinstance(held, Held), held
    return held


def _status(cluster: Cluster) -> dict[str, Any]:
    status: dict[str, Any] = cluster.scalers[0]["status"]
    return status


def test_what_was_set_stands_in_the_object(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Count, advice and instant, and nothing of a conflict."""
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


def test_a_change_back_is_found_though_nothing_is_due(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Somebody sets six again; the next advice is to stay, and the object says so all the same, with one Event."""
    cluster.add_scaler()
    service.store.save(due_advice())
    acting = executor()
    acting.run_once(None)
    cluster.write(6)
    service.store.save(due_advice(recommendation_id="r-2", action="hold", desired_replicas=6))
    for _ in range(3):
        held = _held(acting)
        assert (held.reason, held.conflict) == ("conflicted", "ChangedByOthers")
    conflict = _status(cluster)["conflict"]
    assert conflict["reason"] == "ChangedByOthers"
    assert conflict["message"].startswith("kubectl (at 2026-01-05T12:00:00Z) changed the workload from 8 to 6 replicas")
    assert [event["reason"] for event in cluster.events] == ["ScaledOnAdvice", "ScaleWithheld"]
    assert cluster.events[1]["message"] == conflict["message"]


def test_an_act_that_was_undone_is_not_repeated_after_a_restart(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """There is no second patch and no second Event, whether it was undone before the executor ended or after."""
    cluster.add_scaler()
    service.store.save(due_advice())
    executor().run_once(None)
    cluster.write(6)
    for _ in range(3):
        assert _held(executor()).conflict == "ChangedByOthers"
    assert len(cluster.patches) == 1
    assert [event["reason"] for event in cluster.events] == ["ScaledOnAdvice", "ScaleWithheld"]


def test_a_count_that_stands_as_it_was_left_is_gone_on_with_after_a_restart(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Eight, set by the executor before this one: the next advice is carried out."""
    cluster.add_scaler()
    service.store.save(due_advice())
    executor().run_once(None)
    service.store.save(due_advice(recommendation_id="r-2", current_replicas=8, desired_replicas=12))
    executor().run_once(None)
    assert cluster.replicas == 12


def test_another_workload_begins_anew(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The set count and its later writer belong to one workload; a new target has nothing to do with them."""
    cluster.add_scaler()
    service.store.save(due_advice())
    executor().run_once(None)
    cluster.write(6)
    assert _held(executor()).conflict == "ChangedByOthers"
    service.set(target=TargetSettings(namespace="shop", kind="StatefulSet", name="orders-consumer"))
    executor().run_once(None)
    assert cluster.replicas == 8
    assert _status(cluster)["lastApplied"]["workload"] == "StatefulSet/orders-consumer"
    assert "conflict" not in _status(cluster)


def test_the_owner_hands_a_workload_over_again_by_its_mode(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Recommend for a cycle, then apply: what was changed meanwhile is where the next act starts."""
    cluster.add_scaler()
    service.store.save(due_advice())
    acting = executor()
    acting.run_once(None)
    cluster.write(6)
    assert _held(acting).reason == "conflicted"
    service.set(mode="recommend")
    assert _held(acting).reason == "mode"
    assert _status(cluster) == {}
    service.set(mode="apply")
    acting.run_once(None)
    assert (cluster.replicas, len(cluster.patches)) == (8, 2)


def test_an_autoscaler_that_goes_away_leaves_the_way_free(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """While it is there the object names it; afterwards the count that it left is where the next act starts."""
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
def test_a_count_that_is_declared_in_git_is_not_fought(
    *,
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    marks: dict[str, dict[str, str]],
    manager: str,
    tool: str,
) -> None:
    """The tool that looks after the workload has the count among its fields, and would set it back."""
    service.store.save(due_advice())
    cluster.marks, cluster.owners = marks, (manager,)
    held = _held(executor())
    assert held.conflict == "DeclaredInGit"
    assert held.sentence.startswith(tool)
    assert held.sentence.endswith("leave them out of what it applies")
    assert cluster.patches == []


def test_git_without_a_count_is_no_conflict(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """A workload out of Git whose manifest names no replicas is scaled."""
    service.store.save(due_advice())
    cluster.marks = {"labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}}
    executor().run_once(None)
    assert cluster.replicas == 8


def test_a_second_executor_takes_up_what_the_first_one_set(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """By the name under which it writes: a record that was never written makes it no stranger."""
    cluster.add_scaler()
    cluster.refuses_writes = inf
    service.store.save(due_advice())
    acting = executor()
    with capture_logs() as logs:
        acting.run_once(None)
    assert "unrecorded" in [line["event"] for line in logs]
    service.store.save(due_advice(recommendation_id="r-2", current_replicas=8, desired_replicas=12))
    executor().run_once(None)
    assert cluster.replicas == 12


def test_a_write_that_failed_once_is_made_in_the_same_look(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """So an executor that is asked to end after a move leaves the next one what it set."""
    cluster.add_scaler()
    cluster.refuses_writes = 1
    service.store.save(due_advice())
    with capture_logs() as logs:
        executor().run_once(None)
    assert [line["event"] for line in logs] == ["acted", "unrecorded"]
    assert _status(cluster)["lastApplied"]["replicas"] == 8


def test_what_could_not_be_kept_is_kept_later(
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


def test_an_object_that_was_made_anew_is_told(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Deleted and applied again meanwhile, it is not taken for its namesake, and has what was set after it."""
    cluster.add_scaler()
    service.store.save(due_advice())
    acting = executor()
    acting.run_once(None)
    cluster.add_scaler(uid="another")
    service.store.save(due_advice(recommendation_id="r-2", current_replicas=8, desired_replicas=12))
    with capture_logs() as logs:
        acting.run_once(None)
    assert [line["event"] for line in logs] == ["acted", "unrecorded"]
    assert _status(cluster)["lastApplied"]["replicas"] == 12


def test_an_object_that_is_made_later_is_found(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The resource is installed after the executor's first look; the first thing worth keeping finds it."""
    acting = executor()
    service.store.save(due_advice(action="hold", desired_replicas=6))
    acting.run_once(None)
    cluster.add_scaler()
    service.store.save(due_advice(recommendation_id="r-2"))
    acting.run_once(None)
    assert _status(cluster)["lastApplied"]["replicas"] == 8


def test_without_knowing_what_was_before_nothing_is_done(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The sentence says which right to grant if the objects may not be listed."""
    service.store.save(due_advice())
    cluster.forbidden = True
    (failed,) = executor().run_once(None)
    assert isinstance(failed, ScaleError)
    assert "ConsumerGroupScalers of namespace shop" in str(failed)
    assert "apply deploy/manifests/executor/target-role.yaml" in str(failed)


def test_nothing_is_written_by_an_executor_that_only_reports(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """In the mode recommend, and in a dry run, what another executor has kept stays."""
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


def test_a_workload_with_nothing_due_is_read_once_for_each_advice(
    *,
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    refusal: Callable[..., Refusal],
    wall_clock: Callable[..., Any],
) -> None:
    """Not once for each look; a refusal is looked at like advice."""
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
        ({"name": "gone"}, "could not read Deployment shop/gone: the API server answered 404 Not Found; is it there?"),
    ],
)
def test_what_cannot_be_scaled_is_one_sentence(
    *,
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    target: dict[str, str],
    sentence: str,
) -> None:
    """A kind without a /scale, one that is not there, a workload that is gone; nothing is written."""
    service.set(target=TargetSettings(**({"namespace": "shop", "name": "orders-consumer"} | target)))
    service.store.save(due_advice())
    (failed,) = executor().run_once(None)
    assert isinstance(failed, ScaleError)
    assert sentence in str(failed)
    assert (cluster.patches, cluster.events) == ([], [])


def test_kinds_are_asked_for_once(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The kinds with a /scale are looked up once, and the first answer stays."""
    service.store.save(due_advice())
    acting = executor()
    for _ in range(3):
        acting.run_once(None)
    assert cluster.reads["/apis/apps/v1"] == 1
