"""A loop that is started again goes on as if it had never been stopped, with what the store has kept."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from math import isclose
from pathlib import Path
from time import perf_counter

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pytest

from forecasting.history import GroupInterval
from recommender.adapters.arrow_rows import SCHEMA, condensed
from recommender.adapters.documents import to_document
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.borders import Borders
from recommender.deciding.recommendation import Recommendation
from recommender.following.kept_account import kept_since
from recommender.ports import Condensed
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from tests.recommender.loop import Rows, store_of

Row = Callable[..., GroupInterval]


def test_a_restart_goes_on_where_the_store_ends(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A new process refers to the last published advice, as the old one would have."""
    loop = make_loop(Rows(hour))
    (first,) = loop.run_once(now=now - timedelta(minutes=1))
    again = Recommender(
        watched=WatchedGroups(
            histories=Rows(hour),
            profile_of=loop.watched.profile_of,
            settings=loop.watched.settings,
            store=loop.watched.store,
            timer=perf_counter,
        )
    ).run_once(now=now)
    assert isinstance(first, Recommendation)
    assert isinstance(again[0], Recommendation)
    assert again[0].supersedes == first.recommendation_id


@dataclass
class Obedient:
    """An hour of rows at 2,500/s on 8 members, then each advised move is carried out with a stop of 2 s."""

    loop: Recommender
    rows: Rows
    row: Row
    members: int = 8
    left: float = 0.0

    def go_on(self, since: datetime, *, minutes: int) -> datetime:
        """Four rows, then a decision, minute by minute."""
        for minute in range(minutes):
            for quarter in range(1, 5):
                at = since + timedelta(minutes=minute, seconds=15 * quarter)
                lag = 2500.0 * (2.5 + self.left)
                self.rows.rows.append(self.row(at, 2500.0, members=self.members, lag_messages=lag))
                self.left = 0.0
            (decision,) = self.loop.run_once(now=at)
            assert isinstance(decision, Recommendation)
            if decision.due_replicas(now=at) != self.members:
                self.members, self.left = decision.desired_replicas, 2.0
        return at


def restarted(loop: Recommender, rows: list[GroupInterval], path: Path, *, kept: bool = True) -> Recommender:
    """Another process on a copy of the first one's store, with `rows` as all rows of the feature table."""
    store = SqlDecisionStore(f"sqlite:///{path}")
    if kept:
        store.keep_outcomes(loop.watched.store.outcomes("c", "orders", limit=1000))
        advice = loop.watched.store.latest_recommendation("c", "orders")
        assert advice is not None
        store.save(advice, loop.watched.store.account("c", "orders", since=kept_since(advice.issued_at)))
    return Recommender(
        watched=WatchedGroups(
            histories=Rows(rows),
            profile_of=loop.watched.profile_of,
            settings=loop.watched.settings,
            store=store,
            timer=perf_counter,
        )
    )


def an_hour_more(rows: Rows, row: Row) -> datetime:
    """Add an hour of steady rows and return its end."""
    last = rows.rows[-1]
    later = [last.interval_end_at + timedelta(seconds=15 * step) for step in range(1, 241)]
    rows.rows += [row(at, 2500.0, members=last.members) for at in later]
    return later[-1]


@pytest.fixture
def taught(make_loop: Callable[..., Recommender], row: Row, now: datetime) -> tuple[Recommender, Rows, datetime]:
    """A loop that has followed twelve minutes of an obedient group: 8 replicas for what 3 carry, so it has moved."""
    rows = Rows([row(now - timedelta(seconds=15 * back), 2500.0) for back in reversed(range(240))])
    loop = make_loop(rows)
    # The guard counts from the first advice that a process has made or read, so only the guard differs.
    loop.watched.settings = replace(loop.watched.settings, fallback_policy=False)
    return loop, rows, Obedient(loop, rows, row).go_on(now, minutes=12)


