"""The past from Prometheus: gaps stay gaps, two exporters are one, and only missing minutes are requested."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.errors import RejectedError
from collector.prometheus_dialects import DIALECTS, detect
from collector.prometheus_found import Discovered, discover
from collector.prometheus_http import MAX_POINTS_PER_SERIES, PrometheusRequests, Series
from collector.prometheus_past import MAX_POINTS, PastPlan, past_tables, plan_past
from collector.prometheus_rows import GroupPast, Readings, sample_rows
from collector.sinks import write_table
from tests.collector.memory_prometheus import MemoryPrometheus, offsets_text, serving

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOON_SECONDS = int(NOON.timestamp())
MINUTE = timedelta(minutes=1)
KAFKA_EXPORTER = DIALECTS[0]
Known = dict[str, tuple[datetime, datetime]]


@pytest.fixture
def memory() -> Iterator[MemoryPrometheus]:
    with serving(MemoryPrometheus()) as server:
        yield server


def found(memory: MemoryPrometheus, *groups: str, cluster: str = "prod", hours: float = 0.5) -> Discovered:
    since = NOON - timedelta(hours=hours)
    with PrometheusRequests(memory.url, settings={}) as prometheus:
        return discover(prometheus, cluster=cluster, groups=groups or None, since=since, now=NOON)


def rows(memory: MemoryPrometheus, plan: PastPlan) -> list[dict[str, Any]]:
    with PrometheusRequests(memory.url, settings={}) as prometheus:
        return [row for table in past_tables(prometheus, plan, cluster="prod") for row in table.to_pylist()]


def past(memory: MemoryPrometheus, *groups: str) -> list[dict[str, Any]]:
    return rows(memory, plan_past(found(memory, *groups), known={}))


def minutes_ago(samples: list[dict[str, Any]]) -> set[int]:
    return {round((NOON - row["sampled_at"]) / MINUTE) for row in samples}


def steady(memory: MemoryPrometheus, *, minutes: int, every: int = 15, quiet: tuple[int, int] = (0, 0)) -> None:
    """Scrape a group with a lag of 5 and a message a second until noon, but not between the two minutes before noon."""
    for ago in range(60 * minutes, -1, -every):
        if not 60 * quiet[0] > ago > 60 * quiet[1]:
            end = 100_000 - ago
            memory.scrape(offsets_text([end], [end - 5], members=2), at=NOON_SECONDS - ago)


def test_a_gap_is_missing_and_not_zero(memory: MemoryPrometheus) -> None:
    """Without a scrape from 8 to 3 minutes ago there are no rows at 7 to 4, although Prometheus repeats values.

    At every other minute the offset is the one of that second: 60 more a minute.
    """
    steady(memory, minutes=12, quiet=(8, 3))
    samples = past(memory)
    assert minutes_ago(samples) == {12, 11, 10, 9, 8, 3, 2, 1, 0}
    assert all(row["end_offset"] == 100_000 - 60 * round((NOON - row["sampled_at"]) / MINUTE) for row in samples)


def test_minutes_without_commits_have_no_rows(memory: MemoryPrometheus) -> None:
    """Minutes of a rebalance that have end offsets and no commits have no rows, which would count as a reset."""
    for ago in range(600, -1, -15):
        silent = 390 >= ago > 180
        memory.scrape(offsets_text([900 - ago], [None if silent else 900 - ago]), at=NOON_SECONDS - ago)
    samples = past(memory)
    assert minutes_ago(samples) == {10, 9, 8, 7, 3, 2, 1, 0}
    assert all(row["committed_offset"] is not None for row in samples)


def test_minutes_in_which_an_application_restores_show_how_fast(memory: MemoryPrometheus) -> None:
    """Tasks are restored from 250 to 100 s ago, 2,000 bytes a second: the last whole minutes of it are 3 and 2 ago."""
    updater = "orders-5f-StateUpdater-1"
    consumed = f'kafka_consumer_fetch_manager_bytes_consumed_total{{client_id="{updater}-restore-consumer",topic="c"}}'
    tasks = f'kafka_stream_state_updater_active_restoring_tasks{{thread_id="{updater}"}}'
    for ago in range(600, -1, -15):
        restored = 2_000 * min(max(250 - ago, 0), 150)
        told = f"{consumed} {restored}\n{tasks} {int(100 < ago < 250)}\n"
        memory.scrape(offsets_text([900 - ago], [900 - ago]) + told, at=NOON_SECONDS - ago)
    found = {round((NOON - row["sampled_at"]) / MINUTE): row["streams"] for row in past(memory)}
    assert {ago for ago, told in found.items() if told is not None} == {3, 2}
    assert json.loads(found[2])["restore_bytes_per_second"] == 2_000
    assert found.keys() == set(range(11))


def test_two_exporters_of_one_cluster_are_one(memory: MemoryPrometheus) -> None:
    """Of two exporters of the same cluster, one of them 10 s behind, the newer offsets are read, once."""
    for ago in range(300, -1, -15):
        memory.scrape(offsets_text([9000 - ago], [8000 - ago]), at=NOON_SECONDS - ago, instance="a:9308", job="kafka")
        memory.scrape(offsets_text([8990 - ago], [7990 - ago]), at=NOON_SECONDS - ago, instance="b:9308", job="kafka")
    samples = past(memory)
    assert len(samples) == 6
    assert {(row["sampled_at"], row["end_offset"], row["committed_offset"]) for row in samples} == {
        (NOON - ago * MINUTE, 9000 - 60 * ago, 8000 - 60 * ago) for ago in range(6)
    }


def test_several_clusters_are_distinguished_by_name(memory: MemoryPrometheus) -> None:
    """With the same topic in two clusters, the name of one is required, and only that one is read."""
    for ago in range(300, -1, -15):
        for cluster, end in (("prod", 100), ("test", 900)):
            memory.scrape(offsets_text([end], [end]), at=NOON_SECONDS - ago, instance=cluster, cluster=cluster)
    with pytest.raises(RejectedError, match="2 clusters, by the label cluster: prod, test; name one of them with"):
        found(memory, cluster="default")
    samples = rows(memory, plan_past(found(memory, cluster="test"), known={}))
    assert {row["end_offset"] for row in samples} == {900}


def test_an_offset_that_falls_is_written_as_it_is(memory: MemoryPrometheus) -> None:
    """The end of a topic that was made again falls from 500 to 20, which the features job counts as a reset."""
    for ago in range(300, -1, -15):
        memory.scrape(offsets_text([500 if ago > 120 else 20], [20]), at=NOON_SECONDS - ago)
    assert [row["end_offset"] for row in past(memory)] == [500, 500, 500, 20, 20, 20]


def test_absent_commits_are_none_and_not_minus_one(memory: MemoryPrometheus) -> None:
    """A commit of -1, and one that is not exported while the group is seen, become None: all of the log is lag.

    The log of the first partition begins at 30; that of the last, not exported and with an end of 0, begins at 0.
    """
    start = 'kafka_topic_partition_oldest_offset{partition="0",topic="orders-in"} 30\n'
    for ago in range(120, -1, -15):
        memory.scrape(start + offsets_text([70, 80, 0], [-1, 60], members=3), at=NOON_SECONDS - ago)
    samples = [row for row in past(memory) if row["sampled_at"] == NOON]
    assert [(row["committed_offset"], row["members"], row["log_start_offset"]) for row in samples] == [
        (None, 3, 30),
        (60, 3, None),
        (None, 3, 0),
    ]


def test_an_unknown_group_is_one_sentence_that_names_some_that_exist(memory: MemoryPrometheus) -> None:
    """The error for a misspelt name of a group names groups that exist."""
    steady(memory, minutes=5)
    with pytest.raises(RejectedError, match="has no group 'odrers' in that time, but has orders; check its name"):
        found(memory, "odrers")


def test_names_with_every_kind_of_character_are_requested_as_they_are(memory: MemoryPrometheus) -> None:
    """A dot in a name matches no other character, and quotes and backslashes end no string."""
    for ago in range(120, -1, -15):
        text = "".join(offsets_text([7], [number], group=name) for number, name in enumerate(("a.b", "axb", "c+d")))
        memory.scrape(text, at=NOON_SECONDS - ago)
    assert {row["group"] for row in past(memory, "a.b", "c+d")} == {"a.b", "c+d"}
    assert {row["committed_offset"] for row in past(memory, "a.b")} == {0}


def test_the_planned_queries_are_those_that_are_made(memory: MemoryPrometheus) -> None:
    """Half an hour of one group takes three queries, for ends, commits and members, as the plan states."""
    steady(memory, minutes=29)
    plan = plan_past(found(memory), known={})
    memory.requests.clear()
    samples = rows(memory, plan)
    assert [path for path, _ in memory.requests] == ["/api/v1/query_range"] * plan.queries
    assert (plan.queries, plan.points, plan.rows) == (3, 31, 31)
    assert len(samples) == 30  # the first minute of the thirty-one was before the first scrape


def test_a_second_run_requests_missing_minutes_alone(memory: MemoryPrometheus, tmp_path: Path) -> None:
    """Minutes from 11:45 to 11:50, already written, are not requested again; those before and after them are."""
    steady(memory, minutes=25)
    known = {"orders": (NOON - 15 * MINUTE, NOON - 10 * MINUTE)}
    samples = rows(memory, plan_past(found(memory), known=known))
    assert minutes_ago(samples) == {*range(10), *range(16, 26)}
    # Rows after the known ones are written first, oldest first: stopped anywhere, the samples have no hole.
    assert [round((NOON - row["sampled_at"]) / MINUTE) for row in samples[:3]] == [9, 8, 7]
    everything = plan_past(found(memory), known={"orders": (NOON - 40 * MINUTE, NOON)})
    assert (everything.stretches, everything.rows) == ((), 0)
    with PrometheusRequests(memory.url, settings={}) as prometheus:
        for table in past_tables(prometheus, plan_past(found(memory), known=known), cluster="prod"):
            write_table(table, tmp_path)
    assert len(list(tmp_path.glob("date=2026-01-05/*.parquet"))) == 2


def test_hours_without_a_sample_cost_no_query(memory: MemoryPrometheus) -> None:
    """Of two weeks of which one hour has samples, one stretch of a day is requested."""
    steady(memory, minutes=60)
    plan = plan_past(found(memory, hours=336), known={})
    assert len(plan.stretches) == 1
    assert len(rows(memory, plan)) == 61


def test_scrapes_that_are_too_rare_for_rates_are_left_out(memory: MemoryPrometheus) -> None:
    """Four hours with a scrape every two minutes give no rows, as their minutes cannot be separated."""
    steady(memory, minutes=240, every=120)
    plan = plan_past(found(memory, hours=5), known={})
    assert (plan.stretches, plan.slow_minutes) == ((), 301)


def test_p15_answers_stay_small_however_many_partitions_there_are() -> None:
    """P15: 990 partitions of one group, two weeks: 40 stretches of 505 minutes, within what a server answers.

    20,161 minutes in stretches of 505 are 40; three such groups are more than one run writes.
    """
    hours = {NOON_SECONDS - 3600 * ago: 15.0 for ago in range(337)}
    wide = Discovered(
        spoken=detect(["kafka_topic_partition_current_offset", "kafka_consumergroup_current_offset"]),
        where={},
        topics={"orders": frozenset({"orders-in"})},
        partitions={"orders-in": 990},
        since_seconds=NOON_SECONDS - 336 * 3600,
        now_seconds=NOON_SECONDS,
        every_hour=hours,
        newest_age_seconds=5.0,
    )
    plan = plan_past(wide, known={})
    assert len(plan.stretches) == 40
    assert plan.points <= MAX_POINTS
    assert max(len(stretch.minutes) for stretch in plan.stretches) <= MAX_POINTS_PER_SERIES
    too_wide = replace(wide, topics={name: frozenset({"orders-in"}) for name in "abc"})
    with pytest.raises(RejectedError, match=r"59,878,170 rows, and one run writes 20,000,000 at most; name groups"):
        plan_past(too_wide, known={})


@settings(max_examples=100, deadline=None)
@given(
    known=st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(-400, 3700), st.integers(0, 3000)), max_size=3),
    partitions=st.integers(300, 30_000),
    stop=st.floats(0.0, 1.0),
)
def test_each_minute_is_requested_once_and_stopped_anywhere_no_hole_is_left(
    known: dict[str, tuple[int, int]], partitions: int, stop: float
) -> None:
    """The minutes of an hour that are not known of a group are requested once, outwards from the known ones."""
    since = NOON_SECONDS - 3600
    spans = {group: (since + first, since + first + more) for group, (first, more) in known.items()}
    there = Discovered(
        spoken=detect(["kafka_topic_partition_current_offset", "kafka_consumergroup_current_offset"]),
        where={},
        topics=dict.fromkeys("abc", frozenset({"orders-in"})),
        partitions={"orders-in": partitions},
        since_seconds=since,
        now_seconds=NOON_SECONDS,
        every_hour={NOON_SECONDS - 3600: 15.0, NOON_SECONDS: 15.0},
        newest_age_seconds=5.0,
    )
    instants = {group: tuple(datetime.fromtimestamp(second, UTC) for second in span) for group, span in spans.items()}
    plan = plan_past(there, known=instants)  # type: ignore[arg-type]  # pairs stay pairs
    assert plan.points <= max(MAX_POINTS, 3 * partitions)
    for group in "abc":
        requested = [
            minute
            for stretch in plan.stretches
            for minute, wanted in zip(stretch.minutes, plan.wanted(group, stretch), strict=True)
            if wanted
        ]
        first, last = spans.get(group, (NOON_SECONDS + 1, NOON_SECONDS))
        grid = range(since, NOON_SECONDS + 1, 60)
        assert sorted(requested) == [minute for minute in grid if not first <= minute <= last]
        done = {
            minute
            for stretch in plan.stretches[: round(stop * len(plan.stretches))]
            for minute, wanted in zip(stretch.minutes, plan.wanted(group, stretch), strict=True)
            if wanted
        }
        covered = done | ({first, last} if group in spans else set())
        inside = [minute for minute in grid if covered and min(covered) < minute < max(covered)]
        assert all(minute in done or first <= minute <= last for minute in inside)


_lines = st.lists(st.none() | st.integers(0, 1000), min_size=6, max_size=6)


@settings(max_examples=200, deadline=None)
@given(ends=_lines, commits=_lines, wanted=st.lists(st.booleans(), min_size=6, max_size=6))
def test_no_row_is_made_up(ends: list[int | None], commits: list[int | None], wanted: list[bool]) -> None:
    """Every row is a wanted minute with the end offset and the commit that were exported at that minute."""
    minutes = NOON_SECONDS + 60 * np.arange(6)

    def line(values: list[int | None], **labels: str) -> Series:
        present = [(int(at), float(value)) for at, value in zip(minutes, values, strict=True) if value is not None]
        at_seconds = np.array([at for at, _ in present], dtype=np.int64)
        labels = {"topic": "t", "partition": "0", **labels}
        return Series(
            labels=labels, at_seconds=at_seconds, values=np.array([value for _, value in present], dtype=float)
        )

    readings = Readings(minutes=minutes, ends=(line(ends),), progress=(line(commits, consumergroup="g"),))
    past_of = GroupPast(group="g", topics=frozenset({"t"}), wanted=np.array(wanted))
    samples = sample_rows(KAFKA_EXPORTER, readings, [past_of], cluster="c").to_pylist()
    any_commit = any(commit is not None for commit in commits)
    assert [(row["sampled_at"].timestamp(), row["end_offset"], row["committed_offset"]) for row in samples] == [
        (at, end, commit)
        for at, end, commit, is_wanted in zip(minutes.tolist(), ends, commits, wanted, strict=True)
        if is_wanted and end is not None and (commit is not None or not any_commit)
    ]
