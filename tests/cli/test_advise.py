"""`lagcast recommend` and `lagcast explain`: the decision is printed, kept, and printed again."""

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.beliefs import outcome_sentence
from recommender.deciding.recommendation import Decision, GradedMove
from recommender.run import Recommender

Lagcast = Callable[..., tuple[int, str, str]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Settings under which both groups have a capacity."""
    file = tmp_path / "lagcast.yaml"
    file.write_text('groups:\n  "*":\n    capacity_messages_per_second_per_replica: 1000\n')
    return file


def test_a_recommendation_is_printed_with_every_price_and_kept(
    lagcast: Lagcast, feature_table: Path, config: Path
) -> None:
    """Six replicas with the load of twelve get sentences and priced plans; `explain` adds the learned values."""
    code, out, err = lagcast("recommend", "--features", feature_table, "--config", config, "--now", "latest")
    assert (code, err) == (0, "")
    about_orders = out[out.index("orders  ") :]
    assert about_orders.startswith("orders  12 -> ")
    assert "stay at 12" in about_orders
    assert "Advice only: nothing was changed." in about_orders
    (heading,) = (line for line in about_orders.splitlines() if line.endswith("  total"))
    assert len(heading) <= 100
    code, explained, err = lagcast("explain", "orders")
    assert (code, err) == (0, "")
    assert explained.startswith(about_orders)
    heading, stops, *_ = explained.removeprefix(about_orders).splitlines()
    assert heading == " what is known"
    assert stops.startswith(" - A move stops what it moves 12.0 s going up and 12.0 s going down (assumed, 0 moves")


def test_explain_shows_what_the_last_moves_did(
    lagcast: Lagcast, feature_table: Path, config: Path, graded_move: Callable[..., GradedMove], tmp_path: Path
) -> None:
    """`explain` prints the newest five of six moves after the learned values, and as JSON the wire document alone."""
    state = tmp_path / "own"
    arguments = ("--config", config, "--state-dir", state)
    lagcast("recommend", "--features", feature_table, "--now", "latest", *arguments)
    store = SqlDecisionStore(sqlite_url(state / "decisions.sqlite"))
    start = graded_move().graded_at
    store.keep_outcomes([graded_move(cluster="c", graded_at=start + timedelta(hours=hour)) for hour in range(6)])
    store.close()
    _, out, _ = lagcast("explain", "orders", *arguments)
    moves = out[out.index(" last moves, newest first\n") :].splitlines()[1:]
    assert [line[:19] for line in moves] == [f" - 2026-01-05 {hour}:00" for hour in (17, 16, 15, 14, 13)]
    assert moves[0].endswith(outcome_sentence(graded_move()))
    assert json.loads(lagcast("explain", "orders", *arguments, "-o", "json")[1])["kind"] == "Recommendation"


def test_json_is_what_the_rest_service_returns(lagcast: Lagcast, feature_table: Path, config: Path) -> None:
    """Each group is one wire document, whatever characters its name has."""
    code, out, _ = lagcast(
        "recommend", "--features", feature_table, "--config", config, "--now", "latest", "-o", "json"
    )
    documents = json.loads(out)
    assert code == 0
    assert [document["group_id"] for document in documents] == ["a/b ü", "orders"]
    assert {document["kind"] for document in documents} == {"Recommendation"}
    assert documents[1]["desired_replicas"] < documents[1]["current_replicas"] == 12


def test_csv_has_one_row_for_each_plan(lagcast: Lagcast, feature_table: Path, config: Path) -> None:
    """The priced plans have machine keys, and exactly one of them is the chosen one."""
    lagcast("recommend", "--features", feature_table, "--config", config, "--now", "latest")
    _, out, _ = lagcast("explain", "orders", "-o", "csv")
    header, *plans = out.splitlines()
    items = "replicas,late,pause_late,backlog,duplicates,start_up,restore,risk,total"
    assert header == f"cluster,group,chosen,plan,execute_at,{items}"
    assert sum(",orders,True," in plan for plan in plans) == 1


def test_data_from_the_past_are_refused_as_stale(lagcast: Lagcast, feature_table: Path, config: Path) -> None:
    """Without --now data from the past are refused with figures, with exit code 0, and 3 under --strict."""
    arguments = ("recommend", "--features", feature_table, "--config", config)
    code, out, _ = lagcast(*arguments)
    assert code == 0
    assert "orders  refused   [history_stale]" in out
    assert " - freshness_limit_seconds: 600" in out
    assert lagcast(*arguments, "--strict")[0] == 3


def test_without_a_capacity_nothing_is_advised(lagcast: Lagcast, feature_table: Path) -> None:
    """A group that was never seen at its limit and has no configured capacity is refused by that name at first."""
    _, out, _ = lagcast("recommend", "--features", feature_table, "--now", "2026-05-04T11:02:00Z", "-o", "json")
    assert {document["reason"]["code"] for document in json.loads(out)} == {"CapacityUnknown"}


def test_without_a_capacity_what_replicas_have_shown_is_a_lower_bound(lagcast: Lagcast, feature_table: Path) -> None:
    """After an hour advice is given, and nothing is added under a bound."""
    _, out, _ = lagcast("recommend", "--features", feature_table, "--now", "2026-05-04T12:00:00Z", "-o", "json")
    documents = json.loads(out)
    assert {document["capacity_messages_per_second_per_replica"]["source"] for document in documents} == {"lower_bound"}
    assert all(document["desired_replicas"] <= document["current_replicas"] for document in documents)


def test_what_would_reverse_it_is_searched_for_in_each_decision(
    lagcast: Lagcast, feature_table: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as there are, as on Spark: a loop leaves some to its next cycle, and here there is none."""
    searches: list[float] = []
    run_once = Recommender.run_once

    def seen(loop: Recommender, *, now: datetime) -> tuple[Decision, ...]:
        searches.append(loop.searches_per_cycle)
        return run_once(loop, now=now)

    monkeypatch.setattr(Recommender, "run_once", seen)
    _, out, _ = lagcast("recommend", "--features", feature_table, "--config", config, "--now", "latest", "-o", "json")
    assert searches == [math.inf]
    assert [bool(document["sensitivity"]) for document in json.loads(out)] == [True, True]


def test_a_group_that_is_off_gets_no_decision(lagcast: Lagcast, feature_table: Path, config: Path) -> None:
    """A group with `mode: "off"` gets no decision, and the others get advice."""
    config.write_text(config.read_text() + '  orders:\n    mode: "off"\n')
    _, out, _ = lagcast("recommend", "--features", feature_table, "--config", config, "--now", "latest", "-o", "json")
    assert [document["group_id"] for document in json.loads(out)] == ["a/b ü"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--features", "nowhere"), "nowhere is no folder"),
        (("--features", "FEATURES", "--master", "spark://x:7077"), "only a run with --on-spark has a cluster; add it"),
        (("--features", "FEATURES", "--samples", "samples"), "only a run with --on-spark makes rows; add it"),
        (("--features", "FEATURES", "--now", "soon"), "--now 'soon' is no instant; write it as 2026-05-12T08:40:00Z"),
        (("--features", "FEATURES", "--config", "no.yaml"), "no.yaml: cannot be read"),
        (("--features", "FEATURES", "--config", "CONFIG"), "max_replica"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...], message: str, lagcast: Lagcast, feature_table: Path, tmp_path: Path
) -> None:
    """For a missing table, an invalid instant, and wrong settings the command exits 2 with one line and no output."""
    misspelt = tmp_path / "misspelt.yaml"
    misspelt.write_text("groups:\n  orders:\n    max_replica: 3\n")
    places = {"FEATURES": feature_table, "CONFIG": misspelt}
    code, out, err = lagcast("recommend", *(places.get(argument, argument) for argument in arguments))
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


def test_the_error_for_an_unknown_group_names_the_known_ones(
    lagcast: Lagcast, feature_table: Path, config: Path
) -> None:
    """For a group without a decision, `explain` names the groups that have one."""
    lagcast("recommend", "--features", feature_table, "--config", config, "--now", "latest")
    code, out, err = lagcast("explain", "payments")
    assert (code, out) == (2, "")
    assert "'payments'; there is one for a/b ü, orders" in err
