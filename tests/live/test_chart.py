"""C45: the chart, rendered by the real Helm and installed on a real API server: the same objects as the manifests'."""

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from fastapi.testclient import TestClient

from api.access.guard import Access
from api.access.reviews import Reviews
from api.app import create_app
from manifests.dashboard import Name, dashboard
from manifests.outgoing import FollowedGroup, alerts, external_trigger
from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_lease import KubernetesLease
from recommender.adapters.kubernetes_reviews import KubernetesReviews
from recommender.adapters.kubernetes_services import services_in
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.cluster.prometheus_services import servers_among
from recommender.ports import RejectedError
from tests.live.harness.clients import NOON, wait_until
from tests.live.harness.control_plane import ControlPlane, built_control_plane
from tests.live.harness.helm import CHART, Document, Helm, HelmError, named
from tests.live.harness.scalers import MANIFESTS, scaler, wait_until_served

pytestmark = pytest.mark.kubernetes

SCALERS = "--set=scalers.namespaces={shop}"
EXECUTOR = ["--set=executor.enabled=true", "--set=executor.namespaces={shop}"]
EVERYTHING = [SCALERS, "--set=scalers.discover=true", *EXECUTOR]
SEVERAL = "--set=recommender.replicas=2,recommender.storeSecret=lagcast-store"
# Objects that only one of the two has, and the reason.
OF_THE_CHART = {("PodDisruptionBudget", "lagcast", "forecasts")}
# `helm install --create-namespace` makes it.
OF_THE_MANIFESTS = {("Namespace", "", "lagcast")}
# What a release of the chart rendered as before its parts became one process.
BEFORE = Path(__file__).parent / "harness" / "kubernetes" / "release-of-parts.yaml"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, helm: Helm) -> Iterator[ControlPlane]:
    """A control plane of this file alone: other tests bring the definition of the resource by other means."""
    del helm  # requested because it skips without Go
    running = ControlPlane(built_control_plane(), tmp_path_factory.mktemp("chart"))
    try:
        running.start()
        for name in ("lagcast", "shop", "lagcast-executor"):
            running.kubectl("create", "namespace", name)
        # Pods that are not closed are refused there, that of the test too.
        running.kubectl("label", "namespace", "lagcast", "pod-security.kubernetes.io/enforce=restricted")
        yield running
    finally:
        running.stop()


def compared(value: Any) -> Any:  # noqa: ANN401  # YAML
    """A value without Helm's additions to selectors and pods, and without empty values."""
    if isinstance(value, dict):
        kept = {name: compared(entry) for name, entry in value.items() if name != "app.kubernetes.io/instance"}
        return {name: entry for name, entry in kept.items() if entry != {}}
    return [compared(entry) for entry in value] if isinstance(value, list) else value


def comparable(documents: list[Document]) -> dict[tuple[str, str, str], Document]:
    """The content of each object, by kind, namespace and name; labels and annotations are the tool's."""
    found = {}
    for document in documents:
        metadata = document.pop("metadata")
        key = (document["kind"], metadata.get("namespace", ""), metadata["name"].removeprefix("lagcast-"))
        spec = document.get("spec", {})
        for template in (spec.get("template"), spec.get("jobTemplate", {}).get("spec", {}).get("template")):
            if template is not None:
                template["metadata"].pop("annotations", None)
        if document["kind"] == "ConfigMap":
            document["data"]["settings.yaml"] = yaml.safe_load(document["data"]["settings.yaml"])
        found[key] = compared(document)
    return found


def of_the_manifests(cluster: ControlPlane, folder: Path, *, several: bool) -> list[Document]:
    """The objects of `kubectl apply -k` with scalers and executor, and their roles in the namespace shop."""
    whole = folder / "manifests"
    subprocess.run(["cp", "-r", MANIFESTS, whole], check=True)
    components = {whole: ["scalers", "scalers/discovery", *(["replicas"] if several else [])]}
    if several:
        components[whole / "executor"] = ["lease"]
    for where, names in components.items():
        with (where / "kustomization.yaml").open("a", encoding="utf-8") as file:
            file.write(f"components: {json.dumps(names)}\n")
    texts = [cluster.kubectl("kustomize", str(path)) for path in (whole, whole / "executor")]
    documents = [document for text in texts for document in yaml.safe_load_all(text)]
    for part in ("scalers", "scalers/discovery", "executor"):
        for document in yaml.safe_load_all((whole / part / "target-role.yaml").read_text(encoding="utf-8")):
            document["metadata"]["namespace"] = "shop"
            documents.append(document)
    return documents


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_the_chart_creates_the_objects_of_the_manifests(
    cluster: ControlPlane, helm: Helm, tmp_path: Path, *, several: bool
) -> None:
    """Object by object and field by field, also roles and policies; a release with the executor runs one."""
    values = [*EVERYTHING, *([SEVERAL] if several else [])]
    ours = comparable([each for each in helm.rendered(*values) if "helm.sh/hook" not in annotations(each)])
    theirs = comparable(of_the_manifests(cluster, tmp_path, several=several))
    theirs["Deployment", "lagcast-executor", "executor"]["spec"]["replicas"] = 1
    assert ours.keys() - theirs.keys() == OF_THE_CHART
    assert theirs.keys() - ours.keys() == OF_THE_MANIFESTS
    for key in ours.keys() & theirs.keys():
        assert ours[key] == theirs[key], key


