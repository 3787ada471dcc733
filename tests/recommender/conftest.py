"""Small groups with a known past, from which every test of the decision starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from time import perf_counter

import numpy as np
import pytest

from cost_model.physics.capacity import group_capacity
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import GroupInterval, History, HistoryBuffer
from forecasting.units import MessagesPerSecond, Partitions, Replicas, Seconds
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.context import DecisionContext, read_context
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.following.session import Session
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from tests.recommender.loop import RecordingPublisher, Rows

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
    return GroupInterval(**(known | changes))  # type: ignore[arg-type]  # rows check their types


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
            history_tier="weekly",
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


@pytest.fixture(name="context")
def context_fixture(
    history: Callable[..., History], forecast: Callable[[Sequence[float]], Forecast], profile: GroupProfile
) -> Callable[..., DecisionContext]:
    """`context(**changed_fields)`: 4,000/s for an hour and as many expected, 8 members, no backlog, nothing moved."""

    def make(**changes: object) -> DecisionContext:
        read = read_context(history(4000.0), forecast([4000.0]), profile, DecisionSettings(), previous=None, now=NOW)
        assert isinstance(read, DecisionContext)
        return replace(read, **changes)  # type: ignore[arg-type]  # the fields' types are checked where tests name them

    return make


@pytest.fixture(name="now")
def now_fixture() -> datetime:
    """The instant at which `hour` ends."""
    return NOW


@pytest.fixture(name="hour")
def hour_fixture() -> list[GroupInterval]:
    """An hour of steady rows up to NOW."""
    return [_row(NOW - timedelta(seconds=15 * back), 5000.0) for back in reversed(range(240))]


@pytest.fixture(name="make_loop")
def make_loop_fixture(profile: GroupProfile, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Recommender]:
    """`make_loop(rows, publishers)`: a loop over rows that stores its decisions in a SQLite file of its own."""

    def make(rows: Rows, publishers: Sequence[RecordingPublisher] = ()) -> Recommender:
        store = SqlDecisionStore(f"sqlite:///{tmp_path_factory.mktemp('store') / 'decisions.sqlite'}")
        watched = WatchedGroups(
            histories=rows,
            profile_of=lambda _cluster, group, _observed: None if group == "off" else replace(profile, group=group),
            settings=DecisionSettings(),
            store=store,
            timer=perf_counter,
        )
        return Recommender(watched=watched, publishers=publishers)

    return make


ROW_SECONDS = 15
STOP_SECONDS = 3.0


@dataclass(slots=True, kw_only=True)
class FluidGroup:
    """A group that follows a session's advice: one aggregate backlog, 3 s of stop in each move, 30 s of start-up.

    `sink` is the limit behind it, in messages/s; `moves` are (second, before, after), at their commands.
    """

    session: Session
    members: int
    sink: float = float("inf")
    partitions: int = 24
    capacity: float = 1000.0
    lag: float = 0.0
    moves: list[tuple[int, int, int]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    rows: list[GroupInterval] = field(default_factory=list)
    _coming: tuple[datetime, int] | None = None

    def play(self, rates: Sequence[float]) -> "FluidGroup":
        """Let one row of 15 s pass per rate; a due move is carried out at once."""
        for rate in rates:
            second = ROW_SECONDS * (len(self.rows) + 1)
            now = NOW + timedelta(seconds=second)
            row = self._row(now, rate)
            self.rows.append(row)
            self.session.observe(row)
            if self.session.due(now):
                self._follow(self.session.recommend(now), now, second)
        return self

    def _row(self, now: datetime, rate: float) -> GroupInterval:
        moved = self._coming is not None and self._coming[0] <= now
        if moved and self._coming is not None:
            self.members, self._coming = self._coming[1], None
        each, work_units = MessagesPerSecond(self.capacity), Partitions(self.partitions)
        carried = min(group_capacity(Replicas(self.members), partitions=work_units, capacity=each), self.sink)
        working = ROW_SECONDS - (STOP_SECONDS if moved else 0.0)
        done = min(self.lag + rate * ROW_SECONDS, carried * working)
        self.lag += rate * ROW_SECONDS - done
        return _row(
            now,
            rate,
            consume_messages_per_second=done / ROW_SECONDS,
            lag_messages=self.lag + 2.5 * rate,
            members=self.members,
            in_rebalance=moved,
            partitions=self.partitions,
            sampled_partitions=self.partitions,
        )

    def _follow(self, decision: Decision, now: datetime, second: int) -> None:
        self.decisions.append(decision)
        if not isinstance(decision, Recommendation) or self._coming is not None:
            return
        if decision.execute_at <= now and decision.desired_replicas != self.members:
            self.moves.append((second, self.members, decision.desired_replicas))
            start_up = 30 if decision.desired_replicas > self.members else 0
            self._coming = (now + timedelta(seconds=start_up), decision.desired_replicas)


@pytest.fixture(name="fluid", scope="session")
def fluid_fixture() -> Callable[..., FluidGroup]:
    """`fluid(session=..., members=8, sink=..., partitions=24, capacity=1000.0)`: a group that follows its advice."""
    return FluidGroup
