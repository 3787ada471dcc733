"""What-ifs over HTTP: a decision made again beside the one in force, and nothing kept of it."""

import threading
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from time import perf_counter
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.keys import group_key
from api.schemas import WhatIfChanges
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.history import GroupInterval
from forecasting.refusal import Refusal
from forecasting.units import MessagesPerSecond, Partitions
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.configuring.settings_group import GroupSettings
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.deciding.what_if import Changes
from recommender.known_groups import KnownGroups
from recommender.ports import Obstacle
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from tests.api.conftest import Clock
from tests.recommender.loop import RecordingPublisher, Rows

KEY = group_key("c", "orders")
WHAT_IF = f"/api/v1/groups/{KEY}/what-if"


def rows_until(clock: Clock, *, rate: float = 4000.0, minutes: int = 60) -> list[GroupInterval]:
    """Steady rows of 8 members, the last of which ends now."""
    return [
        GroupInterval(
            cluster="c",
            group="orders",
            topics="orders",
            interval_end_at=clock.now - timedelta(seconds=15 * back),
            interval_seconds=15,
            produce_messages_per_second=rate,
            consume_messages_per_second=rate,
            lag_messages=rate * 2.5,
            lag_seconds=2.5,
            partitions=24,
            sampled_partitions=24,
            members=8,
        )
        for back in reversed(range(4 * minutes))
    ]


@pytest.fixture
def known_groups() -> KnownGroups:
    """What the loop and the service share."""
    return KnownGroups()


def loop_over(rows: Rows, store: SqlDecisionStore, known_groups: KnownGroups, **parts: Any) -> Recommender:  # noqa: ANN401
    """A loop whose group has 24 partitions and replicas of 1,000/s each."""
    rate = MessagesPerSecond(1000.0)
    profile = GroupProfile(
        cluster="c",
        group="orders",
        partitions=Partitions(24),
        capacity=Capacity(p20=rate, p50=rate, p90=rate, source="configured"),
    )
    return Recommender(
        watched=WatchedGroups(
            histories=rows, profile_of=lambda *_: profile, settings=DecisionSettings(), store=store, timer=perf_counter
        ),
        known_groups=known_groups,
        **parts,
    )


@pytest.fixture
def asked(store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups) -> TestClient:
    """A service beside the loop."""
    app = create_app(store, clock=clock, version="0.1.0", known_groups=known_groups)
    return TestClient(app, raise_server_exceptions=False)


@pytest.fixture
def decided(store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups) -> Recommendation:
    """The advice of the loop's first cycle: 5 replicas instead of 8."""
    (advice,) = loop_over(Rows(rows_until(clock)), store, known_groups).run_once(now=clock.now)
    assert isinstance(advice, Recommendation)
    return advice


def test_whatever_the_decision_can_be_asked_with_can_be_asked_over_http() -> None:
    """The body has the names of the changes, one for one."""
    assert set(WhatIfChanges.model_fields) == {field.name for field in fields(Changes)}


def test_the_answer_has_what_would_be_advised_beside_what_is(asked: TestClient, decided: Recommendation) -> None:
    """Both with their prices, of one instant, and with the changes that were asked for."""
    answer = asked.post(WHAT_IF, json={"min_replicas": 12, "price_per_replica_hour": 1.0})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["group_id"], body["recommendation_id"]) == ("orders", decided.recommendation_id)
    assert body["changes"] == {"min_replicas": 12, "price_per_replica_hour": 1.0}
    assert body["in_force"]["desired_replicas"] == decided.desired_replicas == 5
    assert body["in_force"]["cost"]["chosen"]["total"] == decided.chosen.total
    assert (body["what_if"]["desired_replicas"], body["what_if"]["binding_rule"]) == (12, "minimum")
    assert body["what_if"]["policy"]["price_per_replica_hour"] == 1.0
    assert body["what_if"]["cost"]["stay"]["replicas"] == pytest.approx(8.0)


def test_a_minimum_above_the_partitions_is_no_failure_in_the_first_half_hour(
    asked: TestClient, store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups
) -> None:
    """Of 24 partitions, 25 replicas: the rule that then removes none asked for the useful counts from 25 to 24."""
    loop_over(Rows(rows_until(clock, minutes=10)), store, known_groups).run_once(now=clock.now)
    answer = asked.post(WHAT_IF, json={"min_replicas": 25})
    assert answer.status_code == 200, answer.text
    assert answer.json()["what_if"]["desired_replicas"] == 25  # as its owner wants


