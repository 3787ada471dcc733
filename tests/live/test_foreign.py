"""P7, C33-C35 on a real API server: another actor that sets the count is reported in the object within a cycle."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from executor.plan import Act, Held
from recommender.adapters.kubernetes_client import connect as connect_to
from recommender.adapters.kubernetes_scalers import KubernetesScalers
from recommender.adapters.kubernetes_workloads import pods_in
from recommender.cluster.scalers import Scalers
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import Settings
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlaneError
from tests.live.harness.executors import read_clock
from tests.live.harness.libraries import fetched_rollout_definition, made_strimzi_definitions
from tests.live.harness.scalers import autoscaled_in, orders_in
from tests.live.harness.shop import Shop

pytestmark = pytest.mark.kubernetes

EXECUTOR = "lagcast-executor:lagcast-executor"
# A kind of another vendor, whose count is not at spec.replicas, and one without a /scale.
KINDS = """---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: connectors.test.lagcast.io}
spec:
  group: test.lagcast.io
  scope: Namespaced
  names: {kind: Connector, plural: connectors, singular: connector}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
      subresources: {scale: {specReplicasPath: .spec.tasksMax, statusReplicasPath: .status.tasksMax}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rocks.test.lagcast.io}
spec:
  group: test.lagcast.io
  scope: Namespaced
  names: {kind: Rock, plural: rocks, singular: rock}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: connectors}
rules:
  - {apiGroups: [test.lagcast.io], resources: [connectors, connectors/scale], verbs: [get]}
  - {apiGroups: [test.lagcast.io], resources: [connectors/scale], verbs: [patch]}
"""
ROLLOUT = """
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: orders}
spec:
  replicas: 3
  selector: {matchLabels: {app: rolled}}
  template:
    metadata: {labels: {app: rolled}}
    spec: {containers: [{name: consumer, image: "none:1"}]}
  strategy: {canary: {}}
"""
STRIMZI = {
    "KafkaConnector": ("spec.tasksMax", {"class": "org.example.Sink", "tasksMax": 3, "config": {}}),
    "KafkaConnect": ("spec.replicas", {"bootstrapServers": "kafka:9092", "replicas": 3}),
}
ROLLOUT_ROLE = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: rollouts}}
rules:
  - {{apiGroups: [argoproj.io], resources: [rollouts, rollouts/scale], verbs: [get]}}
  - {{apiGroups: [argoproj.io], resources: [rollouts/scale], verbs: [patch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: rollouts}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: rollouts}}
subjects: [{{kind: ServiceAccount, name: {EXECUTOR.partition(":")[2]}, namespace: {EXECUTOR.partition(":")[0]}}}]
"""
STRIMZI_ROLE = ROLLOUT_ROLE.replace("argoproj.io", "kafka.strimzi.io").replace("name: rollouts", "name: strimzi")
STATEFUL = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: orders}
spec:
  replicas: 3
  serviceName: orders
  selector: {matchLabels: {app: stateful}}
  template:
    metadata: {labels: {app: stateful}}
    spec: {containers: [{name: consumer, image: "none:1"}]}
