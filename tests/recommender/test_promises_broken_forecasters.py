"""P8: a forecaster that fails, hangs or returns nonsense costs one cycle at most, and the advice names the fault."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from structlog.testing import CapturingLogger

from cost_model.physics.profile import GroupProfile
from forecasting.blend import BlendForecaster
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import GroupInterval, History
from forecasting.persistence import PersistenceForecaster
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.adapters.time_limit import TimeLimit
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.following.session import Session
from recommender.run import Recommender
from recommender.watched_groups import WatchedGroups
from tests.recommender.loop import ReadInTurn

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
MINUTES = 90
MakeRow = Callable[..., GroupInterval]
# A hanging forecaster waits for it; set at the end of a test, so that none outlives the test.
NEVER = Event()
HANG_SECONDS = 60.0


@dataclass
class Broken:
    """A forecaster that fails in one way, at its fit (`at_fit`) or at a forecast; it counts its fits."""

    way: str
    at_fit: bool = False
    fits: int = 0
    name: str = "broken"

    def fit(self, history: History) -> "Broken | Refusal":  # noqa: ARG002  # the signature of the port
        """Return the forecaster, or fail."""
        self.fits += 1
        if self.at_fit:
            self._fail()
        return self

    def forecast(self, history: History, *, steps: int) -> Forecast | Refusal:
        """Forecast as persistence does, then spoil the result."""
        self._fail()
        fitted = PersistenceForecaster().fit(history)
        assert not isinstance(fitted, Refusal)
        sound = fitted.forecast(history, steps=steps)
        assert not isinstance(sound, Refusal)
        spoilt = {
            "not a number": np.full((len(QUANTILES), steps), np.nan),
            "infinite": np.full((len(QUANTILES), steps), np.inf),
            "negative": -sound.paths,
            "absurd": np.full((len(QUANTILES), steps), 1e12),
            "misshapen": sound.paths[:3],
            "empty": sound.paths[:, :0],
        }
        return replace(sound, model=self.name, paths=spoilt.get(self.way, sound.paths))

    def _fail(self) -> None:
        if self.way == "raises":
            message = "matrix is singular"
            raise ArithmeticError(message)
        if self.way == "hangs":
            NEVER.wait(HANG_SECONDS)


def rows(make: MakeRow, *, rate: float = 9000.0, minutes: int = MINUTES, group: str = "orders") -> list[GroupInterval]:
    """A row a minute up to NOW; 9,000/s are more than the 7,600 that 8 replicas carry at the target utilization."""
    return [
        make(NOW - timedelta(minutes=back), rate, interval_seconds=60, group=group) for back in reversed(range(minutes))
    ]


def plan_of(decision: Decision) -> tuple[object, ...]:
    """The advised plan, without its sentences."""
    assert isinstance(decision, Recommendation), decision
    return (decision.action, decision.desired_replicas, decision.execute_at, decision.chosen, decision.forecast.model)


@pytest.mark.parametrize("at_fit", [False, True], ids=["in forecasting", "in fitting"])
@pytest.mark.parametrize(
    ("way", "words"),
    [("raises", "failed with ArithmeticError: matrix is singular"), ("hangs", "did not answer within 0.2 s")],
)
def test_p8_a_forecaster_that_raises_or_hangs_is_replaced_at_once(
    row: MakeRow, profile: GroupProfile, way: str, words: str, *, at_fit: bool
) -> None:
    """The same cycle gives the advice that persistence leads to, and a sentence that names the fault."""
    NEVER.clear()
    broken = Broken(way, at_fit=at_fit)
    session = Session(profile, DecisionSettings(), rows(row), forecaster=broken, caller=TimeLimit(0.2))
    decision = session.recommend(NOW)
    NEVER.set()
    plain = Session(profile, DecisionSettings(), rows(row), forecaster=PersistenceForecaster()).recommend(NOW)
    assert plan_of(decision) == plan_of(plain)
    assert isinstance(decision, Recommendation)
    assert decision.action == "scale_out"
    assert any("Forecaster broken is not used" in line and words in line for line in decision.sentences)


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("not a number", "values that are no number"),
        ("infinite", "values that are no number"),
        ("negative", "less than none"),
        ("absurd", "1,000,000,000,000 messages/s where 9,000 is the most that was ever seen"),
        ("misshapen", r"paths of shape (3, 60)"),
        ("empty", r"paths of shape (8, 0)"),
    ],
)
def test_p8_nonsense_is_no_forecast(row: MakeRow, profile: GroupProfile, way: str, words: str) -> None:
    """For NaN, infinite, negative, 10^12 or the wrong shape, persistence decides, and the advice states why."""
    decision = Session(profile, DecisionSettings(), rows(row), forecaster=Broken(way)).recommend(NOW)
    plain = Session(profile, DecisionSettings(), rows(row), forecaster=PersistenceForecaster()).recommend(NOW)
    assert plan_of(decision) == plan_of(plain)
    assert isinstance(decision, Recommendation)
    assert any(words in line for line in decision.sentences)


def test_p8_a_broken_forecaster_is_not_called_again_before_the_next_fit(row: MakeRow, profile: GroupProfile) -> None:
    """One fit, an hour of persistence without another hang, then a second fit: a hang costs one cycle of sixty."""
    broken = Broken("raises")
    session = Session(profile, DecisionSettings(), rows(row), forecaster=broken)
    asked_at = []
    for minute in range(62):
        if minute:
            session.observe(row(NOW + timedelta(minutes=minute), 9000.0, interval_seconds=60))
        before = broken.fits
        session.recommend(NOW + timedelta(minutes=minute))
        asked_at += [minute] * (broken.fits - before)
    assert asked_at == [0, 60]


def test_p8_a_forecaster_that_works_again_is_used_again(row: MakeRow, profile: GroupProfile) -> None:
    """An hour later its forecast is used, and the advice no longer mentions a fault."""
    broken = Broken("raises")
    session = Session(profile, DecisionSettings(), rows(row), forecaster=broken)
    first = session.recommend(NOW)
    broken.way = "sound"
    for minute in range(1, 61):
        session.observe(row(NOW + timedelta(minutes=minute), 9000.0, interval_seconds=60))
    later = session.recommend(NOW + timedelta(minutes=60))
    models = [decision.forecast.model for decision in (first, later) if isinstance(decision, Recommendation)]
    assert models == ["persistence", "broken"]
    assert isinstance(later, Recommendation)
    assert not any("is not used" in line for line in later.sentences)


def test_p8_with_too_little_for_persistence_there_is_advice_without_a_forecast(
    row: MakeRow, profile: GroupProfile
) -> None:
    """Ten minutes and a failing forecaster: 8 replicas are too few and become 12. Two minutes are refused."""
    session = Session(profile, DecisionSettings(), rows(row, minutes=10), forecaster=Broken("raises"))
    advice = session.recommend(NOW)
    assert isinstance(advice, Recommendation)
    assert (advice.desired_replicas, advice.forecast.model) == (12, "none")
    refused = Session(profile, DecisionSettings(), rows(row, minutes=2), forecaster=Broken("raises")).recommend(NOW)
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.hold_replicas) == ("not_enough_history", 8)


@dataclass
class Table(ReadInTurn):
    """Rows of several groups."""

    rows: Sequence[GroupInterval]

    def groups(self, *, now: datetime) -> list[tuple[str, str]]:  # noqa: ARG002  # none is gone
        """Every group."""
        return sorted({(row.cluster, row.group) for row in self.rows})

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[GroupInterval]:
        """The group's rows after `since` and up to `until`."""
        kept = [row for row in self.rows if (row.cluster, row.group) == (cluster, group)]
        return [
            row
            for row in kept
            if (since is None or row.interval_end_at > since) and (until is None or row.interval_end_at <= until)
        ]


