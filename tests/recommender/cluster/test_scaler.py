"""An object's requests, laid over the settings: pure, and independent of the order of objects."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.detected import ObservedGroup
from cost_model.physics.profile import ScaleToZero
from forecasting.units import Partitions
from recommender.cluster.scaler import (
    DECISION_BLOCKS,
    GROUP_BLOCKS,
    Document,
    ScalerError,
    ScalerRequests,
    camel_case,
    read_scaler,
    request_of,
    snake_case,
    standing,
)
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import GroupSettings, Settings, TargetSettings
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.windows import Window

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SETTINGS = Settings(
    state_dir=Path("nowhere"),
    decision=DecisionSettings(price_per_replica_hour=0.05),
    groups={"*": GroupSettings(start_up_seconds=60.0), "orders": GroupSettings(min_replicas=2, max_replicas=12)},
)
# One value of each setting that an object may name, other than the default: as written, and as read.
GROUP_VALUES: dict[str, tuple[Any, Any]] = {
    "min_replicas": (3, 3),
    "max_replicas": (9, 9),
    "mode": ("Apply", "apply"),
    "partitions": (24, 24),
    "capacity_messages_per_second_per_replica": ("1200.5", 1200.5),
    "protocol": ("Kip848", "kip848"),
    "client": ("Librdkafka", "librdkafka"),
    "assignor": ("Roundrobin", "roundrobin"),
    "static_membership": (True, True),
    "start_up_seconds": (45, 45.0),
    "poll_batch_seconds": ("0.5", 0.5),
    "commit_mode": ("Batch", "batch"),
}
DECISION_VALUES: dict[str, tuple[Any, Any]] = {
    "policy": ("Compact", "compact"),
    "max_lag_seconds": ("2.5", 2.5),
    "currency": ("EUR", "EUR"),
    "price_per_replica_hour": ("0.04", 0.04),
    "price_per_late_message": ("1e-5", 1e-5),
    "price_per_duplicate_message": (0, 0.0),
    "price_per_move": ("0.2", 0.2),
    "scale_in_cooldown_seconds": (600, 600.0),
    "max_moves_per_hour": (4, 4),
    "windows": (
        [{"schedule": "0 22 * * 5", "durationSeconds": "14400", "effect": "NoMoves", "timeZone": "Europe/Berlin"}],
        (Window(schedule="0 22 * * 5", duration_seconds=14400.0, effect="no_moves", time_zone="Europe/Berlin"),),
    ),
}
ALL_VALUES = GROUP_VALUES | DECISION_VALUES
BLOCK_OF = {
    name: block for blocks in (DECISION_BLOCKS, GROUP_BLOCKS) for block, names in blocks.items() for name in names
}


def document(*, name: str = "orders", created: datetime = NOW, **spec: Any) -> dict[str, Any]:  # noqa: ANN401  # YAML
    """An object in the namespace `shop` for group `orders` of cluster `prod`."""
    metadata = {"namespace": "shop", "name": name, "uid": name, "generation": 1}
    return {
        "metadata": metadata | {"creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "spec": {"cluster": "prod", "groupId": "orders"} | spec,
    }


def spec_with(names: set[str]) -> dict[str, Any]:
    """A spec that names just these settings, each in its block."""
    spec: dict[str, Any] = {}
    for name in names:
        place = spec.setdefault(BLOCK_OF[name], {}) if BLOCK_OF[name] else spec
        place[camel_case(name)] = ALL_VALUES[name][0]
    return spec


@given(st.sets(st.sampled_from(sorted(ALL_VALUES))))
def test_settings_of_an_object_take_precedence_and_the_rest_stays(names: set[str]) -> None:
    """The settings that an object names have its values; every other one has its value without the object."""
    request = request_of(SETTINGS, read_scaler(document(**spec_with(names))))
    without = SETTINGS.group("orders")
    for name in GroupSettings.model_fields:
        meant = GROUP_VALUES[name][1] if name in names else getattr(without, name)
        assert getattr(request.group, name) == meant, name
    for field in fields(DecisionSettings):
        meant = DECISION_VALUES[field.name][1] if field.name in names else getattr(SETTINGS.decision, field.name)
        assert getattr(request.decision, field.name) == meant, field.name


def _standing(settings: Settings, documents: Sequence[Document]) -> ScalerRequests:
    """The requests of the objects of one tenant."""
    return standing(settings, documents, Tenants(followed=("shop",)).objection)


@given(st.permutations([document(name=str(age), created=NOW - timedelta(days=age)) for age in range(4)]))
def test_the_oldest_object_has_the_group(documents: list[dict[str, Any]]) -> None:
    """In any order of objects one is followed, and each other one has the name of that one."""
    known = _standing(SETTINGS, documents)
    assert {group: request.scaler.name for group, request in known.requests.items()} == {("prod", "orders"): "3"}
    assert {place: invalid.reason for place, invalid in known.invalid.items()} == {
        ("shop", str(age)): "Conflicted" for age in range(3)
    }
    assert "shop/3 names group 'orders' of cluster 'prod' already" in known.invalid["shop", "0"].sentence
    assert all(invalid.group is None for invalid in known.invalid.values())


@given(
    st.permutations([document(name=str(age), groupId=str(age), created=NOW - timedelta(days=age)) for age in range(3)])
)
def test_a_target_is_the_oldest_objects(documents: list[dict[str, Any]]) -> None:
    """Of objects for one workload the younger ones' groups wait, with the reason; another workload is followed."""
    for each in documents:
        each["spec"]["target"] = {"name": "consumer"}
    other = document(name="other", groupId="other", target={"name": "consumer", "kind": "StatefulSet"})
    known = _standing(SETTINGS, [*documents, other])
    assert {request.scaler.name for request in known.requests.values()} == {"2", "other"}
    assert {place[1]: invalid.group for place, invalid in known.invalid.items()} == {
        "0": ("prod", "0"),
        "1": ("prod", "1"),
    }
    assert {invalid.reason for invalid in known.invalid.values()} == {"Conflicted"}
    assert "shop/2 has the target Deployment consumer already" in known.invalid["shop", "0"].sentence


