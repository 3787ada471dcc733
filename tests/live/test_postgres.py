"""The store of decisions on a real PostgreSQL, which several recommenders share."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from recommender.adapters import store_postgres, store_sql
from recommender.adapters.documents import to_document
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.cluster.leadership import NotLeadingError
from recommender.deciding.hold import Hold, HoldScope
from recommender.deciding.recommendation import Decision, GradedMove, Recommendation
from recommender.ports import UnavailableError, standing_of
from tests.live.harness.postgres import Postgres, running_postgres
from tests.recommender.adapters.test_store_sql import DecisionStoreContract

pytestmark = pytest.mark.postgres

MINUTE = timedelta(minutes=1)
_NUMBERS = count()
# Begins to store a decision and is frozen before it may commit.
FROZEN = """
import os, signal, sys
from recommender.adapters.documents import from_document
from recommender.adapters.store_sql import SqlDecisionStore

def freeze():
    print("in a transaction", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)

SqlDecisionStore(sys.argv[1], may_write=freeze).save(from_document("Recommendation", sys.argv[2]))
"""


@pytest.fixture(scope="module")
def server(tools_for_postgres: None) -> Iterator[Postgres]:
    """An empty server."""
    del tools_for_postgres
    with running_postgres() as found:
        yield found


@pytest.fixture
def url(server: Postgres) -> str:
    """The URL of a new database."""
    name = f"database_{next(_NUMBERS)}"
    server.run("psql", "-d", "postgres", "-c", f"CREATE DATABASE {name}")
    return server.url(name)


class TestPostgresStore(DecisionStoreContract):
    """The laws of every store hold for PostgreSQL."""

    @pytest.fixture
    def store(self, url: str) -> Iterator[SqlDecisionStore]:
        """An empty store."""
        store = SqlDecisionStore(url)
        yield store
        store.close()


@pytest.fixture
def store(url: str) -> Iterator[SqlDecisionStore]:
    store = SqlDecisionStore(url)
    yield store
    store.close()


def test_stored_decisions_are_read_back_equal(
    store: SqlDecisionStore,
    url: str,
    advice: Callable[..., Recommendation],
    graded_move: Callable[..., GradedMove],
) -> None:
    """Another process's store reads them too: the newest of each group, its history, pages, moves and deletions."""
    first = advice(group="kept")
    decisions: list[Decision] = [
        replace(first, recommendation_id=f"r-kept-{minute}", issued_at=first.issued_at + minute * MINUTE)
        for minute in range(3)
    ]
    for decision in [*decisions, decisions[0]]:
        store.save(decision)
    move = replace(graded_move(), group="kept")
    store.keep_outcomes([move, move])
    other = SqlDecisionStore(url)
    assert other.history("prod-eu", "kept", first.issued_at, first.issued_at + 3 * MINUTE) == tuple(decisions)
    assert other.latest("prod-eu", "kept") == other.by_id("r-kept-2") == decisions[-1]
    assert other.latest_page(group="kept") == (decisions[-1],)
    assert other.outcomes(move.cluster, "kept", limit=5) == (move,)
    # Both repeat the hour's first one; the newest stays.
    assert other.thin(now=first.issued_at + timedelta(days=3)) == 1
    other.close()


def test_a_write_that_may_no_longer_be_made_is_undone(url: str, advice: Callable[..., Recommendation]) -> None:
    """When the lead is lost while the write waits, nothing of it is stored."""

    def lost() -> None:
        message = "not leading"
        raise NotLeadingError(message)

    store = SqlDecisionStore(url, may_write=lost)
    with pytest.raises(NotLeadingError):
        store.save(advice(group="undone", recommendation_id="r-undone"))
    assert store.by_id("r-undone") is None
    store.close()


