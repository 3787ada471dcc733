"""Fixtures that tests of commands share: a command run as a shell runs it, and a feature table made without a JVM."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.main import main
from tests.feature_folder import steady_hour

# From the arguments of a command line to exit code, stdout and stderr.
Lagcast = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lagcast(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lagcast:
    """Run `lagcast ARGUMENTS...` in this process, with its state below the test's own folder."""
    for name in ("LAGCAST_STATE_DIR", "LAGCAST_STORE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(code), captured.out, captured.err

    return run


@pytest.fixture
def lagcast_process(tmp_path: Path) -> Lagcast:
    """Run `lagcast ARGUMENTS...` as a process of its own, as a command stops a Spark that runs, as that of tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAGCAST_ST")}
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")

    def run(*arguments: object) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "cli.main", *(str(argument) for argument in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def feature_table(tmp_path: Path) -> Path:
    """A feature table: an hour of steady rows of the groups `orders` and `a/b ü`, ending 2026-05-04 12:00 UTC."""
    return steady_hour(tmp_path / "features", ("orders", "a/b ü"), end_at=datetime(2026, 5, 4, 12, tzinfo=UTC))
