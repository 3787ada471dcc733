"""`lagcast config show`: what is in force, and who has set it."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from recommender.configuring.holidays import HolidaySettings
from recommender.configuring.settings import Settings, load_settings
from recommender.configuring.settings_group import GroupSettings, ScaleToZeroSettings
from recommender.deciding.decision import DecisionSettings

Lagcast = Callable[..., tuple[int, str, str]]

CONFIG = """
decision: {max_lag_seconds: 20, policy: compact}
groups:
  "*": {protocol: cooperative}
  orders: {max_replicas: 12, streams: {tasks: 6}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A settings file."""
    path = tmp_path / "lagcast.yaml"
    path.write_text(CONFIG)
    return path


def test_each_setting_names_who_has_set_it(lagcast: Lagcast, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """The environment over the file over the default; a group is listed with what it does not share."""
    monkeypatch.setenv("LAGCAST_DECISION__POLICY", "stable")
    code, out, _ = lagcast("config", "show", "--config", file, "-o", "json")
    found = {each["key"]: (each["value"], each["origin"]) for each in json.loads(out)}
    assert code == 0
    assert found["decision.policy"] == ("stable", "LAGCAST_DECISION__POLICY")
    assert found["decision.max_lag_seconds"] == (20.0, str(file))
    assert found["decision.scenarios"] == (64, "default")
    assert found["groups.*.protocol"] == ("cooperative", str(file))
    assert {name: value for name, value in found.items() if name.startswith("groups.orders")} == {
        "groups.orders.max_replicas": (12, str(file)),
        "groups.orders.streams.tasks": (6, str(file)),
    }


def test_every_setting_there_is_can_be_seen(lagcast: Lagcast) -> None:
    """Without a file and a variable all of them are defaults."""
    found = {each["key"]: each["origin"] for each in json.loads(lagcast("config", "show", "-o", "json")[1])}
    assert set(found.values()) == {"default"}
    nested: dict[str, type[BaseModel]] = {"holidays": HolidaySettings, "scale_to_zero": ScaleToZeroSettings}
    expected = {f"decision.{name}" for name in DecisionSettings.__dataclass_fields__}
    expected |= {f"groups.*.{name}" for name in GroupSettings.model_fields.keys() - nested.keys()}
    expected |= {f"groups.*.{place}.{name}" for place, part in nested.items() for name in part.model_fields}
    assert expected | (Settings.model_fields.keys() - {"decision", "groups"}) == found.keys()


def test_what_was_changed_can_be_seen_alone(lagcast: Lagcast, file: Path) -> None:
    """As a table for people, and as CSV."""
    code, out, _ = lagcast("config", "show", "--config", file, "--changed")
    keys = ["decision.policy", "decision.max_lag_seconds", "groups.*.protocol", "groups.orders.max_replicas"]
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == [*keys, "groups.orders.streams.tasks"]
    rows = list(csv.DictReader(io.StringIO(lagcast("config", "show", "--config", file, "--changed", "-o", "csv")[1])))
    assert [row["key"] for row in rows][:4] == keys


def test_a_password_of_the_store_is_not_shown(lagcast: Lagcast, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of its address is."""
    monkeypatch.setenv("LAGCAST_STORE_URL", "postgresql://user:secret@db/lagcast")
    for form in ("table", "json", "csv"):
        out = lagcast("config", "show", "-o", form)[1]
        assert "postgresql://user:***@db/lagcast" in out
        assert "secret" not in out


def test_settings_that_are_refused_are_one_sentence(lagcast: Lagcast, tmp_path: Path) -> None:
    """As with every other command."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("decision: {max_lag: 20}")
    code, out, err = lagcast("config", "show", "--config", wrong)
    assert (code, out) == (2, "")
    assert "unknown key 'decision.max_lag'" in " ".join(err.split())


def test_what_is_shown_can_be_a_file_again(lagcast: Lagcast, tmp_path: Path, file: Path) -> None:
    """The keys are those of the file, so that the values set anew are the same settings."""
    shown = {
        each["key"]: each["value"] for each in json.loads(lagcast("config", "show", "--config", file, "-o", "json")[1])
    }
    document: dict[str, object] = {}
    for key, value in shown.items():
        *places, name = key.split(".")
        below = document
        for place in places:
            below = below.setdefault(place, {})  # type: ignore[assignment]  # of nested dictionaries
        below[name] = value
    again = tmp_path / "again.json"
    again.write_text(json.dumps(document))
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    one, other = load_settings(file, environment), load_settings(again, environment)
    assert (one.decision, one.namespaces, one.group("orders")) == (
        other.decision,
        other.namespaces,
        other.group("orders"),
    )
