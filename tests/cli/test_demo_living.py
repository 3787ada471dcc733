"""The demo goes on: within two minutes of watching, a move is advised, made and graded."""

from dataclasses import replace
from threading import Event

import pytest

from cli.demo import contest_of
from cli.demo_living import CYCLE_SECONDS, SPEED, GoingOn, LivingGroup, live_on, loop_over
from recommender.adapters.store_sql import SqlDecisionStore
from replay.sampling import rows_of
from replay.trace import Trace
from tests.recommender.loop import Rows

WATCHED_SECONDS = 120


@pytest.fixture
def store() -> SqlDecisionStore:
    """A store in memory."""
    return SqlDecisionStore("sqlite://")


@pytest.fixture
def group(store: SqlDecisionStore) -> LivingGroup:
    """The demo's group at the end of a generated evening, of which three hours are known."""
    load, contest = contest_of(days=2, seed=7)
    evening = Trace(
        name=load.name,
        start_at=load.end_at.replace(hour=0) - (load.end_at - load.start_at) / 16,
        step_seconds=load.step_seconds,
        messages_per_second=load.messages_per_second[-180:],
    )
    past = rows_of(replace(contest, trace=evening).plant(), contest.names)
    histories = GoingOn(Rows(past))
    loop = loop_over(histories, contest, store=store)
    loop.run_once(now=evening.end_at)
    return LivingGroup(contest, histories, loop, start_at=evening.end_at)


def test_a_move_is_advised_made_and_graded_while_one_looks_on(group: LivingGroup, store: SqlDecisionStore) -> None:
    """At midnight all replicas are there and few are needed: the group shrinks as advised, and that is graded."""
    begun_at = group.now
    for _ in range(WATCHED_SECONDS * SPEED // CYCLE_SECONDS):
        group.cycle()
    assert (group.now - begun_at).total_seconds() == WATCHED_SECONDS * SPEED
    (cluster_and_name,) = store.groups()
    moves = store.outcomes(*cluster_and_name, limit=100)
    advised = [move for move in moves if move.outcome.advised_as is not None]
    assert advised
    decision = store.by_id(str(advised[-1].outcome.advised_as))
    assert getattr(decision, "desired_replicas", None) == advised[-1].outcome.to_replicas


def test_it_lives_until_it_is_stopped(group: LivingGroup) -> None:
    """Ctrl-C sets the event."""
    stop = Event()
    stop.set()
    begun_at = group.now
    live_on(group, stop)
    assert group.now == begun_at
