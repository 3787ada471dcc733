"""Findings: what is in the way of a group, whatever its prices say."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from cost_model.profile import GroupProfile
from forecasting.history import History
from recommender.findings import Finding, finding_of

MakeHistory = Callable[..., History]


def found(history: History, profile: GroupProfile) -> Finding | None:
    finding = finding_of(history, profile, previous=None, now=history.recent[-1].interval_end_at)
    assert finding is None or isinstance(finding, Finding)
    return finding


@pytest.mark.parametrize(("done", "short"), [(6600.0, True), (6700.0, False)])
def test_a_group_with_a_backlog_that_does_a_sixth_less_than_configured_is_short(
    history: MakeHistory, profile: GroupProfile, done: float, *, short: bool
) -> None:
    """8 of 1,000/s should do 8,000; five sixths of that are 6,667. More replicas stay allowed: they may well help."""
    finding = found(history(9000.0, consume_messages_per_second=done, lag_messages=200_000.0), profile)
    assert (finding is not None) is short
    if finding is not None:
        assert (finding.reason, finding.most_replicas) == ("downstream_limit", 24)
        assert finding.sentence == "8 replicas should do 8,000/s and do 6,600: something else limits them."


def test_one_replica_is_spoken_of_as_one(history: MakeHistory, profile: GroupProfile) -> None:
    """The same sentence with its verbs in the singular."""
    finding = found(history(900.0, members=1, consume_messages_per_second=700.0, lag_messages=20_000.0), profile)
    assert finding is not None
    assert finding.sentence == "1 replica should do 1,000/s and does 700: something else limits it."


def test_nobody_is_short_who_keeps_up_catches_up_or_has_just_changed(
    history: MakeHistory, profile: GroupProfile
) -> None:
    """Little waits; or less and less does; or members have just changed; or only five minutes are known."""
    slow: dict[str, object] = {"consume_messages_per_second": 4000.0, "lag_messages": 200_000.0}
    assert found(history(4000.0), profile) is None
    assert found(history(9000.0, last={"lag_messages": 199_999.0}, **slow), profile) is None
    assert found(history(9000.0, last={"members": 12}, **slow), profile) is None
    assert found(history(9000.0, minutes=5, **slow), profile) is None
    assert found(history(9000.0, **slow), profile) is not None


def test_a_capacity_that_was_measured_is_not_short_of_itself(history: MakeHistory, profile: GroupProfile) -> None:
    """What the group's own windows showed follows them; only what somebody configured can cease to hold."""
    assert profile.capacity is not None
    measured = replace(profile, capacity=replace(profile.capacity, source="saturated_windows"))
    assert found(history(9000.0, consume_messages_per_second=4000.0, lag_messages=200_000.0), measured) is None
