"""`--html`: the answer as one file, beside the same answer on stdout; a bad path is refused before any work."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from cli.league_table import league_picture
from cli.wiring import replays_of, settings_of
from forecasting.units import read_only
from replay.contest import LAGCAST, PRICED, Contest, Entry, RunCost
from replay.hindsight import HINDSIGHT
from replay.league import League
from replay.sampling import Names
from replay.trace import Trace
from replay.world import World
from tests.api.pictures.laws import drawn, series

Lagcast = Callable[..., tuple[int, str, str]]


@pytest.fixture(name="hour")
def hour_fixture(tmp_path: Path) -> Path:
    """A trace of an hour: too short for a history, so no Spark is started."""
    path, first = tmp_path / "hour.csv", datetime(2026, 5, 4, tzinfo=UTC)
    rows = [f"{(first + timedelta(minutes=minute)).isoformat()},{1000 + 10 * minute}" for minute in range(60)]
    path.write_text("\n".join(["timestamp,messages_per_second", *rows, ""]))
    return path


@pytest.fixture(name="decided")
def decided_fixture(lagcast: Lagcast, feature_table: Path, tmp_path: Path) -> Path:
    """Settings under which a decision on `orders` is kept."""
    config = tmp_path / "lagcast.yaml"
    config.write_text('groups:\n  "*":\n    capacity_messages_per_second_per_replica: 1000\n')
    assert lagcast("recommend", "--features", feature_table, "--config", config, "--now", "latest")[0] == 0
    return config


def test_explain_writes_what_it_prints_with_the_prices_as_a_picture(
    lagcast: Lagcast, decided: Path, tmp_path: Path
) -> None:
    """Stdout is the same with and without a report, and stderr says where that is."""
    report = tmp_path / "orders.html"
    _, without, _ = lagcast("explain", "orders", "--config", decided)
    code, out, err = lagcast("explain", "orders", "--config", decided, "--html", report)
    assert (code, out) == (0, without)
    assert err == f"report: {report}, {report.stat().st_size / 1e6:.1f} MB, opens without a network\n"
    text = report.read_text()
    assert "<h1>Decision on orders</h1>" in text
    assert [title in text for title in (">What each plan costs</h2>", ">Produced and expected</h2>")] == [True, True]
    sentences = [line.removeprefix(" - ") for line in out.splitlines() if line.startswith(" - ")]
    assert len(sentences) > 3
    assert [line for line in sentences if line.replace("'", "&#39;") not in text] == []


def test_a_refusal_has_a_report_without_a_picture(lagcast: Lagcast, feature_table: Path, tmp_path: Path) -> None:
    """The figures behind it and the next step."""
    lagcast("recommend", "--features", feature_table)
    code, _, _ = lagcast("explain", "orders", "--html", tmp_path / "orders.html")
    text = (tmp_path / "orders.html").read_text()
    assert code == 0
    assert "orders  refused   [history_stale]" in text
    assert "<figure" not in text


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (".", "that is a folder; name a file in it, such as "),
        ("missing/report.html", "there is no folder "),
        ("hour.csv/report.html", "there is no folder "),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_before_any_work(
    lagcast: Lagcast, hour: Path, tmp_path: Path, name: str, sentence: str
) -> None:
    """One sentence with the option, the path and the next step; nothing on stdout, no replay has begun."""
    code, out, err = lagcast("replay", "--trace", hour, "--html", tmp_path / name)
    assert (code, out) == (2, "")
    assert err.startswith(f"lagcast: --html {tmp_path / name}: {sentence}")
    assert err.count("\n") == 1


def test_a_folder_of_others_is_refused_before_any_work(
    lagcast: Lagcast, hour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay takes minutes: its report is not found to be impossible only then."""
    monkeypatch.setattr("cli.report.access", lambda *_: False)
    code, _, err = lagcast("replay", "--trace", hour, "--html", tmp_path / "league.html")
    assert code == 2
    assert err.endswith(f"the folder {tmp_path} cannot be written to; name a file in another one\n")


