"""The manifests: fields that Kubernetes knows, hardened containers, no right too many, and existing commands."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from kubernetes import client

from api.app import create_app
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.configuring.settings import load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
Document = dict[str, Any]
NOT_FOUND = 404
PODS = ("CronJob", "Deployment", "StatefulSet")
LEASE = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["lagcast-recommender"]}


@cache
def documents() -> tuple[tuple[str, Document], ...]:
    """Every document of the manifests and of Spark's, with a name for the test's output, but not the chart's templates.

    They are read once, so that no test may change one.
    """
    return tuple(
        (f"{path.relative_to(DEPLOY)}: {document['kind']} {document.get('metadata', {}).get('name', '')}", document)
        for folder in ("manifests", "spark")
        for path in sorted((DEPLOY / folder).rglob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    )


def of_kind(kind: str) -> list[Document]:
    return [document for _, document in documents() if document["kind"] == kind]


def each(*kinds: str) -> list[Any]:
    return [pytest.param(document, id=name) for name, document in documents() if document["kind"] in kinds]


def pod_template(document: Document) -> Document:
    if document["kind"] == "Pod":
        return document
    spec = document["spec"]
    template = spec["jobTemplate"]["spec"]["template"] if document["kind"] == "CronJob" else spec["template"]
    return dict(template)


def container_of(name: str) -> Document:
    """The one container with that name."""
    pods = [pod_template(document)["spec"] for kind in PODS for document in of_kind(kind)]
    (container,) = [container for pod in pods for container in pod["containers"] if container["name"] == name]
    return dict(container)


def unknown_fields(value: object, kind: str, where: str) -> Iterator[str]:
    """Paths of fields that the Kubernetes client's own model of `kind` does not have."""
    if kind.startswith("List[") and isinstance(value, list):
        for number, entry in enumerate(value):
            yield from unknown_fields(entry, kind[5:-1], f"{where}[{number}]")
    elif (model := getattr(client, kind, None)) is not None and isinstance(value, Mapping):
        kinds = {model.attribute_map[name]: model.openapi_types[name] for name in model.openapi_types}
        for name, entry in value.items():
            if name in kinds:
                yield from unknown_fields(entry, kinds[name], f"{where}.{name}")
            else:
                yield f"{where}.{name}"


@pytest.mark.parametrize(
    "document",
    each(
        "ConfigMap",
        *PODS,
        "Lease",
        "Namespace",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ),
)
def test_every_field_is_known_to_kubernetes(document: Document) -> None:
    """No field is misspelt or misplaced, as Kubernetes drops unknown fields such as `readOnlyRootFileSystem`."""
    model = f"V1{document['kind']}"
    assert list(unknown_fields(document, model, document["kind"])) == []


def test_unknown_fields_are_found() -> None:
    """A misspelt field deep inside a document is found."""
    broken = {"spec": {"template": {"spec": {"containers": [{"securityContext": {"readOnlyRootFileSystem": True}}]}}}}
    assert list(unknown_fields(broken, "V1Deployment", "Deployment")) == [
        "Deployment.spec.template.spec.containers[0].securityContext.readOnlyRootFileSystem"
    ]


