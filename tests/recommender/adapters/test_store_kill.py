"""A store whose writer is killed in the middle of its work."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recommender.adapters.documents import to_document, to_outcome_document
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.recommendation import GradedMove, Recommendation

# Saves one decision and one move of each of two groups a second of its clock, and reports it, until it is killed.
WRITER = """
import sys
from dataclasses import replace
from datetime import timedelta
from recommender.adapters.documents import from_document, from_outcome_document
from recommender.adapters.store_sql import SqlDecisionStore

url, document, graded = sys.argv[1:]
move = from_outcome_document(graded)
store, decision, index = SqlDecisionStore(url), from_document("Recommendation", document), 0
while True:
    issued_at = decision.issued_at + index * timedelta(seconds=1)
    store.save(replace(decision, recommendation_id=f"r-{index:06}", issued_at=issued_at))
    store.keep_outcomes([replace(move, group=group, graded_at=issued_at) for group in ("orders", "billing")])
    print(index, flush=True)
    index += 1
"""


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_it_reported(
    tmp_path: Path, advice: Callable[..., Recommendation], graded_move: Callable[..., GradedMove]
) -> None:
    """Five writers are killed at any moment of a save: everything reported as saved is there, whole, once.

    Moves that were saved together are both there or neither is.

    Each writer starts from the first decision again, as a new leader that repeats what the old one may have done.
    """
    url = sqlite_url(tmp_path / "decisions.sqlite")
    for kept_at_least in (3, 10, 20, 31, 47):
        command = [sys.executable, "-c", WRITER, url, to_document(advice()), to_outcome_document(graded_move())]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        reported = [int(writer.stdout.readline()) for _ in range(kept_at_least)][-1]
        writer.kill()
        reported = max([reported, *(int(line) for line in writer.stdout.read().splitlines())])
        writer.stdout.close()
        assert writer.wait() == -signal.SIGKILL
        store = SqlDecisionStore(url)
        latest = store.latest_recommendation("prod-eu", "orders")
        assert latest is not None
        saved = store.history("prod-eu", "orders", advice().issued_at, latest.issued_at)
        orders, billing = (store.outcomes("prod-eu", group, limit=100_000) for group in ("orders", "billing"))
        store.close()
        assert [move.graded_at for move in orders] == [move.graded_at for move in billing]
        assert len(orders) > reported
        ids = [decision.recommendation_id for decision in (*saved, latest) if isinstance(decision, Recommendation)]
        assert ids == [f"r-{index:06}" for index in range(len(ids))]
        assert len(ids) > reported