def test_changes_have_the_limits_of_the_settings() -> None:
    """The wire imports nothing of the settings, so that it states them once more."""
    asked, known = (model.model_json_schema()["properties"] for model in (WhatIfChanges, GroupSettings))

    def limits(described: dict[str, Any]) -> dict[str, Any]:
        options = [described, *described.get("anyOf", [])]
        return {key: each[key] for each in options for key in each if "inimum" in key or "aximum" in key}

    both = asked.keys() & known.keys()
    assert len(both) == 3
    assert {name: limits(asked[name]) for name in both} == {name: limits(known[name]) for name in both}


def test_a_change_to_null_is_refused(asked: TestClient) -> None:
    """What is unknown is absent everywhere on the wire; null could mean the default of the settings."""
    answer = asked.post(WHAT_IF, json={"price_per_move": None, "min_replicas": 3})
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "'price_per_move' is None; value error, leave out what stays as it is",
    )


def test_a_body_that_is_no_text_is_refused_in_one_sentence(asked: TestClient) -> None:
    """It was a 400 that no schema names, and said that the root lists what there is."""
    answer = asked.post(WHAT_IF, content=b"\xf3\x8d", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "the body is not JSON: its bytes are not UTF-8")


def test_a_what_if_cannot_be_taken_for_advice(asked: TestClient, decided: Recommendation) -> None:
    """It has no id, no validity and no due replicas of its own, and its instant is that of the decision."""
    body = asked.post(WHAT_IF, json={"policy": "compact"}).json()
    assert not {"recommendation_id", "valid_until", "due_replicas", "supersedes"} & set(body["what_if"])
    assert body["issued_at"] == decided.issued_at.isoformat().replace("+00:00", "Z")


def test_changes_with_which_no_advice_would_be_given_are_answered_with_the_refusal(
    asked: TestClient, store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups
) -> None:
    """Nothing was committed for three minutes: if a batch took longer than members may take, that is a livelock."""
    rows = rows_until(clock)
    silent = [
        replace(row, consume_messages_per_second=0.0, lag_messages=10_000.0 + 60_000.0 * (place + 1))
        for place, row in enumerate(rows[-12:])
    ]
    loop_over(Rows([*rows[:-12], *silent]), store, known_groups).run_once(now=clock.now)
    answer = asked.post(WHAT_IF, json={"capacity_messages_per_second_per_replica": 1.0}).json()
    assert answer["in_force"]["kind"] == "Recommendation"
    assert (answer["what_if"]["kind"], answer["what_if"]["reason"]["code"]) == ("Refusal", "LivelockSuspected")
    assert answer["what_if"]["remedy"]["sentence"]


