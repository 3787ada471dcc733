"""Spark's jobs on a real API server: the pods that the documented commands make, and the rights that a run needs."""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.feature_folder import steady_hour
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane, ControlPlaneError, built_control_plane
from tests.live.harness.scalers import MANIFESTS
from tests.live.harness.spark_operator_processes import SparkOperator, built_spark_operator
from tests.live.harness.spark_pods import NAMESPACE, Application, Pod, pods, submitted

pytestmark = [pytest.mark.kubernetes, pytest.mark.spark]

DEPLOY = MANIFESTS.parent
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
# One executor of one core, for a machine of two.
SMALL = (
    "--conf",
    "spark.executor.instances=1",
    "--conf",
    "spark.executor.cores=1",
    "--conf",
    "spark.executor.memory=1g",
)
# Each request of an account is noted once it is answered.
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: shared}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteMany]
  claimRef: {namespace: lagcast, name: lagcast-data}
  hostPath: {path: /data}
"""


@pytest.fixture(scope="module", name="audit")
def audit_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with the requests to the API server."""
    return tmp_path_factory.mktemp("audit") / "requests.jsonl"


@pytest.fixture(scope="module")
def cluster(
    tools_for_kubernetes: None, tmp_path_factory: pytest.TempPathFactory, audit: Path
) -> Iterator[ControlPlane]:
    """A control plane that notes each request, with the manifests and the component of Spark."""
    del tools_for_kubernetes
    policy = audit.with_name("policy.yaml")
    policy.write_text(json.dumps(AUDIT), encoding="utf-8")
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={audit}")
    running = ControlPlane(built_control_plane(), tmp_path_factory.mktemp("control-plane"), server_flags=flags)
    try:
        running.start()
        deploy = shutil.copytree(DEPLOY, tmp_path_factory.mktemp("copy") / "deploy")
        with (deploy / "manifests" / "kustomization.yaml").open("a", encoding="utf-8") as file:
            file.write("components: [../spark]\n")
        running.kubectl("apply", "--validate=strict", "-k", str(deploy / "manifests"))
        running.apply(VOLUME)
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def operator(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkOperator]:
    """The operator beside it, with its webhook."""
    running = SparkOperator(built_spark_operator(), cluster, tmp_path_factory.mktemp("operator"), namespace=NAMESPACE)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def documented(name: str, cluster: ControlPlane) -> list[str]:
    """The arguments of the command of deploy/README.md for that application, with this cluster's address."""
    text = (DEPLOY / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    spark-submit ((?:[^\\\n]|\\\n)*)$", text, re.MULTILINE)
    (words,) = [
        words
        for words in (shlex.split(command.replace("\\\n", "")) for command in commands)
        if f"--name={name}" in words
    ]
    return [word.replace("https://API-SERVER:6443", cluster.url) for word in words]


@pytest.mark.parametrize("job", ["features", "decisions"])
def test_the_pod_of_the_driver_is_that_of_the_application(job: str, cluster: ControlPlane, tmp_path: Path) -> None:
    """By the documented command: image, arguments, account, rights of the container, volumes and size."""
    application = application_of(job, cluster)
    with submitted(cluster, documented(application["metadata"]["name"], cluster), log=tmp_path / "submit.log") as pod:
        assert_is_driver_of(application, pod)


def application_of(job: str, cluster: ControlPlane) -> dict[str, Any]:
    """The SparkApplication of that folder, as it is applied."""
    application: dict[str, Any] = yaml.safe_load(cluster.kubectl("kustomize", str(DEPLOY / "spark" / job)))
    return application


def assert_is_driver_of(application: dict[str, Any], pod: Pod) -> None:
    """The pod is what the application says of its driver."""
    spec, driver = application["spec"], application["spec"]["driver"]
    (container,) = pod["spec"]["containers"]
    assert pod["metadata"]["name"].startswith(application["metadata"]["name"])
    assert driver["labels"].items() <= pod["metadata"]["labels"].items()
    assert container["image"] == spec["image"]
    assert container["args"][0] == "driver"
    words = [spec["mainApplicationFile"], *spec["arguments"]]
    assert container["args"][-len(words) :] == words
    assert pod["spec"]["serviceAccountName"] == driver["serviceAccount"]
    assert pod["spec"]["securityContext"] == driver["podSecurityContext"]
    assert container["securityContext"] == driver["securityContext"]
    assert [mount for mount in driver["volumeMounts"] if mount not in container["volumeMounts"]] == []
    claims = {
        each["persistentVolumeClaim"]["claimName"] for each in pod["spec"]["volumes"] if "persistentVolumeClaim" in each
    }
    assert claims == {"lagcast-data"}
    # 2 GB of heap, and two fifths of that for Python.
    assert container["resources"] == {"requests": {"cpu": "1", "memory": "2867Mi"}, "limits": {"memory": "2867Mi"}}


@pytest.mark.parametrize("job", ["features", "decisions"])
def test_the_operator_takes_the_application_and_makes_its_driver(
    job: str, cluster: ControlPlane, operator: SparkOperator
) -> None:
    """By its own definition no field is unknown, all of them are kept, and its webhook completes the pod."""
    application = application_of(job, cluster)
    name = application["metadata"]["name"]
    with applied(cluster, application) as kept:
        assert holds(kept["spec"], application["spec"])
        wait_until(lambda: pods(cluster, "driver") or not_submitted(cluster, name), seconds=600.0, every_seconds=1.0)
        assert pods(cluster, "driver"), operator.log_end()
        (pod,) = pods(cluster, "driver")
        assert_is_driver_of(application, pod)
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("SparkApplication", name)
        variables = pod["spec"]["containers"][0]["env"]
        assert [each for each in application["spec"]["driver"].get("env", []) if each not in variables] == []


def test_a_field_that_the_operator_does_not_know_is_refused(cluster: ControlPlane, operator: SparkOperator) -> None:
    """Strict validation sees into the pods' parts of an application, not only at its top."""
    del operator
    application = application_of("features", cluster)
    application["spec"]["executor"]["securityContext"]["readOnlyRoot"] = True
    with (
        pytest.raises(ControlPlaneError, match=r"\.spec\.executor\.securityContext\.readOnlyRoot: field not declared"),
        applied(cluster, application),
    ):
        pass


@contextmanager
def applied(cluster: ControlPlane, application: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The application as the API server has kept it; it goes when the block ends, and its driver with it."""
    words = ("apply", "--server-side", "--validate=strict", "-o", "json", "-f", "-")
    kept: dict[str, Any] = json.loads(cluster.kubectl(*words, given=json.dumps(application)))
    name = application["metadata"]["name"]
    try:
        yield kept
    finally:
        cluster.kubectl("-n", NAMESPACE, "delete", "sparkapplication", name, "--timeout=50s")
        cluster.kubectl("-n", NAMESPACE, "delete", "pods", "--selector=spark-role=driver", "--now")


def holds(kept: object, applied_part: object) -> bool:
    """True if all that was applied was kept; the operator's webhook may add defaults."""
    if isinstance(applied_part, dict) and isinstance(kept, dict):
        return all(name in kept and holds(kept[name], part) for name, part in applied_part.items())
    if isinstance(applied_part, list) and isinstance(kept, list):
        return len(kept) == len(applied_part) and all(map(holds, kept, applied_part))
    return kept == applied_part


def not_submitted(cluster: ControlPlane, name: str) -> bool:
    """True once the operator has given up a submission."""
    words = ("get", "sparkapplication", name, "-o", "jsonpath={.status.applicationState.state}")
    return "FAILED" in cluster.kubectl("-n", NAMESPACE, *words)


def test_a_fleet_is_decided_with_the_rights_of_the_role_and_no_right_is_unused(
    cluster: ControlPlane, lagcast_process: Callable[..., tuple[int, str, str]], audit: Path, tmp_path: Path
) -> None:
    """The driver with its account, and executors without one, write the documents of one process, though a pod fails.

    Of the rights of the role each was used, and none was missed.
    """
    data, pods = tmp_path / "data", tmp_path / "pods"
    steady_hour(data / "features", ("orders", "payments"), end_at=NOW)
    pods.mkdir()
    now = f"--now={NOW.isoformat()}"
    words = [*SMALL, *documented("lagcast-decisions", cluster), now]
    with submitted(cluster, words, log=tmp_path / "submit.log") as driver:
        application = Application(cluster, pods, data=data)
        done = application.run_driver(driver)
    assert done.returncode == 0, done.stderr[-4000:]
    settings = cluster.kubectl(
        "-n", NAMESPACE, "get", "configmap", "lagcast-settings", "-o", "jsonpath={.data.settings\\.yaml}"
    )
    (tmp_path / "settings.yaml").write_text(settings, encoding="utf-8")
    alone = lagcast_process(
        "recommend", "--features", data / "features", "--config", tmp_path / "settings.yaml", now, "-o", "json"
    )
    assert (data / "decisions.json").read_text() == alone[1]
    assert len(application.executors) == 1 + 1
    assert [has_no_account(pod) for pod in application.executors.values()] == [True, True]
    (role,) = [json.loads(cluster.kubectl("-n", NAMESPACE, "get", "role", "lagcast-spark", "-o", "json"))]
    assert {
        (resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]
    } == used(audit)


def has_no_account(executor: Pod) -> bool:
    """True if the pod has no token of the API server, and is closed as the driver's is."""
    (container,) = executor["spec"]["containers"]
    places = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    return executor["spec"]["serviceAccountName"] == "lagcast-spark-executor" and not any(
        "serviceaccount" in place for place in places
    )


def used(audit: Path) -> set[tuple[str, str]]:
    """Resource and verb of each request of the driver's account; none was refused."""
    events = [json.loads(line) for line in audit.read_text(encoding="utf-8").splitlines()]
    own = [event for event in events if event["user"]["username"] == f"system:serviceaccount:{NAMESPACE}:lagcast-spark"]
    assert [event for event in own if event["responseStatus"]["code"] == 403] == []
    return {(event["objectRef"]["resource"], event["verb"]) for event in own}
