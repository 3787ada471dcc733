"""The samples that a collector would have written for the simulated group, and the feature rows for a policy."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # no stubs are published for it
import pytest

from collector.sinks import arrow_schema
from forecasting.columns import SAMPLES
from forecasting.history import GroupInterval
from replay import sampling
from replay.plant import Observation, Plant
from replay.sampling import Names, Rows, samples_of
from replay.trace import Trace
from replay.world import OffsetsReset, World

Worlds = Callable[..., World]
Loads = Callable[..., Trace]
NAMES = Names("test", "orders")


@pytest.fixture(name="table")
def table_fixture(calm_world: Worlds, load: Loads) -> pa.Table:
    """Ten minutes of 600 messages/s on 24 partitions, sampled every 15 s."""
    return samples_of(a_plant(calm_world(), load(*[600.0] * 10)), NAMES)


def a_plant(world: World, trace: Trace) -> Plant:
    return Plant(world=world, trace=trace, seed=1, replicas=12)


def rows_of(plant: Plant) -> tuple[list[Observation], list[GroupInterval]]:
    """Every observation on the grid, including the first instant, and the row made of each."""
    rows, seen = Rows(NAMES), [plant.observation()]
    while plant.remaining_seconds > 0:
        plant.advance(15)
        seen.append(plant.observation())
    return seen, [rows.row(one) for one in seen]


def test_samples_have_the_columns_that_the_features_job_reads(table: pa.Table) -> None:
    """Names, order and types are those of the samples table that the collector writes, and no value is null."""
    assert table.column_names == [column.name for column in SAMPLES]
    assert table.schema.types == arrow_schema().types
    # A plain consumer is no Streams application, nobody watches it, and no broker keeps its settings.
    unseen = {"streams", "commit_interval_seconds", "busy_ratio"}
    unseen |= {"session_timeout_seconds", "rebalance_timeout_seconds", "consumer_heartbeat_seconds"}
    assert all(table[name].null_count == 0 for name in table.column_names if name not in unseen)


@pytest.mark.parametrize("static_membership", [False, True])
def test_static_members_are_all_or_none(calm_world: Worlds, load: Loads, *, static_membership: bool) -> None:
    """Every member is static in a world of static membership, and none in another."""
    table = samples_of(a_plant(calm_world(static_membership=static_membership), load(100.0)), NAMES)
    assert table["static_members"].to_pylist() == [
        members if static_membership else 0 for members in table["members"].to_pylist()
    ]


def test_there_is_one_sample_per_partition_and_instant(table: pa.Table) -> None:
    """There are 41 instants from start to end, both included, times 24 partitions, in time order."""
    assert table.num_rows == 41 * 24
    instants = table["sampled_at"].to_pylist()
    assert instants == sorted(instants)
    assert set(zip(instants, table["partition"].to_pylist(), strict=True)) == {
        (instants[0] + timedelta(seconds=15 * step), partition) for step in range(41) for partition in range(24)
    }


def test_samples_equal_the_observations(calm_world: Worlds, load: Loads) -> None:
    """Offsets, state and members of each instant equal those of a plant that is observed every 15 s."""
    trace = load(*[600.0] * 10)
    table = samples_of(a_plant(calm_world(), trace), NAMES)
    seen, _ = rows_of(a_plant(calm_world(), trace))
    assert table["end_offset"].to_pylist() == np.concatenate([one.end_offsets for one in seen]).tolist()
    assert table["committed_offset"].to_pylist() == np.concatenate([one.committed_offsets for one in seen]).tolist()
    assert table["group_state"].to_pylist()[::24] == [one.group_state for one in seen]
    assert table["members"].to_pylist()[::24] == [one.ready_members for one in seen]


@pytest.mark.parametrize(("protocol", "assignor"), [("eager", "range"), ("cooperative", "cooperative-sticky")])
def test_the_group_is_described_as_a_broker_would(
    calm_world: Worlds, load: Loads, protocol: str, assignor: str
) -> None:
    """The simulated protocol is Kafka's classic one, and the assignor distinguishes eager from cooperative."""
    table = samples_of(a_plant(calm_world(protocol=protocol), load(100.0)), NAMES)
    words = {name: set(table[name].to_pylist()) for name in ("cluster", "group", "topic", "group_protocol")}
    assert words == {"cluster": {"test"}, "group": {"orders"}, "topic": {"orders"}, "group_protocol": {"classic"}}
    assert set(table["group_assignor"].to_pylist()) == {assignor}


