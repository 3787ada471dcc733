"""OffsetSample: one partition of one group at one instant."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

# Clocks that are set by NTP differ by milliseconds, and a few seconds hardly matter for rows of 15 s.
CLOCK_TOLERANCE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSample:
    """The reading of one partition at `sampled_at`; the fields are `forecasting.columns.SAMPLES`, in that order.

    `committed_offset` is read before `end_offset`: the other way round, a group that commits between the two reads
    shows negative lag (end 1,203,900, then committed 1,203,950, is -50 messages). None: nothing committed yet.
    `static_members` of the `members` have a `group.instance.id`: Kafka keeps their place while they are down.
    `clients` are the libraries that the members' client ids name, joined by a comma (`client_libraries`).
    `streams` is what is known of a Kafka Streams application, as JSON under the names of its settings.
    `commit_interval_seconds` is the time between two commits of a consumer, as the meter has seen it.
    `busy_ratio` is the share of their time in which members work on messages, as their clients report it.
    `session_timeout_seconds` and `rebalance_timeout_seconds` are the longest of the members', as Kafka keeps them, and
    `consumer_heartbeat_seconds` is what it tells members of the newer protocol.
    `group_state` is Kafka's term (`STABLE`, `PREPARING_REBALANCING`, ...), `UNKNOWN` where the broker returned none.
    """

    cluster: str
    group: str
    topic: str
    partition: int
    sampled_at: datetime
    end_offset: int
    committed_offset: int | None
    log_start_offset: int | None
    group_state: str
    group_protocol: str | None
    group_assignor: str | None
    members: int | None
    static_members: int | None = None
    clients: str | None = None
    streams: str | None = None
    commit_interval_seconds: float | None = None
    busy_ratio: float | None = None
    session_timeout_seconds: float | None = None
    rebalance_timeout_seconds: float | None = None
    consumer_heartbeat_seconds: float | None = None


# Whether a group, by its cluster and its name, is to be read.
Owns = Callable[[str, str], bool]


def every_group(_cluster: str, _group: str) -> bool:
    """The choice of one that shares the groups with nobody; a child process can be given it."""
    return True
