"""Any settings that are accepted give a decision: figures of every size, alone and together, and no failure."""

from collections.abc import Mapping
from typing import get_args

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from cost_model.physics.detected import ObservedGroup
from forecasting.refusal import Refusal
from forecasting.units import Partitions
from recommender.configuring.settings import Settings, load_settings
from recommender.configuring.settings_check import SettingsError, invalid_decision
from recommender.configuring.settings_group import GroupSettings, StreamsSettings
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.following.session import Session
from tests.recommender.following.by_the_row import NOON, row

# Those at which sums and products leave what a float can hold are among them.
SIZES = (0, 1, -1, 5e-324, 1e-300, 1e-9, 0.5, 100, 20_000, 10**9, 2_147_483, 1e12, 1e18, 1e150, 1.7e308, 10**400)
VALUES = st.one_of(
    st.sampled_from(SIZES),
    st.floats(),
    st.integers(0, 10_000),
    st.booleans(),
    st.sampled_from(["stable", "compact", "cooperative", "kip848", "java", "librdkafka", "sticky", "message", "", "€"]),
)
_DECISION = TypeAdapter(DecisionSettings)
# A price for each minute of a day, 1,024 times: long, and tested where decisions are timed.
LONG = {"scenarios", "horizon_seconds"}
Chosen = Mapping[str, object]


def chosen(names: list[str]) -> st.SearchStrategy[Chosen]:
    return st.dictionaries(st.sampled_from(sorted(set(names) - LONG)), VALUES, max_size=5)


def accepted(group: Chosen, streams: Chosen, decision: Chosen) -> tuple[GroupSettings, DecisionSettings] | None:
    """The settings as files and objects are read; None where they are refused."""
    try:
        of_group = GroupSettings.model_validate(dict(group) | ({"streams": dict(streams)} if streams else {}))
        of_decision = _DECISION.validate_python(dict(decision))
    except ValidationError:
        return None
    return None if invalid_decision(of_decision) else (of_group, of_decision)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    group=chosen(list(GroupSettings.model_fields)),
    streams=chosen(list(StreamsSettings.model_fields)),
    decision=chosen(list(DecisionSettings.__dataclass_fields__)),
)
@example(group={"capacity_messages_per_second_per_replica": 1.0296066064503527e307}, streams={}, decision={})
@example(group={"capacity_messages_per_second_per_replica": 5e-324}, streams={}, decision={})
@example(group={}, streams={"restore_bytes": 1e18, "restore_bytes_per_second": 1e-300, "tasks": 24}, decision={})
@example(group={"start_up_seconds": 2_147_483}, streams={}, decision={"price_per_late_message": 1e12})
def test_p20_accepted_settings_give_advice_or_a_refusal(group: Chosen, streams: Chosen, decision: Chosen) -> None:
    """Of an hour of rows with a backlog at its end; warnings of overflows are errors here."""
    found = accepted(group, streams, decision)
    if found is None:
        return
    of_group, of_decision = found
    profile = of_group.profile("c", "g", ObservedGroup(partitions=Partitions(24)))
    rows = [row(place, lag_seconds=2.5 if place < 230 else 40.0) for place in range(-239, 1)]
    session = Session(profile, of_decision, rows)
    assert isinstance(session.recommend(NOON), get_args(Recommendation | Refusal))


WORDS = sorted(
    {*Settings.model_fields, *GroupSettings.model_fields, *DecisionSettings.__dataclass_fields__, "orders", "*"}
)
YAML = st.recursive(
    st.none() | VALUES | st.text(max_size=20) | st.dates() | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=YAML.map(lambda found: yaml.safe_dump(found, allow_unicode=True).encode()) | st.binary(max_size=60))
@example(content=b"decision: *nobody")
@example(content=b"a: &a [*a]")
@example(content=b"\xff\xfe\x00")
@example(content=b"decision: {max_lag_seconds: 2026-01-05}")
@example(content=b"2026-13-45: 1")
@example(content=b"groups: {2026-01-05: {}}")
@example(content=b"!!python/object/apply:os.system ['true']")
def test_p20_a_settings_file_of_any_content_is_read_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """The sentence names the file."""
    path = tmp_path_factory.mktemp("settings") / "lagcast.yaml"
    path.write_bytes(content)
    sentence = f"{path} is read"
    try:
        load_settings(path, {"LAGCAST_STATE_DIR": str(path.parent)})
    except SettingsError as error:
        sentence = str(error)
    assert str(path) in sentence
    assert "\n" not in sentence
