"""Objects of a cluster in the loop: followed within a cycle, written only on changes, and none stops the others."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cost_model.physics.detected import ObservedGroup
from forecasting.refusal import Refusal
from forecasting.units import Partitions
from recommender.borders import Borders
from recommender.cluster.leadership import Fence, NotLeadingError
from recommender.cluster.scaler import Document, place_of
from recommender.cluster.scaler_status import Status, Transition
from recommender.cluster.scalers import FencedObjects, Scalers
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import GroupSettings, Settings
from recommender.deciding.recommendation import Recommendation
from recommender.ports import RejectedError, UnavailableError
from tests.recommender.leases import TERMS, World

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
ORDERS = ("prod-eu", "orders")


@dataclass(slots=True)
class MemoryObjects:
    """A cluster of a few objects that records what is written; `failing` are names that cannot be written."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    failing: dict[str, Exception] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def add(self, name: str, *, created: datetime = NOW, **spec: Any) -> None:  # noqa: ANN401  # YAML
        """Add an object for the group of the same name."""
        metadata = {"namespace": "shop", "name": name, "uid": name, "generation": 1}
        self.objects[name] = {
            "metadata": metadata | {"creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ")},
            "spec": {"cluster": "prod-eu", "groupId": name} | spec,
        }

    def documents(self) -> Sequence[Document]:
        """All objects, by name."""
        return [deepcopy(self.objects[name]) for name in sorted(self.objects)]

    def write_status(self, document: Document, status: Status) -> None:
        """Record the status, or fail as the test set it."""
        name = place_of(document)[1]
        if name in self.failing:
            raise self.failing[name]
        # The executor's fields stay, as with server-side apply.
        before = self.objects[name].get("status", {})
        kept = {word: before[word] for word in ("conflict",) if word in before}
        self.objects[name]["status"] = deepcopy(dict(status)) | kept
        self.written.append(name)

    def record_event(self, document: Document, event: Transition, *, now: datetime) -> None:
        """Record the Event, or fail as the test set it."""
        if "events" in self.failing:
            raise self.failing["events"]
        self.events.append(f"{place_of(document)[1]} {now:%H:%M} {event.reason}")

    def create(self, document: Document) -> bool:
        """Add an object, unless there is one of its name."""
        name = place_of(document)[1]
        is_free = name not in self.objects
        self.objects.setdefault(name, dict(document))
        return is_free

    def ready(self, name: str) -> str:
        """The reason of an object's first condition."""
        reason: str = self.objects[name]["status"]["conditions"][0]["reason"]
        return reason


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects()


@pytest.fixture
def scalers(objects: MemoryObjects) -> Scalers:
    settings = Settings(state_dir=Path("nowhere"), groups={"orders": GroupSettings(max_replicas=12)})
    return Scalers(objects=objects, settings=settings, tenants=Tenants(followed=("shop",)))


def test_objects_hold_from_the_next_look_on_and_settings_after_them(scalers: Scalers, objects: MemoryObjects) -> None:
    """Between two reads all answers are of one instant; after an object is removed the settings apply."""
    objects.add("orders", maxReplicas=5, objective={"maxLagSeconds": 2}, target={"name": "consumer"})
    assert scalers.of(*ORDERS).max_replicas == 12
    scalers.look({ORDERS}, now=NOW)
    assert (scalers.of(*ORDERS).max_replicas, scalers.decision_of(*ORDERS).max_lag_seconds) == (5, 2.0)
    assert scalers.of(*ORDERS).profile(*ORDERS, ObservedGroup(partitions=Partitions(24))).max_replicas == 5
    assert scalers.decision_of("prod-eu", "billing") == scalers.decision
    objects.objects.clear()
    scalers.look({ORDERS}, now=NOW)
    assert (scalers.of(*ORDERS).max_replicas, scalers.decision_of(*ORDERS)) == (12, scalers.decision)


def test_a_group_of_another_namespace_is_no_obstacle_and_stays_without_an_object(objects: MemoryObjects) -> None:
    """An object that may not claim its group neither switches it off nor keeps discovery from creating one for it."""
    settings = Settings(state_dir=Path("nowhere"))
    scalers = Scalers(objects=objects, settings=settings, tenants=Tenants(followed=("shop", "bank")))
    objects.add("orders", mode="Off", hold={"replicas": 1}, prices={"pricePerReplicaHour": 0})
    assert scalers.look({ORDERS}, now=NOW) == {}
    assert scalers.of(*ORDERS).mode == "recommend"
    assert scalers.rightful() == []
    assert scalers.report([], now=NOW) == 1
    assert objects.ready("orders") == "NotGranted"
    assert objects.events == ["orders 12:00 ScalerRejected"]
    scalers.tenants.see("prod-eu", {"orders": ("10.0.0.1",)}, {"10.0.0.1": {"shop"}})
    assert ORDERS in scalers.look({ORDERS}, now=NOW)
    assert len(scalers.rightful()) == 1


