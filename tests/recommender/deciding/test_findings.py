"""Findings: what limits a group, independent of its prices."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from cost_model.physics.profile import GroupProfile
from forecasting.history import History
from forecasting.refusal import Refusal
from forecasting.units import MessagesPerSecond
from recommender.deciding.findings import finding_of
from recommender.deciding.limits import Finding
from tests.recommender.conftest import NOW

MakeHistory = Callable[..., History]


def found(history: History, profile: GroupProfile) -> Finding | None:
    finding = finding_of(history, profile, previous=None, now=history.recent[-1].interval_end_at)
    assert finding is None or isinstance(finding, Finding)
    return finding


@pytest.mark.parametrize(("done", "short"), [(6600.0, True), (6700.0, False)])
def test_a_group_with_a_backlog_that_does_a_sixth_less_than_configured_is_short(
    history: MakeHistory, profile: GroupProfile, done: float, *, short: bool
) -> None:
    """8 of 1,000/s should do 8,000; five sixths of that are 6,667. More replicas stay allowed, as they may help."""
    finding = found(history(9000.0, consume_messages_per_second=done, lag_messages=200_000.0), profile)
    assert (finding is not None) is short
    if finding is not None:
        assert (finding.reason, finding.most_replicas) == ("downstream_limit", 24)
        assert finding.sentence == "8 replicas should consume 8,000/s and consume 6,600: something else limits them."


def test_the_sentence_of_one_replica_is_singular(history: MakeHistory, profile: GroupProfile) -> None:
    """The same sentence has its verbs in the singular."""
    finding = found(history(900.0, members=1, consume_messages_per_second=700.0, lag_messages=20_000.0), profile)
    assert finding is not None
    assert finding.sentence == "1 replica should consume 1,000/s and consumes 700: something else limits it."


def test_a_group_that_keeps_up_catches_up_or_has_just_changed_is_not_short(
    history: MakeHistory, profile: GroupProfile
) -> None:
    """Little lag, falling lag, a recent change of members, or only five known minutes give no finding."""
    slow: dict[str, object] = {"consume_messages_per_second": 4000.0, "lag_messages": 200_000.0}
    assert found(history(4000.0), profile) is None
    assert found(history(9000.0, last={"lag_messages": 199_999.0}, **slow), profile) is None
    assert found(history(9000.0, last={"members": 12}, **slow), profile) is None
    assert found(history(9000.0, minutes=5, **slow), profile) is None
    assert found(history(9000.0, **slow), profile) is not None


def test_a_measured_capacity_gives_no_finding(history: MakeHistory, profile: GroupProfile) -> None:
    """A capacity measured at the limit follows the limit; a set one, or one reached once, can cease to hold."""
    assert profile.capacity is not None
    slow = history(9000.0, consume_messages_per_second=4000.0, lag_messages=200_000.0)
    measured = replace(profile, capacity=replace(profile.capacity, source="saturated_windows"))
    assert found(slow, measured) is None
    beyond = MessagesPerSecond(1.15 * profile.capacity.p20)
    carried = replace(profile, capacity=replace(profile.capacity, p50=beyond, p90=beyond, source="unsaturated_windows"))
    finding = found(slow, carried)
    assert finding is not None
    assert finding.sentence == "8 replicas should consume 8,000/s and consume 4,000: something else limits them."


def standing(
    history: MakeHistory, profile: GroupProfile, *, seconds: int, growth: float = 1.0, left: float = 1.0
) -> object:
    """The finding if partition 7 of 24 has stood still for so long; `left`: multiples of a partition's produce rate."""
    steady = history(2400.0)
    rows = []
    for seen in steady.recent:
        age = max(0.0, seconds - (NOW - seen.interval_end_at).total_seconds())
        row = replace(seen, lag_messages=6000.0 + age * 100.0 * left)  # 2,400/s over 24 partitions
        rows.append(replace(row, worst_lag_seconds=2.5 + age * growth, worst_partition="orders-7") if age else row)
    return finding_of(replace(steady, recent=tuple(rows)), profile, previous=None, now=NOW)


