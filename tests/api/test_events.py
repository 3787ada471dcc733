"""Events: who shows a group is told of each new decision on it, and the streams end when the service stops."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from fastapi.sse import ServerSentEvent
from fastapi.testclient import TestClient

from api.app import create_app
from api.events import Events
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Recommendation
from recommender.known_groups import KnownGroup, KnownGroups
from tests.api.conftest import Clock

ORDERS = ("prod-eu", "orders")


@pytest.fixture
def known_groups() -> KnownGroups:
    """What the loop and the service share."""
    return KnownGroups()


@pytest.fixture
def events(store: SqlDecisionStore, clock: Clock, known_groups: KnownGroups, monkeypatch: pytest.MonkeyPatch) -> Events:
    """The events of a service that looks every hundredth of a second."""
    for name in ("LOOK_SECONDS", "FLEET_SECONDS", "STORE_SECONDS"):
        monkeypatch.setattr(f"api.events.{name}", 0.01)
    app = create_app(store, clock=clock, version="0.1.0", known_groups=known_groups)
    found: Events = app.state.events
    return found


async def next_of(stream: AsyncIterator[ServerSentEvent]) -> str | None:
    event = await asyncio.wait_for(anext(stream), 10.0)
    assert event.event == "decided"
    return event.raw_data


def test_a_group_has_an_event_for_each_new_decision(events: Events, known_groups: KnownGroups) -> None:
    """What is there at the beginning, and what comes; a decision on another group is none."""

    async def told() -> list[str | None]:
        known_groups.keep(ORDERS, KnownGroup("r-1"))
        stream = events.of_group(ORDERS)
        first = await next_of(stream)
        known_groups.keep(("prod-eu", "billing"), KnownGroup("r-9"))
        later = asyncio.create_task(next_of(stream))
        await asyncio.sleep(0.1)
        assert not later.done()
        known_groups.keep(ORDERS, KnownGroup("r-2"))
        return [first, await later]

    assert asyncio.run(told()) == ["r-1", "r-2"]


def test_what_another_process_decides_is_read_from_the_store(
    events: Events, store: SqlDecisionStore, advice: Callable[..., Recommendation]
) -> None:
    """A standby shows the leader's decisions."""

    async def told() -> list[str | None]:
        stream = events.of_group(ORDERS)
        store.save(advice())
        found = [await next_of(stream)]
        store.save(advice(recommendation_id="r-2", issued_at=advice().valid_until))
        return [*found, await next_of(stream)]

    assert asyncio.run(told()) == ["r-1", "r-2"]


def test_the_fleet_has_an_event_when_anything_was_decided(events: Events, known_groups: KnownGroups) -> None:
    """Once a cycle, of however many groups."""

    async def told() -> bool:
        stream = events.of_fleet()
        first = await next_of(stream)
        known_groups.keep(ORDERS, KnownGroup("r-1"))
        known_groups.cycle_is_over()
        return await next_of(stream) != first

    assert asyncio.run(told())


def test_streams_end_when_the_service_stops(events: Events) -> None:
    """A server waits for all its answers, and these have no end of their own."""

    async def all_of() -> list[ServerSentEvent]:
        stream = events.of_fleet()
        found = [await anext(stream)]
        events.close()
        return [*found, *[event async for event in stream]]

    assert len(asyncio.run(asyncio.wait_for(all_of(), 10.0))) == 1


def test_a_stream_of_no_group_is_refused(service: TestClient) -> None:
    """Before it begins, in the words of every other route."""
    answer = service.get("/groups/zzz/events")
    assert answer.status_code == 404
    assert "'zzz' is no group key" in answer.json()["detail"]
