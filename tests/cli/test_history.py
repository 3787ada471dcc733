"""`lagcast history --prometheus`: the samples and messages that it writes, and its errors of one sentence."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import dataset as ds  # type: ignore[import-untyped]  # ships no types

from tests.collector.memory_prometheus import MemoryPrometheus, exposition, offsets_text, serving

Lagcast = Callable[..., tuple[int, str, str]]


@pytest.fixture
def memory() -> Iterator[MemoryPrometheus]:
    """Half an hour of scrapes up to now of a group of two partitions."""
    with serving(MemoryPrometheus()) as server:
        now = int(datetime.now(UTC).timestamp())  # noqa: TID251  # the command looks back from the clock
        for ago in range(1800, -1, -15):
            server.scrape(offsets_text([9000 - ago, 70], [8000 - ago, 70], members=2), at=now - ago)
        yield server


def test_the_past_is_written_and_a_second_run_adds_the_tail_alone(
    lagcast: Lagcast, memory: MemoryPrometheus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run writes 30 or 31 minutes of two partitions with lag and members, a second run the newest minute at most."""
    now = datetime.now(UTC)  # noqa: TID251  # as the scrapes end
    # Both runs in one minute: where another begins between them, the second makes three requests more for it.
    monkeypatch.setattr("cli.history.read_clock", lambda: now)
    out = tmp_path / "samples"
    code, printed, err = lagcast("history", "--prometheus", memory.url, "--out", out, "--cluster", "prod")
    assert (code, printed) == (0, "")
    assert "kafka_exporter: 1 groups, newest sample" in err
    stored = ds.dataset(out, partitioning=None).to_table().to_pylist()
    assert 60 <= len(stored) <= 62
    assert {row["end_offset"] - row["committed_offset"] for row in stored} == {0, 1000}
    assert {(row["cluster"], row["group"], row["members"]) for row in stored} == {("prod", "orders", 2)}
    requests = len(memory.requests)
    assert f"1 groups, {requests} requests, {len(stored)} rows" in err
    assert lagcast("history", "--prometheus", memory.url, "--out", out, "--cluster", "prod")[0] == 0
    assert len(ds.dataset(out, partitioning=None).to_table()) <= len(stored) + 2
    assert len(memory.requests) <= 2 * requests


def test_the_estimate_requests_no_past_and_writes_nothing(
    lagcast: Lagcast, memory: MemoryPrometheus, tmp_path: Path
) -> None:
    """The estimate has the counts of queries and points, from one request for the hourly count of scrapes."""
    code, _, err = lagcast("history", "--prometheus", memory.url, "--out", tmp_path / "samples", "--estimate")
    assert code == 0
    assert "3 queries of 2,880 points at most, 2,880 rows at most" in err
    assert [path for path, _ in memory.requests if path.endswith("query_range")] == ["/api/v1/query_range"]
    assert not (tmp_path / "samples").exists()


@pytest.mark.parametrize(
    ("refusal", "arguments", "code", "message"),
    [
        (
            (401, "{}"),
            (),
            4,
            "put bearer.token, or basic.username and basic.password, into the file of --client-config",
        ),
        ((200, json.dumps({"data": ["up"]})), (), 4, "no known exporter among the 1 metric names: none of kafka_topic"),
        (None, ("--group", "odrers"), 4, "has no group 'odrers' in that time, but has orders; check its name"),
        (
            (422, json.dumps({"error": "query processing would load too many samples"})),
            (),
            4,
            "request less: name groups with --group, or give fewer --days",
        ),
        (
            None,
            ("--bootstrap", "127.0.0.1:1"),
            2,
            "give --bootstrap HOST:PORT for Kafka, or --prometheus URL, not both",
        ),
    ],
)
def test_each_failure_is_one_sentence(
    *,
    refusal: tuple[int, str] | None,
    arguments: tuple[str, ...],
    code: int,
    message: str,
    lagcast: Lagcast,
    memory: MemoryPrometheus,
    tmp_path: Path,
) -> None:
    """The command exits with a code, the error and the next step, and writes nothing."""
    memory.refusals = [refusal] if refusal is not None else []
    out = tmp_path / "samples"
    given, _, err = lagcast("history", "--prometheus", memory.url, "--out", out, *arguments)
    assert given == code
    assert message in err.splitlines()[-1]
    assert not out.exists()


def test_no_source_and_a_source_that_is_not_there(lagcast: Lagcast, tmp_path: Path) -> None:
    """Without a source the error names the options, and a wrong address is an error at once."""
    code, _, err = lagcast("history", "--out", tmp_path)
    assert (code, "history needs one source" in err) == (2, True)
    code, _, err = lagcast("history", "--prometheus", "http://127.0.0.1:1", "--out", tmp_path)
    assert code == 4
    assert err.endswith("check the address, and that the server runs\n")


def test_a_token_from_the_environment_is_sent_and_not_shown(
    lagcast: Lagcast, memory: MemoryPrometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `bearer.token=${env:WORD}` the server gets the token, and an error that repeats it shows stars."""
    monkeypatch.setenv("WORD", "open-sesame")
    config = tmp_path / "prometheus.properties"
    config.write_text("bearer.token=${env:WORD}\n", encoding="utf-8")
    memory.refusals = [(403, json.dumps({"error": "open-sesame may not"}))]
    arguments = ("history", "--prometheus", memory.url, "--out", tmp_path, "--client-config", config)
    code, _, err = lagcast(*arguments)
    assert (code, "open-sesame" in err, "*** may not" in err) == (4, False, True)
    assert memory.headers[-1]["Authorization"] == "Bearer open-sesame"


def test_the_assumed_group_of_client_metrics_is_printed(lagcast: Lagcast, tmp_path: Path) -> None:
    """For the JMX exporter the command prints the topics whose consumers count as the named group."""
    with serving(MemoryPrometheus()) as memory:
        now = int(datetime.now(UTC).timestamp())  # noqa: TID251  # the command looks back from the clock
        for ago in range(300, -1, -15):
            memory.scrape(exposition("jmx"), at=now - ago)
        arguments = ("history", "--prometheus", memory.url, "--out", tmp_path, "--group", "orders")
        code, _, err = lagcast(*arguments)
    assert code == 0
    assert "clients do not name their group: a group that reads orders-in may be it" in err