def annotations(document: Document) -> dict[str, str]:
    return document["metadata"].get("annotations") or {}


@pytest.mark.parametrize("shards", [1, 2])
def test_every_object_is_accepted_by_the_api_server(cluster: ControlPlane, helm: Helm, shards: int) -> None:
    """With strict validation no field is unknown, misplaced or out of bounds, also in the test's objects."""
    documents = helm.rendered(*EVERYTHING, SEVERAL, f"--set=recommender.shards={shards}")
    text = yaml.safe_dump_all(documents)
    taken = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", given=text)
    assert len(taken.splitlines()) == len(documents)


def test_added_values_are_in_every_pod(cluster: ControlPlane, helm: Helm, tmp_path: Path) -> None:
    """These are a variable, a volume and a registry's credentials; with claims of one's own no claim is made."""
    values: dict[str, Any] = {
        "extraEnv": [{"name": "SASL", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "password"}}}],
        "extraVolumes": [{"name": "authority", "secret": {"secretName": "mine"}}],
        "extraVolumeMounts": [{"name": "authority", "mountPath": "/etc/authority"}],
        "extraObjects": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "lagcast"}}
        ],
        "imagePullSecrets": [{"name": "registry"}],
        "image": {"repository": "registry.example/lagcast", "tag": "1", "pullPolicy": "Always"},
        "fsGroup": None,
        "networkPolicy": {"enabled": False},
        "access": {"tokenSecret": "mine"},
        "keda": {"enabled": False},
        "storage": {"data": {"existingClaim": "wide"}, "state": {"existingClaim": "narrow"}},
    }
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    documents = helm.rendered(f"--values={tmp_path / 'values.yaml'}")
    text = yaml.safe_dump_all(documents)
    assert cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", given=text).count("mine") == 1
    kinds = [document["kind"] for document in documents]
    assert {"NetworkPolicy", "PersistentVolumeClaim"} & set(kinds) == set()
    pods = [
        (spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec)["template"]["spec"]
        for spec in (document["spec"] for document in documents if document["kind"] in {"StatefulSet", "CronJob"})
    ]
    assert len(pods) == 2
    for pod in pods:
        (container,) = pod["containers"]
        assert (container["image"], container["imagePullPolicy"]) == ("registry.example/lagcast:1", "Always")
        assert values["extraEnv"][0] in container["env"]
        assert values["extraVolumes"][0] in pod["volumes"]
        assert values["extraVolumeMounts"][0] in container["volumeMounts"]
        assert pod["imagePullSecrets"] == values["imagePullSecrets"]
        assert "fsGroup" not in pod["securityContext"]


def test_a_release_is_installed_changed_and_removed(cluster: ControlPlane, helm: Helm) -> None:
    """Settings roll the recommender alone; owners' objects and measured data stay for the next release."""
    theirs, release = helm.using(cluster.kubeconfig), "beside-lagcast"
    where = ["--namespace=beside", "--create-namespace", "--set=executor.namespace=acting"]

    def kept(kind: str) -> list[str]:
        return cluster.kubectl("-n", "beside", "get", kind, "-o", "name").split()

    def templates() -> dict[str, Any]:
        kinds = "statefulsets,cronjobs"
        items = json.loads(cluster.kubectl("-n", "beside", "get", kinds, "-o", "json"))["items"]
        specs = {entry["metadata"]["name"]: entry["spec"] for entry in items}
        return {name: spec.get("jobTemplate", {}).get("spec", spec)["template"] for name, spec in specs.items()}

    for _ in range(2):
        theirs("install", release, str(CHART), *where, *named(), SCALERS)
        wait_until_served(cluster)
        cluster.apply(json.dumps(scaler("shop")))
        before = templates()
        (secret,) = [
            entry["secret"] for entry in before[f"{release}-recommender"]["spec"]["volumes"] if "secret" in entry
        ]
        assert secret["defaultMode"] == 0o440
        changes = ["--reuse-values", "--set=settings.decision.max_lag_seconds=20", *EXECUTOR]
        theirs("upgrade", release, str(CHART), *where, *changes)
        changed = {name for name, template in templates().items() if template != before[name]}
        assert changed == {f"{release}-recommender"}
        assert cluster.kubectl("-n", "acting", "get", "deployment", f"{release}-executor", "-o", "name")
        theirs("uninstall", release, "--namespace=beside")
        assert kept("deployments,statefulsets,cronjobs,services,networkpolicies,poddisruptionbudgets") == []
        assert kept("persistentvolumeclaims") == [
            f"persistentvolumeclaim/{release}-{name}" for name in ("data", "state")
        ]
        assert cluster.kubectl("-n", "shop", "get", "cgs", "-o", "name").split() == [
            "consumergroupscaler.lagcast.io/orders"
        ]
        cluster.kubectl("wait", "--for=delete", "namespace/acting", "--timeout=55s")


