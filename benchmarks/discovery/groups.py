"""The ten groups of the lab: how their consumers are set, and so what is true of them, and the load of their topics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import pi, sin
from typing import Literal

LabClient = Literal["java", "librdkafka", "kafka-python", "franz-go", "sarama", "streams"]
Figure = str | bool | float

# What a day shows of a replica's limit: `peak` asks for more than the replicas do for a part of it, in `deploy` all
# replicas are replaced once, which leaves a backlog, and `roomy` never asks for all that they do.
DayKind = Literal["peak", "deploy", "roomy"]
# Mean and swing of the load, as shares of what all replicas of the group do together.
_DAYS: Mapping[DayKind, tuple[float, float]] = {"peak": (0.7, 0.48), "deploy": (0.6, 0.2), "roomy": (0.45, 0.2)}
# The share of the run after which replicas are replaced, and for how long there are none meanwhile.
DEPLOY_AT, DEPLOY_SECONDS = 0.4, 120.0

# Figures that the lab leaves at the default of Kafka or of each client.
_PLAIN: Mapping[str, Figure] = {
    "static_membership": False,
    "heartbeat_interval_seconds": 3.0,
    "session_timeout_seconds": 45.0,
    "commit_mode": "interval",
    "commit_interval_seconds": 5.0,
}
_STREAMS: Mapping[str, Figure] = {
    "client": "java",
    "exactly_once": False,
    "commit_interval_seconds": 30.0,
    "max_poll_records": 1000.0,  # the default of Kafka Streams for its consumers
}
# Those of state, in a folder that is removed with its replica.
_STATE: Mapping[str, Figure] = {
    "stateful": True,
    "standbys": 1.0,
    "behind_bytes": 0.0,
    "volume_kept": False,
    "max_warmup_replicas": 2.0,
    "probing_seconds": 600.0,
}
# Clients whose max.poll.interval.ms is left at its default.
_POLL_INTERVAL: Mapping[LabClient, float] = dict.fromkeys(("java", "librdkafka", "kafka-python", "streams"), 300.0)
_IN_MILLISECONDS = {
    "session_timeout_seconds": "session.timeout.ms",
    "commit_interval_seconds": "auto.commit.interval.ms",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabGroup:
    """One group: `capacity` messages/s for each of its `replicas`, each a member of `client` with these `settings`.

    `protocol` is the word of an order to a member. `figures` are what is true of the group beyond the defaults above.
    """

    name: str
    client: LabClient
    protocol: str
    day: DayKind
    replicas: int
    partitions: int
    capacity: float
    words: str
    topics: int = 1
    static: bool = False
    transactional: bool = False
    keyed: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The names of its topics; each has all its partitions."""
        return tuple(self.name if number == 0 else f"{self.name}-{number + 1}" for number in range(self.topics))

    @property
    def truth(self) -> Mapping[str, Figure]:
        """What is true of it, by the names of the published figures, `members` and `capacity` beside them.

        `work_units` are the partitions, or with Kafka Streams the tasks.
        """
        figures: dict[str, Figure] = {
            **_PLAIN,
            "client": self.client,
            "static_membership": self.static,
            "processing_p99_seconds": self.record_seconds,
            "members": float(self.replicas),
            "work_units": float(self.partitions),
            "capacity": self.capacity,
        }
        for name, setting in _IN_MILLISECONDS.items():
            if setting in self.settings:
                figures[name] = int(self.settings[setting]) / 1e3
        if self.client == "streams":
            figures |= {**_STREAMS, "tasks": float(self.partitions)}
        if self.protocol == "consumer":  # the broker's, which all groups of the protocol share
            del figures["heartbeat_interval_seconds"]
            figures["consumer_heartbeat_seconds"] = 5.0
        if self.client in _POLL_INTERVAL:
            figures["max_poll_interval_seconds"] = _POLL_INTERVAL[self.client]
        return {**figures, **self.figures}

    @property
    def record_seconds(self) -> float:
        """The time that one message takes."""
        return 1.0 / self.capacity

    def messages_per_second(self, share_of_day: float) -> float:
        """The produce rate at a part of the day, from 0 to 1; each group begins at another hour."""
        mean, swing = _DAYS[self.day]
        shift = NAMES.index(self.name) / len(NAMES)
        return self.replicas * self.capacity * (mean + swing * sin(2.0 * pi * (share_of_day + shift)))


