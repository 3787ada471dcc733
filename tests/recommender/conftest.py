"""Small groups with a known past: what every test of the decision starts from."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from cost_model.profile import Capacity, GroupProfile
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import GroupInterval, History, HistoryBuffer
from forecasting.units import MessagesPerSecond, Partitions, Seconds

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def _row(at: datetime, rate: float, **changes: object) -> GroupInterval:
    known: dict[str, object] = {
        "cluster": "c",
        "group": "orders",
        "topics": "orders",
        "interval_end_at": at,
        "interval_seconds": 15,
        "produce_messages_per_second": rate,
        "consume_messages_per_second": rate,
        "lag_messages": rate * 2.5,  # half of a 5 s commit interval: processed, not yet committed
        "lag_seconds": 2.5,
        "partitions": 24,
        "sampled_partitions": 24,
        "members": 8,
    }
    return GroupInterval(**(known | changes))  # type: ignore[arg-type]  # the columns' types are checked where rows are made


@pytest.fixture(name="row")
def row_fixture() -> Callable[..., GroupInterval]:
    """`row(at, rate, **changed_columns)`."""
    return _row


@pytest.fixture(name="history")
def history_fixture() -> Callable[..., History]:
    """`history(rate, minutes=60, last=None, **changed_columns)`: steady base rows up to NOW, the newest with `last`."""

    def make(rate: float, *, minutes: int = 60, last: dict[str, object] | None = None, **changes: object) -> History:
        buffer = HistoryBuffer("c", "orders")
        rows = minutes * 4
        for index in range(rows):
            at = NOW - timedelta(seconds=15 * (rows - 1 - index))
            buffer.append(_row(at, rate, **(changes | (last or {} if index == rows - 1 else {}))))
        history = buffer.history()
        assert history is not None
        return history

    return make


@pytest.fixture(name="forecast")
def forecast_fixture() -> Callable[[Sequence[float]], Forecast]:
    """`forecast(values)`: every quantile path is `values`, one per minute after NOW, the last one lasting."""

    def make(values: Sequence[float]) -> Forecast:
        path = np.array([*values, *[values[-1]] * (60 - len(values))], dtype=np.float64)
        return Forecast(
            cluster="c",
            group="orders",
            model="given",
            rung="weekly",
            origin_at=NOW,
            step_seconds=60,
            paths=np.tile(path, (len(QUANTILES), 1)),
        )

    return make


@pytest.fixture(name="profile")
def profile_fixture() -> GroupProfile:
    """24 partitions, eager, one replica carries 1,000/s for certain, ready 30 s after the command."""
    rate = MessagesPerSecond(1000.0)
    return GroupProfile(
        cluster="c",
        group="orders",
        partitions=Partitions(24),
        capacity=Capacity(p20=rate, p50=rate, p90=rate, source="configured"),
        start_up_seconds=Seconds(30.0),
    )