def test_a_release_of_separate_parts_becomes_one_process(cluster: ControlPlane, helm: Helm, tmp_path: Path) -> None:
    """An upgrade removes collector, features job and Deployment; claims, Service and roles are the same objects.

    The recommender finds its samples, features and decisions where they were.
    """
    theirs, where = helm.using(cluster.kubeconfig), "--namespace=lagcast"
    before = tmp_path / "before"
    (before / "templates").mkdir(parents=True)
    (before / "templates" / "all.yaml").write_text(BEFORE.read_text(encoding="utf-8"), encoding="utf-8")
    (before / "Chart.yaml").write_text((CHART / "Chart.yaml").read_text(encoding="utf-8"), encoding="utf-8")

    def there(kinds: str) -> dict[str, Document]:
        items = json.loads(cluster.kubectl("-n", "lagcast", "get", kinds, "-o", "json"))["items"]
        return {f"{entry['kind']}/{entry['metadata']['name']}": entry for entry in items}

    def identities(kinds: str) -> dict[str, str]:
        return {name: entry["metadata"]["uid"] for name, entry in there(kinds).items() if "lagcast" in name}

    theirs("install", "lagcast", str(before), where)
    kept = identities("persistentvolumeclaims,services,configmaps")
    assert len(kept) == 4
    theirs("upgrade", "lagcast", str(CHART), where, *named(), SCALERS, "--set=scalers.definition=false")
    assert identities("persistentvolumeclaims,services,configmaps") == kept
    assert there("deployments") == {}
    assert there("cronjobs").keys() == {"CronJob/lagcast-forecasts"}
    (recommender,) = there("statefulsets").values()
    pod = recommender["spec"]["template"]["spec"]
    claims = {
        entry["name"]: entry["persistentVolumeClaim"]["claimName"]
        for entry in pod["volumes"]
        if "persistentVolumeClaim" in entry
    }
    assert claims == {"data": "lagcast-data", "state": "lagcast-state"}
    assert "--data-dir=/data" in pod["containers"][0]["args"]
    theirs("uninstall", "lagcast", where)
    cluster.kubectl("-n", "lagcast", "delete", "persistentvolumeclaims", "--all", "--timeout=55s")


def test_a_release_of_several_leaves_its_lease_to_the_holder(cluster: ControlPlane, helm: Helm) -> None:
    """An upgrade writes neither holder nor instants; the Lease goes with the release, and a new one brings its own."""
    theirs, where = helm.using(cluster.kubeconfig), ["--namespace=pair", "--create-namespace"]
    theirs("install", "lagcast", str(CHART), *where, *named(), SEVERAL)
    leases = KubernetesLease(connect(cluster.kubeconfig), "pair", "lagcast-recommender", clock=lambda: NOON)
    leases.write(leases.read(), holder="a", lease_seconds=15.0)
    theirs("upgrade", "lagcast", str(CHART), *where, "--reuse-values", "--set=settings.decision.max_lag_seconds=20")
    assert leases.read().holder == "a"
    theirs("uninstall", "lagcast", "--namespace=pair")
    assert cluster.kubectl("-n", "pair", "get", "leases,roles,rolebindings,poddisruptionbudgets", "-o", "name") == ""


def test_the_number_of_shards_is_changed_while_none_runs(cluster: ControlPlane, helm: Helm) -> None:
    """As on the page: what was deleted by hand is made again by the upgrade, and each shard has claim and Lease."""
    theirs, where = helm.using(cluster.kubeconfig), ["--namespace=shards", "--create-namespace"]

    def found(kinds: str) -> set[str]:
        return set(cluster.kubectl("-n", "shards", "get", kinds, "-o", "name").split())

    theirs("install", "lagcast", str(CHART), *where, *named(), SEVERAL, "--set=recommender.shards=2")
    stopped = ("statefulset", "-l", "app.kubernetes.io/component=recommender", "--cascade=foreground", "--timeout=60s")
    cluster.kubectl("-n", "shards", "delete", *stopped)
    assert found("statefulsets,pods") == set()
    theirs("upgrade", "lagcast", str(CHART), *where, "--reuse-values", "--set=recommender.shards=3")
    names = [f"lagcast-recommender-{number}" for number in (1, 2, 3)]
    assert found("statefulsets,leases") == {
        f"{kind}/{name}" for kind in ("statefulset.apps", "lease.coordination.k8s.io") for name in names
    }
    theirs("upgrade", "lagcast", str(CHART), *where, "--reuse-values", "--set=recommender.shards=1")
    assert found("statefulsets,leases") == {
        "statefulset.apps/lagcast-recommender",
        "lease.coordination.k8s.io/lagcast-recommender",
    }
    claims = ("data", "data-1", "data-2", "data-3")
    assert found("persistentvolumeclaims") == {f"persistentvolumeclaim/lagcast-{name}" for name in claims}
    theirs("uninstall", "lagcast", "--namespace=shards")


def test_one_shard_is_what_the_chart_renders_without_any(helm: Helm) -> None:
    """Nothing has a suffix, a label or an option of shards."""
    whole = helm.rendered(*EVERYTHING, SEVERAL)
    assert helm.rendered(*EVERYTHING, SEVERAL, "--set=recommender.shards=1") == whole
    assert "shard" not in json.dumps([each for each in whole if each["kind"] != "CustomResourceDefinition"])


