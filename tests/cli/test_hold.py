"""`lagcast hold`, `lagcast release` and `lagcast holds`: what they keep is in force in the next cycle."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from cli.instants import read_clock
from tests.feature_folder import steady_hour

Lagcast = Callable[..., tuple[int, str, str]]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """An hour of rows up to now: 12 replicas, each of which is set to do 1,000/s, at 5,000/s."""
    return steady_hour(tmp_path / "features", ("billing", "orders"), end_at=read_clock())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A capacity for every group, and a namespace of one."""
    path = tmp_path / "lagcast.yaml"
    path.write_text(
        "groups:\n"
        '  "*": {capacity_messages_per_second_per_replica: 1000}\n'
        "  orders: {target: {namespace: shop, name: orders}}\n"
    )
    return path


def reasons(lagcast: Lagcast, table: Path, config: Path) -> dict[str, tuple[str, int]]:
    """Reason and desired count of each group, as `lagcast recommend` decides now."""
    code, out, err = lagcast("recommend", "--features", table, "--config", config, "-o", "json")
    assert code == 0, err
    return {each["group_id"]: (each["reason"]["code"], each["desired_replicas"]) for each in json.loads(out)}


@pytest.mark.parametrize(
    ("scope", "held"),
    [
        (["--all"], {"billing", "orders"}),
        (["--group", "orders"], {"orders"}),
        (["--cluster", "c"], {"billing", "orders"}),
        (["--namespace", "shop"], {"orders"}),
        (["--namespace", "shop", "--group", "billing"], set()),
    ],
)
def test_p20_a_hold_is_in_force_in_the_next_cycle_and_its_release_too(
    lagcast: Lagcast, table: Path, config: Path, scope: list[str], held: set[str]
) -> None:
    """Held groups keep their 12 replicas; the others, and all of them afterwards, have the advice of their plans."""
    free = {"billing": ("PeakEnding", 6), "orders": ("PeakEnding", 6)}
    code, out, err = lagcast("hold", *scope, "--reason", "broker upgrade", "--config", config)
    assert (code, out) == (0, "")
    assert "is in force until it is released, nothing is moved: broker upgrade." in err
    assert reasons(lagcast, table, config) == free | dict.fromkeys(held, ("Held", 12))
    assert lagcast("release", *scope, "--config", config)[0] == 0
    # Moves of groups that were not held are under way by now.
    assert {count for _, count in reasons(lagcast, table, config).values()} == {6}


def test_holds_are_listed_with_scope_reason_and_end(lagcast: Lagcast) -> None:
    """As a table, JSON and CSV; an absent name is any."""
    until = (read_clock() + timedelta(hours=1)).replace(microsecond=0)
    lagcast("hold", "--all", "--reason", "upgrade  of\nbrokers")
    lagcast("hold", "--group", "orders", "--cluster", "prod", "--until", until.isoformat(), "--reason", "sale")
    code, out, _ = lagcast("holds", "-o", "json")
    assert code == 0
    first, second = json.loads(out)
    assert (first["cluster"], first["group"], first["until"]) == (None, None, None)
    assert first["reason"] == "upgrade of brokers"
    assert (second["group"], second["cluster"], second["until"]) == ("orders", "prod", f"{until:%Y-%m-%dT%H:%M:%SZ}")
    assert lagcast("holds")[1].splitlines()[0].split() == ["Cluster", "Namespace", "Group", "Placed", "Until", "Reason"]
    assert lagcast("holds", "-o", "csv")[1].startswith("cluster,namespace,group,placed_at,until,reason\r\n")


def test_a_name_that_no_group_has_is_noted(lagcast: Lagcast, table: Path, config: Path) -> None:
    """The hold stands, for a group that may come; what is known is listed, in case it was a slip."""
    reasons(lagcast, table, config)
    code, _, err = lagcast("hold", "--group", "order", "--reason", "sale", "--config", config)
    assert code == 0
    assert "no decision was made yet for group 'order'; there are some for: billing, orders" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["hold", "--reason", "x"], "no group is named; give --group, --cluster or --namespace, together or alone"),
        (["hold", "--all", "--group", "a", "--reason", "x"], "--all is given with a name; give"),
        (["hold", "--all", "--reason", " "], "--reason is empty; say why"),
        (["hold", "--all", "--reason", "x", "--until", "2026-01-01T00:00:00Z"], "which is over; it is 20"),
        (["hold", "--all", "--reason", "x", "--until", "tomorrow"], "--until 'tomorrow' is no instant"),
        (["release"], "no group is named"),
        (["release", "--all"], "there is no hold on all groups; `lagcast holds` lists what there is"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(lagcast: Lagcast, arguments: list[str], sentence: str) -> None:
    """Exit code 2, and nothing is held."""
    code, out, err = lagcast(*arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert json.loads(lagcast("holds", "-o", "json")[1]) == []
