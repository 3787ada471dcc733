"""Other autoscalers' objects as ours: what each field becomes, and a line for whatever has no equivalent."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from manifests.incoming import imported
from manifests.objects import Imported, ManifestError
from recommender.cluster.scaler import KIND, read_scaler, request_of
from recommender.configuring.settings import Settings

FIRST = """
apiVersion: autoscaling.containers.ai/v1alpha1
kind: AlamedaScaler
metadata: {name: shop, namespace: shop, labels: {app.federator.ai/name: shop, team: blue}}
spec:
  type: kafka
  policy: compact
  enableExecution: true
  scalingTool: {type: hpa}
  kafka:
    exporterNamespace: monitoring
    topics: [orders, refunds]
    consumerGroups:
      - {name: orders, majorTopic: orders, minReplicas: 2, maxReplicas: 40,
         resource: {kubernetes: {selector: {matchLabels: {app: consumer}}}}}
      - {name: refunds, resource: {custom: somewhere}}
"""
WORKLOAD = """
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: order-consumer, namespace: shop}
spec: {template: {metadata: {labels: {app: consumer, tier: back}}}}
"""
SECOND = """
apiVersion: autoscaling.containers.ai/v1alpha2
kind: AlamedaScaler
metadata: {name: scaler, namespace: federatorai}
spec:
  clusterName: prod-eu
  controllers:
    - type: generic
      scaling: hpa
      generic: {target: {namespace: web, name: nginx, kind: Deployment}}
    - type: kafka
      enableExecution: false
      scaling: hpa
      kafka:
        exporterNamespace: monitoring
        consumerGroup: {namespace: shop, name: order-consumer, kind: Deployment, topic: orders, groupId: orders}
        hpaParameters: {minReplicas: 1, maxReplicas: 40}
"""
SCALED_OBJECT = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: lazy, namespace: shop}
spec:
  scaleTargetRef: {name: lazy-consumer}
  pollingInterval: 30
  minReplicaCount: 0
  maxReplicaCount: 10
  triggers:
    - type: kafka
      metadata: {bootstrapServers: "kafka:9092", consumerGroup: lazy, topic: lazy-input, lagThreshold: "50"}
      authenticationRef: {name: kafka-credentials}
    - type: cron
      metadata: {timezone: UTC, start: 0 6 * * *, end: 0 20 * * *, desiredReplicas: "10"}
"""
OLD_HPA = """
apiVersion: autoscaling/v2beta1
kind: HorizontalPodAutoscaler
metadata: {name: game, namespace: games}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: game}
  minReplicas: 1
  maxReplicas: 4
  metrics:
    - {type: Pods, pods: {metricName: consumer_lag_frames, targetAverageValue: 100000}}
    - {type: Pods, pods: {metricName: consumer_lag_players, targetAverageValue: 100000}}
"""


def read(text: str, *, cluster: str | None = None, group: str | None = None) -> Imported:
    return imported(text, cluster=cluster, group=group)


def specs(made: Imported) -> dict[str, dict[str, Any]]:
    """The specs of our objects, by name."""
    return {document["metadata"]["name"]: document["spec"] for document in made.documents if document["kind"] == KIND}


def test_b1_an_alamedascaler_becomes_one_object_for_each_group() -> None:
    """Bounds, policy and the workload that the labels select in the same file are kept; acting stays off."""
    made = read(FIRST + WORKLOAD, cluster="prod")
    assert specs(made) == {
        "shop-1": {
            "cluster": "prod",
            "groupId": "orders",
            "target": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "order-consumer"},
            "minReplicas": 2,
            "maxReplicas": 40,
            "policy": "Compact",
            "mode": "Recommend",
        },
        "shop-2": {
            "cluster": "prod",
            "groupId": "refunds",
            "minReplicas": 1,
            "policy": "Compact",
            "mode": "Recommend",
        },
    }
    assert made.documents[0]["metadata"]["labels"] == {"app.federator.ai/name": "shop"}