def test_a_start_between_two_seconds_is_kept(calm_world: Worlds, load: Loads) -> None:
    """Samples have microsecond instants, as the trace's start has."""
    trace = load(100.0)
    trace = replace(trace, start_at=trace.start_at + timedelta(microseconds=1))
    table = samples_of(a_plant(calm_world(), trace), NAMES)
    assert table["sampled_at"][0].as_py() == trace.start_at


def test_the_first_row_knows_no_rates(calm_world: Worlds, load: Loads) -> None:
    """The first row has no earlier offsets: its rates and all derived values are unknown, not zero."""
    _, (first, *_) = rows_of(a_plant(calm_world(), load(600.0)))
    unknown = (
        first.produce_messages_per_second,
        first.consume_messages_per_second,
        first.lag_seconds,
        first.worst_lag_seconds,
        first.worst_partition,
        first.partition_skew_ratio,
        first.busiest_partition,
    )
    assert set(unknown) == {None}
    assert (first.lag_messages, first.partitions, first.sampled_partitions, first.members) == (0.0, 24, 24, 12)


def test_rates_are_differences_of_offsets(calm_world: Worlds, load: Loads) -> None:
    """A row that ends at t has the increase of the offsets in the 15 s before t, and the lag at t."""
    trace = load(600.0, 1_200.0, 0.0, 300.0)
    seen, rows = rows_of(a_plant(calm_world(), trace))
    assert [row.interval_end_at for row in rows] == [one.at for one in seen]
    for before, now, row in zip(seen, seen[1:], rows[1:], strict=False):
        arrived = now.end_offsets - before.end_offsets
        committed = now.committed_offsets - before.committed_offsets
        assert row.produce_messages_per_second == pytest.approx(arrived.sum() / 15)
        assert row.consume_messages_per_second == pytest.approx(committed.sum() / 15)
        assert row.lag_messages == now.lag_messages.sum()
        if arrived.sum() > 0:
            assert row.partition_skew_ratio == pytest.approx(arrived.max() * 24 / arrived.sum())
            assert row.busiest_partition == f"orders-{arrived.argmax()}"


def test_rates_follow_the_trace(calm_world: Worlds, load: Loads) -> None:
    """A minute at 1,200 messages/s gives four rows of about that rate, each with the instant of its end."""
    _, rows = rows_of(a_plant(calm_world(), load(600.0, 1_200.0, 600.0)))
    rates = [row.produce_messages_per_second for row in rows[1:]]
    # Poisson: 18,000 messages of 15 s vary by 134, that is 9 messages/s.
    assert rates == pytest.approx([600.0] * 4 + [1_200.0] * 4 + [600.0] * 4, abs=45)


def test_lag_in_seconds_is_lag_over_the_rate_of_five_minutes(calm_world: Worlds, load: Loads) -> None:
    """The rate is the mean of the last twenty known ones, or of fewer at the start; with no arrivals none is known."""
    _, rows = rows_of(a_plant(calm_world(), load(*[600.0] * 4, *[1_200.0] * 4)))
    rates = [row.produce_messages_per_second or 0.0 for row in rows]
    for last in (1, 7, 20, 25, 32):
        newest = rates[max(1, last - 19) : last + 1]
        assert rows[last].lag_seconds == pytest.approx((rows[last].lag_messages or 0.0) / np.mean(newest))


def test_the_worst_lag_is_that_of_the_partition_with_the_most(calm_world: Worlds, load: Loads) -> None:
    """It is that lag over its own rate, or over the partitions' mean rate if higher; with two replicas it grows."""
    plant = Plant(world=calm_world(), trace=load(*[600.0] * 5), seed=1, replicas=2)
    seen, rows = rows_of(plant)
    for before, now, row in zip(seen, seen[1:], rows[1:], strict=False):
        rates = (now.end_offsets - before.end_offsets) / 15
        worst = int(now.lag_messages.argmax())
        seconds = now.lag_messages[worst] / max(rates[worst], rates.mean())
        assert row.worst_partition == f"orders-{worst}"
        assert row.worst_lag_seconds == pytest.approx(seconds)
    assert (rows[-1].worst_lag_seconds or 0.0) > (rows[1].worst_lag_seconds or 0.0)