@pytest.mark.parametrize("replicas", [1, 2])
def test_each_shard_has_its_groups_its_replicas_its_lease_and_its_volume(helm: Helm, replicas: int) -> None:
    """They share Service, account and store; budgets are for several replicas, and the executor knows all Leases."""
    several = f"--set=recommender.replicas={replicas},recommender.storeSecret=lagcast-store,recommender.shards=3"
    documents = helm.rendered(*EXECUTOR, several)

    def of(kind: str) -> dict[str, Document]:
        return {each["metadata"]["name"]: each for each in documents if each["kind"] == kind}

    names = [f"lagcast-recommender-{number}" for number in (1, 2, 3)]
    sets, jobs, service = of("StatefulSet"), of("CronJob"), of("Service")["lagcast"]
    assert list(sets) == list(of("Lease")) == names
    assert list(of("PersistentVolumeClaim")) == ["lagcast-data-1", "lagcast-data-2", "lagcast-data-3"]
    for number, name in enumerate(names, 1):
        spec, job = sets[name]["spec"], jobs[f"lagcast-forecasts-{number}"]["spec"]["jobTemplate"]["spec"]["template"]
        pod, labels = spec["template"]["spec"], spec["template"]["metadata"]["labels"]
        assert (spec["replicas"], spec["selector"]["matchLabels"]) == (replicas, labels)
        assert labels["lagcast.io/shard"] == str(number)
        assert service["spec"]["selector"].items() <= labels.items()
        assert {f"--shard={number}/3", "--lease=lagcast/lagcast-recommender"} <= set(pod["containers"][0]["args"])
        assert f"--features=/data/{name}-0/features" in job["spec"]["containers"][0]["args"]
        for each in (pod, job["spec"]):
            assert each["volumes"][0]["persistentVolumeClaim"]["claimName"] == f"lagcast-data-{number}"
    for role in ("lagcast-lease-holder", "lagcast-lease-reader"):
        assert [rule["resourceNames"] for rule in of("Role")[role]["rules"]] == [names]
    assert "--shards=3" in of("Deployment")["lagcast-executor"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [name for name in of("PodDisruptionBudget") if name in names] == (names if replicas == 2 else [])


def test_the_notes_list_the_next_steps(cluster: ControlPlane, helm: Helm) -> None:
    """They name the missing Secret, the test, KEDA's trigger as it is exported, and the two steps to act."""
    shown = helm.using(cluster.kubeconfig)(
        "install", "lagcast", str(CHART), "--namespace=lagcast", "--dry-run=server", *named()
    ).split("NOTES:\n")[1]
    assert "create secret generic lagcast-kafka --from-file=client.properties" in shown
    assert "helm -n lagcast test lagcast" in shown
    assert "only the NetworkPolicy keeps others from reading, where the cluster's network enforces it" in shown
    followed = FollowedGroup(
        cluster="default",
        group="GROUP",
        namespace="shop",
        api_version="apps/v1",
        kind="Deployment",
        name="orders",
        least=1,
        most=2,
    )
    exported = [external_trigger(followed, "lagcast.lagcast.svc:9095", authentication=None)]
    triggers = "  triggers:\n" + shown.split("  triggers:\n")[1].split("\n\n")[0]
    assert yaml.safe_load(triggers)["triggers"] == exported
    steps = [line.split()[0] for line in shown.splitlines() if line.strip().startswith(("1. ", "2. "))]
    assert steps == ["1.", "2."]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--set=executer.enabled=true"], "additional properties 'executer' not allowed"),
        (["--set=executor.enabled=true"], "at '/executor/namespaces': minItems: got 0, want 1"),
        (["--set=executor.mode=act"], "at '/executor/mode': value must be one of 'recommend', 'apply'"),
        (["--set=scalers.namespaces={Shop}"], "at '/scalers/namespaces/0': 'Shop' does not match pattern"),
        (["--set=settings.decision.max_lag_second=1"], "additional properties 'max_lag_second' not allowed"),
        (["--set=settings.decision.max_lag_seconds=soon"], "max_lag_seconds': got string, want number"),
        (["--set=settings.groups.*.min_replicas=0"], "at '/settings/groups/*/min_replicas': minimum: got 0, want 1"),
        (["--set=settings.groups.*.mode=act"], "mode': value must be one of 'off', 'recommend', 'apply'"),
        (["--set=kafka.existingSecret="], "at '/kafka/existingSecret': minLength: got 0, want 1"),
        (["--set=recommender.replicas=2"], "at '/recommender/storeSecret': minLength: got 0, want 1"),
        (["--set=recommender.shards=0"], "at '/recommender/shards': minimum: got 0, want 1"),
        (
            ["--set=recommender.shards=2"],
            "recommender.shards share their decisions in a PostgreSQL, and SQLite is for one; name its Secret in rec",
        ),
        (
            ["--set=recommender.shards=2,recommender.storeSecret=s,storage.data.existingClaim=mine"],
            "storage.data.existingClaim is one volume, and each of recommender.shards has its own; leave it empty",
        ),
        (["--set=networkPolicy.kedaNamespace="], "at '/networkPolicy/kedaNamespace': '' does not match pattern"),
        (["--set=features.enabled=false"], "additional properties 'features' not allowed"),
        (["--set=kafka.bootstrap="], "kafka.bootstrap is empty; name your brokers"),
        (["--set=prometheus.url=prometheus:9090"], "at '/prometheus/url': 'prometheus:9090' does not match pattern"),
        (["--set=prometheus.nodePrices=auto"], "name their namespaces in scalers.namespaces"),
        ([*EVERYTHING, "--set=prometheus.url=auto"], "scalers.discover needs Kafka, which prometheus.url replaces"),
        (
            ["--set=networkPolicy.enabled=false"],
            "set access.tokenSecret or access.tokenReview, or networkPolicy.enabled",
        ),
        (
            ["--set=networkPolicy.enabled=false,access.tokenReview=true"],
            "set keda.clientCaSecret, or keda.enabled=false, or networkPolicy.enabled",
        ),
        (["--set=keda.clientCaSecret=authority"], "is about callers over TLS; set access.tlsSecret too"),
        (
            [*EXECUTOR, "--set=access.tokenReview=true"],
            "the executor sends a token by https alone; set access.tlsSecret",
        ),
        ([*EXECUTOR, "--set=access.tlsSecret=tls"], "access.tlsSecret; set executor.api.caSecret"),
        (
            [*EXECUTOR, "--set=access.tlsSecret=tls,access.tokenSecret=tokens,executor.api.caSecret=ca"],
            "the executor would be answered 401; set executor.api.tokenSecret",
        ),
        (
            ["--set=serviceMonitor.enabled=true,access.tokenReview=true"],
            "set serviceMonitor.authorization or serviceMonitor.bearerTokenFile",
        ),
        ([*EXECUTOR, "--set=executor.namespace=lagcast"], "executor.namespace is the release's own"),
        (
            [*EXECUTOR, "--set=executor.api.certificateSecret=own"],
            "executor.api.certificateSecret is shown by TLS alone",
        ),
        (["--set=executor.maxReplicas=0"], "at '/executor/maxReplicas': minimum: got 0, want 1"),
    ],
)
def test_wrong_values_are_refused(helm: Helm, words: list[str], sentence: str) -> None:
    """The error comes before anything is installed, and names the value and the reason."""
    with pytest.raises(HelmError) as refused:
        helm.rendered(*words)
    assert sentence in str(refused.value)


