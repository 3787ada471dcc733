"""`lagcast scan`: the fleet as a table, from a feature table made without a JVM."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.fleet_table import hourly
from tests.collector.memory_prometheus import MemoryPrometheus, offsets_text, serving
from tests.feature_folder import add_rows, steady_row

Lagcast = Callable[..., tuple[int, str, str]]
END = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Settings under which the groups have a capacity and a price, but for `unknown`."""
    file = tmp_path / "lagcast.yaml"
    file.write_text(
        "decision: {price_per_replica_hour: 0.05}\n"
        "groups:\n  '*': {capacity_messages_per_second_per_replica: 1000}\n  unknown: {mode: 'off'}\n"
    )
    return file


@pytest.fixture
def scan(lagcast: Lagcast, feature_table: Path, config: Path) -> Lagcast:
    """`scan(*arguments)` over the table as of its end."""
    return lambda *words: lagcast("scan", "--features", feature_table, "--now", "latest", "--config", config, *words)


def test_the_fleet_is_a_table_with_what_saves_most_first(scan: Lagcast) -> None:
    """Twelve replicas with the load of six: fewer are advised, with the saving, and stderr has the next command."""
    code, out, err = scan()
    assert code == 0
    heading, *rows = out.splitlines()
    assert heading.split()[:3] == ["Group", "Now", "Should"]
    assert [row.split()[0] for row in rows] == ["a/b", "orders"]
    assert rows[1].split()[1] == "12"
    assert int(rows[1].split()[2]) < 12
    assert "USD" in rows[1]
    assert "lagcast explain GROUP" in err


def test_a_hour_of_load_is_one_block_and_the_day_before_it_a_gap(scan: Lagcast) -> None:
    """A gap is a space, never a low block."""
    record = json.loads(scan("-o", "json")[1])[0]
    assert record["hourly_messages_per_second"] == [None] * 23 + [5000.0]
    table = scan()[1]
    assert f"{' ' * 10}█" in table
    assert f"{' ' * 10}#" in scan("--ascii")[1]


def test_rates_are_means_of_hours_and_hours_without_a_rate_are_unknown() -> None:
    """24 hours before an instant, of which the first has no row, and another one without a rate."""
    rows = [
        steady_row("orders", END - timedelta(hours=ago, minutes=minute))
        for ago in range(23)
        for minute in (1, 31)
        if ago != 4
    ]
    rates = hourly(rows, until=END)
    assert len(rates) == 24
    assert [place for place, rate in enumerate(rates) if rate is None] == [0, 19]
    assert hourly(rows, until=END - timedelta(days=3)) == (None,) * 24


def test_the_answer_has_what_explain_then_explains(scan: Lagcast, lagcast: Lagcast) -> None:
    """Decisions are kept, as those of `lagcast recommend` are."""
    record = next(each for each in json.loads(scan("-o", "json")[1]) if each["group"] == "orders")
    explained = json.loads(lagcast("explain", "orders", "-o", "json")[1])
    assert explained["desired_replicas"] == record["desired_replicas"]
    assert record["saving_per_hour"] == pytest.approx(explained["cost"]["saving"])


def test_idle_groups_are_counted_and_shown_on_demand(scan: Lagcast, feature_table: Path) -> None:
    """A group without a message is not what a fleet is looked at for; none is left out unsaid."""
    silent: dict[str, Any] = {
        "produce_messages_per_second": 0.0,
        "consume_messages_per_second": 0.0,
        "lag_messages": 0.0,
    }
    rows = (replace(steady_row("idle", END - timedelta(seconds=15 * back)), **silent) for back in range(240))
    add_rows(feature_table, rows)
    code, out, err = scan()
    assert code == 0
    assert "idle" not in out
    assert "1 groups without a message in 24 hours are not shown; --all shows them" in err
    assert "idle" in scan("--all")[1]


def test_a_refused_group_is_a_row_with_its_reason(lagcast: Lagcast, feature_table: Path) -> None:
    """And no figure is invented for it; `wide` has the sentence and the next step."""
    arguments = ("scan", "--features", feature_table, "--now", "2026-05-04T18:00:00Z")
    code, out, _ = lagcast(*arguments)
    assert code == 0
    assert "history stale" in out
    assert " Next: " in lagcast(*arguments, "-o", "wide")[1]
    record = json.loads(lagcast(*arguments, "-o", "json")[1])[0]
    assert [record[key] for key in ("current_replicas", "desired_replicas", "saving_per_hour", "currency")] == [
        None
    ] * 4


