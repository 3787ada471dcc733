"""Promises by name, each under the number that product and tests share."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cost_model.physics.profile import GroupProfile
from forecasting.forecast import Forecast
from forecasting.history import GroupInterval, History
from forecasting.refusal import Refusal
from forecasting.units import Partitions, Seconds
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.following.session import Session

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SETTINGS = DecisionSettings()
MakeRow = Callable[..., GroupInterval]
MakeHistory = Callable[..., History]
MakeForecast = Callable[[Sequence[float]], Forecast]
MakeFluid = Callable[..., Any]
# The whole pipeline from rows to bytes, for a separate process.
PUBLISH = """
from datetime import UTC, datetime, timedelta
from api.convert import to_wire
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.history import GroupInterval
from recommender.deciding.decision import DecisionSettings
from recommender.following.session import Session
from recommender.configuring.settings import GroupSettings
start = datetime(2026, 1, 5, tzinfo=UTC)
session = Session(
    GroupProfile(
        cluster="c", group="g\\u00f6", partitions=24,
        capacity=Capacity(p20=900.0, p50=1000.0, p90=1100.0, source="configured"),
    ),
    DecisionSettings(),
)
for minute in range(1, 241):
    rate = 6000.0 + 20.0 * minute + 300.0 * (minute * 7919 % 13) / 13
    now = start + timedelta(minutes=minute)
    session.observe(
        GroupInterval(
            cluster="c", group="g\\u00f6", topics="t", interval_end_at=now, interval_seconds=60,
            produce_messages_per_second=rate, consume_messages_per_second=rate, lag_messages=rate, lag_seconds=1.0,
            partitions=24, sampled_partitions=24, members=8,
        )
    )
