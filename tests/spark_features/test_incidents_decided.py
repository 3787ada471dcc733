"""P14: incidents from samples through the features job to decisions, beside those on the same hour without one."""

import os
from dataclasses import dataclass, replace
from datetime import timedelta
from time import perf_counter

import pytest

from collector.sample import OffsetSample
from collector.sinks import write_samples
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.history import GroupInterval
from forecasting.refusal import Refusal
from forecasting.units import MessagesPerSecond, Partitions, Replicas
from recommender.adapters.feature_table import FeatureTable
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from spark_features.batch import build_features
from spark_features.java import find_java
from spark_features.session import spark_session
from tests.spark_features.conftest import START_AT
from tests.spark_features.incidents import HOUR_SECONDS, INCIDENT_SECOND, INCIDENTS, Incident

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PARTITIONS, MEMBERS = 6, 3
CLEAN = "clean"
# One replica does 300/s, so that three carry 900/s, and the useful counts are 1, 2, 3 and 6.
CAPACITY = MessagesPerSecond(300.0)
CYCLES = range(40, 61)
LOADS = ("steady", "rising", "falling")
# Work has to be done again for hours, so that more replicas are no mistake.
REAL_BACKLOGS = {"offsets reset back"}
# Without a group there is no advice, and more partitions have other useful counts.
LASTING = {"group deleted", "partitions added", *REAL_BACKLOGS}
REFUSED = {"rebalancing", "partial_data", "history_stale", "not_enough_history", "no_data", "livelock_suspected"}


def rate_at(load: str, second: int) -> float:
    """Messages/s of all partitions: 600, from minute 38 on up to 870 or down to 120 within ten minutes."""
    moved = min(1.0, max(0.0, (second - 2280) / 600.0))
    return 600.0 + {"steady": 0.0, "rising": 270.0, "falling": -480.0}[load] * moved


def clean(load: str) -> list[OffsetSample]:
    """An hour of rounds each 15 s; commits are those of half of a commit interval ago."""
    made, arrived = [], 6_000_000.0
    for second in range(15, HOUR_SECONDS + 1, 15):
        rate = rate_at(load, second)
        arrived += rate * 15
        each = int(arrived / PARTITIONS)
        made += [
            OffsetSample(
                cluster="c",
                group=load,
                topic="orders",
                partition=partition,
                sampled_at=START_AT + timedelta(seconds=second),
                end_offset=each,
                committed_offset=each - int(rate / PARTITIONS * 2.5),
                log_start_offset=0,
                group_state="STABLE",
                group_protocol="classic",
                group_assignor="cooperative-sticky",
                members=MEMBERS,
                static_members=0,
                clients="java",
            )
            for partition in range(PARTITIONS)
        ]
    return made


@dataclass(frozen=True)
class Decided:
    """The rows of every group, and the decision in each cycle, by minute."""

    rows: dict[str, list[GroupInterval]]
    decisions: dict[str, dict[int, Decision]]


@pytest.fixture(scope="module", name="decided")
def decided_fixture(tmp_path_factory: pytest.TempPathFactory) -> Decided:
    """Every incident in every load, each a group of its own: one run of the job, and the loop that `up` runs."""
    folder = tmp_path_factory.mktemp("incidents")
    shapes: dict[str, Incident] = {CLEAN: list, **INCIDENTS}
    for load in LOADS:
        for name, happens in shapes.items():
            group = f"{load}: {name}"
            write_samples((replace(row, group=group) for row in happens(clean(load))), folder / "samples")
    spark = spark_session(
        "tests", java=find_java(os.environ), master="local[2]", memory="1g", log_path=folder / "spark.log"
    )
    build_features(spark, folder / "samples", folder / "features")
    table = FeatureTable(folder / "features")
    loop = Recommender(
        watched=WatchedGroups(
            histories=table,
            profile_of=lambda cluster, group, observed: GroupProfile(
                cluster=cluster,
                group=group,
                partitions=Partitions(observed.partitions),
                capacity=Capacity(p20=CAPACITY, p50=CAPACITY, p90=CAPACITY, source="configured"),
                protocol="cooperative",
                client="java",
                max_replicas=Replicas(PARTITIONS),
            ),
            settings=DecisionSettings(),
            store=SqlDecisionStore(sqlite_url(folder / "decisions.sqlite")),
            timer=perf_counter,
        )
    )
    decisions: dict[str, dict[int, Decision]] = {}
    for minute in CYCLES:
        for decision in loop.run_once(now=START_AT + timedelta(minutes=minute)):
            decisions.setdefault(decision.group, {})[minute] = decision
    rows = {group: list(table.intervals(cluster, group)) for cluster, group in table.groups()}
    return Decided(rows=rows, decisions=decisions)


