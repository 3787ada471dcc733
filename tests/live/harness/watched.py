"""A group of a real broker as the recommender sees it: real readings, 15 s apart by a clock of the test's own.

Spark is left out: rows are made by `replay.sampling.Rows`, which a test of its own holds equal to the Spark job's.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
from confluent_kafka import Producer

from cli.up import obstacles_of
from collector.errors import AdapterError, UnavailableError
from collector.kafka_admin import Collected
from collector.run import Collector
from collector.sample import OffsetSample
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.columns import BASE_INTERVAL_SECONDS, REBALANCING_STATES
from forecasting.history import GroupInterval
from forecasting.units import MessagesPerSecond, Partitions
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Decision
from recommender.following.session import Session
from recommender.ports import Obstacle
from replay.plant.observation import Observation
from replay.sampling import STABLE, Names, Rows
from tests.live.harness.clients import NOON, wait_until

STEP = timedelta(seconds=BASE_INTERVAL_SECONDS)
# Of each partition, and as much as a reading's fifteen seconds bring.
MESSAGES_PER_LOOK = 60
# Messages/s of a replica: one member carries three partitions and has room.
CAPACITY = 24.0


class Watched:
    """One group of one topic, whose members worked without trouble through the hour before noon.

    `obstacle` is the reason for which `lagcast up` would refuse the group after the last look, or None.
    """

    def __init__(
        self,
        collector: Collector,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        partitions: int,
        members: int,
        capacity: float = CAPACITY,
    ) -> None:
        self._collector, self._group, self._topic = collector, group, topic
        self._names = Names("live", group)
        rate = MessagesPerSecond(capacity)
        profile = GroupProfile(
            cluster="live",
            group=group,
            partitions=Partitions(partitions),
            capacity=Capacity(p20=rate, p50=rate, p90=rate, source="configured"),
        )
        past = [self._steady(NOON - back * STEP, partitions, members) for back in range(240, 0, -1)]
        self._session = Session(profile, DecisionSettings(), past)
        self._rows = Rows(self._names)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._ends = np.zeros(partitions, dtype=np.int64)
        self._commits = np.zeros(partitions, dtype=np.int64)
        self._unread: Mapping[str, AdapterError] = {}
        self.now = NOON
        self.rows: list[GroupInterval] = []

    @property
    def obstacle(self) -> Obstacle | None:
        """The reason why the group could not be read at the last look, or None."""
        return obstacles_of("live", self._unread).get(("live", self._group))

    def arrive(self, messages: int = MESSAGES_PER_LOOK, *, partitions: Sequence[int] | None = None) -> None:
        """So many messages into each of these partitions, or into all."""
        for partition in range(len(self._ends)) if partitions is None else partitions:
            for number in range(messages):
                self._producer.produce(self._topic, f"{partition}-{number}".encode(), partition=partition)
        assert self._producer.flush(10) == 0

    def look(self) -> tuple[OffsetSample, ...]:
        """The samples of the collector's round now; the recommender gets its row where it is whole."""
        self.now += STEP
        try:
            collected = self._collector.collect([self._group], now=self.now)
        except UnavailableError as error:
            failed = UnavailableError(str(error), group=self._group)
            collected = Collected(samples=(), errors=(failed,))
        self._unread = collected.unread
        samples = collected.samples
        if samples:
            self._observe(samples)
        return samples

    def look_when(self, is_so: Callable[[Mapping[int, int]], bool]) -> None:
        """A look at the moment at which the lag of each partition `is_so`."""

        def so() -> bool:
            rows = self._collector.collect([self._group], now=NOON).samples
            return bool(rows) and is_so({row.partition: row.end_offset - (row.committed_offset or 0) for row in rows})

        wait_until(so)
        self.look()

    def decision(self) -> Decision:
        """The decision as of the last look."""
        return self._session.recommend(self.now)

    def _observe(self, samples: Sequence[OffsetSample]) -> None:
        seen = {row.partition: row for row in samples}
        for partition, row in seen.items():
            self._ends[partition] = row.end_offset
            self._commits[partition] = row.committed_offset or 0
        newest = samples[0]
        unseen = tuple(partition for partition in range(len(self._ends)) if partition not in seen)
        observation = Observation(
            at=self.now,
            time_seconds=round((self.now - NOON).total_seconds()),
            replicas=newest.members or 0,
            ready_members=newest.members or 0,
            group_state=newest.group_state if newest.group_state in REBALANCING_STATES else STABLE,
            end_offsets=self._ends.copy(),
            committed_offsets=self._commits.copy(),
            unseen_partitions=unseen,
        )
        self.rows.append(self._rows.row(observation))
        self._session.observe(self.rows[-1])

    def _steady(self, at: datetime, partitions: int, members: int) -> GroupInterval:
        rate = partitions * MESSAGES_PER_LOOK / BASE_INTERVAL_SECONDS
        return GroupInterval(
            cluster="live",
            group=self._group,
            topics=self._group,
            interval_end_at=at,
            interval_seconds=BASE_INTERVAL_SECONDS,
            produce_messages_per_second=rate,
            consume_messages_per_second=rate,
            lag_messages=0.0,
            lag_seconds=0.0,
            partitions=partitions,
            sampled_partitions=partitions,
            members=members,
        )


def interval_of(rows: Sequence[OffsetSample]) -> GroupInterval:
    """The row of the feature table of these samples, as far as they describe the group."""
    newest = rows[0]
    return GroupInterval(
        cluster=newest.cluster,
        group=newest.group,
        topics=",".join(sorted({row.topic for row in rows})),
        interval_end_at=newest.sampled_at,
        interval_seconds=15,
        produce_messages_per_second=None,
        consume_messages_per_second=None,
        lag_messages=None,
        lag_seconds=None,
        partitions=len(rows),
        sampled_partitions=len(rows),
        members=newest.members,
        group_protocol=newest.group_protocol,
        group_assignor=newest.group_assignor,
        static_members=newest.static_members,
        clients=newest.clients,
        streams=newest.streams,
        commit_interval_seconds=newest.commit_interval_seconds,
        session_timeout_seconds=newest.session_timeout_seconds,
        rebalance_timeout_seconds=newest.rebalance_timeout_seconds,
        consumer_heartbeat_seconds=newest.consumer_heartbeat_seconds,
    )
