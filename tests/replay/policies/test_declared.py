"""A user's own HPA or ScaledObject as a rival: its metrics, bounds and behavior, and a note for each assumption."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from benchmarks.decisions.worlds import WORLDS
from replay.plant import Observation
from replay.policies.catalogue import CATALOGUE
from replay.policies.declared import DeclaredError, declared_hpa, declared_scaled_object, number_of

SEEN = Observation(
    at=datetime(2026, 1, 5, tzinfo=UTC),
    time_seconds=0,
    replicas=4,
    ready_members=4,
    group_state="STABLE",
    end_offsets=np.full(12, 10_000),
    committed_offsets=np.full(12, 8_000),
    busy_share=0.9,
)
CPU = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}


def lag(target: object) -> dict[str, Any]:
    """A metric: the lag, with this target per replica."""
    block = {"metric": {"name": "lag"}, "target": {"type": "AverageValue", "averageValue": target}}
    return {"type": "External", "external": block}


def hpa(**spec: Any) -> dict[str, Any]:  # noqa: ANN401  # YAML
    """A spec with one metric, the lag, with a target of 4,000 per replica."""
    return {"maxReplicas": 10, "metrics": [lag("4k")]} | spec


def trigger(**metadata: str) -> dict[str, Any]:
    """A trigger of KEDA at 2,000 messages per replica."""
    return {"type": "kafka", "metadata": {"consumerGroup": "g", "lagThreshold": "2000"} | metadata}


def requested(policy: Any, **seen: Any) -> int:  # noqa: ANN401  # a policy
    """The count that the policy requests if 24,000 messages wait and there are 4 replicas."""
    return int(policy.decide(replace(SEEN, **seen)))


def test_lag_is_divided_by_the_target() -> None:
    """24,000 over 4,000 are 6; the note names the metric and the figure."""
    policy = declared_hpa(hpa(), ceiling=12)
    assert requested(policy) == 6
    assert policy.notes == ("its metric lag is taken for the group's lag in messages, 4,000 a replica",)


def test_the_highest_of_several_metrics_rules() -> None:
    """90 % CPU at a target of 60 % are 6 of 4; the lag at 2,000 per replica is 12 of 4, and 8 at once at most."""
    both = [{"type": "Resource", "resource": CPU}, lag(4_000)]
    assert requested(declared_hpa(hpa(metrics=both), ceiling=12), busy_share=0.9) == 6
    both[1] = lag("2000")
    assert requested(declared_hpa(hpa(metrics=both), ceiling=12)) == 8  # twice as many at once, without a behavior


def test_a_value_is_one_of_the_whole_group() -> None:
    """24,000 over 16,000 are one and a half times the 4 ready replicas."""
    whole = {"metric": {"name": "lag"}, "target": {"type": "Value", "value": 16_000}}
    policy = declared_hpa(hpa(metrics=[{"type": "Object", "object": whole}]), ceiling=12)
    assert requested(policy) == 6


def test_an_hpa_without_metrics_looks_at_the_cpu() -> None:
    """The default of Kubernetes is used: 80 % of the CPU request."""
    policy = declared_hpa({"maxReplicas": 10}, ceiling=12)
    assert requested(policy, busy_share=1.0) == 5
    assert "the target is 80 %" in policy.notes[0]


def test_a_behavior_bounds_pace_and_tolerance() -> None:
    """The behavior adds one pod a minute; a tolerance of a half leaves the count as it is."""
    slow = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
    assert requested(declared_hpa(hpa(behavior=slow), ceiling=12)) == 5
    deaf = {"scaleUp": {"tolerance": "600m"}}
    assert requested(declared_hpa(hpa(behavior=deaf), ceiling=12)) == 4


def test_bounds_are_those_of_the_manifest_and_of_the_world() -> None:
    """The count is at most maxReplicas and at most the partition count, and a note names that limit."""
    assert requested(declared_hpa(hpa(maxReplicas=5), ceiling=12)) == 5
    policy = declared_hpa(hpa(maxReplicas=500), ceiling=12)
    assert requested(policy, committed_offsets=np.zeros(12, int), replicas=8) == 12
    assert policy.notes[0] == "maxReplicas is 500: it is replayed with 12, as many as there are partitions"
    assert (
        requested(declared_hpa(hpa(minReplicas=3), ceiling=12), committed_offsets=np.full(12, 10_000), replicas=2) == 3
    )


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, 12),  # 24,000 over 2,000
        ({"lagThreshold": "1000"}, 12),  # no more than there are partitions
        ({"lagThreshold": "1000", "allowIdleConsumers": "true"}, 24),
        ({"lagThreshold": "4100", "ensureEvenDistributionOfPartitions": "true"}, 6),
        ({"lagThreshold": "3100", "ensureEvenDistributionOfPartitions": "true"}, 12),  # 8 do not divide 12
    ],
)
def test_a_trigger_is_read_as_keda_reads_it(metadata: dict[str, str], expected: int) -> None:
    """Threshold and switches give the expected count for 24,000 messages on 12 partitions."""
    (want,) = declared_scaled_object({"triggers": [trigger(**metadata)]}, ceiling=40).wants
    assert want(SEEN) == expected


def test_only_partitions_that_lag_are_counted_if_the_trigger_sets_it() -> None:
    """24,000 on 3 of 12 partitions give 12 by the threshold and 3 with the switch."""
    lagging = np.full(12, 10_000)
    lagging[:3] = 2_000
    for words, expected in (({}, 12), ({"limitToPartitionsWithLag": "true"}, 3)):
        (want,) = declared_scaled_object({"triggers": [trigger(**words)]}, ceiling=40).wants
        assert want(replace(SEEN, committed_offsets=lagging)) == expected


def test_nothing_is_replayed_with_none() -> None:
    """KEDA's minimum of 0 is replayed as 1; other triggers and HPAs whose metrics cannot be replayed are named."""
    spec = {"triggers": [trigger(), {"type": "cron", "metadata": {}}], "maxReplicaCount": 7}
    policy = declared_scaled_object(spec, ceiling=12)
    assert policy.rules.least == 1
    assert policy.notes == (
        "minReplicaCount is 0: it is replayed with 1, because simulated groups are never empty",
        "triggers[1] of type cron is left out: a replay has the lag only",
    )
    with pytest.raises(DeclaredError, match=r"no trigger of type kafka"):
        declared_scaled_object({"triggers": [{"type": "cron", "metadata": {}}]}, ceiling=12)
    memory = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}
    with pytest.raises(DeclaredError, match=r"none of its metrics can be replayed: its Resource metric memory"):
        declared_hpa(hpa(metrics=[{"type": "Resource", "resource": memory}]), ceiling=12)
    with pytest.raises(DeclaredError, match=r"'lots' is no quantity"):
        number_of("lots")