def test_a_graded_move_is_kept_with_its_expectation(taught: tuple[Recommender, Rows, datetime]) -> None:
    """The advice of the move is found by its id; its price and its stop are stored beside the outcome."""
    loop, _, _ = taught
    first = loop.watched.store.outcomes("c", "orders", limit=10)[-1]
    advice = store_of(loop).by_id(first.outcome.advised_as or "")
    assert isinstance(advice, Recommendation)
    assert first.promised is not None
    assert (first.promised.chosen, first.promised.saving) == (advice.chosen.total, advice.saving)
    assert first.outcome.expected_rebalance_pause_seconds == advice.rebalance_impact.rebalance_pause_seconds
    assert first.outcome.rebalance_pause_seconds == pytest.approx(2.0)
    assert (first.outcome.from_replicas, first.outcome.to_replicas) == (8, advice.desired_replicas)


def test_a_restarted_loop_has_learned_the_same_as_the_first_one(
    taught: tuple[Recommender, Rows, datetime], row: Row, tmp_path: Path
) -> None:
    """From the same rows and the same store the next decision is the same to the last byte; no move counts twice.

    It follows a cycle an hour later, after which the first one's forecaster is fitted again too. The ledger is counted
    again with what is known of the group's moves by now: what was paid is the same, what others would have cost is not.
    """
    loop, rows, _ = taught
    later = an_hour_more(rows, row)
    loop.run_once(now=later)
    second = restarted(loop, rows.rows, tmp_path / "copy.sqlite")
    rows.rows.append(row(later + timedelta(seconds=15), 2500.0, members=rows.rows[-1].members))
    later = rows.rows[-1].interval_end_at
    (first_decision,), (second_decision,) = loop.run_once(now=later), second.run_once(now=later)
    assert isinstance(first_decision, Recommendation)
    assert first_decision.learned is not None
    assert first_decision.learned.moves == len(loop.watched.store.outcomes("c", "orders", limit=10)) > 0
    assert isinstance(second_decision, Recommendation)
    assert first_decision.ledger is not None
    assert second_decision.ledger is not None
    assert first_decision.ledger.paid.replicas == pytest.approx(second_decision.ledger.paid.replicas, rel=0.01)
    first, second_one = (to_document(replace(each, ledger=None)) for each in (first_decision, second_decision))
    assert first == second_one