def test_groups_that_cannot_be_decided_are_obstacles(scalers: Scalers, objects: MemoryObjects) -> None:
    """A bad object or a hold stops its own group, a group without rows waits, and a group that is off is left out."""
    objects.add("orders", prices={"pricePerReplicaHour": 0})
    objects.add("unseen")
    objects.add("off", mode="Off")
    objects.add("good")
    objects.add("held", hold={"replicas": 7})
    obstacles = scalers.look({ORDERS, ("prod-eu", "good"), ("prod-eu", "held")}, now=NOW)
    assert {group: obstacle.reason for group, obstacle in obstacles.items()} == {
        ORDERS: "config_invalid",
        ("prod-eu", "unseen"): "no_data",
        ("prod-eu", "held"): "paused",
    }
    assert obstacles["prod-eu", "held"].hold_replicas == 7


def test_only_news_is_written(
    scalers: Scalers, objects: MemoryObjects, advice: Callable[..., Recommendation], refusal: Callable[..., Refusal]
) -> None:
    """Everything is written at the first visit, nothing without a change, and one write and one Event at a change."""
    objects.add("orders")
    for minute in range(3):
        now = NOW + timedelta(minutes=minute)
        again = advice(recommendation_id=f"r-{minute}", issued_at=now, valid_until=now + timedelta(seconds=300))
        scalers.look({ORDERS}, now=now)
        assert scalers.report([again], now=now) == (1 if minute == 0 else 0)
    later = NOW + timedelta(minutes=3)
    assert scalers.report([refusal(refused_at=later)], now=later) == 1
    assert scalers.report([refusal(refused_at=later)], now=later) == 0
    assert objects.events == ["orders 12:00 RecommendationChanged", "orders 12:03 RecommendationWithheld"]


def test_a_bad_object_gets_a_sentence_and_the_others_go_on(
    scalers: Scalers, objects: MemoryObjects, advice: Callable[..., Recommendation]
) -> None:
    """The bad one has its error, a second one for the same group names the older, and the good one has advice."""
    objects.add("bad", prices={"pricePerReplicaHour": 0})
    objects.add("orders", created=NOW - timedelta(days=1))
    objects.add("second", groupId="orders")
    objects.add("off", mode="Off")
    scalers.look({ORDERS}, now=NOW)
    assert scalers.report([advice()], now=NOW) == 4
    assert {name: objects.ready(name) for name in objects.objects} == {
        "bad": "ConfigInvalid",
        "orders": "Advised",
        "second": "Conflicted",
        "off": "Off",
    }


def test_two_objects_for_one_workload_have_it_scaled_for_one_group(
    scalers: Scalers, objects: MemoryObjects, advice: Callable[..., Recommendation]
) -> None:
    """The younger one's group is refused as conflicted, and its object has that reason; the older one goes on."""
    objects.add("orders", created=NOW - timedelta(days=1), target={"name": "consumer"}, mode="Apply")
    objects.add("billing", target={"name": "consumer"}, mode="Apply")
    obstacles = scalers.look({ORDERS, ("prod-eu", "billing")}, now=NOW)
    assert {group: obstacle.reason for group, obstacle in obstacles.items()} == {("prod-eu", "billing"): "conflicted"}
    scalers.report([advice()], now=NOW)
    assert {name: objects.ready(name) for name in objects.objects} == {"billing": "Conflicted", "orders": "Advised"}
    conditions = {each["type"]: each for each in objects.objects["billing"]["status"]["conditions"]}
    assert (conditions["Ready"]["status"], conditions["Conflicted"]["reason"]) == ("False", "SameTarget")


def test_a_conflict_that_an_executor_found_is_reported_within_a_cycle(
    scalers: Scalers, objects: MemoryObjects, advice: Callable[..., Recommendation]
) -> None:
    """The condition names another scaler of the workload from the next cycle on, and is cleared with the record."""
    objects.add("orders", target={"name": "consumer"}, mode="Apply")
    found = {"reason": "Autoscaled", "message": "HPA x scales the same workload", "since": "2026-01-05T12:00:00Z"}

    def condition() -> tuple[str, ...]:
        scalers.look({ORDERS}, now=NOW)
        scalers.report([advice()], now=NOW)
        conditions = {each["type"]: each for each in objects.objects["orders"]["status"]["conditions"]}
        return tuple(conditions["Conflicted"][name] for name in ("status", "reason", "message"))

    assert condition()[:2] == ("False", "OnlyScaler")
    objects.objects["orders"]["status"]["conflict"] = found
    assert condition() == ("True", "Autoscaled", "HPA x scales the same workload")
    del objects.objects["orders"]["status"]["conflict"]
    assert condition()[:2] == ("False", "OnlyScaler")