def test_a_partition_that_stands_still_while_others_go_on_is_named(history: MakeHistory, profile: GroupProfile) -> None:
    """Six minutes are longer than a batch may last (300 s); four are not, nor is a slow partition still."""
    refusal = standing(history, profile, seconds=360)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "livelock_suspected"
    assert refusal.sentence == (
        "For 345 s partition orders-7 was not consumed and the others were: its messages wait for 362 s."
    )
    assert refusal.remedy == (
        "Look at the next message of this partition, and at the consumer that reads it; further replicas would "
        "hang at it too."
    )
    assert refusal.hold_replicas == 8
    assert standing(history, profile, seconds=240) is None
    assert standing(history, profile, seconds=360, growth=0.5) is None


def test_a_group_whose_lag_grows_by_more_than_one_partition_is_advised(
    history: MakeHistory, profile: GroupProfile
) -> None:
    """The lag grows by three partitions' produce rates each second: more replicas may help."""
    assert not isinstance(standing(history, profile, seconds=360, left=3.0), Refusal)


def test_a_group_that_worked_until_five_minutes_ago_and_hangs_is_refused(
    history: MakeHistory, profile: GroupProfile
) -> None:
    """The time counts from the last commit, not from a quarter of an hour ago; without lag there is no refusal."""
    steady = history(2400.0)
    for minutes, lag, reason in ((6, 50_000.0, "livelock_suspected"), (4, 50_000.0, None), (6, 0.0, None)):
        silent_from = NOW - timedelta(minutes=minutes)
        rows = [
            row
            if row.interval_end_at <= silent_from
            else replace(row, consume_messages_per_second=0.0, lag_messages=lag)
            for row in steady.recent
        ]
        found = finding_of(replace(steady, recent=tuple(rows)), profile, previous=None, now=NOW)
        assert (found.reason if isinstance(found, Refusal) else None) == reason


def behind(
    history: History, *, partitions: float, waits_seconds: tuple[float, float] = (100.0, 700.0), **changes: object
) -> History:
    """So many of the 24 partitions have lag that grows from row to row; the others have that of a commit interval."""
    first, last = waits_seconds
    rows = []
    for index, row in enumerate(history.recent):
        waits = first + (last - first) * index / (len(history.recent) - 1)
        lag = 5.0 + waits * partitions / 24
        rows.append(replace(row, lag_seconds=lag, worst_lag_seconds=waits, worst_partition="orders-7"))
    rows[-1] = replace(rows[-1], **changes)  # type: ignore[arg-type]  # columns of a row
    return replace(history, recent=tuple(rows))


def test_a_replica_whose_partitions_alone_fall_behind_is_called_slow(
    history: MakeHistory, profile: GroupProfile
) -> None:
    """Three partitions, the share of one of 8 replicas, have had lag for minutes; more replicas stay allowed."""
    finding = found(behind(history(6000.0), partitions=3.0), profile)
    assert finding is not None
    assert (finding.reason, finding.most_replicas) == ("slow_replica", 24)
    assert finding.sentence == (
        "One replica seems slow: for 15 min partition orders-7 has lagged, 700 s now, and the other replicas keep up; "
        "replace the pod that reads it."
    )


def test_no_replica_is_slow_if_others_lag_too_or_the_lag_shrinks(history: MakeHistory, profile: GroupProfile) -> None:
    """Lag on half of all partitions, a shrinking backlog, a pause, a change of size or one hot partition give none."""
    steady = history(6000.0)
    assert found(behind(steady, partitions=12.0), profile) is None
    assert found(behind(steady, partitions=3.0, waits_seconds=(700.0, 650.0)), profile) is None
    assert found(behind(steady, partitions=3.0, waits_seconds=(10.0, 700.0)), profile) is None
    assert found(behind(steady, partitions=3.0, members=7), profile) is None
    hot = replace(profile, partition_weights=(4.0, *[1.0] * 23))
    finding = found(behind(steady, partitions=1.0), hot)
    assert finding is None or finding.reason == "hot_partition"
    assert found(behind(steady, partitions=3.0), profile) is not None
