"""Objects by which HPA, KEDA and Prometheus use `lagcast_due_replicas`, for `lagcast export`.

During a refusal, or when the advice has expired, that metric has no sample: HPA and KEDA then keep the replicas; of
those that may have none, KEDA starts one after two minutes.
"""

import re
from dataclasses import dataclass
from typing import Any

from manifests.objects import ManifestError

METRIC = "lagcast_due_replicas"
# The first version of Kubernetes whose HPA has a `tolerance`.
TOLERANCE_SINCE = (1, 33)
# Values of labels that Kubernetes accepts, https://kubernetes.io/docs/concepts/overview/working-with-objects/labels.
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")

# Due replicas change at a planned instant; KEDA's default of 30 s would delay the move by half a minute.
POLLED_EVERY_SECONDS = 15
# KEDA scales to 0 without an error when its cache of scalers is cleared during a poll, which each failed request of
# another caller does (2.21, pkg/scaling/scale_handler.go, ErrCacheClosed). A cooldown prevents that while the last
# success is recent, and the fallback, which counts as a success, keeps it recent while the trigger fails. It takes
# effect after 9 failures, of polls and of the HPA: 70 s with replicas, 135 s without, so that a restart of lagcast
# starts no idle group. The cooldown is longer than the 70 s, and adds 2 minutes to the idle time of the advice.
FAILED_POLLS = 8
COOLDOWN_SECONDS = 120
_TO_ZERO = {
    "cooldownPeriod": COOLDOWN_SECONDS,
    "initialCooldownPeriod": COOLDOWN_SECONDS,
    "fallback": {"failureThreshold": FAILED_POLLS, "replicas": 1, "behavior": "currentReplicasIfHigher"},
}

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedGroup:
    """A group whose advice is followed, and the workload that is scaled to its due replicas.

    `to_zero`: the group may have no replica while it is idle; KEDA can follow that, an HPA keeps `least`.
    """

    cluster: str
    group: str
    namespace: str
    api_version: str
    kind: str
    name: str
    least: int
    most: int
    to_zero: bool = False


def horizontal_pod_autoscaler(followed: FollowedGroup, *, kubernetes: tuple[int, int]) -> Document:
    """An HPA that scales to the due replicas, through an adapter of Prometheus.

    Errors: ManifestError for a cluster or group that no label selector can name.
    """
    labels = {"cluster": followed.cluster, "group": followed.group}
    for label, value in labels.items():
        if LABEL_VALUE.fullmatch(value) is None:
            message = (
                f"{label} {value!r} is no value of a label, so an HPA cannot select its metric; "
                "`lagcast export keda` can, for its query may hold any name"
            )
            raise ManifestError(message)
    metric = {
        "type": "External",
        "external": {
            "metric": {"name": METRIC, "selector": {"matchLabels": labels}},
            # The metric is the replica count itself: one per replica.
            "target": {"type": "AverageValue", "averageValue": "1"},
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": followed.name, "namespace": followed.namespace},
        "spec": {
            "scaleTargetRef": _target(followed),
            "minReplicas": followed.least,
            "maxReplicas": followed.most,
            "metrics": [metric],
            "behavior": _at_once(followed, kubernetes),
        },
    }


def prometheus_trigger(followed: FollowedGroup, address: str) -> Document:
    """A trigger of KEDA that queries the metric from Prometheus at this address."""
    return {
        "type": "prometheus",
        "metadata": {
            "serverAddress": address,
            "query": f"max({METRIC}{{cluster={_quoted(followed.cluster)},group={_quoted(followed.group)}}})",
            "threshold": "1",
            # By default KEDA reads a missing sample as 0.
            "ignoreNullValues": "false",
        },
    }


def external_trigger(followed: FollowedGroup, address: str, *, authentication: str | None) -> Document:
    """An external trigger of KEDA that queries lagcast at this address, that of `lagcast serve --keda-port`.

    `authentication` is the TriggerAuthentication whose certificates KEDA shows and checks; None: there is no TLS.
    """
    metadata = {"scalerAddress": address, "cluster": followed.cluster, "groupId": followed.group}
    reference = {} if authentication is None else {"authenticationRef": {"name": authentication}}
    return {"type": "external", "metadata": metadata, **reference}


def scaled_object(followed: FollowedGroup, trigger: Document, *, kubernetes: tuple[int, int]) -> Document:
    """A ScaledObject of KEDA that scales to the due replicas of the trigger.

    Beside another trigger it is a lower bound: KEDA scales to the largest count that any of its triggers requests.
    A group with scale to zero is scaled to 0 by KEDA `COOLDOWN_SECONDS` after 0 replicas are due. While the trigger
    fails it keeps its replicas, and gets one if it has none after `FAILED_POLLS` polls in a row.
    """
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": followed.name, "namespace": followed.namespace},
        "spec": {
            "scaleTargetRef": _target(followed),
            "pollingInterval": POLLED_EVERY_SECONDS,
            "minReplicaCount": 0 if followed.to_zero else followed.least,
            "maxReplicaCount": followed.most,
            **(_TO_ZERO if followed.to_zero else {}),
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _at_once(followed, kubernetes)}},
            "triggers": [trigger],
        },
    }