def test_nothing_is_kept_of_what_was_asked(clock: Clock, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A loop that is asked between its cycles, and one that is not, decide, store, publish and count the same."""

    def played(*, asking: bool) -> tuple[object, ...]:
        store = SqlDecisionStore(f"sqlite:///{tmp_path_factory.mktemp('store') / 'decisions.sqlite'}")
        known_groups, published = KnownGroups(), RecordingPublisher()
        at = Clock(clock.now)
        metrics = Metrics(store, clock=at, version="0.1.0")
        service = TestClient(create_app(store, clock=at, version="0.1.0", known_groups=known_groups))
        every_row = rows_until(Clock(clock.now + timedelta(minutes=10)), minutes=70)
        loop = loop_over(Rows(every_row), store, known_groups, publishers=[metrics, published])
        for minute in range(10):
            at.now = clock.now + timedelta(minutes=minute)
            loop.run_once(now=at.now)
            if asking:
                for changes in ({"policy": "compact"}, {"min_replicas": 20}, {"rebalance_pause_seconds": 60.0}):
                    assert service.post(WHAT_IF, json=changes).status_code == 200
        kept = store.history("c", "orders", clock.now - timedelta(days=1), clock.now + timedelta(days=1))
        # The instants at which counters were made are those of the test.
        page = [line for line in metrics.page().splitlines() if b"_created" not in line]
        store.close()
        return tuple(published.decisions), kept, page

    assert played(asking=True) == played(asking=False)


def test_what_is_asked_while_the_loop_decides_is_about_one_decision(
    asked: TestClient, store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups
) -> None:
    """Requests beside a running loop always get the advice of one cycle, and that of its very inputs."""
    every_row = rows_until(Clock(clock.now + timedelta(minutes=10)), minutes=70)
    loop = loop_over(Rows(every_row), store, known_groups)
    loop.run_once(now=clock.now)
    over = threading.Event()

    def cycles() -> None:
        for second in range(15, 300, 15):
            loop.run_once(now=clock.now + timedelta(seconds=second))
        over.set()

    thread = threading.Thread(target=cycles)
    thread.start()
    answers = []
    while not over.is_set():
        answers.append(asked.post(WHAT_IF, json={"price_per_restored_gigabyte": 0.0}).json())
    thread.join()
    assert answers
    for body in answers:
        in_force, again = body["in_force"], body["what_if"]
        assert in_force == again


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "nothing is to be changed; give one of policy, "),
        ({"price_per_replica_hour": -1}, "price_per_replica_hour is -1.0; it has to be above 0"),
        ({"target_utilization": 85}, "target_utilization is 85.0; it has to be from 0.01 to 1"),
        ({"target_utilization": 1e-300}, "target_utilization is 1e-300; it has to be from 0.01 to 1"),
        ({"price_per_late_message": False}, "'price_per_late_message' is False; input should be a valid number"),
        ({"price_per_move": "2"}, "'price_per_move' is '2'; input should be a valid number"),
        ({"min_replicas": 0}, "'min_replicas' is 0; input should be greater than or equal to 1"),
        ({"min_replicas": 9, "max_replicas": 3}, "min_replicas is 9, above max_replicas 3; lower one"),
        ({"rebalance_pause_seconds": 0}, "'rebalance_pause_seconds' is 0; input should be greater than"),
        ({"policy": "bold"}, "'policy' is 'bold'; input should be 'stable', 'balanced' or 'compact'"),
        ({"head_room": 1}, "'head_room' is not known here; the description of the API lists"),
    ],
)
@pytest.mark.usefixtures("decided")
def test_changes_out_of_their_limits_are_one_sentence(
    asked: TestClient, changes: dict[str, object], sentence: str
) -> None:
    """422, with the value and its limit, as in the settings."""
    answer = asked.post(WHAT_IF, json=changes)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json()["detail"].startswith(sentence)


@pytest.mark.usefixtures("decided")
def test_a_body_that_is_no_json_is_one_sentence(asked: TestClient) -> None:
    """422, with what the parser found."""
    answer = asked.post(WHAT_IF, content=b"{policy", headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("the body is not JSON: ")


def test_a_group_without_advice_has_nothing_to_ask_about(
    asked: TestClient, store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups
) -> None:
    """404 for an unknown group; 503 for a refused one, with the refusal's sentence and its next step."""
    assert asked.post(WHAT_IF, json={"policy": "compact"}).status_code == 404
    obstacles = {("c", "orders"): Obstacle("paused", "Held at 6 replicas.", "Remove the hold.")}
    loop = loop_over(Rows(rows_until(clock)), store, known_groups, obstacles=lambda: obstacles)
    (refused,) = loop.run_once(now=clock.now)
    assert isinstance(refused, Refusal)
    answer = asked.post(WHAT_IF, json={"policy": "compact"})
    assert answer.status_code == 503
    assert "Held at 6 replicas. Remove the hold." in answer.json()["detail"]


@pytest.mark.usefixtures("decided")
def test_advice_that_has_expired_is_not_asked_about(asked: TestClient, clock: Clock) -> None:
    """A loop that stands still answers no questions about now."""
    clock.now += timedelta(seconds=301)
    answer = asked.post(WHAT_IF, json={"policy": "compact"})
    assert (answer.status_code, "expired at 2026-01-05T12:05:00Z" in answer.json()["detail"]) == (503, True)


@pytest.mark.usefixtures("decided")
@pytest.mark.parametrize("what", ["stand_by", "start_anew"])
def test_a_process_that_leads_no_longer_answers_no_what_if(
    asked: TestClient,
    store: SqlDecisionStore,
    clock: Clock,
    known_groups: KnownGroups,
    what: str,
) -> None:
    """The store has the leader's advice, and only the leader has what it was made from."""
    loop = loop_over(Rows(rows_until(clock)), store, known_groups)
    assert asked.post(WHAT_IF, json={"policy": "compact"}).status_code == 200
    stop: dict[str, Callable[[], None]] = {
        "stand_by": lambda: loop.stand_by(now=clock.now),
        "start_anew": loop.start_anew,
    }
    stop[what]()
    answer = asked.post(WHAT_IF, json={"policy": "compact"})
    assert answer.status_code == 503
    assert "another process decides on it" in answer.json()["detail"]


@pytest.mark.usefixtures("decided")
def test_a_service_without_a_loop_answers_no_what_if(store: SqlDecisionStore, clock: Clock) -> None:
    """It reads the store, where only decisions are."""
    service = TestClient(create_app(store, clock=clock, version="0.1.0"))
    assert service.post(WHAT_IF, json={"policy": "compact"}).status_code == 503
