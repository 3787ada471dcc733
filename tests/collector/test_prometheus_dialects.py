"""Every exporter's words become the same samples; what one of them cannot tell stays empty."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from collector.errors import RejectedError
from collector.prometheus_dialects import DIALECTS, detect
from collector.prometheus_found import Discovered, discover
from collector.prometheus_http import PrometheusRequests, Series
from collector.prometheus_past import past_tables, plan_past
from collector.prometheus_rows import Readings, progress_of
from tests.collector.memory_prometheus import EXPOSITIONS, MemoryPrometheus, exposition, serving

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOON_SECONDS = int(NOON.timestamp())
OFFSETS = [(0, 1200, 1150), (1, 800, 800)]


@pytest.fixture
def memory() -> Iterator[MemoryPrometheus]:
    with serving(MemoryPrometheus()) as server:
        yield server


def scraped(memory: MemoryPrometheus, name: str, *, minutes: int = 5) -> MemoryPrometheus:
    """The same text every 15 s, until noon."""
    for ago in range(60 * minutes, -1, -15):
        memory.scrape(exposition(name), at=NOON_SECONDS - ago)
    return memory


def found(memory: MemoryPrometheus, *groups: str) -> Discovered:
    with PrometheusRequests(memory.url, settings={}) as prometheus:
        since = NOON - timedelta(minutes=5)
        return discover(prometheus, cluster="prod", groups=groups or None, since=since, now=NOON)


def rows(memory: MemoryPrometheus, *groups: str) -> list[dict[str, Any]]:
    """Everything that is known of the five minutes before noon."""
    plan = plan_past(found(memory, *groups), known={})
    with PrometheusRequests(memory.url, settings={}) as prometheus:
        return [row for table in past_tables(prometheus, plan, cluster="prod") for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("dialect", "starts", "members", "state"),
    [
        ("kafka_exporter", [20, 10], 2, "UNKNOWN"),
        ("kminion", [20, 10], 2, "STABLE"),
        ("kafka-lag-exporter", [20, 10], 2, "STABLE"),
        ("opentelemetry", [20, 10], 2, "UNKNOWN"),
        ("redpanda", [None, None], 2, "UNKNOWN"),
        ("burrow", [None, None], None, "UNKNOWN"),
        ("msk", [20, 10], None, "UNKNOWN"),
        ("jmx", [None, None], 2, "UNKNOWN"),
    ],
)
def test_offsets_are_the_same_whoever_tells_them(
    memory: MemoryPrometheus, dialect: str, starts: list[int | None], members: int | None, state: str
) -> None:
    """Two partitions of one topic, 50 messages behind in the first: the same rows from each kind of exporter."""
    told = rows(scraped(memory, dialect), "orders")
    assert found(memory, "orders").spoken.dialect.name == dialect
    newest = [row for row in told if row["sampled_at"] == NOON]
    assert [(row["partition"], row["end_offset"], row["committed_offset"]) for row in newest] == OFFSETS
    assert [row["log_start_offset"] for row in newest] == starts
    assert {(row["cluster"], row["group"], row["topic"]) for row in told} == {("prod", "orders", "orders-in")}
    assert {(row["members"], row["group_state"]) for row in told} == {(members, state)}
    assert {row["sampled_at"] for row in told} == {NOON - timedelta(minutes=ago) for ago in range(6)}


def test_every_dialect_of_the_table_has_a_text() -> None:
    """A row of the table without an exposition would be a claim that nothing checks."""
    assert {dialect.name for dialect in DIALECTS} <= {path.stem for path in EXPOSITIONS.glob("*.txt")}


def test_messages_of_a_minute_are_summed_to_offsets(memory: MemoryPrometheus) -> None:
    """Confluent Cloud tells 600 records a minute and a lag of 50: offsets that rise by 600, commits 50 below them.

    The sums begin anew with each stretch, so its first and last minute are left out: no rate spans two beginnings.
    """
    told = rows(scraped(memory, "confluent-cloud"), "orders")
    assert [row["sampled_at"] for row in told] == [NOON - timedelta(minutes=ago) for ago in (4, 3, 2, 1)]
    assert np.diff([row["end_offset"] for row in told]).tolist() == [600, 600, 600]
    assert {row["end_offset"] - row["committed_offset"] for row in told} == {50}
    assert {(row["partition"], row["topic"]) for row in told} == {(0, "orders-in")}


def test_where_two_are_there_the_first_of_the_table_is_read(memory: MemoryPrometheus) -> None:
    """kafka_exporter comes before klag-exporter."""
    scraped(memory, "kafka-lag-exporter")
    assert found(scraped(memory, "kafka_exporter")).spoken.dialect.name == "kafka_exporter"


def test_no_known_exporter_says_what_was_looked_for() -> None:
    """The names of the ends of every dialect, and what to do."""
    with pytest.raises(RejectedError) as caught:
        detect(["up", "go_goroutines"])
    sentence = str(caught.value)
    assert all(str(dialect.ends[0]) in sentence for dialect in DIALECTS)
    assert "among the 2 metric names" in sentence
    assert sentence.endswith(
        "let Prometheus scrape an exporter of Kafka's offsets, or ask Kafka itself with --bootstrap"
    )


def test_half_an_exporter_says_what_is_missing_and_how_to_switch_it_on() -> None:
    """klag-exporter in its default tells offsets of partitions, and none of groups."""
    with pytest.raises(RejectedError, match=r"granularity = .partition") as caught:
        detect(["kafka_partition_latest_offset", "kafka_consumergroup_group_topic_sum_lag"])
    assert "without kafka_consumergroup_group_offset" in str(caught.value)


def test_a_member_that_has_gone_is_gone_at_once_and_its_partition_goes_on(memory: MemoryPrometheus) -> None:
    """90 s before noon the second member leaves: its series are stale from then on, and the group rebalances for 60 s.

    At 11:58 there are two members, at 11:59 there is one in a rebalance, at noon that is over; no commit is missing.
    """
    both = exposition("kafka-lag-exporter")
    alone = both.replace('consumer_id="a-2"', 'consumer_id="a-1"')
    rebalancing = alone.replace('kafka_consumergroup_group_state{cluster_name="prod",group="orders"} 3', "") + (
        'kafka_consumergroup_group_state{cluster_name="prod",group="orders"} 1\n'
    )
    for ago in range(300, -1, -15):
        text = both if ago > 90 else rebalancing if ago > 30 else alone
        memory.scrape(text, at=NOON_SECONDS - ago)
    told = {
        (row["sampled_at"], row["partition"]): (row["committed_offset"], row["members"], row["group_state"])
        for row in rows(memory, "orders")
    }
    of_second = [told[NOON - timedelta(minutes=ago), 1] for ago in (2, 1, 0)]
    assert of_second == [(800, 2, "STABLE"), (800, 1, "PREPARING_REBALANCING"), (800, 1, "STABLE")]


def test_b11_clients_that_tell_their_lag(memory: MemoryPrometheus) -> None:
    """B11: the article's exposition, with its trailing comma and NaN: each partition by its one owner, `lead` unread.

    40 and 2 messages of one topic and 8 of the other, told by 2 clients under two names.
    """
    told = [row for row in rows(scraped(memory, "article"), "kos") if row["sampled_at"] == NOON]
    assert {(row["topic"], row["partition"]): row["end_offset"] - row["committed_offset"] for row in told} == {
        ("GAME-FRAME-RS", 0): 40,
        ("GAME-FRAME-RS", 1): 2,
        ("GAME-FRAME-RQ", 0): 8,
    }
    assert {(row["group"], row["members"]) for row in told} == {("kos", 2)}


def test_b11_a_partition_belongs_to_who_began_last_and_who_owns_none_is_no_member() -> None:
    """B11: the second client takes over partition 0 and leaves; the first goes on about it with a frozen lag."""
    minutes = NOON_SECONDS + 60 * np.arange(6)
    lags: dict[str, list[int | None]] = {"a": [7, 7, 7, 7, 7, 7], "b": [None, None, 3, 2, None, None]}
    told = tuple(
        Series(
            labels={"client_id": client, "topic": "t", "partition": "0"},
            at_seconds=np.array([at for at, lag in zip(minutes, line, strict=True) if lag is not None]),
            values=np.array([float(lag) for lag in line if lag is not None]),
        )
        for client, line in lags.items()
    )
    jmx = next(dialect for dialect in DIALECTS if dialect.name == "jmx")
    progress = progress_of(jmx, Readings(minutes=minutes, ends=(), progress=told), "orders")
    assert progress.sums.tolist() == [7, 7, 3, 2, 7, 7]
    assert progress.members.tolist() == [1, 1, 1, 1, 1, 1]


def test_b11_clients_do_not_say_their_group(memory: MemoryPrometheus) -> None:
    """B11: without exactly one `--group` nobody knows whose lag that is."""
    scraped(memory, "article")
    for groups in ((), ("kos", "other")):
        with pytest.raises(
            RejectedError, match="clients report a lag here without their group; name it with one --group"
        ):
            found(memory, *groups)


def test_b12_cloud_monitoring_tells_the_same_lag_and_how_old_it_is(memory: MemoryPrometheus) -> None:
    """B12: `custom.googleapis.com/consumer_lag_*` over PromQL is the same lag as the direct scrape, 60 s old here."""
    memory.load(EXPOSITIONS / "cloud_monitoring.json")
    at = NOON + timedelta(minutes=5)
    with PrometheusRequests(memory.url, settings={}) as prometheus:
        there = discover(prometheus, cluster="prod", groups=["kos"], since=NOON, now=at)
        tables = list(past_tables(prometheus, plan_past(there, known={}), cluster="prod"))
    stored = [row for table in tables for row in table.to_pylist() if row["sampled_at"] == NOON]
    direct = MemoryPrometheus()
    with serving(direct):
        scraped_rows = [row for row in rows(scraped(direct, "article"), "kos") if row["sampled_at"] == NOON]
    assert stored == scraped_rows
    assert sum(row["end_offset"] - row["committed_offset"] for row in stored) == 50
    assert there.newest_age_seconds == 60.0


def test_topics_with_dots_are_found_by_the_name_that_clients_give_them(memory: MemoryPrometheus) -> None:
    """Java clients call `eu.orders_in` `eu_orders_in`; the sample has the broker's name."""
    text = exposition("jmx").replace('topic="orders-in"', 'topic="eu_orders_in"')
    ends, _, lags = text.partition("# TYPE kafka_consumer")
    text = f"{ends.replace('eu_orders_in', 'eu.orders_in')}# TYPE kafka_consumer{lags}"
    for ago in range(300, -1, -15):
        memory.scrape(text, at=NOON_SECONDS - ago)
    newest = [row for row in rows(memory, "orders") if row["sampled_at"] == NOON]
    assert [(row["topic"], row["committed_offset"]) for row in newest] == [
        ("eu.orders_in", 1150),
        ("eu.orders_in", 800),
    ]
