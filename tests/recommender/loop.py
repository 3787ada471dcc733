"""A loop's sources and publishers, in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forecasting.history import GroupInterval
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Decision
from recommender.ports import Condensed, UnavailableError
from recommender.run import Recommender


class ReadInTurn:
    """Histories that read all groups at once by reading one after the other."""

    def groups(self, *, now: datetime) -> Sequence[tuple[str, str]]:
        """Every group."""
        raise NotImplementedError

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[GroupInterval]:
        """The group's rows."""
        raise NotImplementedError

    def intervals_in_turn(
        self, groups: Sequence[tuple[str, str]], *, since: datetime, until: datetime
    ) -> Iterator[tuple[tuple[str, str], Sequence[GroupInterval]]]:
        """The rows of each of these."""
        for name in groups:
            yield name, self.intervals(*name, since=since, until=until)

    def condensed_in_turns(
        self,
        groups: Sequence[tuple[str, str]],
        *,
        newest: timedelta,  # noqa: ARG002  # its rows are objects already
        since: datetime,
        until: datetime,
    ) -> Iterator[Sequence[tuple[tuple[str, str], Condensed]]]:
        """The same, each a turn of its own."""
        for name, rows in self.intervals_in_turn(groups, since=since, until=until):
            yield [(name, Condensed(None, (), rows))]


@dataclass
class Rows(ReadInTurn):
    """A feature table in memory; `poisoned` is a group that cannot be read, with the error of the read."""

    rows: list[GroupInterval]
    poisoned: dict[str, Exception] = field(default_factory=dict)
    asked_since: list[datetime | None] = field(default_factory=list)

    def groups(self, *, now: datetime) -> list[tuple[str, str]]:  # noqa: ARG002  # none is gone
        """Every group that has rows, and the poisoned ones."""
        return sorted({(row.cluster, row.group) for row in self.rows} | {("c", name) for name in self.poisoned})

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[GroupInterval]:
        """The group's rows after `since`, up to `until`; `since` is remembered."""
        if group in self.poisoned:
            raise self.poisoned[group]
        self.asked_since.append(since)
        return [
            row
            for row in self.rows
            if (row.cluster, row.group) == (cluster, group)
            and (since is None or row.interval_end_at > since)
            and (until is None or row.interval_end_at <= until)
        ]

    def intervals_in_turn(
        self, groups: Sequence[tuple[str, str]], *, since: datetime, until: datetime
    ) -> Iterator[tuple[tuple[str, str], list[GroupInterval]]]:
        """The same of these groups in one read; it fails where a single one cannot be read."""
        if self.poisoned:
            raise next(iter(self.poisoned.values()))
        self.asked_since.append(since)
        found: dict[tuple[str, str], list[GroupInterval]] = {}
        for row in self.rows:
            if since < row.interval_end_at <= until:
                found.setdefault((row.cluster, row.group), []).append(row)
        yield from ((name, found.get(name, [])) for name in groups)


@dataclass
class RecordingPublisher:
    """A publisher that records decisions, or fails."""

    decisions: list[Decision] = field(default_factory=list)
    failing: bool = False

    def publish(self, decision: Decision) -> None:
        """Record `decision`, or fail."""
        if self.failing:
            message = "the topic does not answer"
            raise UnavailableError(message)
        self.decisions.append(decision)


def store_of(loop: Recommender) -> SqlDecisionStore:
    """The store of a loop that keeps its decisions in SQLite."""
    assert isinstance(loop.watched.store, SqlDecisionStore)
    return loop.watched.store
