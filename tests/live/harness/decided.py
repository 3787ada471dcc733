"""Decisions of the real loop, for the pages that show them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import pi, sin
from time import perf_counter

from forecasting.history import GroupInterval
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.configuring.settings_group import GroupSettings
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.known_groups import KnownGroups
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from tests.recommender.loop import ReadInTurn

DECIDED_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
CLUSTER = "prod-eu"
_DAYS = 3
_SETTINGS = GroupSettings(capacity_messages_per_second_per_replica=2_400.0, max_replicas=24)
_DECISION = DecisionSettings(currency="USD", price_per_replica_hour=0.05)


@dataclass(frozen=True, slots=True)
class Days(ReadInTurn):
    """A feature table of one group: three days, each with its peak of 20,700 messages/s at 15:00, a row a minute."""

    group: str

    def groups(self, *, now: datetime) -> Sequence[tuple[str, str]]:  # noqa: ARG002  # none is gone
        """The one."""
        return [(CLUSTER, self.group)]

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[GroupInterval]:
        """Its rows after `since`, up to `until`."""
        oldest = DECIDED_AT - timedelta(days=_DAYS)
        since, until = max(since or oldest, oldest), until or DECIDED_AT
        ends = (since + timedelta(minutes=number + 1) for number in range(int((until - since).total_seconds() // 60)))
        return [_row(cluster, group, end) for end in ends]


def decisions(group: str, *, cycles: int, known_groups: KnownGroups | None = None) -> Iterator[Recommendation]:
    """What the loop decides on the group in so many cycles, a minute apart, the last of them at DECIDED_AT.

    What it then knows of the group, its last day among that, is kept in `known_groups`.
    """
    store = SqlDecisionStore("sqlite://")
    loop = Recommender(
        watched=WatchedGroups(
            histories=Days(group), profile_of=_SETTINGS.profile, settings=_DECISION, store=store, timer=perf_counter
        ),
        known_groups=KnownGroups() if known_groups is None else known_groups,
    )
    for before in reversed(range(cycles)):
        (decision,) = loop.run_once(now=DECIDED_AT - timedelta(minutes=before))
        assert isinstance(decision, Recommendation)
        yield decision
    store.close()


def named(decision: Recommendation, group: str) -> Recommendation:
    """The same decision on another group."""
    return replace(decision, recommendation_id=f"{decision.recommendation_id}-{group}", group=group)


def _row(cluster: str, group: str, end: datetime) -> GroupInterval:
    hour = end.hour + end.minute / 60
    swing = ((7919 * int(end.timestamp() // 60)) % 13 - 6) / 6
    rate = 11_500.0 * (1.0 + 0.8 * sin((hour - 9.0) * pi / 12)) * (1.0 + 0.03 * swing)
    return GroupInterval(
        cluster=cluster,
        group=group,
        topics=group,
        interval_end_at=end,
        interval_seconds=60,
        produce_messages_per_second=rate,
        consume_messages_per_second=rate,
        lag_messages=2.5 * rate,
        lag_seconds=2.5,
        partitions=24,
        sampled_partitions=24,
        members=8,
    )