def test_a_target_that_the_settings_hand_over_is_no_objects() -> None:
    """A target of the settings is refused unless the object is for that group; in mode advise it is free."""
    for mode, names in (("apply", ["billing"]), ("recommend", [])):
        target = TargetSettings(namespace="shop", name="consumer")
        billing = GroupSettings.model_validate({"mode": mode, "target": target})
        settings = SETTINGS.model_copy(update={"groups": {"billing": billing}})
        known = _standing(settings, [document(target={"name": "consumer"})])
        assert [invalid.sentence.split()[0].removeprefix("groups.") for invalid in known.invalid.values()] == names
        assert not _standing(settings, [document(groupId="billing", target={"name": "consumer"})]).invalid


def test_an_object_that_is_off_has_no_target() -> None:
    """Its group is left out, so the workload is free for another group."""
    off = document(name="off", groupId="off", created=NOW - timedelta(days=1), mode="Off", target={"name": "consumer"})
    known = _standing(SETTINGS, [off, document(target={"name": "consumer"})])
    assert not known.invalid


def test_scale_to_zero_is_set_by_the_object() -> None:
    """A field in `scaleToZero` is the setting; the settings hold for absent fields."""
    blocks: tuple[dict[str, Any], ...] = ({}, {"enabled": True}, {"idleSeconds": 600})
    requests = [request_of(SETTINGS, read_scaler(document(scaleToZero=block))).group.scale_to_zero for block in blocks]
    assert [(each.enabled, each.idle_seconds) for each in requests] == [(False, 900.0), (True, 900.0), (False, 600.0)]
    on = SETTINGS.model_copy(update={"groups": {"orders": GroupSettings(scale_to_zero=requests[1])}})
    assert request_of(on, read_scaler(document(scaleToZero={"activationLagMessages": 7}))).group.scale_to_zero.enabled


def test_a_minimum_of_zero_is_one_for_a_group_that_is_active() -> None:
    """A group that is active has a replica, as with `minReplicaCount: 0` of KEDA."""
    request = request_of(SETTINGS, read_scaler(document(scaleToZero={"enabled": True}, minReplicas=0)))
    assert request.group.min_replicas == 1
    assert (
        request.group.profile("prod", "orders", ObservedGroup(partitions=Partitions(12))).scale_to_zero == ScaleToZero()
    )


@pytest.mark.parametrize("name", sorted(BLOCK_OF))
def test_every_name_goes_there_and_back(name: str) -> None:
    """The mapping between both spellings is mechanical, digits included."""
    assert snake_case(camel_case(name)) == name


def test_groups_of_two_clusters_are_two_groups() -> None:
    """An object is for the group of one cluster; a group of the same name in another cluster is unchanged."""
    other = document(name="other", cluster="lab", mode="Off")
    known = _standing(SETTINGS, [document(maxReplicas=5), other])
    assert known.requests["prod", "orders"].group.max_replicas == 5
    assert known.requests["lab", "orders"].group.mode == "off"
    assert not known.invalid