def test_a_silent_topic_has_no_lag_in_seconds(calm_world: Worlds, load: Loads) -> None:
    """Without arrivals the rate is 0 and known; lag in seconds, skew and busiest partition are unknown."""
    _, (_, row, *_) = rows_of(a_plant(calm_world(), load(0.0)))
    assert (row.produce_messages_per_second, row.consume_messages_per_second) == (0.0, 0.0)
    unknown = (row.lag_seconds, row.worst_lag_seconds, row.worst_partition, row.partition_skew_ratio)
    assert {*unknown, row.busiest_partition} == {None}


def test_a_rebalance_is_flagged(calm_world: Worlds, load: Loads) -> None:
    """A row whose sample found the group in a rebalance has the flag, for all of its partitions."""
    # Commanded at 60 s, a pod joins at 91 s; heartbeats let all members rejoin at 93 s; the sync lasts until 107 s.
    plant = a_plant(calm_world(sync_seconds=14.0), load(*[100.0] * 3))
    plant.advance(60)
    plant.scale(13)
    seen, rows = rows_of(plant)
    flagged = [one.time_seconds for one, row in zip(seen, rows, strict=True) if row.in_rebalance]
    assert flagged == [105]
    assert [row.in_rebalance_count for row in rows if row.in_rebalance] == [24]
    assert {row.in_rebalance_count for row in rows if not row.in_rebalance} == {0}


def test_the_newer_protocol_is_described_as_such(calm_world: Worlds, load: Loads) -> None:
    """The group is of Kafka's newer `consumer` protocol, with the broker's uniform assignor."""
    table = samples_of(a_plant(calm_world(protocol="kip848"), load(100.0)), NAMES)
    assert set(table["group_protocol"].to_pylist()) == {"consumer"}
    assert set(table["group_assignor"].to_pylist()) == {"uniform"}


def test_missing_samples_are_unknown_and_never_a_drop(calm_world: Worlds, load: Loads) -> None:
    """If samples lack 6 of 24 partitions, rate and lag are unknown; with all back, the mean of the gap is right."""
    plant = a_plant(calm_world(missing_sample_share=0.5), load(*[600.0] * 60))
    seen, rows = rows_of(plant)
    holes = [row for row in rows if row.sampled_partitions < row.partitions]
    assert len(holes) == pytest.approx(len(rows) / 2, rel=0.2)
    assert {row.sampled_partitions for row in holes} == {18}
    assert {(row.produce_messages_per_second, row.lag_messages, row.lag_seconds) for row in holes} == {(None,) * 3}
    assert {(row.worst_lag_seconds, row.worst_partition) for row in holes} == {(None, None)}
    whole = [row for row in rows[1:] if row.produce_messages_per_second is not None]
    assert {row.sampled_partitions for row in whole} == {24}
    assert np.mean([row.produce_messages_per_second for row in whole]) == pytest.approx(600.0, rel=0.02)
    # Each missed interval counts as one gap when the partition is sampled again.
    missed = sum(len(one.unseen_partitions) for one in seen)
    assert missed - 24 <= sum(row.gap_count for row in rows) <= missed


def test_samples_lack_unobserved_partitions(calm_world: Worlds, load: Loads) -> None:
    """A partition that the sample lacks has no row; the others have theirs."""
    world, trace = calm_world(missing_sample_share=0.5), load(*[600.0] * 10)
    table = samples_of(a_plant(world, trace), NAMES)
    seen, _ = rows_of(a_plant(world, trace))
    assert table.num_rows == sum(24 - len(one.unseen_partitions) for one in seen) < 41 * 24


def test_a_reset_is_counted_and_hides_the_consume_rate(calm_world: Worlds, load: Loads) -> None:
    """When commits of all 24 partitions go back once, the consume rate is unknown and 24 resets are counted."""
    world = calm_world(incidents=(OffsetsReset(at_second=200, seconds=100),))
    _, rows = rows_of(a_plant(world, load(*[600.0] * 10)))
    (reset,) = [row for row in rows if row.offset_reset_count]
    assert (reset.offset_reset_count, reset.consume_messages_per_second) == (24, None)
    assert reset.produce_messages_per_second is not None


def test_the_rows_of_a_plant_are_those_of_its_observations(calm_world: Worlds, load: Loads) -> None:
    """Ten minutes are forty rows after the one of the first instant, which has none before it and so no rates."""
    made = sampling.rows_of(a_plant(calm_world(), load(*[600.0] * 10)), NAMES)
    assert made == rows_of(a_plant(calm_world(), load(*[600.0] * 10)))[1]
    assert (len(made), made[0].produce_messages_per_second) == (41, None)