def near_rates(load: str, row: GroupInterval) -> tuple[float, float]:
    """The least and the most that was produced within five minutes of the row, with a tenth to spare."""
    second = round((row.interval_end_at - START_AT).total_seconds())
    rates = [rate_at(load, second + minutes * 60) for minutes in range(-6, 7)]
    return 0.9 * min(rates), 1.1 * max(rates)


@pytest.mark.parametrize("incident", INCIDENTS)
@pytest.mark.parametrize("load", LOADS)
def test_p14_no_incident_makes_up_a_rate(decided: Decided, load: str, incident: str) -> None:
    """What a row says was produced has been produced; where it cannot be known, the row has no rate."""
    for row in decided.rows[f"{load}: {incident}"]:
        least, most = near_rates(load, row)
        if row.produce_messages_per_second is not None:
            assert least <= row.produce_messages_per_second <= most, row


@pytest.mark.parametrize("incident", INCIDENTS)
@pytest.mark.parametrize("load", LOADS)
def test_p14_no_incident_moves_a_group_the_wrong_way(decided: Decided, load: str, incident: str) -> None:
    """A steady group stays, a rising one is not scaled in and a falling one not out; a refusal has its reason.

    Only a group that has really stood still, or whose commits were set back, has work that asks for more replicas.
    """
    allowed = {"steady": {"hold"}, "rising": {"hold", "scale_out"}, "falling": {"hold", "scale_in"}}[load]
    allowed |= {"scale_out"} if incident in REAL_BACKLOGS else set()
    found = decided.decisions[f"{load}: {incident}"]
    assert found.keys() == set(CYCLES)
    for minute, decision in found.items():
        if isinstance(decision, Refusal):
            assert minute >= INCIDENT_SECOND // 60, decision
            assert decision.reason in REFUSED, decision
            assert decision.hold_replicas in {MEMBERS, None}, decision
        else:
            assert decision.action in allowed, (minute, decision.action, decision.desired_replicas, decision.sentences)


@pytest.mark.parametrize("incident", [name for name in INCIDENTS if name not in LASTING])
@pytest.mark.parametrize("load", LOADS)
def test_p14_after_an_incident_the_advice_is_that_of_the_clean_hour(decided: Decided, load: str, incident: str) -> None:
    """A quarter of an hour later the group is advised again, as it would have been without."""
    ours, theirs = (
        {(each.action, each.desired_replicas) for each in last_advice(decided, f"{load}: {name}")}
        for name in (incident, CLEAN)
    )
    assert ours == theirs


def last_advice(decided: Decided, group: str) -> list[Recommendation]:
    """The advice of the last three cycles: that after a move which nobody makes waits in every third of them."""
    last = [decided.decisions[group][minute] for minute in CYCLES[-3:]]
    assert all(isinstance(each, Recommendation) for each in last), last
    return [each for each in last if isinstance(each, Recommendation)]


def test_the_clean_hours_are_told_apart(decided: Decided) -> None:
    """What incidents are held against: a hold throughout, a scale-out and a scale-in, and no refusal."""
    actions = {
        load: [getattr(decided.decisions[f"{load}: {CLEAN}"][minute], "action", None) for minute in CYCLES]
        for load in LOADS
    }
    assert set(actions["steady"]) == {"hold"}
    assert set(actions["rising"]) == {"hold", "scale_out"}
    assert set(actions["falling"]) == {"hold", "scale_in"}