def test_b1_every_object_that_is_made_can_be_followed(tmp_path: Path) -> None:
    """The recommender reads each one, and finds the bounds in it that it was given."""
    settings = Settings(state_dir=tmp_path)
    for text in (FIRST + WORKLOAD, SECOND, SCALED_OBJECT, OLD_HPA):
        for document in read(text, group="g").documents:
            if document["kind"] == KIND:
                asked = request_of(settings, read_scaler(document))
                assert asked.group.max_replicas == document["spec"].get("maxReplicas")
                assert asked.group.mode == "recommend"


def test_what_an_alamedascaler_says_beyond_that_is_told_line_by_line() -> None:
    """The lines name the scaling tool, the exporter, the topics, the group without labels, and the command to act."""
    warnings = read(FIRST + WORKLOAD).warnings
    assert all(warning.startswith("AlamedaScaler shop/shop: ") for warning in warnings)
    for words in (
        "spec.scalingTool: advice is the same whatever carries it out",
        "spec.kafka.exporterNamespace: offsets are read from Kafka itself",
        "spec.kafka.consumerGroups[0].majorTopic: all topics are watched",
        "spec.kafka.consumerGroups[1].resource selects no workload by labels: no target",
        """kubectl patch cgs shop-1 -n shop --type=merge -p '{"spec":{"mode":"Apply"}}'""",
    ):
        assert any(words in warning for warning in warnings), words


def test_labels_that_select_two_workloads_select_none() -> None:
    """Both are named; which one it is has to be said."""
    twin = WORKLOAD.replace("StatefulSet", "Deployment").replace("order-consumer", "other-consumer")
    made = read(FIRST + WORKLOAD + twin)
    assert "target" not in specs(made)["shop-1"]
    (warning,) = (line for line in made.warnings if "consumerGroups[0].resource" in line)
    assert "StatefulSet/order-consumer, Deployment/other-consumer" in warning


def test_b1_controllers_of_the_second_version_name_their_workload_and_group() -> None:
    """The generic one is left out with a line; the object stands where its workload does."""
    made = read(SECOND)
    assert specs(made) == {
        "scaler-2": {
            "cluster": "prod-eu",
            "groupId": "orders",
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "order-consumer"},
            "minReplicas": 1,
            "maxReplicas": 40,
            "mode": "Recommend",
        }
    }
    assert made.documents[0]["metadata"]["namespace"] == "shop"
    assert any("spec.controllers[0].type is generic" in warning for warning in made.warnings)


def test_without_bounds_the_most_is_what_partitions_allow() -> None:
    """Least 1, no most; without a groupId the name of the workload stands in, and that is said."""
    text = SECOND.replace("        hpaParameters: {minReplicas: 1, maxReplicas: 40}\n", "").replace(
        ", groupId: orders", ""
    )
    made = read(text)
    (spec,) = specs(made).values()
    assert (spec["minReplicas"], "maxReplicas" in spec, spec["groupId"]) == (1, False, "order-consumer")
    assert any("has no groupId: it is 'order-consumer' now" in warning for warning in made.warnings)


def test_b5_a_scaledobject_becomes_an_object_for_its_kafka_trigger() -> None:
    """Secrets stay references of KEDA; the cron trigger is named and left out."""
    made = read(SCALED_OBJECT)
    assert specs(made) == {
        "lazy": {
            "cluster": "default",
            "groupId": "lazy",
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "lazy-consumer"},
            "minReplicas": 1,
            "maxReplicas": 10,
            "mode": "Recommend",
        }
    }
    said = "\n".join(made.warnings)
    assert "spec.triggers[1] is of type cron" in said
    assert "spec.triggers[0].authenticationRef: the collector has its own security settings" in said
    assert "spec.triggers[0].metadata.lagThreshold: lag is priced" in said


def test_b7_no_least_of_zero_is_taken_over() -> None:
    """Neither one that is written down nor KEDA's default; the watched topic is to be checked."""
    for text in (SCALED_OBJECT, SCALED_OBJECT.replace("  minReplicaCount: 0\n", "")):
        made = read(text)
        assert specs(made)["lazy"]["minReplicas"] == 1
        assert any("spec.minReplicaCount is 0: minReplicas is 1" in warning for warning in made.warnings)
        assert any("metadata.topic: all topics are watched" in warning for warning in made.warnings)


