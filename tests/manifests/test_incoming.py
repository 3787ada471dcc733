"""Objects of other autoscalers as ConsumerGroupScalers, with a line for each field without an equivalent."""

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
    """The specs of the ConsumerGroupScalers, by name."""
    return {document["metadata"]["name"]: document["spec"] for document in made.documents if document["kind"] == KIND}


def test_b1_an_alamedascaler_becomes_one_object_for_each_group() -> None:
    """Bounds, policy and the workload that the labels select in the same file are kept, in the mode recommend."""
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
    """The recommender reads each object and finds the same bounds in it."""
    settings = Settings(state_dir=tmp_path)
    for text in (FIRST + WORKLOAD, SECOND, SCALED_OBJECT, OLD_HPA):
        for document in read(text, group="g").documents:
            if document["kind"] == KIND:
                request = request_of(settings, read_scaler(document))
                assert request.group.max_replicas == document["spec"].get("maxReplicas")
                assert request.group.mode == "recommend"


def test_other_fields_of_an_alamedascaler_are_reported_line_by_line() -> None:
    """The lines name the scaling tool, the exporter, the topics, the group without labels, and the command to apply."""
    warnings = read(FIRST + WORKLOAD).warnings
    assert all(warning.startswith("AlamedaScaler shop/shop: ") for warning in warnings)
    for part in (
        "spec.scalingTool: advice is the same whatever carries it out",
        "spec.kafka.exporterNamespace: offsets are read from Kafka itself",
        "spec.kafka.consumerGroups[0].majorTopic: all topics are watched",
        "spec.kafka.consumerGroups[1].resource selects no workload by labels: no target",
        """kubectl patch cgs shop-1 -n shop --type=merge -p '{"spec":{"mode":"Apply"}}'""",
    ):
        assert any(part in warning for warning in warnings), part


def test_labels_that_select_two_workloads_select_none() -> None:
    """Both workloads are named in a line, and the object has no target."""
    twin = WORKLOAD.replace("StatefulSet", "Deployment").replace("order-consumer", "other-consumer")
    made = read(FIRST + WORKLOAD + twin)
    assert "target" not in specs(made)["shop-1"]
    (warning,) = (line for line in made.warnings if "consumerGroups[0].resource" in line)
    assert "StatefulSet/order-consumer, Deployment/other-consumer" in warning


def test_b1_controllers_of_the_second_version_name_their_workload_and_group() -> None:
    """A generic controller is left out with a line, and the object is in the namespace of its workload."""
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


def test_without_bounds_there_is_no_max_replicas() -> None:
    """Without bounds minReplicas is 1, and without a groupId a line names the workload's name as the group."""
    text = SECOND.replace("        hpaParameters: {minReplicas: 1, maxReplicas: 40}\n", "").replace(
        ", groupId: orders", ""
    )
    made = read(text)
    (spec,) = specs(made).values()
    assert (spec["minReplicas"], "maxReplicas" in spec, spec["groupId"]) == (1, False, "order-consumer")
    assert any("has no groupId: it is 'order-consumer' now" in warning for warning in made.warnings)


def test_b5_a_scaledobject_becomes_an_object_for_its_kafka_trigger() -> None:
    """Secrets stay in KEDA, and the cron trigger is named and left out."""
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
    lines = "\n".join(made.warnings)
    assert "spec.triggers[1] is of type cron" in lines
    assert "spec.triggers[0].authenticationRef: the collector has its own security settings" in lines
    assert "spec.triggers[0].metadata.lagThreshold: lag is priced" in lines


def test_b7_min_replicas_of_zero_becomes_one() -> None:
    """Zero, written or KEDA's default, becomes one with a line, and another line names the watched topic."""
    for text in (SCALED_OBJECT, SCALED_OBJECT.replace("  minReplicaCount: 0\n", "")):
        made = read(text)
        assert specs(made)["lazy"]["minReplicas"] == 1
        assert any("spec.minReplicaCount is 0: minReplicas is 1" in warning for warning in made.warnings)
        assert any("metadata.topic: all topics are watched" in warning for warning in made.warnings)


def test_b5_a_scaledjob_is_unsupported() -> None:
    """A ScaledJob, which has no replicas, is one line and no object."""
    made = read("{apiVersion: keda.sh/v1alpha1, kind: ScaledJob, metadata: {name: batch}, spec: {}}")
    assert made.documents == ()
    assert made.warnings[0].startswith("ScaledJob default/batch: Unsupported/ScaledJob")


def test_b3_an_old_hpa_is_printed_as_v2_beside_a_consumergroupscaler() -> None:
    """Its metrics have the fields of v2, and the group, which it does not name, comes from --group."""
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


def test_an_hpa_without_a_group_needs_the_option() -> None:
    """A line names the option --group, and the v2 form is printed."""
    made = read(OLD_HPA)
    assert [document["kind"] for document in made.documents] == ["HorizontalPodAutoscaler"]
    assert any("name it with --group" in warning for warning in made.warnings)


def test_an_hpa_on_an_external_metric_names_its_group_by_a_label() -> None:
    """Each label that exporters use for the group is read."""
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
    """Without an API version the object has no target, and a line reports it."""
    rollout = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "lazy-consumer"}
    made = read(SCALED_OBJECT.replace("{name: lazy-consumer}", yaml.safe_dump(rollout, default_flow_style=True)))
    assert specs(made)["lazy"]["target"] == rollout
    made = read(SCALED_OBJECT.replace("{name: lazy-consumer}", "{kind: Rollout, name: lazy-consumer}"))
    assert "target" not in specs(made)["lazy"]
    assert any("spec.scaleTargetRef.kind is Rollout: no target" in warning for warning in made.warnings)


def test_lists_are_read_and_other_objects_left_out() -> None:
    """A list as `kubectl get -o yaml` prints it is read, and a Service, which has no scale, is left out with a line."""
    inner = [*yaml.safe_load_all(SCALED_OBJECT), {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}]
    made = read(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": inner}))
    assert set(specs(made)) == {"lazy"}
    assert any(warning.startswith("Service default/web: it scales no consumer group") for warning in made.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "this is not YAML"),
        ("- 1\n- 2", "document 1 is no object of Kubernetes"),
        ("{apiVersion: v1, kind: Service, metadata: {name: web}}", "it holds Service"),
        ("", "it holds nothing"),
        ("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a}, spec: {}}", "'scaleTargetRef'"),
    ],
)
def test_an_unreadable_text_is_one_sentence(text: str, message: str) -> None:
    """The sentence names the fault and its document."""
    with pytest.raises(ManifestError, match=message.replace("[", r"\[")) as refused:
        read(text)
    assert "\n" not in str(refused.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


@given(field=st.sampled_from(["scaleTargetRef", "triggers", "minReplicaCount", "kafka", "controllers"]), value=anything)
def test_invalid_fields_end_in_one_sentence_never_in_a_traceback(field: str, value: object) -> None:
    """Any value of a field gives a result or a ManifestError."""
    for text in (FIRST, SECOND, SCALED_OBJECT, OLD_HPA):
        document = yaml.safe_load(text)
        document["spec"][field] = value
        with suppress(ManifestError):
            read(yaml.safe_dump(document), group="g")