def test_the_chart_passes_the_linter(helm: Helm) -> None:
    """The linter is `helm lint --strict`."""
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), *named())


def test_the_executor_is_given_bounds_and_credentials_by_reference(helm: Helm) -> None:
    """Bounds are arguments; each Secret that is named is a folder, and its files are arguments."""
    words = ["minReplicas=1", "maxReplicas=30"]
    words += ["api.caSecret=authority", "api.tokenSecret=bearer", "api.certificateSecret=own"]
    (deployment,) = [
        each
        for each in helm.rendered(
            *EXECUTOR, "--set=access.tlsSecret=tls", *(f"--set=executor.{word}" for word in words)
        )
        if each["kind"] == "Deployment" and each["metadata"]["name"].endswith("-executor")
    ]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    folders = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert {each["secret"]["secretName"]: folders[each["name"]] for each in pod["volumes"]} == {
        "authority": "/etc/lagcast/ca",
        "bearer": "/etc/lagcast/token",
        "own": "/etc/lagcast/certificate",
    }
    assert set(container["args"]) >= {
        "--api=https://lagcast.lagcast.svc:8686",
        "--min-replicas=1",
        "--max-replicas=30",
        "--advice-ca-file=/etc/lagcast/ca/ca.crt",
        "--advice-token-file=/etc/lagcast/token/token",
        "--advice-cert-file=/etc/lagcast/certificate/tls.crt",
        "--advice-key-file=/etc/lagcast/certificate/tls.key",
    }


def test_another_kind_is_two_rules_more_for_the_executor(helm: Helm) -> None:
    """They name group and plural; all other rights, and the executor's own on other kinds, are unchanged."""
    kinds = "--set=executor.kinds[0].group=argoproj.io,executor.kinds[0].plural=rollouts"
    before, after = (
        [each for each in helm.rendered(*EXECUTOR, *more) if each["kind"] == "Role"] for more in ([], [kinds])
    )
    added = [
        rule for role in after for rule in role["rules"] if rule not in [r for old in before for r in old["rules"]]
    ]
    assert added == [
        {"apiGroups": ["argoproj.io"], "resources": ["rollouts", "rollouts/scale"], "verbs": ["get"]},
        {"apiGroups": ["argoproj.io"], "resources": ["rollouts/scale"], "verbs": ["patch"]},
    ]


