"""A real Prometheus that scrapes real exporters of a real broker: its past and its present, compared with Kafka's."""

import bisect
import math
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from pyarrow import dataset as ds  # type: ignore[import-untyped]  # ships no types

from cli.main import main
from collector.errors import RejectedError, UnavailableError
from collector.kafka_admin import KafkaAdminCollector
from collector.prometheus_dialects import DIALECTS, detect
from collector.prometheus_found import Discovered
from collector.prometheus_http import PrometheusRequests, RangeQuery
from collector.prometheus_live import PrometheusCollector
from collector.prometheus_past import past_tables, plan_past
from collector.prometheus_queries import at_once
from collector.sample import OffsetSample
from collector.sinks import write_samples
from tests.collector.memory_prometheus import exposition
from tests.live.harness.broker import compiled, free_ports, running_brokers, running_java
from tests.live.harness.clients import create_topic, produce
from tests.live.harness.clients import wait_until as until
from tests.live.harness.exporters import KlagExporter, jmx_option, running_prometheus, wait_until

pytestmark = pytest.mark.kafka

Program = Callable[[str], Path]

MINUTE = timedelta(minutes=1)
# Messages into each of the partitions every half second; nothing into the last one.
MESSAGES = (4, 2, 0)
# How much older than its minute a value may be: a second between two reads of the exporter, one between two scrapes,
# and three times that on a machine that is busy.
OLDEST = timedelta(seconds=6)
# The bcrypt hash of "test", as Prometheus keeps passwords; the example of its guide to basic authentication.
PASSWORD_AS_STORED = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"  # noqa: S105  # of a minute's server
GROUP, SLOW_GROUP, TOPIC = "orders", "slow-orders", "orders.in"