def test_groups_are_selected_by_name(scan: Lagcast) -> None:
    """`--group` names one, and may be given several times."""
    assert [each["group"] for each in json.loads(scan("--group", "orders", "-o", "json")[1])] == ["orders"]


@pytest.mark.parametrize(
    ("expression", "code", "said"),
    [
        ("groups < 2", 0, ""),
        ("groups >= 2", 3, "--fail-if: groups is 2, which is >= 2"),
        ("saving_per_hour>0.0", 3, "--fail-if: saving_per_hour is "),
        ("refused != 0", 0, ""),
    ],
)
def test_a_bound_that_is_missed_is_exit_code_3(scan: Lagcast, expression: str, code: int, said: str) -> None:
    """With the figure and the bound on stderr, and the whole answer on stdout."""
    returned, out, err = scan("--fail-if", expression)
    assert returned == code
    assert "orders" in out
    assert said in err
    assert ("--fail-if" in err) == (code == 3)


def test_an_unknown_figure_keeps_no_bound(lagcast: Lagcast, feature_table: Path) -> None:
    """Where every group is refused nobody knows what is saved, and a gate of CI must not take that for a yes."""
    arguments = ("--features", feature_table, "--now", "2026-05-04T18:00:00Z", "--fail-if", "saving_per_hour < 0")
    code, _, err = lagcast("scan", *arguments)
    assert code == 3
    assert "saving_per_hour is unknown" in err


@pytest.mark.parametrize("expression", ["saving", "nope > 1", "groups => 1", "groups > many", "groups > 1; x", ""])
def test_a_bound_that_is_none_is_refused_with_the_names_that_there_are(scan: Lagcast, expression: str) -> None:
    """Before anything is read."""
    code, out, err = scan("--fail-if", expression)
    assert (code, out) == (2, "")
    assert "groups, advised, refused, moves, replicas, desired_replicas, saving_per_hour" in err


def test_the_estimate_requests_no_past_and_keeps_nothing(lagcast: Lagcast, tmp_path: Path) -> None:
    """What is planned is on stderr, and there is no table."""
    with serving(MemoryPrometheus()) as server:
        now = int(datetime.now(UTC).timestamp())  # noqa: TID251  # the command looks back from the clock
        for ago in range(1800, -1, -15):
            server.scrape(offsets_text([9000 - ago, 70], [8000 - ago, 70], members=2), at=now - ago)
        arguments = ("--prometheus", server.url, "--cluster", "prod", "--state-dir", tmp_path / "own", "--estimate")
        code, out, err = lagcast("scan", *arguments)
    assert (code, out) == (0, "")
    assert "3 queries of 2,880 points at most" in err
    assert not (tmp_path / "own" / "scan").exists()


@pytest.mark.spark
def test_a_fleet_is_seen_through_prometheus(lagcast_process: Lagcast, config: Path) -> None:
    """Half an hour of scrapes: rates, members and lag, without a word of Kafka."""
    with serving(MemoryPrometheus()) as server:
        now = int(datetime.now(UTC).timestamp())  # noqa: TID251  # the command looks back from the clock
        for ago in range(2700, -1, -15):
            server.scrape(offsets_text([90_000 - 20 * ago, 70], [90_000 - 20 * ago, 70], members=2), at=now - ago)
        code, out, err = lagcast_process("scan", "--prometheus", server.url, "--config", config, "-o", "json")
    assert code == 0, err
    (record,) = json.loads(out)
    assert record["hourly_messages_per_second"][-1] == pytest.approx(20.0, rel=0.1)
    assert (record["current_replicas"], record["desired_replicas"]) == (2, 1), record


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "scan needs one source"),
        (("--bootstrap", "127.0.0.1:1", "--prometheus", "http://127.0.0.1:1"), "scan needs one source"),
        (("--bootstrap", "127.0.0.1:1", "--now", "latest"), "--now is for --features"),
        (("--features", ".", "--estimate"), "--estimate is for --bootstrap and --prometheus"),
    ],
)
def test_sources_that_do_not_go_together_are_refused(lagcast: Lagcast, arguments: tuple[str, ...], said: str) -> None:
    """In one sentence, with exit code 2."""
    code, out, err = lagcast("scan", *arguments)
    assert (code, out) == (2, "")
    assert said in err
