"""`lagcast serve` beside a real broker: its decisions are on REST and on both topics."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from tests.live.harness.clients import fresh_name, read_topic

pytestmark = pytest.mark.kafka


def test_its_decisions_are_published_as_those_of_up_are(bootstrap: str, feature_table: Path, tmp_path: Path) -> None:
    """A refusal for each of two stale groups is the same on REST, on the history and on the compacted topic."""
    prefix = fresh_name("advice")
    words = ["serve", "--features", str(feature_table), "--port", "0", "--bootstrap", bootstrap, "--publish", prefix]
    environment = {**os.environ, "LAGCAST_STATE_DIR": str(tmp_path / "state")}
    command = [sys.executable, "-m", "cli.main", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            address = re.search(r"http://\S+", process.stderr.readline())
            assert address is not None
            assert process.stderr.readline() == f"    decisions are published on {prefix} and {prefix}.latest\n"
            groups: list[dict[str, str]] = []
            until = time.monotonic() + 60
            while len(groups) < 2 and time.monotonic() < until:
                time.sleep(0.2)
                groups = httpx2.get(f"{address[0]}/api/v1/groups", timeout=30).json()["groups"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
    for topic in (prefix, f"{prefix}.latest"):
        bodies = [json.loads(message.value() or b"") for message in read_topic(bootstrap, topic)]
        assert {body["group_id"]: body["recommendation_id"] for body in bodies} == {
            row["group_id"]: row["recommendation_id"] for row in groups
        }
        assert {body["kind"] for body in bodies} == {"Refusal"}
