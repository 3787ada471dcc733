"""A group by partition: over REST and on its page, where this process collects the samples."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.keys import group_key
from api.reading import POINTS_LIMIT
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Recommendation
from recommender.ports import GroupLoads, PartitionLoad
from tests.api.conftest import Clock

KEY = group_key("prod-eu", "orders")
PARTITIONS = f"/api/v1/groups/{KEY}/partitions"
HTML = {"accept": "text/html"}


class Read:
    """So many partitions, the last ones busiest; nothing of other groups."""

    def __init__(self, clock: Clock, partitions: int) -> None:
        self._clock, self._partitions = clock, partitions

    def loads(self, cluster: str, group: str, *, until: object) -> GroupLoads | None:
        """Them, as of the instant that is asked for."""
        assert until == self._clock.now
        if (cluster, group) != ("prod-eu", "orders"):
            return None
        known = [PartitionLoad("t", number, float(number), 10 * number) for number in range(self._partitions - 1)]
        rows = (*known, PartitionLoad("t", self._partitions - 1, None, None))
        return GroupLoads(self._clock.now - timedelta(minutes=5), self._clock.now, rows)


@pytest.fixture
def asked(store: SqlDecisionStore, clock: Clock, advice: Callable[..., Recommendation]) -> Callable[[int], TestClient]:
    """A service that has read so many partitions of one of two groups."""
    store.save(advice())
    store.save(advice(group="other", recommendation_id="r-2"))
    return lambda partitions: TestClient(
        create_app(store, clock=clock, version="0.1.0", partition_samples=Read(clock, partitions))
    )


def test_partitions_come_busiest_first_as_json_and_as_csv(asked: Callable[[int], TestClient]) -> None:
    """With the capacity of a replica beside them; what is not known is absent, or empty."""
    service = asked(3)
    found = service.get(PARTITIONS).json()
    assert found["loads"] == [
        {"topic": "t", "partition": 1, "produce_messages_per_second": 1.0, "lag_messages": 10},
        {"topic": "t", "partition": 0, "produce_messages_per_second": 0.0, "lag_messages": 0},
        {"topic": "t", "partition": 2},
    ]
    assert (found["since_at"], found["until_at"]) == ("2026-01-05T11:55:00Z", "2026-01-05T12:00:00Z")
    assert (found["partitions"], found["capacity_messages_per_second_per_replica"]) == (3, 4100.0)
    lines = service.get(PARTITIONS, headers={"accept": "text/csv"}).text.splitlines()
    assert lines[0] == "topic,partition,produce_messages_per_second,lag_messages,since_at,until_at"
    assert lines[3] == "t,2,,,2026-01-05T11:55:00Z,2026-01-05T12:00:00Z"


def test_of_very_many_partitions_the_busiest_are_sent(asked: Callable[[int], TestClient]) -> None:
    """A thousand are all there; of 3,000 as many as a picture draws."""
    assert len(asked(1000).get(PARTITIONS).json()["loads"]) == 1000
    found = asked(3000).get(PARTITIONS).json()
    assert (found["partitions"], len(found["loads"])) == (3000, POINTS_LIMIT)
    assert found["loads"][0]["partition"] == 2998


def test_the_page_of_a_group_has_them_as_a_picture(asked: Callable[[int], TestClient]) -> None:
    """With its table, CSV and sentence, and the same from the API."""
    service = asked(3)
    page = service.get(f"/groups/{KEY}", headers=HTML).text
    assert 'data-picture="skew"' in page
    assert "The busiest of 3 partitions, t-1, gets 1 messages/s" in page
    assert f'href="../api/v1/groups/{KEY}/partitions"' in page
    assert "skew" in service.get(f"/groups/{KEY}/pictures").json()
    assert service.get(f"/groups/{KEY}/pictures/skew.csv").text.splitlines()[1].startswith("t-1,1.0,")


def test_where_nothing_was_read_it_says_who_reads(asked: Callable[[int], TestClient], service: TestClient) -> None:
    """In a process that does not collect, and of a group without readings of now."""
    key = group_key("prod-eu", "other")
    for each in (asked(3), service):
        answer = each.get(f"/api/v1/groups/{key}/partitions")
        assert answer.status_code == 404
        assert "are not known here: `lagcast up` reads them" in answer.json()["detail"]
        page = each.get(f"/groups/{key}", headers=HTML).text
        assert 'data-picture="skew"' not in page
        assert "Figures by partition are not known here" in page
