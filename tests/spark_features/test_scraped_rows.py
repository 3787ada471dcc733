"""Rows of 15 s from samples that were scraped each 15, 30 or 60 s: each interval has one, with the rate of its time."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from collector.prometheus_live import PrometheusCollector
from collector.sinks import write_samples
from recommender.adapters.feature_table import FeatureTable
from spark_features.batch import build_features
from tests.collector.memory_prometheus import MemoryPrometheus, offsets_text, serving

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOON_SECONDS = int(NOON.timestamp())


def collected(memory: MemoryPrometheus, every: int, samples: Path) -> None:
    """Ten minutes of rounds each 15 s: 8 messages/s and 4 after five minutes, scraped from second 7 on."""
    scrape = 7
    with serving(memory), PrometheusCollector(memory.url, cluster="prod", settings={}) as collector:
        for second in range(14, 600, 15):
            while scrape <= second:
                end = 8 * min(scrape, 307) + 4 * max(scrape - 307, 0)
                memory.scrape(offsets_text([end, 70], [end - 3, 70], members=2), at=NOON_SECONDS + scrape)
                scrape += every
            write_samples(collector.collect(None, now=NOON + timedelta(seconds=second)).samples, samples)


@pytest.mark.parametrize("every", [15, 30, 60])
def test_every_interval_has_a_row_with_the_rate_of_its_scrapes(spark: SparkSession, folder: Path, every: int) -> None:
    """No row is missing and none has a rate of 0, whatever the interval of the scrapes; the partition of 70 is idle."""
    collected(MemoryPrometheus(), every, folder / "samples")
    build_features(spark, folder / "samples", folder / "features")
    rows = FeatureTable(folder / "features").intervals("prod", "orders")
    ends = [(row.interval_end_at - NOON).total_seconds() for row in rows]
    assert ends == list(range(15, 15 * (len(rows) + 1), 15))
    assert len(rows) >= 40 - every // 15
    assert {(row.interval_seconds, row.gap_count, row.lag_messages, row.members) for row in rows} == {(15, 0, 3, 2)}
    assert rows[0].produce_messages_per_second is None
    assert [row.produce_messages_per_second for row in rows] == [row.consume_messages_per_second for row in rows]
    # A minute that is scraped once has one rate: the mean of what was before and after its change at second 307.
    assert {row.produce_messages_per_second for row in rows[1:]} == ({8.0, 4.0})