"""


def scaled_by_hand(shop: Shop) -> None:
    shop.kubectl("scale", "deployment", "orders", "--replicas=3")


def applied_again(shop: Shop) -> None:
    orders_in(shop.cluster, shop.namespace)


def set_back_from_git(shop: Shop) -> None:
    """As Flux does: its annotation, and every field of its manifest by server-side apply."""
    found = json.loads(shop.kubectl("get", "deployment", "orders", "-o", "json"))
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "orders", "labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}},
        "spec": {name: found["spec"][name] for name in ("selector", "template")} | {"replicas": 3},
    }
    words = ("apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f", "-")
    shop.kubectl(*words, given=json.dumps(manifest))


def autoscaled(shop: Shop) -> None:
    autoscaled_in(shop.cluster, shop.namespace)


@pytest.mark.parametrize(
    ("interfere", "reason", "sentence"),
    [
        (scaled_by_hand, "ChangedByOthers", "kubectl changed the workload from 8 to 3 replicas"),
        (applied_again, "ChangedByOthers", "kubectl-client-side-apply (at "),
        (set_back_from_git, "DeclaredInGit", "Flux (kustomize.toolkit.fluxcd.io/name: shop) sets the workload's"),
        (autoscaled, "Autoscaled", "HorizontalPodAutoscaler shop-"),
    ],
)
def test_p7_another_actor_that_sets_the_count_is_reported_and_not_fought(
    *,
    shop: Shop,
    objects: KubernetesScalers,
    interfere: Callable[[Shop], None],
    reason: str,
    sentence: str,
) -> None:
    """One look and one cycle later Conflicted is True; advice goes on, and nothing is patched, also after restarts."""
    shop.advise(1)
    acting = shop.executor()
    (act,) = acting.run_once(None)
    assert isinstance(act, Act)
    assert shop.workload()[0] == 8
    assert shop.status()["lastApplied"]["replicas"] == 8
    assert shop.executor().run_once(None)[0].reason == "nothing_to_do"  # type: ignore[union-attr]  # held, or no attribute

    interfere(shop)
    left = shop.workload()
    newest = shop.advise(2, current_replicas=left[0], desired_replicas=12)
    for executor in (acting, acting, shop.executor(), shop.executor()):
        (held,) = executor.run_once(None)
        assert isinstance(held, Held)
        assert (held.reason, held.conflict) == ("conflicted", reason)
    assert shop.workload() == left

    wait_until(lambda: any("conflict" in each.get("status", {}) for each in objects.documents()))
    scalers = Scalers(
        objects=objects, settings=Settings(state_dir=Path("nowhere")), tenants=Tenants(followed=(shop.namespace,))
    )
    scalers.look([("prod-eu", "orders")], now=read_clock())
    assert scalers.report([newest], now=read_clock()) == 1
    status = shop.status()
    conditions = {each["type"]: each for each in status["conditions"]}
    assert (conditions["Conflicted"]["status"], conditions["Conflicted"]["reason"]) == ("True", reason)
    assert conditions["Conflicted"]["message"].startswith(sentence)
    assert conditions["Ready"]["status"] == "True"
    assert status["lastApplied"]["replicas"] == 8
    events = json.loads(shop.kubectl("get", "events", "-o", "json"))["items"]
    reasons = [each["reason"] for each in events if each["source"].get("component") == "lagcast-executor"]
    assert sorted(reasons) == ["ScaleWithheld", "ScaledOnAdvice"]


@pytest.mark.parametrize("target", [{"kind": "StatefulSet", "name": "orders"}])
def test_b14_a_stateful_set_loses_its_highest_ordinal(shop: Shop) -> None:
    """From three pods with state to two: the last one ends, and the others stay as they were."""
    shop.kubectl("apply", "-f", "-", given=STATEFUL)

    def pods() -> dict[str, str]:
        items = json.loads(shop.kubectl("get", "pods", "-l", "app=stateful", "-o", "json"))["items"]
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in items}

    field = "jsonpath={.status.readyReplicas}"
    wait_until(lambda: shop.kubectl("get", "statefulset", "orders", "-o", field) == "3")
    before = pods()
    shop.advise(1, desired_replicas=2)
    (act,) = shop.executor().run_once(None)
    assert isinstance(act, Act), act
    wait_until(lambda: len(pods()) == 2)
    assert pods() == {name: before[name] for name in ("orders-0", "orders-1")}


@pytest.mark.parametrize("target", [{"apiVersion": "test.lagcast.io/v1", "kind": "Connector", "name": "orders"}])
def test_b22_any_kind_with_a_scale_is_scaled(shop: Shop) -> None:
    """The kind is another vendor's, with its count at spec.tasksMax; a change of it is detected, without its author."""
    connectors(shop)
    shop.kubectl("create", "rolebinding", "connectors", "--clusterrole=connectors", f"--serviceaccount={EXECUTOR}")
    shop.advise(1)
    acting = shop.executor()
    (act,) = acting.run_once(None)
    assert isinstance(act, Act), act
    path = "jsonpath={.spec.tasksMax} {.spec.replicas}"
    assert shop.kubectl("get", "connector", "orders", "-o", path) == "8 "
    shop.kubectl("patch", "connector", "orders", "--type=merge", "-p", '{"spec":{"tasksMax":3}}')
    shop.advise(2)
    (held,) = acting.run_once(None)
    assert isinstance(held, Held)
    assert held.sentence.startswith("another client changed the workload from 8 to 3 replicas after this executor did")


@pytest.mark.parametrize("target", [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "orders"}])
def test_an_argo_rollout_is_scaled_by_its_own_definition_and_two_rules(shop: Shop) -> None:
    """Argo's definition of the kind as it is released, and the rules that `target-role.yaml` names for it."""
    shop.cluster.kubectl("apply", "--server-side", "-f", str(fetched_rollout_definition()))
    wait_until(partial(taken, shop, ROLLOUT))
    shop.advise(1)
    acting = shop.executor()
    (failed,) = acting.run_once(None)
    assert "403 Forbidden; apply deploy/" in str(failed)
    shop.kubectl("apply", "-f", "-", given=ROLLOUT_ROLE)
    may = (shop.kubeconfig, shop.namespace, "patch", "rollouts.argoproj.io", "--subresource=scale")
    wait_until(lambda: shop.cluster.may(*may))
    (act,) = acting.run_once(None)
    assert isinstance(act, Act), act
    assert shop.kubectl("get", "rollout", "orders", "-o", "jsonpath={.spec.replicas}") == "8"


