"""The samples of a fleet, sent to Kafka each 15 s as a collector elsewhere would send them."""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np

from collector.sample import OffsetSample
from collector.topic import SamplePublisher
from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.units import FloatArray

CLUSTER, SAMPLES_TOPIC = "fleet", "fleet.samples"
FIRST_MEMBERS = 8
CAPACITY = 100.0
# At its mean the load takes seven tenths of what the first members do.
_MEAN_RATE = 0.7 * FIRST_MEMBERS * CAPACITY
LAG_SECONDS = 2.5
_DAY_SECONDS = 86_400.0
NOISE = 0.05
# A collector reads a second before the end of the interval.
LEAD_SECONDS = 1.0


def read_clock() -> float:
    """The present, in seconds since 1970: brokers and lagcast live by the clock."""
    return time.time()  # noqa: TID251  # as above


def wave_of(at: FloatArray, phase: FloatArray | float) -> FloatArray:
    """Messages per second at instants in seconds since 1970, without noise: a day's wave, by its share of a day."""
    wave: FloatArray = _MEAN_RATE * (1.0 + 0.3 * np.sin(2.0 * np.pi * (at / _DAY_SECONDS + phase)))
    return wave


class Load:
    """Groups with a day's wave of their own and noise; from `surge_at` on, all at once, half as much again.

    Members do `CAPACITY` each, and what they cannot do waits. `members` may be changed between two rounds, which costs
    no time: what a rebalance stops is not what is measured.
    """

    def __init__(self, names: Sequence[str], *, partitions: int) -> None:
        self.names = tuple(names)
        self.surge_at: float | None = None
        self.members = dict.fromkeys(self.names, FIRST_MEMBERS)
        self.partitions = partitions
        self._dice = random.Random(7)  # noqa: S311  # no secret depends on it
        self._produced = [1e9] * len(self.names)
        self._waiting = [0.0] * len(self.names)

    def round_of(self, number: int) -> list[OffsetSample]:
        """The samples of all groups in the interval with that number since 1970; intervals are asked for in order."""
        at = number * BASE_INTERVAL_SECONDS - LEAD_SECONDS
        return [sample for place in range(len(self.names)) for sample in self._samples(place, at)]

    def _samples(self, place: int, at: float) -> Iterator[OffsetSample]:
        surge = 1.5 if self.surge_at is not None and at > self.surge_at else 1.0
        noise = self._dice.uniform(1.0 - NOISE, 1.0 + NOISE)
        rate = float(wave_of(np.array(at), place / len(self.names))) * surge * noise
        name = self.names[place]
        members = self.members[name]
        self._produced[place] += rate * BASE_INTERVAL_SECONDS
        waiting = self._waiting[place] + (rate - members * CAPACITY) * BASE_INTERVAL_SECONDS
        self._waiting[place] = max(0.0, waiting)
        each = self._produced[place] / self.partitions
        behind = (self._waiting[place] + LAG_SECONDS * rate) / self.partitions
        sampled_at = datetime.fromtimestamp(at, UTC)
        for partition in range(self.partitions):
            yield OffsetSample(
                cluster=CLUSTER,
                group=name,
                topic=name,
                partition=partition,
                sampled_at=sampled_at,
                end_offset=int(each),
                committed_offset=int(each - behind),
                log_start_offset=0,
                group_state="STABLE",
                group_protocol="consumer",
                group_assignor="range",
                members=members,
                static_members=0,
                clients="java",
            )


@contextmanager
def sending(load: Load, bootstrap: str, *, past: timedelta) -> Iterator[datetime]:
    """Send the past, and then each round at its time until the block ends; gives the instant that the past follows."""
    stop = threading.Event()
    now = read_clock()
    first, number = (int((now - ago) // BASE_INTERVAL_SECONDS) for ago in (past.total_seconds(), 0.0))
    with SamplePublisher(bootstrap, SAMPLES_TOPIC, client_config={}) as publish:
        for earlier in range(first, number):
            publish(load.round_of(earlier))

        def send(due: int) -> None:
            while not stop.wait(max(0.0, due * BASE_INTERVAL_SECONDS - LEAD_SECONDS - read_clock())):
                publish(load.round_of(due))
                due += 1

        thread = threading.Thread(target=send, args=(number,))
        thread.start()
        try:
            yield datetime.fromtimestamp((first - 1) * BASE_INTERVAL_SECONDS, UTC)
        finally:
            stop.set()
            thread.join()
