"""P15, P23: the work of an answer depends on what is asked for: neither on the number of groups nor of readers."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from api.app import create_app
from api.keys import group_key
from collector.kafka_admin import KafkaAdminCollector
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.units import MessagesPerSecond, Partitions
from recommender.adapters import store_sql
from recommender.adapters.documents import from_document
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from tests.collector.memory_cluster import MemoryCluster, NoReader, group
from tests.feature_folder import steady_row
from tests.recommender.loop import Rows

RATE = MessagesPerSecond(1000.0)
PROFILE = GroupProfile(
    cluster="c",
    group="g",
    partitions=Partitions(12),
    capacity=Capacity(p20=RATE, p50=RATE, p90=RATE, source="configured"),
)
MakeAdvice = Callable[..., Recommendation]
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@dataclass
class Work:
    """What the database did: statements, steps of SQLite's machine in tens, and documents that were read."""

    statements: list[str] = field(default_factory=list)
    tens_of_steps: int = 0
    documents: int = 0
    over: bool = False

    def step(self) -> int:
        """Count ten steps until it is over, for the connection is used again; 0 lets SQLite go on."""
        self.tens_of_steps += not self.over
        return 0


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    """Count the work of all statements within the block."""
    work, read = Work(), from_document

    def counted(*arguments: Any) -> Any:  # noqa: ANN401  # as the function that it stands for
        work.documents += 1
        return read(*arguments)

    def before(connection: sa.Connection, _cursor: object, statement: str, *_: object) -> None:
        raw = connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        raw.set_progress_handler(work.step, 10)
        work.statements.append(statement)

    with monkeypatch.context() as patch:
        patch.setattr(store_sql, "from_document", counted)
        sa.event.listen(sa.Engine, "before_cursor_execute", before)
        try:
            yield work
        finally:
            work.over = True
            sa.event.remove(sa.Engine, "before_cursor_execute", before)


def store_of(groups: int, path: Path, advice: MakeAdvice) -> SqlDecisionStore:
    """A store with one decision for each of so many groups: copies of the first one, under other names."""
    store = SqlDecisionStore(sqlite_url(path))
    store.save(advice(group="g00000", recommendation_id="r-g00000"))
    with sqlite3.connect(path) as database:
        names = [row[1] for row in database.execute("PRAGMA table_info(decisions)")]
        copied = ", ".join(
            f"replace(\"{name}\", 'g00000', printf('g%05d', n))" if name in {"id", "group", "document"} else f'"{name}"'
            for name in names
        )
        database.execute(
            f"WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {groups - 1}) "  # noqa: S608  # our own names
            f"INSERT INTO decisions SELECT {copied} FROM decisions, counted WHERE \"group\" = 'g00000'"
        )
    return store


def service_over(store: SqlDecisionStore) -> TestClient:
    return TestClient(create_app(store, clock=lambda: NOW, version="0.1.0", settings=None))