@dataclass(slots=True)
class Ledger:
    """The produced and committed messages, partition by partition: instants, and the offset from then on."""

    produced: dict[int, list[tuple[datetime, int]]]
    committed: dict[int, list[tuple[datetime, int]]]

    @staticmethod
    def between(line: list[tuple[datetime, int]], first: datetime, last: datetime) -> tuple[int, int]:
        """The lowest and the highest offset that a look between two instants may have seen.

        An entry is made after its event: the highest is the one of the next entry.
        """
        low = bisect.bisect_right(line, first, key=lambda entry: entry[0]) - 1
        high = min(bisect.bisect_right(line, last, key=lambda entry: entry[0]), len(line) - 1)
        return (line[low][1] if low >= 0 else 0), line[high][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """State after the traffic: two servers, the produced and committed messages, and the minutes that were whole."""

    bootstrap: str
    exporter: KlagExporter
    klag: str
    jmx: str
    ledger: Ledger
    slow_commits: dict[datetime, int]
    minutes: tuple[datetime, ...]
    without_klag: datetime


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # exporters and brokers live by the clock


def traffic(bootstrap: str, ledger: Ledger, stop: threading.Event) -> None:
    """Produce twice a second and read everything, committing it, until it is stopped."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    sums = [0] * len(MESSAGES)
    read: dict[int, int] = {}
    while not stop.wait(0.5):
        for number, count in enumerate(MESSAGES):
            for _ in range(count):
                producer.produce(TOPIC, b"m", partition=number)
            sums[number] += count
        assert producer.flush(20) == 0
        for number, total in enumerate(sums):
            ledger.produced[number].append((now(), total))
        while (message := consumer.poll(0.0)) is not None:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            read[partition] = offset + 1
        if read:
            consumer.commit(offsets=[TopicPartition(TOPIC, *entry) for entry in read.items()], asynchronous=False)
            for number, committed in read.items():
                ledger.committed[number].append((now(), committed))
    consumer.close()


def wait_until_scraped(url: str, folder: Path) -> None:
    """A server looks for its targets for 5 s before it scrapes the first one."""
    wait_until(f"{url}/api/v1/label/__name__/values", holds='"up"', log=folder / "prometheus.log")


def sleep_until(instant: datetime) -> None:
    time.sleep(max(0.0, (instant - now()).total_seconds()))


@pytest.fixture(scope="module")
def scene(jars: Path, program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Three minutes of traffic; klag-exporter is down at the second of them."""
    folder = tmp_path_factory.mktemp("prometheus")
    klag_port, broker_port, client_port = free_ports(3)
    options = {
        name: [jmx_option(program("jmx-agent"), folder, of=name, port=port)]
        for name, port in (("broker", broker_port), ("client", client_port))
    }
    ledger = Ledger({number: [] for number in range(3)}, {number: [] for number in range(3)})
    stop = threading.Event()
    with ExitStack() as running:
        brokers = running.enter_context(running_brokers(jars, folder / "kafka", java_options=options["broker"]))
        bootstrap = brokers[0].address
        create_topic(bootstrap, TOPIC, partitions=len(MESSAGES))
        thread = threading.Thread(target=traffic, args=(bootstrap, ledger, stop))
        thread.start()
        running.callback(thread.join)
        running.callback(stop.set)
        classes = folder / "classes"
        classes.mkdir()
        compiled(jars, classes)
        words = ("SlowMember", bootstrap, SLOW_GROUP, TOPIC)
        running.enter_context(running_java(jars, classes, *words, java_options=options["client"]))
        klag = KlagExporter(program("klag-exporter"), folder, bootstrap=bootstrap, cluster="live", port=klag_port)
        running.callback(klag.stop)
        klag.start()
        prometheus = program("prometheus")
        jvms = {"brokers": [broker_port], "clients": [client_port]}
        jobs = {"klag": [klag_port], **jvms}
        ours = running.enter_context(running_prometheus(prometheus, folder / "first", jobs=jobs))
        theirs = running.enter_context(running_prometheus(prometheus, folder / "second", jobs=jvms))
        wait_until_scraped(ours, folder / "first")
        wait_until_scraped(theirs, folder / "second")
        # A minute counts if everything had been scraped for 10 s before it.
        begin = now() + timedelta(seconds=10)
        whole = begin.replace(second=0, microsecond=0) + MINUTE
        minutes = (whole, whole + MINUTE, whole + 2 * MINUTE)
        slow_commits = {}
        for at in minutes:
            sleep_until(at - timedelta(seconds=20))
            if at == minutes[1]:
                klag.stop()
            sleep_until(at)
            collected = KafkaAdminCollector(bootstrap, cluster="live").collect([SLOW_GROUP], now=at)
            slow_commits[at] = sum(sample.committed_offset or 0 for sample in collected.samples)
            if at == minutes[1]:
                klag.start()
        sleep_until(minutes[2] + timedelta(seconds=3))
        stop.set()
        yield Scene(
            bootstrap=bootstrap,
            exporter=klag,
            klag=ours,
            jmx=theirs,
            ledger=ledger,
            slow_commits=slow_commits,
            minutes=minutes,
            without_klag=minutes[1],
        )


Rows = dict[tuple[datetime, int], dict[str, Any]]
ReadBack = Callable[..., Rows]


@pytest.fixture
def read_back(tmp_path: Path) -> ReadBack:
    """`read_back(url, group)`: the rows of `lagcast history --prometheus` for the group, by instant and partition."""

    def read(url: str, group: str) -> Rows:
        words = ["history", "--prometheus", url, "--out", str(tmp_path), "--group", group, "--cluster", "live"]
        assert main([*words, "--days", "1"]) == 0
        stored = ds.dataset(tmp_path, partitioning=None).to_table().to_pylist()
        return {(row["sampled_at"], row["partition"]): row for row in stored if row["group"] == group}

    return read


def assert_ends(scene: Scene, rows: Rows, minutes: tuple[datetime, ...]) -> None:
    for at in minutes:
        for partition in range(len(MESSAGES)):
            low, high = scene.ledger.between(scene.ledger.produced[partition], at - OLDEST, at)
            assert low <= rows[at, partition]["end_offset"] <= high, (at, partition)


def test_rows_from_klag_exporter_equal_what_was_produced_and_committed(scene: Scene, read_back: ReadBack) -> None:
    """Ends and commits of each minute are those of a few seconds before, of one member of a stable group."""
    rows = read_back(scene.klag, GROUP)
    whole = tuple(at for at in scene.minutes if at != scene.without_klag)
    assert_ends(scene, rows, whole)
    for at in whole:
        for partition in (0, 1):
            low, high = scene.ledger.between(scene.ledger.committed[partition], at - OLDEST, at)
            assert low <= rows[at, partition]["committed_offset"] <= high, (at, partition)
        assert {row["log_start_offset"] for row in rows.values()} == {0}
        assert {(rows[at, number]["group_state"], rows[at, number]["members"]) for number in (0, 1)} == {("STABLE", 1)}


def test_the_past_of_kafka_itself_has_the_commits_of_its_own_topic(scene: Scene, tmp_path: Path) -> None:
    """`lagcast history` from the broker: the commits and the member of each whole minute, without any exporter."""
    words = ["history", "--bootstrap", scene.bootstrap, "--out", str(tmp_path), "--group", GROUP, "--cluster", "live"]
    assert main([*words, "--days", "1"]) == 0
    stored = ds.dataset(tmp_path, partitioning=None).to_table().to_pylist()
    rows = {(row["sampled_at"], row["partition"]): row for row in stored}
    assert_ends(scene, rows, scene.minutes)
    for at in scene.minutes:
        for partition in (0, 1):
            low, high = scene.ledger.between(scene.ledger.committed[partition], at - timedelta(seconds=1), at)
            assert low <= rows[at, partition]["committed_offset"] <= high, (at, partition)
    assert {rows[at, 0]["members"] for at in scene.minutes} == {1}
    # The member joined in the first minute or before it, and nothing was dealt anew since.
    assert {rows[at, 0]["group_state"] for at in scene.minutes[1:]} == {"STABLE"}


def test_the_minute_in_which_the_exporter_was_away_is_missing(scene: Scene, read_back: ReadBack) -> None:
    """No row is written 20 s after its end, although a plain query would still give its last value."""
    assert scene.without_klag not in {at for at, _ in read_back(scene.klag, GROUP)}


def test_rows_from_the_jmx_exporter_are_the_same(scene: Scene, read_back: ReadBack) -> None:
    """Log ends of the broker and the lag of one client, by the JMX exporter: a group that falls behind.

    The client counts its lag when it fetches: the commit that follows from it is right to within the messages of the
    seconds between fetch, look and scrape.
    """
    rows = read_back(scene.jmx, SLOW_GROUP)
    assert_ends(scene, rows, scene.minutes)
    slack = 2 * sum(MESSAGES) * OLDEST.total_seconds()
    for at in scene.minutes:
        committed = sum(rows[at, partition]["committed_offset"] for partition in (0, 1))
        assert abs(committed - scene.slow_commits[at]) <= slack, at
        assert sum(rows[at, partition]["end_offset"] for partition in (0, 1)) - committed > slack
    assert {rows[at, 0]["members"] for at in scene.minutes} == {1}


def test_the_time_in_which_a_java_consumer_works_shows_what_it_can_do(scene: Scene, read_back: ReadBack) -> None:
    """A message every 250 ms and its commit: four a second at most, whatever share of the time it waits for them.

    The exporter of offsets tells the members, and clients of another library tell nothing of their time.
    """
    rows = read_back(scene.klag, SLOW_GROUP)
    last = scene.minutes[2]
    busy = rows[last, 0]["busy_ratio"]
    assert 0.5 <= busy <= 1.0
    rate = (scene.slow_commits[last] - scene.slow_commits[scene.minutes[0]]) / 120.0
    assert 3.0 <= rate / busy <= 4.2
    assert {row["busy_ratio"] for row in read_back(scene.klag, GROUP).values()} == {None}


def test_the_estimate_of_a_real_server(scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The estimate names the exporter, the age of its newest sample, and the requests that would be made.

    Another test may just have started the exporter again: then the server has yet to scrape it.
    """
    words = ["history", "--prometheus", scene.klag, "--out", str(tmp_path / "none"), "--group", GROUP, "--days", "14"]

    estimates: list[str] = []

    def is_scraped() -> bool:
        assert main([*words, "--estimate"]) == 0
        estimates.append(capsys.readouterr().err)
        return "kafka-lag-exporter: 1 groups, newest sample" in estimates[-1]

    until(is_scraped)
    stderr = estimates[-1]
    assert "7 queries of 4,320 points at most, 4,320 rows at most" in stderr
    assert not (tmp_path / "none").exists()


@pytest.fixture(scope="module")
def alone(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that scrapes nothing but itself."""
    folder = tmp_path_factory.mktemp("alone") / "server"
    with running_prometheus(program("prometheus"), folder, jobs={}) as url:
        wait_until_scraped(url, folder)
        yield url


@pytest.mark.parametrize("dialect", [dialect.name for dialect in DIALECTS])
def test_every_query_is_valid(alone: str, dialect: str) -> None:
    """The queries of each dialect are PromQL: a real server answers them, with empty results as it scraped nothing."""
    names = {family.name for family in text_string_to_metric_families(exposition(dialect))}
    names |= {
        "kafka_consumer_poll_idle_ratio_avg",
        "kafka_consumer_bytes_consumed",
        "kafka_streams_active_restoring_tasks",
    }
    end = round(now().timestamp()) // 60 * 60
    discovered = Discovered(
        spoken=detect(names),
        where={"cluster": "prod"},
        topics={'a "group" of\\many.words': frozenset({"orders.in"}), "b": frozenset({"orders.in", "c"})},
        partitions={"orders.in": 1, "c": 1},
        since_seconds=end - 3600,
        now_seconds=end,
        every_hour={end: 15.0},
        newest_age_seconds=None,
    )
    with PrometheusRequests(alone, settings={}) as prometheus:
        tables = list(past_tables(prometheus, plan_past(discovered, known={}), cluster="prod"))
        assert prometheus.requests >= 2
        assert prometheus.instant(at_once(discovered), at=now()) == ()
    assert [table.num_rows for table in tables] == [0]


def test_the_error_for_a_server_without_an_exporter_names_the_metrics(
    alone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has the names of the end offsets of every dialect, and the next step."""
    assert main(["history", "--prometheus", alone, "--out", str(tmp_path / "samples")]) == 4
    stderr = capsys.readouterr().err.splitlines()[-1]
    assert "no known exporter among the" in stderr
    assert "kafka_topic_partition_current_offset (kafka_exporter)" in stderr


def test_the_error_for_a_low_sample_limit_names_a_smaller_query(program: Program, tmp_path: Path) -> None:
    """A limit of 10 samples a query: the error has the server's message, and the next step."""
    options = ["--query.max-samples=10"]
    with (
        running_prometheus(program("prometheus"), tmp_path / "small", jobs={}, options=options) as url,
        PrometheusRequests(url, settings={}) as prometheus,
    ):
        wait_until_scraped(url, tmp_path / "small")
        # From a second that is not over yet, so that the first scrape is before it: five series at least, ten times.
        first = math.ceil(now().timestamp())
        query = RangeQuery(expression="{job='self'}", first_seconds=first, last_seconds=first + 9, step_seconds=1)
        with pytest.raises(RejectedError, match=r"too many samples.*; request less: name groups with --group"):
            prometheus.ranges([query])


def test_passwords_and_certificates_of_a_real_server(program: Program, tmp_path: Path) -> None:
    """The right authority, user and password are accepted; the error for a missing one names it."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca"
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on the PATH: it makes the certificate of this test")
    words = [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "ca.pem"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    web = tmp_path / "web.yml"
    files = f"cert_file: {tmp_path / 'ca.pem'}\n  key_file: {tmp_path / 'key.pem'}"
    web.write_text(f"tls_server_config:\n  {files}\nbasic_auth_users:\n  admin: {PASSWORD_AS_STORED}\n")
    secured = {"ssl.ca.location": str(tmp_path / "ca.pem"), "basic.username": "admin", "basic.password": "test"}

    def names(**changed: str) -> frozenset[str]:
        settings = {key: value for key, value in (secured | changed).items() if value}
        with PrometheusRequests(url.replace("http:", "https:"), settings=settings) as prometheus:
            return prometheus.metric_names(first_seconds=0, last_seconds=round(now().timestamp()))

    options = [f"--web.config.file={web}"]
    with running_prometheus(program("prometheus"), tmp_path / "secured", jobs={}, options=options) as url:
        assert isinstance(names(), frozenset)
        with pytest.raises(RejectedError, match=r"401 Unauthorized; put bearer\.token, or basic\.username"):
            names(**{"basic.password": "wrong"})
        with pytest.raises(UnavailableError, match=r"set ssl\.ca\.location in the file of --client-config to the CA"):
            names(**{"ssl.ca.location": ""})


MINUTES_BEFORE = 40
# A scrape each second, and a round each 15 s.
OLDEST_DATA_SECONDS = 16.0
# Spark's JVM begins, and the first row of the group comes in.
FIRST_ANSWER_SECONDS = 300.0


def kafka_itself(scene: Scene) -> tuple[OffsetSample, ...]:
    """The group's samples as the broker gives them now."""
    return KafkaAdminCollector(scene.bootstrap, cluster="live").collect([GROUP], now=now()).samples


def rate_between(first: Sequence[OffsetSample], last: Sequence[OffsetSample]) -> float:
    """Produced messages per second between two readings."""
    seconds = (last[0].sampled_at - first[0].sampled_at).total_seconds()
    return sum(b.end_offset - a.end_offset for a, b in zip(first, last, strict=True)) / seconds


@contextmanager
def producing(scene: Scene) -> Iterator[None]:
    """Traffic of the group as in the scene, after as many messages as its past of 40 minutes would have brought."""
    produce(scene.bootstrap, TOPIC, {number: 120 * MINUTES_BEFORE * rate for number, rate in enumerate(MESSAGES)})
    stop = threading.Event()
    ledger = Ledger({number: [] for number in range(3)}, {number: [] for number in range(3)})
    thread = threading.Thread(target=traffic, args=(scene.bootstrap, ledger, stop))
    thread.start()
    try:
        until(
            lambda: sum(row.end_offset - (row.committed_offset or row.end_offset) for row in kafka_itself(scene)) < 100
        )
        yield
    finally:
        stop.set()
        thread.join()


class Answers:
    """What `lagcast up --prometheus` answers over REST, beside a state folder with the group's last 40 minutes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        self.lines.extend(iter(self._process.stderr.readline, ""))

    def decision(self, group: str) -> dict[str, Any] | None:
        """The last decision for the group, None before the first one."""
        assert self._process.poll() is None, "".join(self.lines)[-3000:]
        found = re.search(r"serves (http://\S+);", "".join(self.lines))
        if found is None:
            return None
        page = httpx2.get(f"{found[1]}/api/v1/groups", timeout=30).json()["groups"]
        key = next((row["group_key"] for row in page if row["group_id"] == group), None)
        if key is None:
            return None
        answer: dict[str, Any] = httpx2.get(f"{found[1]}/api/v1/groups/{key}/recommendation", timeout=30).json()
        return answer


@contextmanager
def up(scene: Scene, folder: Path) -> Iterator[Answers]:
    config = folder / "lagcast.yaml"
    config.write_text('groups: {"*": {capacity_messages_per_second_per_replica: 30}}\n')
    newest = kafka_itself(scene)
    for ago in range(MINUTES_BEFORE, 0, -1):
        past = [
            replace(
                row,
                sampled_at=(row.sampled_at - ago * MINUTE).replace(second=0, microsecond=0),
                end_offset=row.end_offset - 120 * ago * MESSAGES[row.partition],
                # Nothing was ever committed of a partition without messages: a commit that was lost would be unknown.
                committed_offset=None
                if row.committed_offset is None
                else row.end_offset - 120 * ago * MESSAGES[row.partition],
            )
            for row in newest
        ]
        write_samples(past, folder / "state" / "up" / "live" / "samples")
    words = [
        "up",
        "--prometheus",
        scene.klag,
        "--cluster",
        "live",
        "--group",
        GROUP,
        "--group",
        "absent",
        "--port",
        "0",
    ]
    command = [sys.executable, "-m", "cli.main", *words, "--config", str(config), "--state-dir", str(folder / "state")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            yield Answers(process)
        finally:
            process.terminate()
            process.wait(timeout=60)


def test_live_samples_are_those_that_kafka_gives(scene: Scene) -> None:
    """Rounds over the real server have each scrape's offsets between Kafka's own before and after it."""
    rounds = []
    with producing(scene), PrometheusCollector(scene.klag, cluster="live", settings={}) as collector:
        for _ in range(3):
            before = kafka_itself(scene)
            sleep_until(now() + OLDEST)
            samples = collector.collect([GROUP], now=now()).samples
            rounds.append((before, samples, kafka_itself(scene)))
            time.sleep(10)
    assert sum(bool(samples) for _, samples, _ in rounds) >= 2
    for before, samples, after in rounds:
        newest = samples[-len(MESSAGES) :]
        for earlier, row, later in zip(before, newest, after, strict=bool(samples)):
            assert earlier.end_offset <= row.end_offset <= later.end_offset
            assert (row.group_state, row.members) == ("STABLE", 1)
            assert timedelta(0) <= later.sampled_at - row.sampled_at <= 2 * OLDEST


@pytest.mark.spark
def test_up_on_prometheus_alone_advises_and_refuses_once_the_exporter_is_away(scene: Scene, tmp_path: Path) -> None:
    """Without access to Kafka the group has advice, at the produce rate that Kafka itself shows, on fresh data.

    When the exporter stops, the group is refused as unreachable: its rate is not taken to be zero.
    """
    with producing(scene), up(scene, tmp_path) as answers:

        def fresh() -> dict[str, Any] | None:
            found = answers.decision(GROUP)
            is_fresh = found is not None and found["kind"] == "Recommendation"
            return found if is_fresh and found["data"]["age_seconds"] <= OLDEST_DATA_SECONDS else None  # type: ignore[index]

        until(fresh, seconds=FIRST_ANSWER_SECONDS)
        first = kafka_itself(scene)
        begun = now()
        # Two rows of 15 s that began after this, and were read.
        until(lambda: (seen := fresh()) and seen["data"]["as_of"] >= (begun + timedelta(seconds=45)).isoformat())
        seen, shown = fresh(), rate_between(first, kafka_itself(scene))
        assert seen is not None
        assert seen["observed"]["produce_messages_per_second"] == pytest.approx(shown, rel=0.15)
        absent = answers.decision("absent")
        assert absent is not None
        assert (absent["kind"], absent["reason"]["code"]) == ("Refusal", "SourceUnreachable")
        assert "Kafka is not reached: nothing is published there" in "".join(answers.lines)
        scene.exporter.stop()
        try:
            until(lambda: (answers.decision(GROUP) or seen)["kind"] == "Refusal")
            refused = answers.decision(GROUP)
        finally:
            scene.exporter.start()
        assert refused is not None
        assert refused["reason"]["code"] == "SourceUnreachable"
        assert f"no whole scrape of group '{GROUP}' since" in " ".join(refused["reason"]["sentences"])
    stored = ds.dataset(tmp_path / "state" / "up" / "live" / "samples", partitioning=None).to_table().to_pylist()
    # Minutes from before the messages of the past were produced are there too, with lower offsets.
    ends = {row["sampled_at"]: row["end_offset"] for row in stored if (row["group"], row["partition"]) == (GROUP, 0)}
    busiest = sorted((at, end) for at, end in ends.items() if at >= begun)
    # 45 s have three rounds of 15 s.
    assert len(busiest) >= 3
    assert [(earlier, later) for earlier, later in pairwise(busiest) if later[1] <= earlier[1]] == []
