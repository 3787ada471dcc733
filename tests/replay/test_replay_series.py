"""The scripted series of the live tests, played by our HPA alone: the counts that the real controllers commanded."""

import pytest

from tests.live.hpa_shadow import HPA_SERIES, Series, counts_in_time, distinct, read_book
from tests.live.keda_shadow import KEDA_SERIES, KedaSeries, keda_counts_in_time, read_keda_series

BOOK = read_book(HPA_SERIES)


@pytest.mark.parametrize("series", [pytest.param(series, id=series.name) for series in BOOK.series])
def test_the_counts_of_a_series_are_those_that_the_hpa_commanded(series: Series) -> None:
    """Each count once, one after the other."""
    assert counts_in_time(series, book=BOOK) == list(series.counts)


@pytest.mark.parametrize("series", [pytest.param(series, id=series.name) for series in read_keda_series(KEDA_SERIES)])
def test_the_counts_of_a_series_are_those_that_keda_went_through(series: KedaSeries) -> None:
    """Its own loop and the HPA behind it together."""
    assert distinct(keda_counts_in_time(series, book=BOOK)) == list(series.counts)