_GROUPS = (
    LabGroup(
        name="orders",
        client="java",
        protocol="cooperative-sticky",
        day="peak",
        replicas=3,
        partitions=12,
        capacity=25.0,
        words="Java, cooperative-sticky",
        settings={"max.poll.records": "20", "session.timeout.ms": "45000"},
        figures={"protocol": "cooperative", "max_poll_records": 20.0},
    ),
    LabGroup(
        name="payments",
        client="java",
        protocol="consumer",
        day="deploy",
        replicas=2,
        partitions=8,
        capacity=30.0,
        words="Java, KIP-848, reads committed data of a transactional producer",
        transactional=True,
        settings={"isolation.level": "read_committed"},
        figures={"protocol": "kip848", "max_poll_records": 500.0},
    ),
    LabGroup(
        name="mail",
        client="librdkafka",
        protocol="range",
        day="peak",
        replicas=3,
        partitions=6,
        capacity=20.0,
        words="librdkafka, range",
        settings={"max.poll.records": "1", "session.timeout.ms": "45000"},
        figures={"protocol": "eager", "assignor": "range"},
    ),
    LabGroup(
        name="stock",
        client="librdkafka",
        protocol="cooperative-sticky",
        day="deploy",
        replicas=4,
        partitions=8,
        capacity=15.0,
        words="librdkafka, cooperative-sticky, static members, a session of 30 s, commits each second",
        static=True,
        settings={"max.poll.records": "1", "session.timeout.ms": "30000", "auto.commit.interval.ms": "1000"},
        figures={"protocol": "cooperative"},
    ),
    LabGroup(
        name="search",
        client="librdkafka",
        protocol="consumer",
        day="roomy",
        replicas=2,
        partitions=6,
        capacity=20.0,
        words="librdkafka, KIP-848, client ids of the application's own",
        settings={"max.poll.records": "1", "client.id": "search-service"},
        figures={"protocol": "kip848"},
    ),
    LabGroup(
        name="reports",
        client="kafka-python",
        protocol="range",
        day="deploy",
        replicas=2,
        partitions=4,
        capacity=20.0,
        words="kafka-python as it comes",
        figures={"protocol": "eager", "assignor": "range", "max_poll_records": 500.0},
    ),
    LabGroup(
        name="audit",
        client="franz-go",
        protocol="cooperative-sticky",
        day="peak",
        replicas=2,
        partitions=6,
        capacity=25.0,
        words="franz-go as it comes",
        figures={"protocol": "cooperative"},
    ),
    LabGroup(
        name="alerts",
        client="sarama",
        protocol="range",
        day="deploy",
        replicas=2,
        partitions=4,
        capacity=20.0,
        words="Sarama as it comes",
        figures={
            "protocol": "eager",
            "assignor": "range",
            "session_timeout_seconds": 10.0,
            "commit_interval_seconds": 1.0,
        },
    ),
    LabGroup(
        name="totals",
        client="streams",
        protocol="stateful",
        day="peak",
        replicas=2,
        partitions=6,
        capacity=20.0,
        words="Kafka Streams with state and a standby, two topics in one sub-topology",
        topics=2,
        keyed=True,
        settings={"num.standby.replicas": "1"},
        figures={"protocol": "cooperative", **_STATE},
    ),
    LabGroup(
        name="routes",
        client="streams",
        protocol="stateless",
        day="roomy",
        replicas=2,
        partitions=4,
        capacity=20.0,
        words="Kafka Streams without state",
        figures={"protocol": "cooperative", "stateful": False},
    ),
)
NAMES = tuple(group.name for group in _GROUPS)
GROUPS: Mapping[str, LabGroup] = {group.name: group for group in _GROUPS}
