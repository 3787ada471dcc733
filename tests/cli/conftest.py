"""What the tests of commands share: a command run as the shell would, and a feature table without a JVM."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest

from cli.main import main
from forecasting.history import GroupInterval

# Words of a command line in; exit code, stdout and stderr out.
Lagcast = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lagcast(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lagcast:
    """Runs `lagcast WORDS...` in this process, with its state below the test's own folder."""
    for name in ("LAGCAST_STATE_DIR", "LAGCAST_STORE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return int(code), captured.out, captured.err

    return run


@pytest.fixture
def lagcast_process(tmp_path: Path) -> Lagcast:
    """Runs `lagcast WORDS...` as a process of its own: a command stops the Spark it finds, which may be a test's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAGCAST_ST")}
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")

    def run(*words: object) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "cli.main", *(str(word) for word in words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        return done.returncode, done.stdout, done.stderr

    return run


def _row(group: str, at: datetime) -> GroupInterval:
    return GroupInterval(
        cluster="c",
        group=group,
        topics=group,
        interval_end_at=at,
        interval_seconds=15,
        produce_messages_per_second=5000.0,
        consume_messages_per_second=5000.0,
        lag_messages=12_500.0,
        lag_seconds=2.5,
        partitions=12,
        sampled_partitions=12,
        members=12,
    )


@pytest.fixture
def feature_table(tmp_path: Path) -> Path:
    """A feature table: an hour of steady rows of the groups `orders` and `a/b ü`, ending 2026-05-04 12:00 UTC."""
    end_at = datetime(2026, 5, 4, 12, tzinfo=UTC)
    rows = [
        asdict(_row(group, end_at - timedelta(seconds=15 * back)))
        for group in ("orders", "a/b ü")
        for back in reversed(range(240))
    ]
    table = tmp_path / "features"
    parts = []
    for seconds in (15, 3600):
        folder = Path("versions", "v1", f"interval_seconds={seconds}", "date=2026-05-04")
        (table / folder).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), table / folder / "part-0.parquet")
        parts.append({"interval_seconds": seconds, "date": "2026-05-04", "folder": str(folder), "rows": len(rows)})
    manifest = {"format": "lagcast group_intervals", "schema_version": 1, "feature_table_version": 1, "parts": parts}
    (table / "manifest.json").write_text(json.dumps(manifest))
    return table
