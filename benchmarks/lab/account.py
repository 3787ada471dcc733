"""The figures of a policy of the lab, from the messages of its topic and the batches that its replicas finished."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.rebalances.measure import ProcessedBatch, Window, measured
from cost_model.pricing.price import Prices
from forecasting.units import FloatArray

# The time over which a move is measured, if no other move follows sooner.
MOVE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One policy; waits are from a message's own time stamp to the end of the first batch that processed it.

    `lost_messages` were never processed. `mean_lag_messages` are those produced and not yet processed, over time.
    `stopped_partition_seconds` sums the stops of partitions after moves, `longest_pause_seconds` is the longest.
    """

    replica_seconds: float
    messages: int
    lost_messages: int
    duplicate_messages: int
    late_messages: int
    mean_lag_messages: float
    wait_p50_seconds: float
    wait_p99_seconds: float
    stopped_partition_seconds: float
    longest_pause_seconds: float

    def cost(self, prices: Prices) -> float:
        """Replicas, late and lost messages (which count as late) and duplicates, in the currency of the prices."""
        late = self.late_messages + self.lost_messages
        return (
            self.replica_seconds / 3600.0 * prices.price_per_replica_hour
            + late * prices.price_per_late_message
            + self.duplicate_messages * prices.price_per_duplicate_message
        )


def account(
    produced: Mapping[int, FloatArray],
    batches: Sequence[ProcessedBatch],
    *,
    moves_at: Sequence[float],
    replica_seconds: float,
    max_lag_seconds: float,
) -> Account:
    """The account of one policy.

    `produced` has, for each partition, the time stamp of each offset from 0 on; instants in seconds since 1970.
    Errors: ValueError where no message was produced.
    """
    if not any(stamps.size for stamps in produced.values()):
        message = "no message was produced: there is nothing to account for"
        raise ValueError(message)
    done_at = {number: np.full(stamps.size, np.inf) for number, stamps in produced.items()}
    times = {number: np.zeros(stamps.size, dtype=np.int64) for number, stamps in produced.items()}
    for batch in batches:
        part = slice(batch.first, batch.last + 1)
        done_at[batch.partition][part] = np.minimum(done_at[batch.partition][part], batch.end_at)
        times[batch.partition][part] += 1
    waits = np.concatenate([done_at[number] - stamps for number, stamps in produced.items()])
    done = waits[np.isfinite(waits)]
    first_at = min(float(stamps.min()) for stamps in produced.values() if stamps.size)
    last_at = max((batch.end_at for batch in batches), default=first_at)
    stops = [
        stop
        for found in measured(batches, _windows(moves_at), partitions=len(produced))
        for stop in found.stops
        if stop > 0.0
    ]
    return Account(
        replica_seconds=replica_seconds,
        messages=waits.size,
        lost_messages=waits.size - done.size,
        duplicate_messages=sum(int(np.maximum(count - 1, 0).sum()) for count in times.values()),
        late_messages=int((done > max_lag_seconds).sum()),
        mean_lag_messages=float(done.sum()) / (last_at - first_at) if last_at > first_at else 0.0,
        wait_p50_seconds=float(np.quantile(done, 0.5)) if done.size else 0.0,
        wait_p99_seconds=float(np.quantile(done, 0.99)) if done.size else 0.0,
        stopped_partition_seconds=sum(stops),
        longest_pause_seconds=max(stops, default=0.0),
    )


def _windows(moves_at: Sequence[float]) -> list[Window]:
    """From each move to the next one, for a minute at most.

    >>> _windows([100.0, 130.0])
    [(100.0, 130.0), (130.0, 190.0)]
    """
    following = [*moves_at[1:], np.inf]
    return [(begin, min(begin + MOVE_SECONDS, end)) for begin, end in zip(moves_at, following, strict=False)]