def values_in(document: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Every value of a decision with its path."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from values_in(value, f"{name}.{key}" if name else key)
    elif isinstance(document, list):
        for place, value in enumerate(document):
            yield from values_in(value, f"{name}[{place}]")
    else:
        yield name, document


def alike(one: object, other: object) -> bool:
    """Equal, numbers up to the ninth digit."""
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


# The ledger is shown and decides nothing. It is counted again from the rows, and its simulations are then made with
# what is known of the group's moves by now.


COUNTED_AGAIN = ("ledger.error_ratio", "ledger.accounts")


class Condensing(Rows):
    """A feature table in memory whose pasts are condensed as those of files are; `spared` rows were no objects."""

    spared = 0

    def condensed_in_turns(
        self, groups: Sequence[tuple[str, str]], *, newest: timedelta, since: datetime, until: datetime
    ) -> Iterator[Sequence[tuple[tuple[str, str], Condensed]]]:
        """By way of tables."""
        for name in groups:
            rows = self.intervals(*name, since=since, until=until)
            columns = {each.name: [getattr(one, each.name) for one in rows] for each in fields(GroupInterval)}
            table = pa.table(columns).cast(SCHEMA)
            past = condensed(table, newest=newest)
            self.spared += len(rows) - len(past.rows)
            yield [(name, past)]


@pytest.mark.parametrize("hours", [1, 30])
def test_p18_after_a_restart_the_next_decision_is_that_of_a_loop_that_was_never_stopped(
    make_loop: Callable[..., Recommender], row: Row, now: datetime, tmp_path: Path, hours: int
) -> None:
    """With all settings as they are by default, the two have the same count, time, prices, beliefs and accounts.

    Forecasts are fitted at another minute, which on a steady load changes no digit that counts. Of a longer past the
    second reads minutes, but for the last day: an unsteady hour that taught a lower target utilization is beyond that.
    """
    rows = Rows(
        [
            row(now - timedelta(seconds=15 * back), 2500.0, lag_messages=2500.0 * (2.0 if back < 6200 else 20.0))
            for back in reversed(range(240 * hours))
        ]
    )
    loop = make_loop(rows)
    at = Obedient(loop, rows, row).go_on(now, minutes=40)
    second = restarted(loop, list(rows.rows), tmp_path / "copy.sqlite")
    second.watched.histories = in_tables = Condensing(list(rows.rows))
    later = at + timedelta(seconds=15)
    newest = row(later, 2500.0, members=rows.rows[-1].members)
    for each in (loop, second):
        each.watched.histories.rows.append(newest)  # type: ignore[attr-defined]  # rows in memory
    first, again = (dict(values_in(json.loads(to_document(each.run_once(now=later)[0])))) for each in (loop, second))
    assert first["current_replicas"] != 8  # it has moved
    differing = {name for name in first.keys() | again.keys() if not alike(first.get(name), again.get(name))}
    differing -= {"recommendation_id"}  # a digest of the rest
    assert {name for name in differing if not name.startswith(COUNTED_AGAIN)} == set()
    assert again["fallback_policy.used"] != 0.0
    assert (in_tables.spared > 0) == (hours > 25)
    assert (first["learned.target_utilization"] < loop.watched.settings.target_utilization) == (hours > 25)  # type: ignore[operator]  # numbers
    assert first["ledger.paid.replicas"] == again["ledger.paid.replicas"]


def test_an_account_that_cannot_be_read_begins_anew_and_is_told(
    make_loop: Callable[..., Recommender], row: Row, now: datetime, tmp_path: Path
) -> None:
    """It was written by another version, or broke: plans have the trust of a first decision, and advice goes on."""
    rows = Rows([row(now - timedelta(seconds=15 * back), 2500.0) for back in reversed(range(240))])
    loop = make_loop(rows)
    at = Obedient(loop, rows, row).go_on(now, minutes=40)
    second = restarted(loop, list(rows.rows), tmp_path / "copy.sqlite")
    advice = second.watched.store.latest_recommendation("c", "orders")
    assert advice is not None
    (*_, newest) = second.watched.store.account("c", "orders", since=kept_since(at))
    second.watched.store.save(advice, [newest._replace(document="[1, 2]")])
    counted: list[str] = []
    second.watched.borders = Borders(counted.append)
    (again,) = second.run_once(now=at + timedelta(seconds=1))
    assert isinstance(again, Recommendation)
    assert again.fallback_policy is not None
    assert again.fallback_policy.used == 0.0
    assert counted == ["document"]


def test_effects_learned_from_moves_outlive_their_rows(
    taught: tuple[Recommender, Rows, datetime], row: Row, tmp_path: Path
) -> None:
    """With no row left of the group's moves, a restarted loop believes and advises the same as the first."""
    loop, rows, _ = taught
    later = an_hour_more(rows, row)
    moved_until = loop.watched.store.outcomes("c", "orders", limit=1)[0].graded_at
    after = [each for each in rows.rows if each.interval_end_at > moved_until]
    second = restarted(loop, after, tmp_path / "copy.sqlite")
    forgetful = restarted(loop, after, tmp_path / "new.sqlite", kept=False)
    first, same, other = (
        decision
        for each in (loop, second, forgetful)
        for decision in each.run_once(now=later)
        if isinstance(decision, Recommendation)
    )
    assert (same.learned, same.desired_replicas, same.chosen) == (first.learned, first.desired_replicas, first.chosen)
    assert other.learned != first.learned


def test_moves_of_the_future_teach_nothing(taught: tuple[Recommender, Rows, datetime], tmp_path: Path) -> None:
    """A decision as of before the first move does not use moves that were graded later."""
    loop, rows, now = taught
    (decision,) = restarted(loop, rows.rows, tmp_path / "copy.sqlite").run_once(now=now - timedelta(minutes=12))
    assert isinstance(decision, Recommendation)
    assert decision.learned is not None
    assert decision.learned.moves == 0
