"""The metrics of every exporter become the same samples, with empty fields where an exporter lacks them."""

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
def test_every_dialect_gives_the_same_offsets(
    memory: MemoryPrometheus, dialect: str, starts: list[int | None], members: int | None, state: str
) -> None:
    """Every kind of exporter gives the same rows of two partitions, of which the first has a lag of 50 messages."""
    samples = rows(scraped(memory, dialect), "orders")
    assert found(memory, "orders").spoken.dialect.name == dialect
    newest = [row for row in samples if row["sampled_at"] == NOON]
    assert [(row["partition"], row["end_offset"], row["committed_offset"]) for row in newest] == OFFSETS
    assert [row["log_start_offset"] for row in newest] == starts
    assert {(row["cluster"], row["group"], row["topic"]) for row in samples} == {("prod", "orders", "orders-in")}
    assert {(row["members"], row["group_state"]) for row in samples} == {(members, state)}
    assert {row["sampled_at"] for row in samples} == {NOON - timedelta(minutes=ago) for ago in range(6)}


def test_every_dialect_of_the_table_has_a_text() -> None:
    """Every row of the table has an exposition that tests it."""
    assert {dialect.name for dialect in DIALECTS} <= {path.stem for path in EXPOSITIONS.glob("*.txt")}


def test_messages_of_a_minute_are_summed_to_offsets(memory: MemoryPrometheus) -> None:
    """From 600 records a minute and a lag of 50 come offsets that rise by 600, and commits 50 below them.

    The sums begin anew with each stretch, so its first and last minute are left out: no rate spans two beginnings.
    """
    samples = rows(scraped(memory, "confluent-cloud"), "orders")
    assert [row["sampled_at"] for row in samples] == [NOON - timedelta(minutes=ago) for ago in (4, 3, 2, 1)]
    assert np.diff([row["end_offset"] for row in samples]).tolist() == [600, 600, 600]
    assert {row["end_offset"] - row["committed_offset"] for row in samples} == {50}
    assert {(row["partition"], row["topic"]) for row in samples} == {(0, "orders-in")}


def test_of_two_exporters_the_first_of_the_table_is_read(memory: MemoryPrometheus) -> None:
    """With kafka_exporter and klag-exporter there, kafka_exporter is read."""
    scraped(memory, "kafka-lag-exporter")
    assert found(scraped(memory, "kafka_exporter")).spoken.dialect.name == "kafka_exporter"


def test_the_error_for_no_known_exporter_names_the_metrics_of_all() -> None:
    """The error names the metrics of every dialect and the next step."""
    with pytest.raises(RejectedError) as caught:
        detect(["up", "go_goroutines"])
    sentence = str(caught.value)
    assert all(str(dialect.ends[0]) in sentence for dialect in DIALECTS)
    assert "among the 2 metric names" in sentence
    assert sentence.endswith(
        "let Prometheus scrape an exporter of Kafka's offsets, or read from Kafka itself with --bootstrap"
    )


def test_the_error_for_an_incomplete_exporter_names_the_metric_and_its_switch() -> None:
    """For klag-exporter's defaults, without offsets of groups, the error names the missing metric and its setting."""
    with pytest.raises(RejectedError, match=r"granularity = .partition") as caught:
        detect(["kafka_partition_latest_offset", "kafka_consumergroup_group_topic_sum_lag"])
    assert "without kafka_consumergroup_group_offset" in str(caught.value)


def test_a_member_that_left_is_not_counted_and_its_partition_goes_on(memory: MemoryPrometheus) -> None:
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
    members_and_state = {
        (row["sampled_at"], row["partition"]): (row["committed_offset"], row["members"], row["group_state"])
        for row in rows(memory, "orders")
    }
    of_second = [members_and_state[NOON - timedelta(minutes=ago), 1] for ago in (2, 1, 0)]
    assert of_second == [(800, 2, "STABLE"), (800, 1, "PREPARING_REBALANCING"), (800, 1, "STABLE")]


def test_b11_lag_of_client_metrics(memory: MemoryPrometheus) -> None:
    """B11: the article's exposition, with its trailing comma and NaN: each partition by its one owner, `lead` unread.

    The lag is 40 and 2 messages in one topic and 8 in the other, from 2 clients under two names.
    """
    samples = [row for row in rows(scraped(memory, "article"), "kos") if row["sampled_at"] == NOON]
    assert {(row["topic"], row["partition"]): row["end_offset"] - row["committed_offset"] for row in samples} == {
        ("GAME-FRAME-RS", 0): 40,
        ("GAME-FRAME-RS", 1): 2,
        ("GAME-FRAME-RQ", 0): 8,
    }
    assert {(row["group"], row["members"]) for row in samples} == {("kos", 2)}


def test_b11_a_partition_belongs_to_its_newest_owner_and_a_client_without_one_is_no_member() -> None:
    """B11: while the second client owns partition 0, the frozen lag that the first still exports is not read."""
    minutes = NOON_SECONDS + 60 * np.arange(6)
    lags: dict[str, list[int | None]] = {"a": [7, 7, 7, 7, 7, 7], "b": [None, None, 3, 2, None, None]}
    lag_series = tuple(
        Series(
            labels={"client_id": client, "topic": "t", "partition": "0"},
            at_seconds=np.array([at for at, lag in zip(minutes, line, strict=True) if lag is not None]),
            values=np.array([float(lag) for lag in line if lag is not None]),
        )
        for client, line in lags.items()
    )
    jmx = next(dialect for dialect in DIALECTS if dialect.name == "jmx")
    progress = progress_of(jmx, Readings(minutes=minutes, ends=(), progress=lag_series), "orders")
    assert progress.sums.tolist() == [7, 7, 3, 2, 7, 7]
    assert progress.members.tolist() == [1, 1, 1, 1, 1, 1]


def test_b11_client_metrics_do_not_name_their_group(memory: MemoryPrometheus) -> None:
    """B11: without exactly one `--group` the lag cannot be assigned to a group, and the error names that option."""
    scraped(memory, "article")
    for groups in ((), ("kos", "other")):
        with pytest.raises(
            RejectedError, match="clients report a lag here without their group; name it with one --group"
        ):
            found(memory, *groups)


def test_b12_cloud_monitoring_has_the_same_lag_and_its_age(memory: MemoryPrometheus) -> None:
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


def test_topics_with_dots_are_found_by_the_name_in_client_metrics(memory: MemoryPrometheus) -> None:
    """For the topic `eu.orders_in`, which Java clients report as `eu_orders_in`, the sample has the broker's name."""
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
