"""The scripted series of the live tests on our own HPA: the replica counts equal those of the real controllers."""

import pytest

from tests.live.harness.hpa_shadow import HPA_SERIES, Series, counts_in_time, distinct, read_book
from tests.live.harness.keda_shadow import (
    KEDA_SERIES,
    KedaSeries,
    Reading,
    keda_counts_in_time,
    overtaken,
    read_keda_series,
    shadowed_keda,
)

BOOK = read_book(HPA_SERIES)


@pytest.mark.parametrize("series", [pytest.param(series, id=series.name) for series in BOOK.series])
def test_the_counts_of_a_series_are_those_that_the_hpa_commanded(series: Series) -> None:
    """Each count appears once, in the order of the commands."""
    assert counts_in_time(series, book=BOOK) == list(series.counts)


@pytest.mark.parametrize("series", [pytest.param(series, id=series.name) for series in read_keda_series(KEDA_SERIES)])
def test_the_counts_of_a_series_are_those_that_keda_went_through(series: KedaSeries) -> None:
    """KEDA's own loop and the HPA behind it give these counts together."""
    assert distinct(keda_counts_in_time(series, book=BOOK)) == list(series.counts)


def test_failed_reads_of_the_loop_and_the_hpa_at_one_instant_may_count_once() -> None:
    """If two failures at 5.1 s count as one, the fallback, which needs four, starts at the HPA's next sync."""
    series = next(
        one for one in read_keda_series(KEDA_SERIES) if one.fallback == {"replicas": 6, "failureThreshold": 3}
    )
    loop, hpa = [4.0, 5.12, 6.0], [3.3, 5.13, 7.5, 8.3]
    readings = sorted(
        [Reading(at_seconds=at, by="loop", replicas=3) for at in loop]
        + [Reading(at_seconds=at, by="hpa", replicas=3) for at in hpa],
        key=lambda reading: reading.at_seconds,
    )
    lost = overtaken(readings, within_seconds=0.3)
    assert [reading.at_seconds for reading in lost] == [5.12]
    assert shadowed_keda(series, readings, stabilisation_seconds=5) == [3, 3, 3, 3, 6, 6, 6]
    assert shadowed_keda(series, readings, stabilisation_seconds=5, lost=lost) == [3, 3, 3, 3, 3, 3, 6]