@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize(
    "target",
    [{"apiVersion": "kafka.strimzi.io/v1beta2", "kind": kind, "name": "orders"} for kind in STRIMZI],
    ids=STRIMZI,
)
def test_a_resource_of_strimzi_is_scaled_by_its_own_definition_and_two_rules(
    shop: Shop, target: Mapping[str, str]
) -> None:
    """Connectors have their tasks, which are members of the group, and Connect its workers."""
    kind = target["kind"]
    count, spec = STRIMZI[kind]
    shop.cluster.kubectl("apply", "--server-side", "-f", str(made_strimzi_definitions() / f"{kind.lower()}.yaml"))
    document = {"apiVersion": target["apiVersion"], "kind": kind, "metadata": {"name": "orders"}, "spec": spec}
    wait_until(partial(taken, shop, json.dumps(document)))
    plural = f"{kind.lower()}s"
    shop.kubectl("apply", "-f", "-", given=STRIMZI_ROLE.replace("rollouts", plural))
    may = (shop.kubeconfig, shop.namespace, "patch", f"{plural}.kafka.strimzi.io", "--subresource=scale")
    wait_until(lambda: shop.cluster.may(*may))
    shop.advise(1)
    (act,) = shop.executor().run_once(None)
    assert isinstance(act, Act), act
    assert shop.kubectl("get", kind, "orders", "-o", f"jsonpath={{.{count}}}") == "8"


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (
            {"apiVersion": "test.lagcast.io/v1", "kind": "Rock", "name": "orders"},
            "Rock of test.lagcast.io/v1 has no /scale",
        ),
        (
            {"apiVersion": "test.lagcast.io/v1", "kind": "Tree", "name": "orders"},
            "Tree of test.lagcast.io/v1 is not known",
        ),
        (
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "Experiment", "name": "orders"},
            "Experiment of argoproj.io/v1alpha1 is not",
        ),
        ({"name": "gone"}, "could not read Deployment"),
        ({"apiVersion": "test.lagcast.io/v1", "kind": "Connector", "name": "orders"}, "403 Forbidden; apply deploy/"),
    ],
)
def test_a_target_that_cannot_be_scaled_gets_one_sentence_and_no_write(shop: Shop, sentence: str) -> None:
    """A kind without a /scale, unknown kinds, a missing workload, and a missing grant have one sentence each."""
    connectors(shop)
    shop.advise(1)
    (failed,) = shop.executor().run_once(None)
    assert sentence in str(failed)
    assert "lastApplied" not in shop.status()


def test_members_are_traced_to_an_owner_of_another_kind(shop: Shop) -> None:
    """From a ReplicaSet to its owner; whether the owner has a /scale is read from the API server."""
    connectors(shop)
    for kind in ("connector", "rock"):
        shop.kubectl("apply", "-f", "-", given=json.dumps(owned_replica_set(shop, kind)))
    api = connect_to(shop.cluster.kubeconfig)

    def owners() -> set[tuple[str, bool]]:
        found = (pod.workload for pod in pods_in(api, [shop.namespace]))
        return {(workload.kind, workload.has_scale) for workload in found if workload is not None}

    wait_until(lambda: owners() == {("Deployment", True), ("Connector", True), ("Rock", False)})


def connectors(shop: Shop) -> None:
    """Both kinds, and one object of each."""
    shop.cluster.apply(KINDS)
    for kind in ("connectors", "rocks"):
        shop.cluster.kubectl("wait", "--for=condition=Established", f"crd/{kind}.test.lagcast.io", "--timeout=30s")
    for kind in ("Connector", "Rock"):
        document = {"apiVersion": "test.lagcast.io/v1", "kind": kind, "metadata": {"name": "orders"}}
        wait_until(partial(taken, shop, json.dumps(document | {"spec": {"tasksMax": 3}})))


def taken(shop: Shop, manifest: str) -> bool:
    """True if the API server accepts it; it serves a kind a moment after the definition is established."""
    try:
        shop.kubectl("apply", "-f", "-", given=manifest)
    except ControlPlaneError:
        return False
    return True


def owned_replica_set(shop: Shop, kind: str) -> dict[str, Any]:
    """A ReplicaSet of one pod that is owned by an object of that kind, as with an Argo Rollout."""
    uid = shop.kubectl("get", kind, "orders", "-o", "jsonpath={.metadata.uid}")
    owner = {"apiVersion": "test.lagcast.io/v1", "kind": kind.capitalize(), "name": "orders", "uid": uid}
    template = {"metadata": {"labels": {"app": kind}}, "spec": {"containers": [{"name": "c", "image": "none:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"{kind}-1", "ownerReferences": [owner | {"controller": True}]},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": kind}}, "template": template},
    }