def test_an_object_that_cannot_be_written_does_not_stop_the_others(
    scalers: Scalers, objects: MemoryObjects, advice: Callable[..., Recommendation], capsys: pytest.CaptureFixture[str]
) -> None:
    """A rejected write concerns that object only; the rest is written, and each cycle retries.

    It is counted each time, and logged when it begins and when it is over.
    """
    failures: list[str] = []
    scalers.borders = Borders(failures.append)
    objects.add("orders")
    objects.add("billing")
    objects.failing["billing"] = RejectedError("no")
    decisions = [advice(), replace(advice(), group="billing")]
    scalers.look({ORDERS, ("prod-eu", "billing")}, now=NOW)
    assert [scalers.report(decisions, now=NOW) for _ in range(3)] == [1, 0, 0]
    objects.failing.clear()
    assert scalers.report(decisions, now=NOW) == 1
    assert objects.written == ["orders", "billing"]
    assert failures == ["object"] * 3
    logged = capsys.readouterr().out
    assert (logged.count("object_failed"), logged.count("object_works_again")) == (1, 1)


def test_an_event_that_cannot_be_made_does_no_harm(
    scalers: Scalers, objects: MemoryObjects, advice: Callable[..., Recommendation], capsys: pytest.CaptureFixture[str]
) -> None:
    """Statuses have the whole content; the failure to record an Event is logged once, not for each of a thousand."""
    objects.add("orders")
    objects.add("off", mode="Off")
    objects.failing["events"] = RejectedError("no")
    scalers.look({ORDERS}, now=NOW)
    assert [scalers.report([advice()], now=NOW) for _ in range(2)] == [2, 0]
    assert capsys.readouterr().out.count("event_not_made") == 1


def test_a_group_belongs_to_the_namespace_of_its_object_else_of_its_target(
    scalers: Scalers, objects: MemoryObjects
) -> None:
    """An object without a target is in a namespace, too."""
    objects.add("orders")
    scalers.look({ORDERS}, now=NOW)
    assert scalers.namespace_of(*ORDERS) == "shop"
    assert scalers.namespace_of("prod-eu", "billing") == scalers.settings.namespace_of("prod-eu", "billing")


def test_a_cluster_that_does_not_answer_holds_up_nothing(
    scalers: Scalers, objects: MemoryObjects, advice: Callable[..., Recommendation], capsys: pytest.CaptureFixture[str]
) -> None:
    """After the first object without an answer no other is tried in this cycle; begin and end are logged once."""
    for name in ("a", "b", "orders"):
        objects.add(name)
        objects.failing[name] = UnavailableError("no answer")
    scalers.look({ORDERS}, now=NOW)
    for _ in range(3):
        assert scalers.report([advice()], now=NOW) == 0
    objects.failing.clear()
    assert scalers.report([advice()], now=NOW) == 3
    logged = capsys.readouterr().out
    assert (logged.count("reporting_failed"), logged.count("reporting_resumed")) == (1, 1)


def test_objects_are_read_by_every_recommender_and_written_by_the_leader(
    objects: MemoryObjects, advice: Callable[..., Recommendation]
) -> None:
    """A recommender that does not lead knows the requests, creates no object, and writes neither status nor Event."""
    world = World()
    elector = world.elector("a")
    fence = Fence(elector)
    fenced = FencedObjects(objects, fence)
    scalers = Scalers(objects=fenced, settings=Settings(state_dir=Path("nowhere")), tenants=Tenants(followed=("shop",)))
    objects.add("orders", maxReplicas=5)
    scalers.look({ORDERS}, now=NOW)
    assert scalers.of(*ORDERS).max_replicas == 5
    billing: Document = {"metadata": {"namespace": "shop", "name": "billing"}, "spec": {}}
    with pytest.raises(NotLeadingError):
        scalers.report([advice()], now=NOW)
    with pytest.raises(NotLeadingError):
        fenced.create(billing)
    assert (objects.written, objects.events, list(objects.objects)) == ([], [], ["orders"])
    elector.step()
    fence.enter()
    assert [fenced.create(billing) for _ in range(2)] == [True, False]
    objects.objects.pop("billing")
    assert scalers.report([advice()], now=NOW) == 1
    world.now += TERMS.renew_deadline_seconds
    with pytest.raises(NotLeadingError):
        scalers.report([replace(advice(), desired_replicas=9)], now=NOW)
    assert (objects.written, len(objects.events)) == (["orders"], 1)


def test_an_object_of_another_shard_is_left_alone_and_counts_all_the_same(
    scalers: Scalers, objects: MemoryObjects, advice: Callable[..., Recommendation]
) -> None:
    """Whether it is followed or not valid, nothing is written there; it has its target, and its settings are told."""
    objects.add("theirs", target={"name": "consumer"}, maxReplicas=5)
    objects.add("theirs-bad", prices={"pricePerReplicaHour": 0})
    objects.add("orders", created=NOW + timedelta(hours=1), target={"name": "consumer"})
    objects.add("billing")
    scalers.owns = lambda _cluster, group: not group.startswith("theirs")
    assert scalers.look({ORDERS}, now=NOW)[ORDERS].reason == "conflicted"
    scalers.report([replace(advice(), group="billing", cluster="prod-eu")], now=NOW)
    assert objects.written == ["billing", "orders"]
    assert objects.ready("orders") == "Conflicted"
    assert scalers.of("prod-eu", "theirs").max_replicas == 5
