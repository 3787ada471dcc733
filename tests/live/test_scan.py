"""`lagcast scan` beside a real broker and a real Spark: the past by its time index, and what came since."""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from collector.kafka_admin import KafkaAdminCollector
from collector.sample import OffsetSample
from tests.live.harness.clients import create_topic, fresh_name, has_members, member, producer_in_order, read_until
from tests.live.harness.executors import read_clock

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Lagcast = Callable[..., tuple[int, str, str]]
HOURS, PER_MINUTE = 3, 60


@pytest.fixture
def orders(bootstrap: str) -> Iterator[tuple[str, datetime]]:
    """A topic with 60 messages in each minute of three hours, read by a consumer, and the time of the first."""
    name = fresh_name("orders")
    create_topic(bootstrap, name, partitions=2)
    producer = producer_in_order(bootstrap)
    now = read_clock()
    for ago in range(60 * HOURS, 0, -1):
        stamp = round((now - timedelta(minutes=ago)).timestamp() * 1000)
        for number in range(PER_MINUTE):
            producer.produce(name, b"m", partition=number % 2, timestamp=stamp + 1000 * number)
    assert producer.flush(20) == 0
    with member(bootstrap, name, name, **{"auto.commit.interval.ms": "200"}):
        read_until(KafkaAdminCollector(bootstrap, cluster="live"), name, _has_read_all)
        yield name, now - timedelta(hours=HOURS)


def test_a_fleet_is_seen_from_kafka_alone_and_a_second_run_reads_what_came_since(
    bootstrap: str, orders: tuple[str, datetime], lagcast_process: Lagcast, tmp_path: Path
) -> None:
    """One message a second in each of the last three hours, nothing known before, and advice on one real replica."""
    name, first_at = orders
    config = tmp_path / "lagcast.yaml"
    config.write_text(json.dumps({"groups": {name: {"capacity_messages_per_second_per_replica": 30}}}))
    words = ("scan", "--bootstrap", bootstrap, "--group", name, "--config", config, "-o", "json")
    code, out, err = lagcast_process(*words, "--estimate")
    assert (code, out) == (0, "")
    age_minutes = math.ceil((read_clock() - first_at) / timedelta(minutes=1))
    assert _minutes(err) in range(60 * HOURS - 3, age_minutes + 1)
    code, out, err = lagcast_process(*words)
    assert code == 0, err
    (record,) = json.loads(out)
    rates = record["hourly_messages_per_second"]
    assert rates[:20] == [None] * 20
    assert rates[-3:-1] == pytest.approx([PER_MINUTE / 60] * 2, rel=0.05)
    assert (record["current_replicas"], record["desired_replicas"]) == (1, 1), record
    code, out, err = lagcast_process(*words)
    assert code == 0, err
    assert _minutes(err) <= 5
    assert json.loads(out)[0]["hourly_messages_per_second"][-3:-1] == pytest.approx(rates[-3:-1], rel=0.05)


def _has_read_all(reading: Sequence[OffsetSample]) -> bool:
    """True if one member has committed the end of every partition."""
    return has_members(1)(reading) and all(each.committed_offset == each.end_offset for each in reading)


def _minutes(said: str) -> int:
    """The minutes that were requested."""
    found = re.search(r"history +\d+ groups, ([\d,]+) minutes", said)
    assert found is not None, said
    return int(found[1].replace(",", ""))
