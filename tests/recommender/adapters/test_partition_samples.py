"""What the collector has read last of each partition, from its own files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collector.sample import OffsetSample
from collector.sinks import write_samples
from recommender.adapters.partition_samples import PartitionSamplesFolder
from recommender.ports import GroupLoads, PartitionLoad

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 1, 6, tzinfo=UTC)


def sample(
    at: datetime, partition: int, end: int, committed: int | None = 0, *, group: str = "orders", cluster: str = "c"
) -> OffsetSample:
    """One partition of the topic `t`."""
    return OffsetSample(
        cluster=cluster,
        group=group,
        topic="t",
        partition=partition,
        sampled_at=at,
        end_offset=end,
        committed_offset=committed,
        log_start_offset=None,
        group_state="STABLE",
        group_protocol=None,
        group_assignor=None,
        members=2,
    )


def loads(folder: Path, until: datetime = NOON) -> GroupLoads | None:
    return PartitionSamplesFolder(folder).loads("c", "orders", until=until)


@pytest.mark.parametrize("now", [NOON, MIDNIGHT + timedelta(minutes=1)])
def test_rates_are_means_of_five_minutes_and_lags_are_of_now(tmp_path: Path, now: datetime) -> None:
    """30,000 messages in 300 s, also over midnight; a partition that is new has no rate, and without a commit no lag.

    Samples of other groups and clusters, older ones, and those after the instant do not count.
    """
    for minutes, end in ((-10, 0), (-5, 1000), (0, 31_000), (3, 999_000)):
        at = now + timedelta(minutes=minutes)
        rows = [sample(at, 0, end, max(0, end - 500)), sample(at, 0, 7, group="other"), sample(at, 9, 7, cluster="d")]
        if minutes == 0:
            rows += [sample(at, 1, 40, None), sample(at, 2, 40, 41)]
        write_samples(rows, tmp_path)
    write_samples([sample(now + timedelta(seconds=1), 0, 8, group="other")], tmp_path)
    assert loads(tmp_path, now + timedelta(seconds=5)) == GroupLoads(
        since_at=now - timedelta(minutes=5),
        until_at=now,
        partitions=(
            PartitionLoad("t", 0, 100.0, 500),
            PartitionLoad("t", 1, None, None),
            PartitionLoad("t", 2, None, 0),
        ),
    )


def test_offsets_that_went_back_are_no_rate(tmp_path: Path) -> None:
    """A topic that was made anew."""
    write_samples([sample(NOON - timedelta(minutes=6), 0, 5000)], tmp_path)
    write_samples([sample(NOON, 0, 10)], tmp_path)
    found = loads(tmp_path)
    assert found is not None
    assert found.partitions == (PartitionLoad("t", 0, None, 10),)


def test_the_first_reading_has_lags_and_no_rates(tmp_path: Path) -> None:
    """Five minutes later there are both."""
    write_samples([sample(NOON, 0, 10)], tmp_path)
    found = loads(tmp_path)
    assert found == GroupLoads(NOON, NOON, (PartitionLoad("t", 0, None, 10),))


def test_what_is_old_or_cannot_be_read_is_not_of_now(tmp_path: Path) -> None:
    """Nothing is shown of a collector that stopped; a broken file costs its own reading alone."""
    assert loads(tmp_path) is None
    write_samples([sample(NOON - timedelta(minutes=16), 0, 10)], tmp_path)
    assert loads(tmp_path) is None
    write_samples([sample(NOON - timedelta(minutes=1), 0, 10)], tmp_path)
    (newest,) = write_samples([sample(NOON, 0, 20)], tmp_path)
    newest.write_bytes(b"no parquet")
    (tmp_path / "date=2026-01-05" / "notes.parquet").write_bytes(b"")
    found = loads(tmp_path)
    assert found is not None
    assert found.until_at == NOON - timedelta(minutes=1)