def test_alerts_and_scraping_are_optional(helm: Helm) -> None:
    """They are off by default; the alerts are those of `lagcast export prometheus-rule`."""
    kinds = {"ServiceMonitor", "PrometheusRule"}
    assert [each["kind"] for each in helm.rendered() if each["kind"] in kinds] == []
    switched_on = [
        f"--set={name}.enabled=true,{name}.labels.release=prom" for name in ("serviceMonitor", "prometheusRule")
    ]
    made = {each["kind"]: each for each in helm.rendered(*switched_on) if each["kind"] in kinds}
    assert made["PrometheusRule"]["spec"] == alerts()["spec"]
    assert {each["metadata"]["labels"]["release"] for each in made.values()} == {"prom"}
    monitor = made["ServiceMonitor"]["spec"]
    (service,) = [each for each in helm.rendered() if each["kind"] == "Service"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    scraped = [entry["port"] for entry in monitor["endpoints"]]
    assert scraped == ["http"]
    assert set(scraped) < {entry["name"] for entry in service["spec"]["ports"]}


def test_the_executor_is_scraped_where_it_runs(helm: Helm) -> None:
    """By its own pods, as it has no Service; the port is one of its container's."""
    scraped = "--set=serviceMonitor.enabled=true"
    assert [each for each in helm.rendered(scraped) if each["kind"] == "PodMonitor"] == []
    made = helm.rendered(scraped, *EXECUTOR)
    (monitor,) = [each for each in made if each["kind"] == "PodMonitor"]
    (deployment,) = [each for each in made if each["kind"] == "Deployment"]
    pods = deployment["spec"]["template"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (port,) = pods["spec"]["containers"][0]["ports"]
    assert endpoint["port"] == port["name"]
    assert f"--metrics-port={port['containerPort']}" in pods["spec"]["containers"][0]["args"]


def test_the_dashboards_are_optional(helm: Helm) -> None:
    """In a ConfigMap that Grafana's sidecar finds by its label, and whole: braces of its legends are not Helm's."""
    made = helm.rendered("--set=dashboard.enabled=true,dashboard.labels.team=shop")
    (found,) = [each for each in made if each["metadata"]["name"].endswith("-dashboard")]
    made_of = {name: json.loads(text) for name, text in found["data"].items()}
    assert made_of == {f"lagcast-{name}.json": dashboard(name) for name in get_args(Name)}
    assert {"grafana_dashboard": "1", "team": "shop"}.items() <= found["metadata"]["labels"].items()
    assert [each for each in helm.rendered() if each["metadata"]["name"].endswith("-dashboard")] == []


def test_objects_are_created_only_where_the_owner_says_so(helm: Helm) -> None:
    """Neither the option nor a right to create objects or to list ReplicaSets is there before."""
    before, after = (
        [each for each in helm.rendered(SCALERS, *more) if each["kind"] in {"Role", "StatefulSet"}]
        for more in ([], ["--set=scalers.discover=true"])
    )
    rules = [rule for each in before if each["kind"] == "Role" for rule in each["rules"]]
    assert [rule for rule in rules if "create" in rule["verbs"] and rule["resources"] != ["events"]] == []
    assert [rule for rule in rules if "replicasets" in rule["resources"]] == []
    options = [
        "--discover" in each["spec"]["template"]["spec"]["containers"][0]["args"]
        for each in (*before, *after)
        if each["kind"] == "StatefulSet"
    ]
    assert options == [False, True]
    (discovery,) = [each for each in after if each["metadata"]["name"] == "lagcast-discovery"]
    assert discovery["metadata"]["namespace"] == "shop"


def test_spark_may_run_elsewhere(cluster: ControlPlane, tmp_path: Path) -> None:
    """With the component beside a SparkApplication the parts run by themselves, on the volume that it names."""
    shutil.copytree(MANIFESTS.parent, tmp_path / "deploy")
    whole = tmp_path / "deploy" / "manifests"
    with (whole / "kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write("components: [../spark]\n")
    text = cluster.kubectl("kustomize", str(whole))
    cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", given=text)
    documents = list(yaml.safe_load_all(text))
    (recommender,) = [each for each in documents if each["kind"] == "StatefulSet"]
    arguments = recommender["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"serve", "--features=/data/features"} < set(arguments)
    (spark,) = yaml.safe_load_all(
        (CHART.parent / "spark" / "features" / "sparkapplication.yaml").read_text(encoding="utf-8")
    )
    claims = [
        entry["persistentVolumeClaim"]["claimName"]
        for entry in spark["spec"]["volumes"]
        if "persistentVolumeClaim" in entry
    ]
    assert claims
    made = {each["metadata"]["name"] for each in documents if each["kind"] == "PersistentVolumeClaim"}
    assert set(claims) <= made


def test_a_prometheus_is_read_in_place_of_kafka(helm: Helm) -> None:
    """Its address takes the place of the brokers' in the arguments, and its ports are open; it needs no right."""
    before = helm.rendered()
    made = helm.rendered("--set=prometheus.url=http://prometheus.monitoring:9090,kafka.bootstrap=")
    assert [each["kind"] for each in made if each["kind"] in {"Role", "ClusterRole"}] == []
    added = {each["metadata"]["name"] for each in made} - {each["metadata"]["name"] for each in before}
    assert added == {"lagcast-recommender-to-prometheus"}
    (words,) = [arguments(each) for each in made if each["kind"] == "StatefulSet"]
    assert "--prometheus=http://prometheus.monitoring:9090" in words
    assert [word for word in words if word.startswith(("--bootstrap", "--publish", "--prometheus-namespace"))] == []


def test_a_prometheus_is_found_in_the_namespace_that_is_named(cluster: ControlPlane, helm: Helm) -> None:
    """The one right is to list Services there; the API server takes the objects."""
    made = helm.rendered(SCALERS, "--set=prometheus.nodePrices=auto,prometheus.namespace=shop")
    (role,) = [each for each in made if each["kind"] == "Role" and each["metadata"]["name"].endswith("find-prometheus")]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["services"], "verbs": ["list"]}]
    assert role["metadata"]["namespace"] == "shop"
    assert [each for each in made if each["kind"].startswith("ClusterRole")] == []
    (recommender,) = [each for each in made if each["kind"] == "StatefulSet"]
    assert {"--node-prices=auto", "--prometheus-namespace=shop"} < set(arguments(recommender))
    assert recommender["spec"]["template"]["spec"]["automountServiceAccountToken"] is True
    taken = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", given=yaml.safe_dump_all(made))
    assert len(taken.splitlines()) == len(made)


def test_with_that_right_the_server_is_found_and_nothing_else_is_seen(cluster: ControlPlane, helm: Helm) -> None:
    """The recommender's own account lists the Services of one namespace on a real API server, and of no other."""
    kinds = {"ServiceAccount", "Role", "RoleBinding"}
    made = helm.rendered(SCALERS, "--set=prometheus.nodePrices=auto,prometheus.namespace=shop")
    rights = [each for each in made if each["kind"] in kinds and not each["metadata"]["name"].endswith("forecasts")]
    labels = {"app.kubernetes.io/name": "prometheus", "app.kubernetes.io/component": "server"}
    ports = [{"name": "http", "port": 80, "targetPort": 9090}]
    server = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports}}
    server |= {"metadata": {"name": "prometheus-server", "namespace": "shop", "labels": labels}}
    cluster.kubectl("apply", "-f", "-", given=yaml.safe_dump_all([*rights, server]))
    kubeconfig = cluster.kubeconfig_for(
        cluster.kubectl("-n", "lagcast", "create", "token", "lagcast-recommender").strip()
    )
    wait_until(lambda: cluster.may(kubeconfig, "shop", "list", "services"))
    api = connect(kubeconfig)
    found = servers_among(services_in(api, "shop"))
    assert [server.url for server in found] == ["http://prometheus-server.shop.svc:80"]
    with pytest.raises(RejectedError, match="403 Forbidden; grant list on services in lagcast"):
        services_in(api, "lagcast")
    cluster.kubectl("delete", "-f", "-", given=yaml.safe_dump_all([*rights, server]))


