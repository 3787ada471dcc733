"""`lagcast up` beside a real broker: one command, from nothing to published advice, stopped and started again."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from confluent_kafka import Consumer, Producer

from tests.live.harness.clients import create_topic, fresh_name, member, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

MINUTES_OF_HISTORY = 180
PARTITIONS = 3
# From the start of the command to the first answer for each group; Spark's JVM is most of it.
FIRST_ANSWER_SECONDS = 300.0


@pytest.fixture
def orders(bootstrap: str) -> Iterator[str]:
    """A topic with three hours of messages behind it and some each second from now on, and a group that reads it."""
    name = fresh_name("orders")
    create_topic(bootstrap, name, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": bootstrap})
    now = datetime.now(UTC)  # noqa: TID251  # brokers keep messages by the clock
    for ago in range(MINUTES_OF_HISTORY, 0, -1):
        stamp = round((now - timedelta(minutes=ago)).timestamp() * 1000)
        for number in range(60):
            producer.produce(name, b"m", partition=number % PARTITIONS, timestamp=stamp + 1000 * number)
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "latest"})
    consumer.subscribe([name])
    stopping = threading.Event()

    def live() -> None:
        while not stopping.wait(0.2):
            for partition in range(PARTITIONS):
                producer.produce(name, b"m", partition=partition)
            while consumer.poll(0.0) is not None:
                pass
        producer.flush(5)
        consumer.close()

    thread = threading.Thread(target=live)
    thread.start()
    yield name
    stopping.set()
    thread.join()


class Running:
    """The command in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def printed(self, pattern: str) -> str | None:
        """The first group of `pattern` in what was printed on stderr."""
        found = re.search(pattern, "".join(self.lines))
        return found[1] if found else None

    def decisions(self, groups: set[str]) -> dict[str, dict[str, object]]:
        """The last answer for each of these groups, as soon as REST has one that was given by this process."""
        began, until = datetime.now(UTC), time.monotonic() + FIRST_ANSWER_SECONDS  # noqa: TID251  # against the clock
        while time.monotonic() < until and self.process.poll() is None:
            url = self.printed(r"serves (http://\S+);")
            if url is not None:
                page = httpx2.get(f"{url}/api/v1/groups", timeout=30).json()["groups"]
                fresh = {row["group_id"]: row for row in page if datetime.fromisoformat(row["issued_at"]) >= began}
                if groups <= fresh.keys():
                    return fresh
            time.sleep(0.5)
        pytest.fail(f"no answer for {groups} within {FIRST_ANSWER_SECONDS:.0f} s: {''.join(self.lines)[-3000:]}")

    def stop(self, number: signal.Signals) -> int:
        """Its exit code after this signal."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        self._reader.join(timeout=5)
        return code


def seen_on(url: str, words: str) -> bool:
    """True if the page shows the words within a minute."""
    until = time.monotonic() + 60
    while words not in httpx2.get(url, timeout=30).text:
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


@contextmanager
def up(bootstrap: str, folder: Path, group: str, prefix: str) -> Iterator[Running]:
    """`lagcast up` for this group and an unknown one."""
    config = folder / "lagcast.yaml"
    config.write_text('groups: {"*": {capacity_messages_per_second_per_replica: 30}}\n')
    words = ["up", "--bootstrap", bootstrap, "--group", group, "--group", "absent", "--port", "0", "--publish", prefix]
    command = [sys.executable, "-m", "cli.main", *words, "--config", str(config), "--state-dir", str(folder / "state")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            yield Running(process)
        finally:
            process.kill()
            process.wait()


def test_one_command_goes_from_nothing_to_published_advice_and_on_after_a_restart(
    bootstrap: str, orders: str, tmp_path: Path
) -> None:
    """One command answers for both groups: advice for one, a refusal for the one that Kafka does not know.

    A member that joins meanwhile is a rebalance on the metrics page. Advice says what Kafka told of the group.
    """
    prefix = fresh_name("advice")
    with up(bootstrap, tmp_path, orders, prefix) as first:
        answers = first.decisions({orders, "absent"})
        url = first.printed(r"serves (http://\S+);")
        assert answers[orders]["kind"] == "Recommendation"
        assert (answers["absent"]["kind"], answers["absent"]["reason_code"]) == ("Refusal", "SourceUnreachable")
        assert f'lagcast_desired_replicas{{cluster="default",group="{orders}"}}' in httpx2.get(f"{url}/metrics").text
        counted = f'lagcast_interruptions_total{{cluster="default",group="{orders}",kind="rebalance"}}'

        def seen_after_a_join() -> bool:
            with member(bootstrap, orders, orders):
                return seen_on(f"{url}/metrics", counted)

        # The first may have joined before the first look.
        assert any(seen_after_a_join() for _ in range(3))
        assert first.stop(signal.SIGINT) == 0
        assert (
            int((first.printed(r"history +1 groups, ([\d,]+) minutes") or "0").replace(",", ""))
            >= MINUTES_OF_HISTORY - 2
        )
    kept = sorted(path for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert not [path for path in kept if path.suffix == ".parquet" and path.name.startswith((".", "_"))]

    with up(bootstrap, tmp_path, orders, prefix) as second:
        answers = second.decisions({orders, "absent"})
        assert answers[orders]["kind"] == "Recommendation"
        assert second.printed(r"history +(0) groups")
        assert second.stop(signal.SIGTERM) == 0

    history, latest = (read_topic(bootstrap, topic) for topic in (prefix, f"{prefix}.latest"))
    assert [message.value() for message in history] == [message.value() for message in latest]
    bodies = [json.loads(message.value() or b"") for message in history]
    advice = [body for body in bodies if body["kind"] == "Recommendation"]
    assert {body["group_id"] for body in advice} == {orders}
    assert len({body["recommendation_id"] for body in bodies}) == len(bodies)
    # The second process goes on where the first one stopped: each advice names the one before it.
    assert [body["supersedes"] for body in advice[1:]] == [body["recommendation_id"] for body in advice[:-1]]
    detected = {figure["name"]: figure["value"] for figure in advice[-1]["profile"] if figure["source"] == "detected"}
    assert detected == {"protocol": "eager", "assignor": "range", "static_membership": False, "client": "librdkafka"}
    assert {message.key() for message in history} == {f"default/{orders}".encode(), b"default/absent"}