def test_p23_the_first_page_of_15_000_groups_is_the_work_of_that_of_150(
    tmp_path: Path, advice: MakeAdvice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many statements and documents, and steps of SQLite within a fifth; so for the next page and for one group."""
    done: dict[int, list[Work]] = {}
    for groups in (150, 15_000):
        store = store_of(groups, tmp_path / f"{groups}.sqlite", advice)
        first, worst = (service_over(store).get(f"/api/v1/groups?order={order}").json() for order in ("name", "worst"))
        for path in (
            "groups",
            f"groups?cursor={first['next']}",
            "groups?order=worst",
            f"groups?order=worst&cursor={worst['next']}",
            f"groups/{group_key('prod-eu', 'g00100')}/recommendation",
        ):
            service = service_over(store)  # which has no page kept
            with watched(monkeypatch) as work:
                answer = service.get(f"/api/v1/{path}")
            assert answer.status_code == 200
            done.setdefault(groups, []).append(work)
        assert [each["group_id"] for each in first["groups"]] == [f"g{index:05}" for index in range(50)]
        assert len(store.groups()) == groups
        store.close()
    for few, many in zip(*done.values(), strict=True):
        assert many.statements == few.statements
        assert many.documents == few.documents <= 51
        assert many.tens_of_steps <= 1.2 * few.tens_of_steps + 2


def test_p23_the_page_of_15_000_groups_reads_50_of_them_and_adds_up_all_in_one_statement(
    tmp_path: Path, advice: MakeAdvice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement for the groups that are shown and for the totals, of which an index is read and no document."""
    store = store_of(15_000, tmp_path / "many.sqlite", advice)
    with watched(monkeypatch) as work:
        page = service_over(store).get("/", headers={"accept": "text/html"}).text
    assert "<dt>Groups</dt><dd>15,000</dd>" in page
    assert len([each for each in work.statements if each.startswith("SELECT")]) == 1
    assert work.documents <= 51
    store.close()


def test_p23_the_page_of_data_and_metrics_are_one_statement_each(
    tmp_path: Path, advice: MakeAdvice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database elsewhere is waited for once; `/metrics` reads besides what it does not know yet, once."""
    store = store_of(150, tmp_path / "some.sqlite", advice)
    metrics = Metrics(store, clock=lambda: NOW, version="0.1.0")
    metrics.page()
    service = service_over(store)
    for read in (lambda: service.get("/quality").raise_for_status(), metrics.page):
        with watched(monkeypatch) as work:
            read()
        assert len([each for each in work.statements if each.startswith("SELECT")]) == 1
    store.close()


def memory_cluster_of(groups: int, monkeypatch: pytest.MonkeyPatch) -> tuple[KafkaAdminCollector, MemoryCluster]:
    """A collector of so many groups of three partitions, and the cluster that counts its requests."""
    cluster, names = MemoryCluster(), [f"g{index:04}" for index in range(groups)]
    cluster.groups = {name: group() for name in names}
    commits = cluster.commits["orders"]
    cluster.commits = dict.fromkeys(names, commits)
    monkeypatch.setattr("collector.kafka_requests.AdminClient", lambda *_, **__: cluster)
    monkeypatch.setattr("collector.timeouts.Consumer", NoReader)
    return KafkaAdminCollector("memory:9092", cluster="prod-eu"), cluster


def requests_with(
    readers: int, rows: Rows, profile: GroupProfile, path: Path, patch: pytest.MonkeyPatch
) -> list[object]:
    """What is asked of Kafka and of the feature table in three rounds and cycles, with so many readers between them."""
    collector, cluster = memory_cluster_of(1000, patch)
    store = SqlDecisionStore(sqlite_url(path))
    loop = Recommender(
        watched=WatchedGroups(
            histories=rows,
            profile_of=lambda _cluster, name, _observed: replace(profile, group=name),
            settings=DecisionSettings(horizon_seconds=600, fallback_policy=False),
            store=store,
            timer=perf_counter,
        )
    )
    service = service_over(store)

    def look(reader: int) -> list[int]:
        key = group_key("c", f"g{reader % 3:04}")
        pages = ("/api/v1/groups", "/metrics", f"/api/v1/groups/{key}", f"/api/v1/groups/{key}/forecast")
        return [service.get(page).status_code for page in pages]

    rounds: list[object] = []
    for minute in range(3):
        before = len(cluster.requests), len(rows.asked_since)
        now = NOW + timedelta(minutes=minute)
        assert len({row.group for row in collector.collect(None, now=now).samples}) == 1000
        loop.run_once(now=now)
        with ThreadPoolExecutor(8) as pool:
            for codes in pool.map(look, range(readers)):
                assert codes == [200] * 4
        rounds += [cluster.requests[before[0] :], rows.asked_since[before[1] :]]
    store.close()
    return rounds


def test_p15_a_hundred_readers_ask_no_more_of_the_sources_than_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rounds over 1,000 groups: the same requests to Kafka, one for the commits of each group and three more."""
    ends = [NOW - timedelta(seconds=15 * back) for back in reversed(range(140))]
    rows = [steady_row(f"g{number:04}", at) for number in range(3) for at in ends]
    asked = {
        readers: requests_with(readers, Rows(rows), PROFILE, tmp_path / f"{readers}.sqlite", monkeypatch)
        for readers in (1, 100)
    }
    assert asked[100] == asked[1]
    kafka: Sequence[object] = asked[1][0::2]
    assert all(sorted(each) == sorted(["groups", *["commits"] * 1000, "ends", "starts"]) for each in kafka)  # type: ignore[call-overload]  # lists of names