def test_p8_the_other_groups_go_on(
    row: MakeRow, profile: GroupProfile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The forecaster of one of three groups raises for that group only: three recommendations in the same cycle."""
    fit = BlendForecaster.fit

    def fails_for_one(self: BlendForecaster, history: History) -> Any:  # noqa: ANN401  # whatever the real one gives
        if history.group == "poisoned":
            message = "matrix is singular"
            raise ArithmeticError(message)
        return fit(self, history)

    monkeypatch.setattr(BlendForecaster, "fit", fails_for_one)
    table = Table([each for group in ("first", "poisoned", "third") for each in rows(row, group=group)])
    recommender = Recommender(
        watched=WatchedGroups(
            histories=table,
            profile_of=lambda cluster, group, _: replace(profile, cluster=cluster, group=group),
            settings=DecisionSettings(),
            store=SqlDecisionStore(f"sqlite:///{tmp_path / 'decisions.sqlite'}"),
            timer=perf_counter,
        )
    )
    decisions = recommender.run_once(now=NOW)
    assert [decision.group for decision in decisions] == ["first", "poisoned", "third"]
    assert [plan_of(decision)[:2] for decision in decisions] == [("scale_out", 12)] * 3
    replaced = [
        any("is not used" in line for line in each.sentences) for each in decisions if hasattr(each, "sentences")
    ]
    assert replaced == [False, True, False]


def test_a_forecaster_that_goes_on_failing_is_logged_once(
    row: MakeRow, profile: GroupProfile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three cycles of the same failure are one warning; a failure of another kind, an hour later, is a second one."""
    errors = iter([*["matrix is singular"] * 3, "no memory"])

    def fails(self: BlendForecaster, history: History) -> Any:  # noqa: ANN401, ARG001  # as the real one
        raise ArithmeticError(next(errors))

    logged = CapturingLogger()
    monkeypatch.setattr(BlendForecaster, "fit", fails)
    monkeypatch.setattr("recommender.run._log", logged)
    table = Table(
        [*rows(row), *(row(NOW + timedelta(minutes=at), 9000.0, interval_seconds=60) for at in range(1, 182))]
    )
    recommender = Recommender(
        watched=WatchedGroups(
            histories=table,
            profile_of=lambda *_: profile,
            settings=DecisionSettings(),
            store=SqlDecisionStore(f"sqlite:///{tmp_path / 'decisions.sqlite'}"),
            timer=perf_counter,
        )
    )
    # What is due is fitted when the cycle is over, and logged with the decision that follows.
    for minutes in (0, 1, 60, 120, 180, 181):
        recommender.run_once(now=NOW + timedelta(minutes=minutes))
    sentences = [call.kwargs["sentence"] for call in logged.calls if call.args == ("failing_forecaster",)]
    assert [sentence.split(": ")[2].partition(";")[0] for sentence in sentences] == ["matrix is singular", "no memory"]


def test_a_hanging_call_is_left_behind() -> None:
    """The caller goes on after the time limit, whatever the call does then."""
    NEVER.clear()
    trouble = TimeLimit(0.05)(lambda: NEVER.wait(HANG_SECONDS))
    NEVER.set()
    assert trouble == type(trouble)("it did not answer within 0.05 s")
