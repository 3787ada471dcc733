"""`lagcast recommend` and `lagcast explain`: the decision on stdout, kept, and shown again."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.beliefs import outcome_sentence
from recommender.deciding.recommendation import GradedMove

Lagcast = Callable[..., tuple[int, str, str]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Settings under which both groups have a capacity."""
    file = tmp_path / "lagcast.yaml"
    file.write_text('groups:\n  "*":\n    capacity_messages_per_second_per_replica: 1000\n')
    return file


def test_a_recommendation_is_shown_with_every_price_and_kept(
    lagcast: Lagcast, feature_table: Path, config: Path
) -> None:
    """Twelve replicas for what six carry: sentences and priced plans; `explain` adds what is believed."""
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
    """The newest five of six moves, after what is known; programs get the wire document alone."""
    state = tmp_path / "own"
    words = ("--config", config, "--state-dir", state)
    lagcast("recommend", "--features", feature_table, "--now", "latest", *words)
    store = SqlDecisionStore(sqlite_url(state / "decisions.sqlite"))
    start = graded_move().graded_at
    store.keep_outcomes([graded_move(cluster="c", graded_at=start + timedelta(hours=hour)) for hour in range(6)])
    store.close()
    _, out, _ = lagcast("explain", "orders", *words)
    told = out[out.index(" last moves, newest first\n") :].splitlines()[1:]
    assert [line[:19] for line in told] == [f" - 2026-01-05 {hour}:00" for hour in (17, 16, 15, 14, 13)]
    assert told[0].endswith(outcome_sentence(graded_move()))
    assert json.loads(lagcast("explain", "orders", *words, "-o", "json")[1])["kind"] == "Recommendation"


def test_json_is_what_the_rest_service_answers(lagcast: Lagcast, feature_table: Path, config: Path) -> None:
    """One wire document for each group, whatever characters its name holds."""
    code, out, _ = lagcast(
        "recommend", "--features", feature_table, "--config", config, "--now", "latest", "-o", "json"
    )
    documents = json.loads(out)
    assert code == 0
    assert [document["group_id"] for document in documents] == ["a/b ü", "orders"]
    assert {document["kind"] for document in documents} == {"Recommendation"}
    assert documents[1]["desired_replicas"] < documents[1]["current_replicas"] == 12


def test_csv_has_one_row_for_each_plan(lagcast: Lagcast, feature_table: Path, config: Path) -> None:
    """The priced plans under machine keys; exactly one of them is the chosen one."""
    lagcast("recommend", "--features", feature_table, "--config", config, "--now", "latest")
    _, out, _ = lagcast("explain", "orders", "-o", "csv")
    header, *plans = out.splitlines()
    assert header == "chosen,plan,execute_at,replicas,late,pause_late,backlog,duplicates,start_up,restore,risk,total"
    assert sum(plan.startswith("True,") for plan in plans) == 1


def test_data_from_the_past_are_refused_as_stale(lagcast: Lagcast, feature_table: Path, config: Path) -> None:
    """Without --now the present decides: a refusal with its figures, exit code 0, and 3 under --strict."""
    words = ("recommend", "--features", feature_table, "--config", config)
    code, out, _ = lagcast(*words)
    assert code == 0
    assert "orders  refused   [history_stale]" in out
    assert " - freshness_limit_seconds: 600" in out
    assert lagcast(*words, "--strict")[0] == 3


def test_without_a_capacity_nothing_is_advised(lagcast: Lagcast, feature_table: Path) -> None:
    """A group that was never seen at its limit and has no configured capacity is refused by that name."""
    _, out, _ = lagcast("recommend", "--features", feature_table, "--now", "2026-05-04T12:00:00Z", "-o", "json")
    assert {document["reason"]["code"] for document in json.loads(out)} == {"CapacityUnknown"}


def test_a_group_that_is_off_gets_no_decision(lagcast: Lagcast, feature_table: Path, config: Path) -> None:
    """`mode: "off"` leaves a group out of the cycle; the others get their advice."""
    config.write_text(config.read_text() + '  orders:\n    mode: "off"\n')
    _, out, _ = lagcast("recommend", "--features", feature_table, "--config", config, "--now", "latest", "-o", "json")
    assert [document["group_id"] for document in json.loads(out)] == ["a/b ü"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--features", "nowhere"), "nowhere is no folder"),
        (("--features", "FEATURES", "--now", "soon"), "--now 'soon' is no instant; write it as 2026-05-12T08:40:00Z"),
        (("--features", "FEATURES", "--config", "no.yaml"), "no.yaml: cannot be read"),
        (("--features", "FEATURES", "--config", "CONFIG"), "max_replica"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...], said: str, lagcast: Lagcast, feature_table: Path, tmp_path: Path
) -> None:
    """A missing table, a word that is no instant, a missing or misspelt settings file: code 2, one line, no output."""
    misspelt = tmp_path / "misspelt.yaml"
    misspelt.write_text("groups:\n  orders:\n    max_replica: 3\n")
    places = {"FEATURES": feature_table, "CONFIG": misspelt}
    code, out, err = lagcast("recommend", *(places.get(word, word) for word in words))
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_an_unknown_group_is_told_with_those_that_are_known(
    lagcast: Lagcast, feature_table: Path, config: Path
) -> None:
    """`explain` of a group without a decision names the groups that have one."""
    lagcast("recommend", "--features", feature_table, "--config", config, "--now", "latest")
    code, out, err = lagcast("explain", "payments")
    assert (code, out) == (2, "")
    assert "'payments'; there is one for a/b ü, orders" in err
