"""Past arrivals from a real broker: the messages produced in each minute, read from its time index."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyarrow import dataset as ds  # type: ignore[import-untyped]  # ships no types

from cli.main import main
from tests.live.harness.clients import commit, create_topic, fresh_name, producer_in_order

pytestmark = pytest.mark.kafka

MINUTE = timedelta(minutes=1)
MakeLog = Callable[..., str]


@pytest.fixture
def log(bootstrap: str) -> MakeLog:
    """`log({partition: {minutes_ago: messages}}, **topic_config)`: a topic of these messages, read by a group."""

    def make(messages: dict[int, dict[int, int]], **config: str) -> str:
        name = fresh_name("past")
        create_topic(bootstrap, name, partitions=len(messages), **config)
        producer = producer_in_order(bootstrap)
        now = datetime.now(UTC).replace(second=30, microsecond=0)  # noqa: TID251  # brokers keep messages by the clock
        for partition, of_minute in messages.items():
            for ago in sorted(of_minute, reverse=True):
                for _ in range(of_minute[ago]):
                    stamp = round((now - ago * MINUTE).timestamp() * 1000)
                    producer.produce(name, b"m", partition=partition, timestamp=stamp)
        assert producer.flush(10) == 0
        ends = [TopicPartition(name, number, sum(of_minute.values())) for number, of_minute in messages.items()]
        commit(bootstrap, name, *ends)
        return name

    return make


def past(bootstrap: str, group: str, out: Path) -> dict[int, list[int]]:
    """The output of `lagcast history`: end offsets by partition, the oldest minute first."""
    assert main(["history", "--bootstrap", bootstrap, "--out", str(out), "--group", group]) == 0
    if not out.exists():
        return {}
    rows = ds.dataset(out, partitioning=None).to_table().sort_by("sampled_at").to_pylist()
    assert all(row["log_start_offset"] is None for row in rows)
    return {
        number: [row["end_offset"] for row in rows if row["partition"] == number]
        for number in {row["partition"] for row in rows}
    }


def test_messages_of_three_hours_are_counted_minute_by_minute(bootstrap: str, log: MakeLog, tmp_path: Path) -> None:
    """5 messages in each minute of one partition, 2 in each tenth minute of the other, silence in between."""
    busy, rare = dict.fromkeys(range(5, 181), 5), dict.fromkeys(range(10, 181, 10), 2)
    group = log({0: busy, 1: rare})
    offsets = past(bootstrap, group, tmp_path / "samples")
    assert offsets[0][:4] == [5, 10, 15, 20]
    assert offsets[0][-1] == sum(busy.values())
    assert offsets[1][:21] == [2] * 10 + [4] * 10 + [6]
    assert 175 <= len(offsets[0]) <= 181


def test_a_second_run_requests_no_rows_that_exist(bootstrap: str, log: MakeLog, tmp_path: Path) -> None:
    """The rows after it are the same as before."""
    group = log({0: dict.fromkeys(range(1, 31), 1)})
    first = past(bootstrap, group, tmp_path / "samples")
    assert past(bootstrap, group, tmp_path / "samples") == first


def test_history_begins_after_deleted_messages(bootstrap: str, log: MakeLog, tmp_path: Path) -> None:
    """Of an hour the first half is truncated: history begins with the first remaining message."""
    group = log({0: dict.fromkeys(range(1, 61), 3)})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    cut = TopicPartition(group, 0, 90)
    admin.delete_records([cut])[cut].result()
    offsets = past(bootstrap, group, tmp_path / "samples")[0]
    assert offsets[:3] == [93, 96, 99]


def test_a_compacted_topic_has_no_past(
    bootstrap: str, log: MakeLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command prints one line and writes nothing."""
    group = log({0: {5: 3, 4: 3}}, **{"cleanup.policy": "compact"})
    assert past(bootstrap, group, tmp_path / "samples") == {}
    assert f"topic {group} is compacted" in capsys.readouterr().err


def test_time_stamps_of_a_clock_that_is_ahead_are_reported(
    bootstrap: str, log: MakeLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five minutes ahead: one line has the next step, and the past is written all the same."""
    group = log({0: {**dict.fromkeys(range(1, 31), 1), -5: 1}})
    offsets = past(bootstrap, group, tmp_path / "samples")
    assert offsets[0][:3] == [1, 2, 3]
    stderr = capsys.readouterr().err
    (line,) = [line for line in stderr.splitlines() if "are stamped" in line]
    match = re.fullmatch(r" +messages of topic (\S+) are stamped (\d+) s after now: set .* by NTP; .*", line)
    assert match is not None
    assert match[1] == group
    assert 240 <= int(match[2]) <= 330