def test_a_report_that_cannot_be_finished_leaves_the_one_before(
    lagcast: Lagcast, decided: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full: the file of yesterday stays whole, and no half of a new one lies beside it."""
    folder = tmp_path / "reports"
    folder.mkdir()
    report = folder / "orders.html"
    report.write_text("yesterday's")

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    code, _, err = lagcast("explain", "orders", "--config", decided, "--html", report)
    assert code == 2
    assert err == (
        f"lagcast: --html {report} cannot be written (No space left on device); give a file in a folder that exists\n"
    )
    assert [path.name for path in folder.iterdir()] == ["orders.html"]
    assert report.read_text() == "yesterday's"


@pytest.mark.slow
def test_replay_writes_its_league_with_the_days_it_lost(lagcast: Lagcast, hour: Path, tmp_path: Path) -> None:
    """The table on stdout is unchanged, and each policy of it is in the report."""
    report = tmp_path / "league.html"
    code, out, err = lagcast("replay", "--trace", hour, "--against", "fixed,keda", "--html", report)
    text = report.read_text()
    assert code == 0
    assert len(out.splitlines()) == 5
    assert err.splitlines()[-1].startswith(f"report: {report}, ")
    assert "<h1>Replay of hour</h1>" in text
    assert all(f"<td>{name}</td>" in text for name in ("Fixed at peak", "KEDA lagThreshold", LAGCAST))
    assert err.splitlines()[-2] in text  # the days that were lost


def test_the_picture_of_a_league_has_its_figures_and_knows_who_is_who() -> None:
    """Ours and the bound are told apart by what they are, not by where they stand."""
    rates = read_only(np.full(60, 100.0))
    trace = Trace(name="t", start_at=datetime(2026, 1, 5, tzinfo=UTC), step_seconds=60, messages_per_second=rates)
    world = World(partitions=6, capacity_messages_per_second_per_replica=100.0)
    contest = Contest(trace=trace, world=world, settings=PRICED, names=Names("c", "g"), seed=1)
    entries = tuple(_entry(policy, cost) for policy, cost in (("keda", 3.0), (LAGCAST, 2.0), (HINDSIGHT, 1.0)))
    picture = league_picture(League(contest=contest, entries=entries))
    option = drawn(picture)
    assert [each["name"] for each in series(option, "Others")["data"]] == ["KEDA lagThreshold"]
    assert series(option, "Ours")["data"][0]["value"][:2] == [0.5, 2.0]
    assert series(option, "Knows the future")["data"][0]["name"] == "Perfect hindsight"
    assert picture.sentence.startswith("lagcast costs 2.35 USD with all its items; KEDA lagThreshold, ")


def test_a_replay_of_more_than_a_day_has_its_days_in_its_report_and_on_its_page(
    lagcast: Lagcast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each policy paid, and its share of late messages, on a day and on the twelve hours after it.

    The policies are not played: their costs are given.
    """
    first = datetime(2026, 5, 4, tzinfo=UTC)
    rows = [f"{(first + timedelta(hours=hour)).isoformat()},1000" for hour in range(36)]
    trace, report = tmp_path / "days.csv", tmp_path / "days.html"
    trace.write_text("\n".join(["timestamp,messages_per_second", *rows, ""]))

    def played(contest: Contest, *_: object, **__: object) -> League:
        costs = {"keda": (3.0, 1.0), LAGCAST: (2.0, 1.5), HINDSIGHT: (1.0, 0.5)}
        return League(contest=contest, entries=tuple(_entry(policy, *pods) for policy, pods in costs.items()))

    monkeypatch.setattr("cli.replay._league", played)
    assert lagcast("replay", "--trace", trace, "--html", report)[0] == 0
    text = report.read_text()
    said = (
        "lagcast has paid least on 1 of 2 days. The last day is 12 h long. The day that it lost is shaded: 2026-05-05"
    )
    assert said in text
    assert ">How many messages were late, day by day</h2>" in text
    ((_, kept),) = replays_of(settings_of()).newest()
    days = {each.policy: each.days for each in kept.standings}
    assert [(day.begins_at, day.hours) for day in days["lagcast"]] == [(first, 24), (first + timedelta(days=1), 12)]
    assert [(day.cost, day.late_share) for day in days["KEDA lagThreshold"]] == [(3.35, 0.005), (1.35, 0.01)]
    assert {picture.sentence in text for picture in kept.pictures.values()} == {True}


def _entry(policy: str, *pods: float) -> Entry:
    """A run that cost so much in pods on each day, 0.25 in late messages and 0.1 in duplicates."""
    return Entry(
        policy=policy,
        daily=tuple(RunCost(pods=cost, late=0.25, duplicates=0.1) for cost in pods),
        daily_late_share=tuple(0.005 * (day + 1) for day in range(len(pods))),
        pod_hours=1.0,
        mean_replicas=1.0,
        mean_lag_messages=0.0,
        wait_p95_seconds=1.0,
        wait_p99_seconds=2.0,
        late_share=0.005,
        moves=0,
        rebalances=0,
        rebalancing_minutes=0.0,
        paused_partition_seconds=0.0,
        duplicate_messages=0,
    )