def arguments(document: Document) -> list[str]:
    """The arguments of the recommender."""
    words: list[str] = document["spec"]["template"]["spec"]["containers"][0]["args"]
    return words


PROTECTED = [
    *EVERYTHING,
    "--set=access.tokenSecret=tokens,access.tokenReview=true,access.tlsSecret=tls,keda.clientCaSecret=authority",
    "--set=access.allowedHosts={lagcast.example.com},executor.api.caSecret=ca,networkPolicy.enabled=false",
]


def test_a_protected_release_needs_no_network_rules(cluster: ControlPlane, helm: Helm) -> None:
    """Secrets are named and mounted, nothing is open, and the API server takes all of it, probes over TLS included."""
    documents = helm.rendered(*PROTECTED)
    text = yaml.safe_dump_all(documents)
    assert cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", given=text)
    assert [each["kind"] for each in documents if each["kind"] in {"NetworkPolicy", "Secret"}] == []
    (recommender,) = [each for each in documents if each["kind"] == "StatefulSet"]
    words = arguments(recommender)
    assert "--open" not in words
    assert {"--token-review", "--allowed-host=lagcast.example.com", "--allowed-host=lagcast.lagcast.svc"} <= {*words}
    pod = recommender["spec"]["template"]["spec"]
    volumes = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    (container,) = pod["containers"]
    mounted = {
        each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"] if each["name"] in volumes
    }
    for option, secret in (
        ("--token-file=", "tokens"),
        ("--tls-cert-file=", "tls"),
        ("--tls-key-file=", "tls"),
        ("--keda-client-ca=", "authority"),
    ):
        (path,) = [word.removeprefix(option) for word in words if word.startswith(option)]
        assert mounted[path if path in mounted else path.rpartition("/")[0]] == secret
    assert {container[probe]["httpGet"]["scheme"] for probe in container if probe.endswith("Probe")} == {"HTTPS"}
    (executor,) = [each for each in documents if each["kind"] == "Deployment"]
    asked = ["--api=https://lagcast.lagcast.svc:8686", "--all", "--advice-ca-file=/etc/lagcast/ca/ca.crt"]
    reviewed = "--advice-token-file=/var/run/secrets/kubernetes.io/serviceaccount/token"
    assert arguments(executor)[:4] == [*asked, reviewed]
    handed = helm.rendered(*PROTECTED, "--set=executor.api.tokenSecret=token")
    (executor,) = [each for each in handed if each["kind"] == "Deployment"]
    assert arguments(executor)[:4] == [*asked, "--advice-token-file=/etc/lagcast/token/token"]


