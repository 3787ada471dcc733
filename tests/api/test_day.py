"""The last day of a group over HTTP: what was observed, decided and counted, from the loop of the same process."""

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.decision import DecisionSettings
from recommender.known_groups import KnownGroups
from recommender.ports import Obstacle
from tests.api.conftest import Clock
from tests.api.test_what_if import KEY, loop_over, rows_until
from tests.recommender.loop import Rows

DAY = f"/api/v1/groups/{KEY}/day"


@pytest.fixture
def known_groups() -> KnownGroups:
    """What the loop and the service share."""
    return KnownGroups()


@pytest.fixture
def asked(store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups) -> TestClient:
    """A service beside a loop."""
    return TestClient(create_app(store, clock=clock, version="0.1.0", known_groups=known_groups))


def test_a_day_has_its_minutes_its_standings_and_its_quarters(
    asked: TestClient, store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups
) -> None:
    """An hour of eight members at 4,000/s: 60 minutes, one decision, four quarters of an hour with all scalers."""
    (advice,) = loop_over(Rows(rows_until(clock)), store, known_groups).run_once(now=clock.now)
    day = asked.get(DAY).json()
    assert (day["since_at"], day["until_at"]) == ("2026-01-04T12:00:00Z", "2026-01-05T12:00:00Z")
    assert (len(day["minutes"]), day["max_lag_seconds"]) == (60, DecisionSettings().max_lag_seconds)
    assert day["first_seen_at"] == "2026-01-05T11:00:00Z"
    newest = day["minutes"][-1]
    assert newest["ends_at"] == "2026-01-05T12:00:00Z"
    assert (newest["produce_messages_per_second"], newest["members"], newest["lag_seconds"]) == (4000.0, 8, 2.5)
    # Each of eight carries 1,000/s, so that four would have been enough.
    assert {minute["hindsight_replicas"] for minute in day["minutes"]} == {4}
    (standing,) = day["standings"]
    assert standing["since_at"] == "2026-01-05T12:00:00Z"
    assert standing["desired_replicas"] == getattr(advice, "desired_replicas", None)
    assert [quarter["replicas"]["paid"] for quarter in day["quarters"]] == [8.0] * 4
    assert {"stay", "keda-2000", "hpa-10000"} <= day["quarters"][0]["late_messages"].keys()


def test_what_was_seen_of_a_group_stays_there_when_it_is_refused(
    asked: TestClient, store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups
) -> None:
    """A group that cannot be read now still has its last hour, and the refusal is a standing."""
    obstacles: dict[tuple[str, str], Obstacle] = {}
    loop = loop_over(Rows(rows_until(clock)), store, known_groups, obstacles=lambda: obstacles)
    loop.run_once(now=clock.now)
    clock.now += timedelta(seconds=15)
    obstacles["c", "orders"] = Obstacle(reason="paused", sentence="Paused by its owner.", remedy="Resume it.")
    loop.run_once(now=clock.now)
    day = asked.get(DAY).json()
    assert len(day["minutes"]) == 60
    assert day["standings"][-1]["reason_code"] == "Paused"
    assert "desired_replicas" not in day["standings"][-1]


def test_a_process_that_does_not_decide_shows_what_was_decided(
    asked: TestClient, store: SqlDecisionStore, clock: Clock
) -> None:
    """A standby has the store alone: standings, and neither minutes nor quarters."""
    loop_over(Rows(rows_until(clock)), store, KnownGroups()).run_once(now=clock.now)
    day = asked.get(DAY).json()
    assert (day["minutes"], day["quarters"], len(day["standings"])) == ([], [], 1)


def test_a_group_that_nobody_knows_has_no_day(asked: TestClient) -> None:
    """One sentence with the next step."""
    answer = asked.get(DAY)
    assert answer.status_code == 404
    assert "nothing was decided for group 'orders' of cluster 'c' yet" in answer.json()["detail"]