def test_b5_a_scaledjob_is_unsupported() -> None:
    """It has no replicas; one line, no object."""
    made = read("{apiVersion: keda.sh/v1alpha1, kind: ScaledJob, metadata: {name: batch}, spec: {}}")
    assert made.documents == ()
    assert made.warnings[0].startswith("ScaledJob default/batch: Unsupported/ScaledJob")


def test_b3_an_old_hpa_is_printed_as_v2_beside_ours() -> None:
    """Its metrics in the words of v2; the group, which it does not name, is asked for."""
    made = read(OLD_HPA, group="game-frames")
    modern, ours = made.documents
    assert modern["apiVersion"] == "autoscaling/v2"
    assert modern["spec"]["metrics"][0] == {
        "type": "Pods",
        "pods": {
            "metric": {"name": "consumer_lag_frames"},
            "target": {"type": "AverageValue", "averageValue": 100000},
        },
    }
    assert (ours["spec"]["groupId"], ours["spec"]["minReplicas"], ours["spec"]["maxReplicas"]) == ("game-frames", 1, 4)
    assert any("remove it before mode is Apply" in warning for warning in made.warnings)


def test_an_hpa_that_names_no_group_has_to_be_told() -> None:
    """A line says how; the v2 form is printed all the same."""
    made = read(OLD_HPA)
    assert [document["kind"] for document in made.documents] == ["HorizontalPodAutoscaler"]
    assert any("say which with --group" in warning for warning in made.warnings)


def test_an_hpa_on_an_external_metric_names_its_group_by_a_label() -> None:
    """Whatever the exporter calls it."""
    for label in ("group", "consumergroup", "consumer_group"):
        metric = {"name": "lag", "selector": {"matchLabels": {label: "orders"}}}
        document = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "orders"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"},
                "maxReplicas": 8,
                "metrics": [{"type": "External", "external": {"metric": metric, "target": {"type": "AverageValue"}}}],
            },
        }
        assert specs(read(yaml.safe_dump(document)))["orders"]["groupId"] == "orders"


def test_a_workload_of_another_kind_is_a_target_with_its_api_version() -> None:
    """Without it there is advice without a target, and a line."""
    rollout = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "lazy-consumer"}
    made = read(SCALED_OBJECT.replace("{name: lazy-consumer}", yaml.safe_dump(rollout, default_flow_style=True)))
    assert specs(made)["lazy"]["target"] == rollout
    made = read(SCALED_OBJECT.replace("{name: lazy-consumer}", "{kind: Rollout, name: lazy-consumer}"))
    assert "target" not in specs(made)["lazy"]
    assert any("spec.scaleTargetRef.kind is Rollout: no target" in warning for warning in made.warnings)


def test_lists_are_read_and_other_objects_left_out() -> None:
    """As `kubectl get -o yaml` prints them; a Service scales nothing, and that is said."""
    inner = [*yaml.safe_load_all(SCALED_OBJECT), {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}]
    made = read(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": inner}))
    assert set(specs(made)) == {"lazy"}
    assert any(warning.startswith("Service default/web: it scales no consumer group") for warning in made.warnings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "this is not YAML"),
        ("- 1\n- 2", "document 1 is no object of Kubernetes"),
        ("{apiVersion: v1, kind: Service, metadata: {name: web}}", "it holds Service"),
        ("", "it holds nothing"),
        ("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a}, spec: {}}", "'scaleTargetRef'"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str, words: str) -> None:
    """The sentence names the fault and its document."""
    with pytest.raises(ManifestError, match=words.replace("[", r"\[")) as refused:
        read(text)
    assert "\n" not in str(refused.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


@given(field=st.sampled_from(["scaleTargetRef", "triggers", "minReplicaCount", "kafka", "controllers"]), value=anything)
def test_odd_objects_end_in_one_sentence_never_in_a_traceback(field: str, value: object) -> None:
    """Whatever stands where a field should be: an answer or a ManifestError."""
    for text in (FIRST, SECOND, SCALED_OBJECT, OLD_HPA):
        document = yaml.safe_load(text)
        document["spec"][field] = value
        with suppress(ManifestError):
            read(yaml.safe_dump(document), group="g")
