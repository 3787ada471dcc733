"""Capacity from the time that consumers spend working, which needs no backlog to be seen."""

import numpy as np

from cost_model.physics.profile import Capacity, CapacitySource
from forecasting.units import FloatArray, MessagesPerSecond, Seconds

# Below a tenth of busy time the quotient is mostly noise: 1 % more of idle time is then 10 % more of capacity.
LEAST_BUSY_FRACTION = 0.1
LEAST_WINDOWS = 10  # fewer do not have a 20 % quantile
# A replica with 30 s of lag does what it can. Where two such windows and busy time differ by more than 15 %, busy time
# counts something wrong, such as work in threads of its own.
LAGGING_SECONDS = 30.0
LAGGING_WINDOWS = 2
TRUSTED_DIFFERENCE = 0.15


def capacity_from_busy_time(
    rates_per_replica: FloatArray, idle_fraction: FloatArray, lag_seconds: FloatArray, age_seconds: FloatArray
) -> Capacity | None:
    """One replica's capacity as rate / (1 - idle) over its windows, or None while too few of them tell.

    Idle is the Java client's poll-idle-ratio-avg: waiting for a slow call counts as work, which is right. What was
    consumed under a long lag wins where the two disagree. librdkafka reports no idle time.
    Shapes: equal lengths, one value per window; NaN where unknown. Ages are those of the windows' ends.
    Source: DS2 (OSDI 2018).

    >>> rates, lag, age = np.full(20, 60.0), np.zeros(20), 60.0 * np.arange(20)
    >>> capacity_from_busy_time(rates, np.full(20, 0.4), lag, age).p50
    100.0
    """
    telling = np.isfinite(rates_per_replica) & (rates_per_replica > 0.0)
    busy = 1.0 - idle_fraction
    useful = telling & (busy >= LEAST_BUSY_FRACTION) & (busy <= 1.0)
    if int(useful.sum()) < LEAST_WINDOWS:
        return None
    from_busy_time = rates_per_replica[useful] / busy[useful]
    lagging = telling & (lag_seconds >= LAGGING_SECONDS)
    if int(lagging.sum()) >= LAGGING_WINDOWS:
        seen = rates_per_replica[lagging]
        if abs(float(np.median(from_busy_time) / np.median(seen)) - 1.0) > TRUSTED_DIFFERENCE:
            return _band(seen, source="saturated_windows", age_seconds=float(age_seconds[lagging].min()))
    return _band(from_busy_time, source="busy_time", age_seconds=float(age_seconds[useful].min()))


def _band(rates: FloatArray, *, source: CapacitySource, age_seconds: float) -> Capacity:
    p20, p50, p90 = (MessagesPerSecond(float(value)) for value in np.quantile(rates, (0.2, 0.5, 0.9)))
    return Capacity(p20=p20, p50=p50, p90=p90, source=source, age_seconds=Seconds(age_seconds))
