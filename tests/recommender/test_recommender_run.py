"""The loop: every group gets its decision, one group's trouble stays its own, and nothing is learnt from the future."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from cost_model.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.decision import DecisionSettings
from recommender.ports import UnavailableError
from recommender.recommendation import Decision, Recommendation
from recommender.run import Recommender, run_forever

Row = Callable[..., GroupInterval]


@dataclass
class Rows:
    """A feature table in memory; `poisoned` is a group that cannot be read, with the error it fails with."""

    rows: list[GroupInterval]
    poisoned: dict[str, Exception] = field(default_factory=dict)
    asked_since: list[datetime | None] = field(default_factory=list)

    def groups(self) -> list[tuple[str, str]]:
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


@dataclass
class Heard:
    """A publisher that remembers, or fails."""

    decisions: list[Decision] = field(default_factory=list)
    failing: bool = False

    def publish(self, decision: Decision) -> None:
        """Remember `decision`, or fail."""
        if self.failing:
            message = "the topic does not answer"
            raise UnavailableError(message)
        self.decisions.append(decision)


@pytest.fixture
def hour(row: Row, now: datetime) -> list[GroupInterval]:
    """An hour of steady rows that ends at `now`."""
    return [row(now - timedelta(seconds=15 * back), 5000.0) for back in reversed(range(240))]


@pytest.fixture
def now() -> datetime:
    """The instant at which the hour ends."""
    return datetime.fromisoformat("2026-01-05T12:00:00Z")


@pytest.fixture
def make(profile: GroupProfile, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Recommender]:
    """A recommender over rows, keeping its decisions in a SQLite file of its own."""

    def build(rows: Rows, publishers: Sequence[Heard] = ()) -> Recommender:
        store = SqlDecisionStore(f"sqlite:///{tmp_path_factory.mktemp('store') / 'decisions.sqlite'}")
        return Recommender(
            histories=rows,
            profile_of=lambda _cluster, group, _partitions: None if group == "off" else replace(profile, group=group),
            settings=DecisionSettings(),
            store=store,
            publishers=publishers,
        )

    return build


def test_a_decision_is_kept_and_published(
    make: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """What a cycle answers is what the store keeps and what every publisher hears."""
    heard = Heard()
    loop = make(Rows(hour), [heard])
    (decision,) = loop.run_once(now=now)
    assert isinstance(decision, Recommendation)
    assert loop.store.latest("c", "orders") == decision
    assert heard.decisions == [decision]


@pytest.mark.parametrize(
    ("error", "reason"), [(UnavailableError("disk gone"), "source_unreachable"), (KeyError("odd"), "unsupported")]
)
def test_one_poisoned_group_does_not_stop_the_others(
    make: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, error: Exception, reason: str
) -> None:
    """A group that cannot be decided gets a refusal naming its trouble; its neighbours get their advice."""
    others = [replace(row, group=f"group-{index}") for index in range(3) for row in hour]
    decisions = make(Rows(others, poisoned={"bad": error})).run_once(now=now)
    refused = [decision for decision in decisions if isinstance(decision, Refusal)]
    assert [(refusal.group, refusal.reason) for refusal in refused] == [("bad", reason)]
    assert str(error) in refused[0].sentence
    assert len(decisions) == 4


def test_a_group_that_is_off_is_left_out(
    make: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """No profile, no decision: neither advice nor refusal."""
    assert make(Rows([replace(row, group="off") for row in hour])).run_once(now=now) == ()


def test_rows_after_now_are_not_seen(
    make: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """Deciding as of an earlier instant gives what would have been decided then."""
    earlier = now - timedelta(minutes=10)
    known_then = [row for row in hour if row.interval_end_at <= earlier]
    assert make(Rows(hour)).run_once(now=earlier) == make(Rows(known_then)).run_once(now=earlier)


def test_a_second_cycle_reads_only_what_is_new(
    make: Callable[..., Recommender], hour: list[GroupInterval], row: Row, now: datetime
) -> None:
    """The loop keeps what it has read: the next cycle asks for the rows after the last one it has."""
    rows = Rows(hour)
    loop = make(rows)
    loop.run_once(now=now)
    rows.rows = [*hour, *(row(now + timedelta(seconds=15 * step), 5000.0) for step in range(1, 5))]
    (decision,) = loop.run_once(now=now + timedelta(minutes=1))
    assert rows.asked_since[-1] == now
    assert isinstance(decision, Recommendation)
    assert decision.observed.as_of == now + timedelta(minutes=1)


def test_a_restart_goes_on_where_the_store_ends(
    make: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A new process refers to the last advice that was published, as the old one would have."""
    loop = make(Rows(hour))
    (first,) = loop.run_once(now=now - timedelta(minutes=1))
    again = Recommender(
        histories=Rows(hour), profile_of=loop.profile_of, settings=loop.settings, store=loop.store
    ).run_once(now=now)
    assert isinstance(first, Recommendation)
    assert isinstance(again[0], Recommendation)
    assert again[0].supersedes == first.recommendation_id


def test_a_deaf_publisher_does_not_stop_the_cycle(
    make: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """What could not be published is kept all the same, and the next publisher hears it."""
    deaf, heard = Heard(failing=True), Heard()
    loop = make(Rows(hour), [deaf, heard])
    (decision,) = loop.run_once(now=now)
    assert heard.decisions == [decision]
    assert loop.store.latest("c", "orders") == decision


def test_the_loop_decides_at_each_instant_and_ends_with_them(
    make: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """One cycle for each instant handed in, no more."""
    heard = Heard()
    run_forever(make(Rows(hour), [heard]), instants=iter([now - timedelta(minutes=1), now]))
    assert [decision.issued_at for decision in heard.decisions if isinstance(decision, Recommendation)] == [
        now - timedelta(minutes=1),
        now,
    ]