@pytest.mark.parametrize("document", each(*PODS, "Pod"))
def test_containers_are_hardened(document: Document) -> None:
    """No container runs as root, writes to its root, gains a privilege or keeps a capability."""
    pod = pod_template(document)["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        }


@pytest.mark.parametrize("document", each(*PODS))
def test_pods_are_wired(document: Document) -> None:
    """A pod has a service account of its own that exists, mounts only volumes that it has, and limits its memory."""
    namespace, pod = document["metadata"]["namespace"], pod_template(document)["spec"]
    accounts = {(entry["metadata"]["namespace"], entry["metadata"]["name"]) for entry in of_kind("ServiceAccount")}
    assert (namespace, pod["serviceAccountName"]) in accounts
    volumes = {volume["name"] for volume in pod.get("volumes", ())}
    for container in pod["containers"]:
        assert {mount["name"] for mount in container.get("volumeMounts", ())} == volumes
        places = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
        # A place for a volume cannot be created inside another volume that is mounted read-only.
        assert [place for place in places for other in places if place.startswith(f"{other}/")] == []
        assert {"requests", "limits"} == container["resources"].keys()


@pytest.mark.parametrize("document", each("Deployment", "StatefulSet"))
def test_selectors_match_their_pods(document: Document) -> None:
    """A Deployment or a StatefulSet selects the pods that it makes."""
    assert document["spec"]["selector"]["matchLabels"].items() <= pod_template(document)["metadata"]["labels"].items()


def test_only_the_executor_gets_a_token() -> None:
    """Of all long-running pods only the executor has access to the API server."""
    given = {
        document["metadata"]["name"]: pod_template(document)["spec"]["automountServiceAccountToken"]
        for kind in PODS
        for document in of_kind(kind)
    }
    assert [name for name, has_token in given.items() if has_token] == ["lagcast-executor"]


def test_executor_may_scale_and_nothing_else() -> None:
    """The executor reads workloads and autoscalers, patches /scale, makes Events and keeps a record in the status."""
    assert rules_of("lagcast-executor") == [
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale", "statefulsets/scale"], "verbs": ["patch"]},
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]},
        {"apiGroups": ["keda.sh"], "resources": ["scaledobjects"], "verbs": ["list"]},
        {"apiGroups": ["lagcast.io"], "resources": ["consumergroupscalers"], "verbs": ["get", "list"]},
        {"apiGroups": ["lagcast.io"], "resources": ["consumergroupscalers/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        {**LEASE, "verbs": ["get"]},
    ]


def rules_of(account: str) -> list[Document]:
    """All rights of a service account, from Roles only."""
    bindings = [
        binding
        for binding in (*of_kind("RoleBinding"), *of_kind("ClusterRoleBinding"))
        if any(subject["name"] == account for subject in binding["subjects"])
    ]
    assert {binding["roleRef"]["kind"] for binding in bindings} == {"Role"}
    names = [binding["roleRef"]["name"] for binding in bindings]
    return [
        rule for name in names for role in of_kind("Role") if role["metadata"]["name"] == name for rule in role["rules"]
    ]


def test_recommender_may_read_its_objects_and_write_their_status() -> None:
    """It follows its objects, patches their status, makes Events, lists pods and autoscalers, and holds one Lease.

    Where it may discover workloads, it lists ReplicaSets too and creates objects.
    """
    assert rules_of("lagcast-recommender") == [
        {**LEASE, "verbs": ["get", "update"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list"]},
        {"apiGroups": ["lagcast.io"], "resources": ["consumergroupscalers"], "verbs": ["create"]},
        {"apiGroups": ["lagcast.io"], "resources": ["consumergroupscalers"], "verbs": ["list", "watch"]},
        {"apiGroups": ["lagcast.io"], "resources": ["consumergroupscalers/status"], "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]},
        {"apiGroups": ["keda.sh"], "resources": ["scaledobjects"], "verbs": ["list"]},
    ]


def test_no_account_has_rights_in_the_whole_cluster() -> None:
    """There is no ClusterRole and no ClusterRoleBinding."""
    assert (of_kind("ClusterRole"), of_kind("ClusterRoleBinding")) == ([], [])


def test_executor_is_off_and_only_reports() -> None:
    """By default there is no executor; an executor only reports; and it has a namespace of its own."""
    (deployment,) = [entry for entry in of_kind("Deployment") if entry["metadata"]["name"] == "lagcast-executor"]
    assert deployment["spec"]["replicas"] == 0
    assert "--mode=recommend" in container_of("executor")["args"]
    kinds = (*PODS, "SparkApplication")
    namespaces = [entry["metadata"]["namespace"] for kind in kinds for entry in of_kind(kind)]
    assert set(namespaces) == {"lagcast", "lagcast-executor"}
    assert namespaces.count("lagcast-executor") == 1


def test_settings_are_valid(tmp_path: Path) -> None:
    """The settings in the ConfigMap are valid for the recommender and set the mode apply for no group."""
    (settings,) = of_kind("ConfigMap")
    path = tmp_path / "settings.yaml"
    path.write_text(settings["data"]["settings.yaml"], encoding="utf-8")
    loaded = load_settings(path, {"LAGCAST_STATE_DIR": str(tmp_path)})
    assert loaded.group("any").mode == "recommend"


@pytest.mark.parametrize("document", each("DaemonSet", "Deployment", "StatefulSet"))
def test_a_container_that_hangs_is_started_again(document: Document) -> None:
    """Each container of a workload that runs for good has a liveness probe.

    The collector beside Spark has none: it serves nothing, and ends by itself when it cannot write.
    """
    containers = pod_template(document)["spec"]["containers"]
    without = [container["name"] for container in containers if "livenessProbe" not in container]
    assert without == (["collector"] if document["metadata"]["name"] == "lagcast-collector" else [])


def test_probes_request_served_paths(tmp_path: Path) -> None:
    """The recommender's probes request paths that its API has; the Service has the ports that it listens on."""
    recommender = container_of("recommender")
    options = {"http": "--port", "keda": "--keda-port"}
    listening = {port["name"]: port["containerPort"] for port in recommender["ports"]}
    assert {f"{options[name]}={port}" for name, port in listening.items()} <= {*recommender["args"]}
    store = SqlDecisionStore(f"sqlite:///{tmp_path / 'decisions.sqlite'}")
    app = create_app(store, clock=lambda: datetime(2026, 1, 5, tzinfo=UTC), version="0")
    store.close()
    with TestClient(app) as client:
        known = {path for path in ("/livez", "/readyz") if client.get(path).status_code != NOT_FOUND}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert recommender[probe]["httpGet"]["path"] in known
        assert recommender[probe]["httpGet"]["port"] == "http"
    (service,) = of_kind("Service")
    assert service["spec"]["ports"] == [
        {"name": name, "port": port, "targetPort": name} for name, port in listening.items()
    ]


def test_kedas_port_is_open_for_kedas_namespace_alone() -> None:
    """Readers of REST get no further port, and KEDA's operator gets none but its own."""
    (policy,) = [entry for entry in of_kind("NetworkPolicy") if entry["metadata"]["name"] == "recommender"]
    opened = [
        (rule["from"][0]["namespaceSelector"]["matchLabels"], [port["port"] for port in rule["ports"]])
        for rule in policy["spec"]["ingress"]
    ]
    assert opened == [({"lagcast.io/reader": "true"}, [8686]), ({"kubernetes.io/metadata.name": "keda"}, [9095])]


def test_kustomizations_name_their_files() -> None:
    """Each kustomization lists the YAML files beside it, without those that are to be applied by hand."""
    for path in DEPLOY.rglob("kustomization.yaml"):
        listed = [
            name for name in yaml.safe_load(path.read_text(encoding="utf-8"))["resources"] if not name.startswith("../")
        ]
        beside = {entry.name for entry in path.parent.glob("*.yaml")} - {path.name, "target-role.yaml"}
        assert sorted(listed) == sorted(beside)


def test_spark_job_is_the_one_of_the_image() -> None:
    """The SparkApplication runs a file of this repository, at the place and Spark version that the image has."""
    (spark,) = of_kind("SparkApplication")
    packages = "local:///opt/lagcast/site-packages/"
    assert "SPARK_HOME=/opt/lagcast/site-packages/pyspark" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    main = spark["spec"]["mainApplicationFile"]
    assert main.startswith(packages)
    assert (DEPLOY.parent / main.removeprefix(packages)).is_file()
    locked = (DEPLOY.parent / "requirements" / "dev.txt").read_text(encoding="utf-8")
    assert f"\npyspark=={spark['spec']['sparkVersion']} " in locked


def test_spark_pods_are_hardened() -> None:
    """Driver and executors are hardened like every other container, and the driver's service account exists."""
    (spark,) = of_kind("SparkApplication")
    for role in ("driver", "executor"):
        pod = spark["spec"][role]
        assert pod["podSecurityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["readOnlyRootFilesystem"] is True
        assert pod["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {mount["name"] for mount in pod["volumeMounts"]} == {entry["name"] for entry in spark["spec"]["volumes"]}
    assert spark["spec"]["driver"]["serviceAccount"] in {
        entry["metadata"]["name"] for entry in of_kind("ServiceAccount")
    }


def test_spark_submit_makes_the_pods_of_the_operator() -> None:
    """Its file of settings and its template of pods say what the SparkApplication says, for driver and executors."""
    (spark,) = of_kind("SparkApplication")
    (template,) = of_kind("Pod")
    lines = (DEPLOY / "spark" / "submit" / "spark.properties").read_text(encoding="utf-8").splitlines()
    given = dict(line.split() for line in lines if not line.startswith("#"))
    spec, driver, executor = (spark["spec"], spark["spec"]["driver"], spark["spec"]["executor"])
    own = "deploy/spark/submit/pod.yaml"
    assert given == {
        "spark.submit.deployMode": spec["mode"],
        "spark.kubernetes.namespace": spark["metadata"]["namespace"],
        "spark.kubernetes.container.image": spec["image"],
        "spark.kubernetes.authenticate.driver.serviceAccountName": driver["serviceAccount"],
        "spark.kubernetes.authenticate.executor.serviceAccountName": executor["serviceAccount"],
        "spark.kubernetes.driver.podTemplateFile": own,
        "spark.kubernetes.executor.podTemplateFile": own,
        "spark.driver.cores": str(driver["cores"]),
        "spark.driver.memory": driver["memory"],
        "spark.executor.instances": str(executor["instances"]),
        "spark.executor.cores": str(executor["cores"]),
        "spark.executor.memory": executor["memory"],
        **spec["sparkConf"],
    }
    (container,) = template["spec"]["containers"]
    assert template["spec"]["volumes"] == spec["volumes"]
    for pod in (driver, executor):
        assert template["metadata"]["labels"] == pod["labels"]
        assert template["spec"]["securityContext"] == pod["podSecurityContext"]
        assert container["securityContext"] == pod["securityContext"]
        assert container["volumeMounts"] == pod["volumeMounts"]


def test_spark_may_make_and_remove_pods_and_nothing_else() -> None:
    """The driver has a right to pods alone; its executors have an account without a right and without a token."""
    verbs = ["create", "get", "list", "watch", "delete", "deletecollection"]
    assert rules_of("lagcast-spark") == [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]
    (spark,) = of_kind("SparkApplication")
    (account,) = [
        entry
        for entry in of_kind("ServiceAccount")
        if entry["metadata"]["name"] == spark["spec"]["executor"]["serviceAccount"]
    ]
    assert account["automountServiceAccountToken"] is False


def test_spark_may_not_use_the_account_of_the_executor() -> None:
    """Spark's account, which can use accounts beside it as it makes pods, is not in the namespace of the executor."""
    makers = {
        role["metadata"].get("namespace")
        for role in of_kind("Role")
        for rule in role["rules"]
        if "create" in rule["verbs"] and "pods" in rule["resources"]
    }
    assert makers == {"lagcast"}