wire = to_wire(session.recommend(now), GroupSettings(), now=now)
import sys
sys.stdout.buffer.write(wire.model_dump_json(exclude_none=True).encode())
"""


def _bytes_from(**environment: str) -> bytes:
    """The bytes that a new process with these variables publishes."""
    done = subprocess.run(
        [sys.executable, "-c", PUBLISH], env=os.environ | environment, capture_output=True, check=True, timeout=120
    )
    return done.stdout


@pytest.mark.slow
def test_p1_equal_inputs_give_equal_bytes_in_any_process() -> None:
    """Another hash seed, locale or time zone does not change one byte of the published advice."""
    here = _bytes_from(PYTHONHASHSEED="1", LC_ALL="C", TZ="UTC")
    there = _bytes_from(PYTHONHASHSEED="2026", LC_ALL="de_DE.UTF-8", TZ="Asia/Kathmandu")
    assert b'"kind":"Recommendation"' in here
    assert here == there


def _advice(decision: Decision) -> tuple[object, ...]:
    assert isinstance(decision, Recommendation), decision
    return (decision.action, decision.desired_replicas, decision.execute_at, decision.chosen, decision.stay)


@pytest.mark.parametrize("rate", [1500.0, 6500.0, 9000.0])
def test_p2_no_sample_from_inside_a_rebalance_decides(row: MakeRow, profile: GroupProfile, rate: float) -> None:
    """With 64 times the lag while members rejoin, action, count, time and prices equal those of the run without it."""
    now = NOW + timedelta(minutes=40, seconds=15)
    advice = []
    for spike in ({}, {"lag_messages": 64 * 2.5 * rate}):
        session = Session(profile, SETTINGS)
        for minute in range(1, 41):
            session.observe(row(NOW + timedelta(minutes=minute), rate, interval_seconds=60))
        unsettled = {"in_rebalance": True, "group_state": "PREPARING_REBALANCING"}
        session.observe(row(now, rate, **(unsettled | spike)))
        advice.append(_advice(session.recommend(now)))
    assert advice[0] == advice[1]


@pytest.mark.parametrize(
    "damage",
    [
        {"sampled_partitions": 23, "lag_messages": None, "produce_messages_per_second": None},
        {"sampled_partitions": 0, "lag_messages": None, "produce_messages_per_second": None},
        {"sampled_partitions": 23},
    ],
    ids=["one partition gone", "all gone", "one gone, the rest as before"],
)
def test_p3_partial_data_never_lowers_replicas(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile, damage: dict[str, object]
) -> None:
    """A valley that gives 21 of 24 replicas back keeps them all while its newest row lacks partitions."""
    whole = recommend(history(1500.0, members=24), forecast([1500.0]), profile, SETTINGS, previous=None, now=NOW)
    assert isinstance(whole, Recommendation)
    assert whole.action == "scale_in"
    held = recommend(
        history(1500.0, members=24, last=damage), forecast([1500.0]), profile, SETTINGS, previous=None, now=NOW
    )
    assert isinstance(held, Recommendation)
    assert (held.action, held.binding_rule) == ("hold", "partial_data")


@pytest.mark.parametrize("age_seconds", [601, 3600, 86_400])
def test_p3_stale_data_holds_with_reason_and_age(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile, age_seconds: int
) -> None:
    """Past the freshness limit the refusal has the last observed count and the age, and no count to act on."""
    now = NOW + timedelta(seconds=age_seconds)
    refused = recommend(history(1500.0, members=24), forecast([1500.0]), profile, SETTINGS, previous=None, now=now)
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.hold_replicas) == ("history_stale", 24)
    assert dict(refused.evidence)["history_age_seconds"] == age_seconds


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    partitions=st.integers(1, 40),
    beyond=st.integers(-40, 3),
    thresholds=st.floats(0.0, 1.5),
    load=st.floats(0.0, 3.0),
    weights=st.none() | st.lists(st.floats(0.1, 10.0), min_size=40, max_size=40),
)
def test_p4_never_above_the_useful_maximum(  # noqa: PLR0917  # fixtures and drawn values
    history: MakeHistory,
    forecast: MakeForecast,
    profile: GroupProfile,
    partitions: int,
    beyond: int,
    thresholds: float,
    load: float,
    weights: list[float] | None,
) -> None:
    """At any lag, also from P to P + 1 thresholds of 1,000, no move goes beyond the partitions, and idle replicas go.

    A threshold scaler answers a lag between P and P + 1 thresholds with P + 1 members, of which one is idle.
    """
    sized = replace(
        profile,
        partitions=Partitions(partitions),
        partition_weights=None if weights is None else tuple(weights[:partitions]),
    )
    members, rate = max(1, partitions + beyond), load * 1000.0 * partitions
    columns: dict[str, object] = {"members": members, "partitions": partitions, "sampled_partitions": partitions}
    lag = 2.5 * rate + (partitions + thresholds) * 1000.0
    decision = recommend(
        history(rate, minutes=16, lag_messages=lag, **columns),
        forecast([rate]),
        sized,
        SETTINGS,
        previous=None,
        now=NOW,
    )
    assert isinstance(decision, Recommendation)
    assert max(decision.useful_replicas) <= partitions
    if decision.desired_replicas != members:
        assert decision.desired_replicas <= max(decision.useful_replicas)
    elif members > partitions:
        assert decision.binding_rule == "backlog_draining"


@pytest.mark.parametrize(
    "thousands_per_replica", [8, pytest.param(48, marks=pytest.mark.slow), pytest.param(120, marks=pytest.mark.slow)]
)
def test_p10_one_spike_is_one_step_at_most(fluid: MakeFluid, profile: GroupProfile, thousands_per_replica: int) -> None:
    """B2: 8 replicas, one sample of 15 s whose lag gives a threshold scaler 64. HPA moves four times, lagcast never.

    At 6,000/s the sample shows 64,000, 384,000 and 960,000 messages of lag; the next one shows none of it.
    """
    session = SpikedSession(profile, SETTINGS, at_row=240, lag=thousands_per_replica * 8000.0)
    group = fluid(session=session, members=8).play([6000.0] * 480)
    assert group.moves == []


class SpikedSession(Session):
    """A session that receives one sample with a false lag."""

    def __init__(self, profile: GroupProfile, settings: DecisionSettings, *, at_row: int, lag: float) -> None:
        super().__init__(profile, settings)
        self._rows_until_spike, self._spike = at_row, lag

    def observe(self, row: GroupInterval, *, may_replay: bool = True) -> None:
        """Pass on every row unchanged, except one."""
        self._rows_until_spike -= 1
        row = replace(row, lag_messages=self._spike) if self._rows_until_spike == 0 else row
        super().observe(row, may_replay=may_replay)


@pytest.mark.parametrize(("p99_seconds", "rested"), [(1.0, False), (60.0, True)])
def test_p11_moves_leave_long_work_time_to_end(
    fluid: MakeFluid, profile: GroupProfile, p99_seconds: float, *, rested: bool
) -> None:
    """B6: a message of 60 s keeps moves 300 s apart, on a load that needs the next one after three minutes.

    6,000/s, then 8,500/s, 13,000/s and 20,000/s: work of 1 s lets 12 replicas follow 8, and 24 those, as it comes.
    """
    working = replace(profile, processing_p99_seconds=Seconds(p99_seconds))
    group = fluid(session=Session(working, SETTINGS), members=8)
    group.play([6000.0] * 130 + [8500.0] * 12 + [13_000.0] * 12 + [20_000.0] * 60)
    seconds = [second for second, _, _ in group.moves]
    assert len(seconds) >= 2
    assert (min(after - before for before, after in pairwise(seconds)) >= 300) is rested


def test_p11_churn_without_commits_holds(history: MakeHistory, profile: GroupProfile) -> None:
    """B6: 10,000 wait, members come and go each minute, nothing is committed for 15 minutes: refused, not scaled."""
    past = history(100.0, minutes=60)
    churning = tuple(
        replace(r, lag_messages=10_000.0, consume_messages_per_second=0.0, in_rebalance=index % 4 == 0)
        for index, r in enumerate(past.recent)
    )
    refused = recommend(
        replace(past, recent=churning), _forecast_refused(past), profile, SETTINGS, previous=None, now=NOW
    )
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.hold_replicas) == ("livelock_suspected", 8)
    committing = (*churning[:-9], replace(churning[-9], consume_messages_per_second=50.0), *churning[-8:])
    moving = recommend(
        replace(past, recent=committing), _forecast_refused(past), profile, SETTINGS, previous=None, now=NOW
    )
    assert isinstance(moving, Refusal)
    assert moving.reason != "livelock_suspected"


def _forecast_refused(past: History) -> Refusal:
    """A forecast that is refused; the decision has this refusal if no other comes before it."""
    return Refusal(
        cluster=past.cluster,
        group=past.group,
        reason="not_enough_history",
        sentence="Nothing was forecast.",
        evidence=(),
        remedy="Wait.",
        refused_at=NOW,
    )


@pytest.mark.parametrize("backlog_seconds", [6.0, 60.0, 600.0])
def test_p12_nothing_is_removed_while_a_backlog_drains(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile, backlog_seconds: float
) -> None:
    """As in keda#5096, arrivals have ended and work has not: 24 replicas stay until 5 s of arrivals are left."""
    lag = 1500.0 * (2.5 + backlog_seconds)
    decision = recommend(
        history(1500.0, members=24, lag_messages=lag), forecast([1500.0]), profile, SETTINGS, previous=None, now=NOW
    )
    assert isinstance(decision, Recommendation)
    assert decision.desired_replicas == 24