def test_the_arms_of_the_benchmarks_equal_their_manifests() -> None:
    """HPA and KEDA at 10,000 give the same count at every lag, from the manifest and from the catalogue."""
    world = WORLDS["tight"].world
    spec = hpa(maxReplicas=40, metrics=[lag(10_000)])
    pairs = (
        ("hpa-10000", declared_hpa(spec, ceiling=40)),
        ("hpa-behavior-10000", declared_hpa(spec | {"behavior": {}}, ceiling=40)),
        (
            "keda-10000",
            declared_scaled_object({"triggers": [trigger(lagThreshold="10000")], "minReplicaCount": 1}, ceiling=40),
        ),
    )
    draw = np.random.default_rng(1)
    for name, declared in pairs:
        policy, replicas = CATALOGUE[name].make(world, 40), 40
        for look in range(200):
            committed = 10_000 - draw.integers(0, 30_000, 40)
            seen = replace(
                SEEN,
                time_seconds=15 * look,
                replicas=replicas,
                end_offsets=np.full(40, 10_000),
                committed_offsets=committed,
            )
            following = policy.decide(seen)
            assert declared.decide(seen) == following, (name, look)
            replicas = following


def test_a_policy_can_be_sent_to_another_process() -> None:
    """Policies can be pickled, because rivals are replayed in parallel processes."""
    for policy in (declared_hpa(hpa(), ceiling=12), declared_scaled_object({"triggers": [trigger()]}, ceiling=12)):
        assert requested(pickle.loads(pickle.dumps(policy))) == requested(policy)  # noqa: S301  # our own bytes