def adapter_values() -> Document:
    """Values for the Helm chart of prometheus-adapter: the metric that the HPA reads, of every group."""
    rule = {
        "seriesQuery": f'{METRIC}{{cluster!="",group!=""}}',
        # Groups belong to a Kafka cluster, not to a namespace.
        "resources": {"namespaced": False},
        "name": {"as": METRIC},
        "metricsQuery": "max(<<.Series>>{<<.LabelMatchers>>}) by (cluster, group)",
    }
    return {"rules": {"default": False, "external": [rule]}}


def alerts() -> Document:
    """A PrometheusRule with alerts: lagcast is down, no leader, stale data, no advice, advice that is not followed."""
    rules = [
        _alert(
            "LagcastAbsent",
            "absent(lagcast_build_info)",
            minutes=10,
            description="Prometheus sees no lagcast. HPA and KEDA that follow it leave replicas as they are.",
        ),
        _alert(
            "LagcastNobodyLeads",
            # Recommenders without a shared lease do not publish this gauge, and raise no alert.
            "max(lagcast_leader) == 0",
            minutes=2,
            description="All recommenders stand by, and none may publish: check their logs and their Lease.",
        ),
        _alert(
            "LagcastDataStale",
            "lagcast_data_age_seconds > 600",
            minutes=5,
            description="The newest row of {{ $labels.group }} is {{ $value | humanizeDuration }} old: collector or "
            "features job are behind.",
        ),
        _alert(
            "LagcastRefuses",
            "lagcast_refusal == 1",
            minutes=30,
            description="No advice for {{ $labels.group }}: {{ $labels.reason }}. See `lagcast explain`.",
        ),
        _alert(
            "LagcastAdviceNotFollowed",
            f"{METRIC} != lagcast_current_replicas",
            minutes=15,
            description="{{ $labels.group }} should have {{ $value }} replicas and has not: no executor is active, or "
            "another scaler sets it.",
        ),
    ]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "lagcast"},
        "spec": {"groups": [{"name": "lagcast", "rules": rules}]},
    }


def kubernetes_version(text: str) -> tuple[int, int]:
    """Major and minor version. Errors: ManifestError.

    >>> kubernetes_version("v1.36.3")
    (1, 36)
    """
    found = re.match(r"v?(\d+)\.(\d+)", text)
    if found is None:
        message = f"{text!r} is no version of Kubernetes; write it like 1.33"
        raise ManifestError(message)
    return int(found[1]), int(found[2])


def _target(followed: FollowedGroup) -> Document:
    return {"apiVersion": followed.api_version, "kind": followed.kind, "name": followed.name}


def _at_once(followed: FollowedGroup, kubernetes: tuple[int, int]) -> Document:
    """Scaling behaviour that makes due moves at once: their time and size are decided already."""
    # The default tolerance is a tenth: with eleven replicas, a twelfth that is due would never be added.
    tolerance = {"tolerance": "0"} if kubernetes >= TOLERANCE_SINCE else {}
    return {
        direction: {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Pods", "value": followed.most, "periodSeconds": 15}],
            **tolerance,
        }
        for direction in ("scaleUp", "scaleDown")
    }


def _quoted(text: str) -> str:
    r"""A string of PromQL.

    >>> print(_quoted('say "hi"'))
    "say \"hi\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _alert(name: str, expression: str, *, minutes: int, description: str) -> Document:
    return {
        "alert": name,
        "expr": expression,
        "for": f"{minutes}m",
        "labels": {"severity": "warning"},
        "annotations": {"description": description},
    }