def test_prometheus_scrapes_a_protected_release(helm: Helm) -> None:
    """Over TLS by the Secret's own authority, with a token of the Secret that is named."""
    named = "serviceMonitor.authorization.credentials"
    monitor = f"--set=serviceMonitor.enabled=true,{named}.name=tokens,{named}.key=prometheus"
    (made,) = [each for each in helm.rendered(*PROTECTED, monitor) if each["kind"] == "ServiceMonitor"]
    (endpoint,) = made["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]["ca"]["secret"]) == ("https", {"name": "tls", "key": "ca.crt"})
    assert endpoint["authorization"] == {"credentials": {"name": "tokens", "key": "prometheus"}}


def test_the_cluster_tells_who_may_read(cluster: ControlPlane, helm: Helm, tmp_path: Path) -> None:
    """With the chart's roles: the executor's account may read, one that nobody has bound may not; a token is needed.

    The recommender asks with its own account; without its role the answer is 503, and the log has the grant.
    """
    kinds = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
    made = helm.rendered(*EXECUTOR, "--set=access.tokenReview=true,access.tlsSecret=tls,executor.api.caSecret=ca")
    (namespace,) = [each for each in made if each["kind"] == "Namespace"]
    rights = [each for each in made if each["kind"] in kinds]
    assert {each["metadata"]["name"] for each in rights} >= {
        "lagcast-lagcast-reviews",
        "lagcast-lagcast-reader",
        "lagcast-lagcast-reader-executor",
    }
    cluster.apply(yaml.safe_dump_all([namespace, *(each for each in rights if each["kind"] == "ServiceAccount")]))

    def token_of(namespace: str, account: str) -> str:
        return cluster.kubectl("-n", namespace, "create", "token", account).strip()

    recommender = cluster.kubeconfig_for(token_of("lagcast", "lagcast-recommender"))
    executor, stranger = token_of("lagcast-executor", "lagcast-executor"), token_of("shop", "default")
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))

    def statuses(*asked: tuple[str, str]) -> list[int]:
        """The answers of a service that has remembered nothing yet."""
        reviews = Reviews(KubernetesReviews(connect(recommender)), clock=time.monotonic)
        app = create_app(store, clock=lambda: NOON, version="0", access=Access(reviews=reviews))
        with TestClient(app, base_url="http://127.0.0.1") as client:
            return [client.get(path, headers={"Authorization": f"Bearer {token}"}).status_code for token, path in asked]

    assert statuses((executor, "/metrics")) == [503]
    cluster.apply(yaml.safe_dump_all(rights))
    wait_until(lambda: statuses((executor, "/metrics")) == [200])
    questions = [(executor, path) for path in ("/", "/api/v1/groups", "/api/v1/ledger", "/openapi.json")]
    questions += [(stranger, "/metrics"), (stranger, "/livez"), (executor[:-2], "/metrics"), ("made-up", "/metrics")]
    assert statuses(*questions) == [200, 200, 200, 200, 403, 200, 401, 401]
    store.close()
    cluster.kubectl("delete", "-f", "-", given=yaml.safe_dump_all(rights))


@pytest.mark.parametrize("shards", [1, 3])
def test_a_container_that_hangs_is_started_again(helm: Helm, shards: int) -> None:
    """With every option that adds a workload, each of their containers has a liveness probe."""
    documents = helm.rendered(*PROTECTED, SEVERAL, f"--set=recommender.shards={shards}")
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in documents
        if each["kind"] in {"DaemonSet", "Deployment", "StatefulSet"}
    }
    assert len(pods) == shards + 1
    without = {
        (name, container["name"])
        for name, pod in pods.items()
        for container in pod["containers"]
        if "livenessProbe" not in container
    }
    assert without == set()


def test_no_secret_is_made(helm: Helm) -> None:
    """Passwords are named, never contained: a release keeps its values where any reader of Secrets can read them."""
    assert [each["kind"] for each in helm.rendered(*EVERYTHING) if each["kind"] == "Secret"] == []


@pytest.mark.parametrize(("status", "output"), [(200, "store: ok"), (503, "503 store: ok")])
def test_the_test_passes_once_lagcast_is_ready(helm: Helm, status: int, output: str) -> None:
    """The pod of `helm test` prints the answer of /readyz, and fails unless that is 200."""
    paths = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"store: ok\n")

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    (pod,) = [each for each in helm.rendered() if each["kind"] == "Pod"]
    program, *words, url = pod["spec"]["containers"][0]["args"]
    assert program == "python"
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        here = url.replace("lagcast.lagcast.svc:8686", f"127.0.0.1:{server.server_address[1]}")
        done = subprocess.run([sys.executable, *words, here], check=False, capture_output=True, text=True, timeout=30)
        server.shutdown()
        thread.join()
    assert paths == ["/readyz?verbose"]
    assert ((done.returncode == 0), (done.stdout or done.stderr).strip()) == (status == 200, output)