def test_p12_nothing_is_removed_on_an_unknown_capacity(row: MakeRow, profile: GroupProfile) -> None:
    """A group without a past, never at its limit: no capacity, then no forecast, then to keep what did no more."""
    session = Session(replace(profile, capacity=None), SETTINGS)
    decisions = []
    for minute in range(1, 61):
        session.observe(row(NOW + timedelta(minutes=minute), 1500.0, interval_seconds=60, members=24))
        decisions.append(session.recommend(NOW + timedelta(minutes=minute)))
    refused = [decision for decision in decisions if isinstance(decision, Refusal)]
    advised = [decision for decision in decisions if isinstance(decision, Recommendation)]
    reasons = [decision.reason for decision in refused]
    assert reasons == ["capacity_unknown"] * 2 + ["not_enough_history"] * (len(refused) - 2)
    assert {decision.hold_replicas for decision in refused} == {24}
    assert {decision.desired_replicas for decision in advised} == {24}
    assert {decision.capacity.source for decision in advised} == {"lower_bound"}
    assert len(advised) >= 25


def test_p12_under_a_lower_bound_only_what_others_have_carried_is_removed(row: MakeRow, profile: GroupProfile) -> None:
    """After half an hour at 6,000/s on 24 replicas, 3,000/s are left to as many as did no more than that each."""
    session = Session(replace(profile, capacity=None), SETTINGS)
    for minute in range(1, 91):
        rate = 6000.0 if minute <= 40 else 3000.0
        session.observe(row(NOW + timedelta(minutes=minute), rate, interval_seconds=60, members=24))
    decision = session.recommend(NOW + timedelta(minutes=90))
    assert isinstance(decision, Recommendation)
    assert decision.capacity.p50 == pytest.approx(250.0)
    assert decision.action == "scale_in"
    assert decision.desired_replicas >= 12


@pytest.mark.slow
def test_p13_a_capped_sink_is_tried_once(fluid: MakeFluid, profile: GroupProfile) -> None:
    """B23: 7,500/s come to 8 replicas before a sink of 7,000/s: one scale-out at most, then a finding and no more."""
    group = fluid(session=Session(profile, SETTINGS), members=8, sink=7000.0).play([6500.0] * 180 + [7500.0] * 480)
    assert len([move for move in group.moves if move[2] > move[1]]) <= 1
    later = [decision for decision in group.decisions[-60:] if isinstance(decision, Recommendation)]
    assert {decision.action for decision in later} == {"hold"}
    assert {decision.reason for decision in later} <= {"downstream_limit", "guarded"}
    assert all(any("look behind the group" in line for line in decision.sentences) for decision in later)


def test_p13_a_hot_partition_is_named(history: MakeHistory, forecast: MakeForecast, profile: GroupProfile) -> None:
    """Partition 17 gets 80 % of all, so 5 replicas do as much as 24: a finding names it, and none is added."""
    hot: dict[str, object] = {"busiest_partition": "orders-17", "partition_skew_ratio": 0.8 * 24, "members": 5}
    decision = recommend(history(9000.0, **hot), forecast([9000.0]), profile, SETTINGS, previous=None, now=NOW)
    assert isinstance(decision, Recommendation)
    assert (decision.action, decision.reason) == ("hold", "hot_partition")
    assert any("partition orders-17 carries 80% of the load" in sentence for sentence in decision.sentences)