def test_a_target_is_in_the_namespace_of_its_object() -> None:
    """An object in one namespace cannot have workloads of another namespace scaled."""
    group = request_of(SETTINGS, read_scaler(document(target={"name": "consumer"}))).group
    assert group.target is not None
    assert (group.target.namespace, group.target.kind, group.target.name) == ("shop", "Deployment", "consumer")


def test_a_hold_ends_to_the_second() -> None:
    """A hold ends at `until`; without one it lasts until it is removed; the settings stay as they are."""
    request = request_of(SETTINGS, read_scaler(document(hold={"replicas": 7, "until": "2026-01-05T13:00:00+01:00"})))
    hold = request.scaler.hold
    assert hold is not None
    assert [hold.holds(NOW - timedelta(seconds=1)), hold.holds(NOW)] == [True, False]
    assert hold.sentence == "Held at 7 replicas until 2026-01-05T12:00:00Z."
    assert request.group == request_of(SETTINGS, read_scaler(document())).group
    endless = read_scaler(document(hold={"replicas": 7})).hold
    assert endless is not None
    assert endless.holds(NOW)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"minReplicas": 20}, "minReplicas is 20, above maxReplicas 12; lower one or raise the other"),
        ({"objective": {"maxLagSeconds": "0"}}, "maxLagSeconds is 0.0; it has to be above 0 s"),
        ({"prices": {"pricePerReplicaHour": 0}}, "pricePerReplicaHour is 0.0; it has to be above 0; without a price"),
        ({"group": {"heartbeatIntervalSeconds": 0}}, "heartbeatIntervalSeconds is 0; input should be greater than"),
        ({"group": {"streams": {"tasks": 0, "stateful": True}}}, "tasks"),
        (
            {"windows": [{"schedule": "0 22 * * 5", "durationSeconds": "0"}]},
            "durationSeconds is 0; it has to be above 0 and at most 604800",
        ),
        (
            {"windows": [{"schedule": "0 22 * * 5", "durationSeconds": 60, "timeZone": "Berlin"}]},
            "timeZone is 'Berlin', which is not known; one is Europe/Berlin",
        ),
        ({"windows": [{"schedule": "0 22 * * 5"}]}, "durationSeconds"),
        ({"minReplicas": 0}, "minReplicas is 0 and scaleToZero.enabled is not true; set 1 or more"),
        ({"scaleToZero": {"idleSeconds": 5}}, "scaleToZero.idleSeconds is 5; input should be greater than or equal"),
        ({"scaleToZero": None}, "scaleToZero is None; input should be a valid dictionary"),
    ],
)
def test_a_bad_object_gets_one_sentence_with_its_field_names(spec: dict[str, Any], sentence: str) -> None:
    """The sentence has field, value and expectation; the other objects are followed."""
    with pytest.raises(ScalerError, match=r"^[^\n]+$") as caught:
        request_of(SETTINGS, read_scaler(document(**spec)))
    assert sentence in str(caught.value)
    good = document(name="good", groupId="billing")
    known = _standing(SETTINGS, [document(**spec), good])
    assert list(known.requests) == [("prod", "billing")]
    assert known.invalid["shop", "orders"].group == ("prod", "orders")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*map(camel_case, ALL_VALUES)]), inner),
    max_leaves=4,
)
BLOCKS = ["cluster", "groupId", "target", "scaleToZero", "hold", *map(camel_case, filter(None, set(BLOCK_OF.values())))]


@given(st.one_of(JSON, st.dictionaries(st.sampled_from([*BLOCKS, *map(camel_case, ALL_VALUES)]), JSON)))
def test_an_object_of_any_content_stops_no_other_object(spec: Any) -> None:  # noqa: ANN401  # anything at all
    """An object of an older or unknown definition is followed or gets a sentence; the next object is followed."""
    odd = document(name="odd") | {"spec": spec}
    good = document(name="good", groupId="billing", cluster="another")
    known = _standing(SETTINGS, [odd, good])
    assert ("another", "billing") in known.requests
    followed = {request.scaler.name for request in known.requests.values()}
    assert ("odd" in followed) != (("shop", "odd") in known.invalid)


@pytest.mark.parametrize("until", ["soon", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_an_instant_that_cannot_be_read_is_an_error(until: str) -> None:
    """It has one sentence, for its group only."""
    good = document(name="good", groupId="billing")
    known = _standing(SETTINGS, [document(hold={"replicas": 3, "until": until}), good])
    invalid = known.invalid["shop", "orders"]
    assert (invalid.reason, invalid.group) == ("ConfigInvalid", ("prod", "orders"))
    assert until in invalid.sentence
    assert list(known.requests) == [("prod", "billing")]