def test_a_process_frozen_in_a_transaction_delays_no_other_and_changes_nothing(
    store: SqlDecisionStore, url: str, advice: Callable[..., Recommendation]
) -> None:
    """Its lock is released after 5 s, before another recommender can lead; continued, its write is refused."""
    given = advice(group="frozen", recommendation_id="r-frozen")
    command = [sys.executable, "-c", FROZEN, url, to_document(given)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as frozen:
        assert frozen.stdout is not None
        assert frozen.stderr is not None
        assert frozen.stdout.readline() == "in a transaction\n"
        began = time.monotonic()
        # The same id waits for the transaction that has it.
        store.save(given)
        took = time.monotonic() - began
        store.save(replace(given, recommendation_id="r-next", issued_at=given.issued_at + MINUTE))
        frozen.send_signal(signal.SIGCONT)
        stderr = frozen.stderr.read()
        assert frozen.wait(timeout=20) != 0
    assert took < 8
    assert UnavailableError.__name__ in stderr
    assert store.latest("prod-eu", "frozen") == store.by_id("r-next")


def test_p17_a_restart_of_the_server_is_told_at_once_and_over_with_the_first_call_after_it(
    server: Postgres, store: SqlDecisionStore, advice: Callable[..., Recommendation]
) -> None:
    """Connections of before the restart are replaced; the loop and REST ended with them."""
    store.save(advice())
    server.stop()
    began = time.monotonic()
    with pytest.raises(UnavailableError, match="could not read the decision store"):
        store.latest("prod-eu", "orders")
    with pytest.raises(UnavailableError, match="could not save to the decision store"):
        store.save(advice(recommendation_id="r-2"))
    assert time.monotonic() - began < 10
    server.start()
    assert store.latest("prod-eu", "orders") == advice()
    store.save(advice(recommendation_id="r-2", issued_at=advice().issued_at + MINUTE))
    assert store.by_id("r-2") is not None


def test_p17_a_server_that_stands_still_is_told_within_its_time_and_over_with_the_first_call_after_it(
    server: Postgres, store: SqlDecisionStore, advice: Callable[..., Recommendation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It accepts and acknowledges everything and answers nothing, so that no limit of its own or of TCP is reached."""
    monkeypatch.setattr(store_postgres.Connection, "answer_seconds", 2.0)
    store.save(advice())
    next_advice = advice(recommendation_id="r-2", issued_at=advice().issued_at + MINUTE)
    with server.frozen():
        began = time.monotonic()
        with pytest.raises(UnavailableError, match="could not read the decision store"):
            store.latest("prod-eu", "orders")
        with pytest.raises(UnavailableError, match="could not save to the decision store"):
            store.save(next_advice)
        # One answer that does not come within 2 s, and two connections that are not made within 5 s.
        assert time.monotonic() - began < 30
    assert store.latest("prod-eu", "orders") == advice()
    store.save(next_advice)
    assert store.by_id("r-2") == next_advice


def test_a_backup_is_restored_with_everything_in_it(
    server: Postgres,
    store: SqlDecisionStore,
    url: str,
    advice: Callable[..., Recommendation],
    graded_move: Callable[..., GradedMove],
) -> None:
    """By the programs that come with the server, as docs/operations.md shows them."""
    store.save(advice())
    store.keep_outcomes([graded_move()])
    store.place_hold(Hold(scope=HoldScope(), reason="upgrade", placed_at=advice().issued_at))
    backup = server.run("pg_dump", url.rpartition("/")[2])
    server.run("psql", "-d", "postgres", "-c", "CREATE DATABASE restored")
    server.run("psql", "-d", "restored", "-v", "ON_ERROR_STOP=1", text=backup)
    restored = SqlDecisionStore(server.url("restored"))
    assert restored.latest("prod-eu", "orders") == advice()
    assert restored.outcomes("prod-eu", "orders", limit=5) == (graded_move(),)
    assert restored.holds(now=advice().issued_at) == store.holds(now=advice().issued_at)
    restored.save(advice(recommendation_id="r-2"))
    restored.close()


def test_the_schema_goes_back_and_forth_and_keeps_the_decisions(
    store: SqlDecisionStore, url: str, advice: Callable[..., Recommendation], graded_move: Callable[..., GradedMove]
) -> None:
    """Back to the first revision, whose tables stay as they are; the next start makes the others anew."""
    store.save(advice())
    store.keep_outcomes([graded_move()])
    config = Config()
    config.set_main_option("script_location", str(Path(store_sql.__file__).parent / "migrations"))
    engine = sa.create_engine(url)
    with engine.connect() as connection, connection.begin():
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")
    engine.dispose()
    again = SqlDecisionStore(url)
    assert again.latest("prod-eu", "orders") == advice()
    assert again.outcomes("prod-eu", "orders", limit=5) == ()
    again.keep_outcomes([graded_move()])
    assert again.outcomes("prod-eu", "orders", limit=5) == (graded_move(),)
    later = advice(recommendation_id="r-2", issued_at=advice().valid_until)
    again.save(later)
    span = (advice().issued_at, later.issued_at + timedelta(seconds=1))
    assert again.standings("prod-eu", "orders", *span) == (standing_of(later),)
    again.close()
