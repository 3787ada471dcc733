"""`lagcast demo`: every part of lagcast, on a generated load."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.demo import Decided, DemoClock, contest_of
from cli.demo_folder import FeatureFolder, decisions_file
from cli.errors import InputError
from recommender.deciding.recommendation import Recommendation
from replay.contest import Entry, RunCost
from replay.league import League

Lagcast = Callable[..., tuple[int, str, str]]
POLICIES = ["fixed", "hpa", "hpa-behavior", "keda", "useful-counts", "lagcast", "hindsight"]


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_ends_with_a_league_and_a_decision(tmp_path: Path) -> None:
    """Off a terminal the demo ends by itself, with a league, the decision at the end of the data, and a served address.

    Without Java on PATH and with an empty home the packaged runtime is used, and its shim is put into the cache.
    A second run takes the features of the first and gives the same league, and `explain` prints its decision.
    """
    # Spark's launcher and Hadoop call the system's small programs; all of them stay, except Java.
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in Path("/usr/bin").iterdir():
        if not tool.name.startswith("java"):
            (tools / tool.name).symlink_to(tool)
    environment = {"PATH": str(tools), "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    def run(*arguments: str) -> tuple[dict[str, Any], str]:
        command = [sys.executable, "-m", "cli.main", *arguments, "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    first, err = run("demo", "--days", "2", "--port", "0")
    assert "(packaged)" in err
    assert (tmp_path / ".cache" / "lagcast" / "java-home" / "bin" / "java").exists()
    assert [policy["policy"] for policy in first["policies"]] == POLICIES
    assert first["decision"]["issued_at"] == "2026-05-06T00:00:00Z"
    assert f"GET {first['url']}/api/v1/groups answered 200: 1 group" in err
    again, err = run("demo", "--days", "2", "--port", "0", "--headless")
    assert "features reused" in err
    assert again | {"url": ""} == first | {"url": ""}
    explained, _ = run("explain", "orders")
    assert explained["recommendation_id"] == first["decision"]["recommendation_id"]


def test_the_demo_prints_a_line_a_policy(
    lagcast: Lagcast, advice: Callable[..., Recommendation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `-o json` the league is a table with a heading."""
    _, contest = contest_of(days=2, seed=7)
    day = RunCost(pods=1.0, late=0.0, duplicates=0.0)
    figures = {field.name: 0 for field in fields(Entry)} | {"daily": (day,), "daily_late_share": (0.0,)}
    league = League(contest=contest, entries=tuple(Entry(**figures | {"policy": name}) for name in POLICIES))  # type: ignore[arg-type]  # zeros are figures of every type
    monkeypatch.setattr("cli.demo._run", lambda *_, **__: (league, Decided(advice(), None, None)))  # type: ignore[arg-type]  # off a terminal nothing goes on
    code, out, _ = lagcast("demo", "--days", 2, "--port", 0, "--headless")
    assert (code, len(out.splitlines())) == (0, 1 + len(POLICIES))


def test_the_last_day_is_judged() -> None:
    """The last day is judged, of 14 days as of two."""
    for days in (2, 14):
        load, contest = contest_of(days=days, seed=7)
        assert (contest.trace.days, contest.trace.end_at) == (1, load.end_at)


def test_the_demo_clock_starts_where_the_data_end() -> None:
    """Advice of the past is valid on the demo's clock, which runs."""
    end_at = datetime(2026, 5, 18, tzinfo=UTC)
    clock = DemoClock(end_at)
    assert end_at <= clock() <= clock()
    clock.follow(lambda: end_at + timedelta(hours=3))
    assert clock() == end_at + timedelta(hours=3)


def test_features_are_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """A failed run leaves no features, and a successful one replaces the folders of other seeds."""
    decisions_file(tmp_path, anew=True)
    folder = FeatureFolder.of(tmp_path, seed=1, days=2)

    def fail() -> None:
        with folder.making() as scratch:
            (scratch / "half").write_text("half")
            message = "the job failed"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="the job failed"):
        fail()
    assert list((tmp_path / "demo").iterdir()) == []
    with folder.making() as scratch:
        (scratch / "whole").write_text("whole")
    assert folder.is_there
    other = FeatureFolder.of(tmp_path, seed=2, days=2)
    with other.making():
        assert folder.is_there
    assert not folder.is_there
    assert other.is_there


def test_decisions_begin_anew_with_each_demo(tmp_path: Path) -> None:
    """The demo's decisions are a file of their own, emptied when a run starts and not by readers."""
    file = decisions_file(tmp_path, anew=True)
    file.write_text("decisions")
    assert decisions_file(tmp_path, anew=False).exists()
    assert not decisions_file(tmp_path, anew=True).exists()


def test_a_state_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    """The error names the folder and the option for another."""
    (tmp_path / "state").write_text("not a folder")
    with pytest.raises(InputError, match=r"state .*--state-dir DIR$"):
        decisions_file(tmp_path / "state", anew=True)
