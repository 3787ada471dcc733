"""B25, P17: a thousand groups are decided within a minute, and one that cannot be does not stop the others."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

import pytest

from cost_model.physics.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.refusal import Refusal
from forecasting.units import Replicas
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from tests.recommender.loop import ReadInTurn, RecordingPublisher

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
MINUTES = 35
GROUPS = 1000
POISONED = "group-0500"


class OneHistoryForAll(ReadInTurn):
    """A feature table in which all groups have the same rows, and of the poisoned one a row without an instant."""

    def __init__(self, rows: list[GroupInterval]) -> None:
        self._rows = rows

    def groups(self, *, now: datetime) -> list[tuple[str, str]]:  # noqa: ARG002  # none is gone
        """A thousand names."""
        return [("c", f"group-{index:04}") for index in range(GROUPS)]

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[GroupInterval]:
        """The rows, under the group's name."""
        del since, until
        rows = [replace(row, cluster=cluster, group=group) for row in self._rows]
        if group == POISONED:
            rows[-1] = replace(rows[-1], interval_end_at=None)  # type: ignore[arg-type]  # that is the poison
        return rows


@pytest.mark.slow
def test_p17_one_poisoned_group_of_a_thousand_is_refused_and_the_others_are_decided(
    row: Callable[..., GroupInterval], profile: GroupProfile, tmp_path: Path
) -> None:
    """One cycle publishes and keeps advice on 999 groups and one refusal, which names the error, all of one instant."""
    minutes = [row(NOW - timedelta(minutes=back), 5000.0, interval_seconds=60) for back in reversed(range(MINUTES))]
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    published = RecordingPublisher()
    loop = Recommender(
        watched=WatchedGroups(
            histories=OneHistoryForAll(minutes),
            # One count is allowed, so that there is one plan to price: a decision takes milliseconds.
            profile_of=lambda _cluster, group, _observed: replace(
                profile, group=group, min_replicas=Replicas(8), max_replicas=Replicas(8)
            ),
            settings=DecisionSettings(horizon_seconds=600, fallback_policy=False),
            store=store,
            timer=perf_counter,
        ),
        publishers=[published],
    )
    decisions = loop.run_once(now=NOW)
    advised = [decision for decision in decisions if isinstance(decision, Recommendation)]
    (refused,) = (decision for decision in decisions if isinstance(decision, Refusal))
    assert {decision.group for decision in advised} == {name for _, name in OneHistoryForAll([]).groups(now=NOW)} - {
        POISONED
    }
    assert {decision.issued_at for decision in advised} == {refused.refused_at} == {NOW}
    assert (refused.group, refused.reason) == (POISONED, "unsupported")
    assert refused.sentence.startswith("TypeError: ")
    assert published.decisions == list(decisions)
    assert store.latest_page() == tuple(decisions)
    store.close()


@pytest.mark.slow
def test_b25_a_thousand_groups_of_24_partitions_are_decided_in_a_minute_within_a_gibibyte(tmp_path: Path) -> None:
    """In seconds of processor of one process, its first cycle, that compiles; nothing is set for any group."""
    command = [sys.executable, "-m", "tests.recommender.fleet_cycle", str(tmp_path)]
    took = json.loads(subprocess.run(command, capture_output=True, check=True, text=True, timeout=900).stdout)
    assert took["kinds"] == {"Recommendation": GROUPS}
    assert took["cpu_seconds"][0] <= 60.0
    assert took["resident_bytes"] <= 2**30
