"""The gate: forecasts are used where decisions with them were cheaper, and not where they were not."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from cost_model.physics.profile import GroupProfile
from forecasting.backtest import history_of
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import GroupInterval, History
from forecasting.history_tier import history_tier_of
from forecasting.persistence import PersistenceForecaster
from forecasting.units import FloatArray, Seconds
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.adapters.time_limit import TimeLimit
from recommender.deciding.beliefs import beliefs
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import GateStanding, Recommendation
from recommender.following.gate import REVIEW_AFTER, seen_from
from recommender.following.session import Session
from recommender.run import Recommender

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)

MakeRow = Callable[..., GroupInterval]
DAYS = 4
MINUTES = DAYS * 1440


def jumps() -> FloatArray:
    """Six minutes of every half hour bring 16,000/s, the others 3,000/s."""
    minute = np.arange(MINUTES + 120)
    return np.where(minute % 30 < 6, 16_000.0, 3_000.0)


@dataclass
class Foresight:
    """Forecasts what comes, or something else that it is given; not called before it is fitted."""

    rates: FloatArray
    name: str = "foresight"

    def fit(self, history: History) -> "Foresight":
        """Nothing is left to learn."""
        assert history.minutes > 0
        return self

    def forecast(self, history: History, *, steps: int) -> Forecast:
        """The rates from the minute after the history's end on."""
        after = MINUTES - 1 - round((NOW - history.end_at).total_seconds() / 60)
        path = np.resize(self.rates[after + 1 : after + 1 + steps], steps)
        return Forecast(
            cluster="c",
            group="orders",
            model=self.name,
            history_tier="daily",
            origin_at=history.end_at,
            step_seconds=60,
            paths=np.tile(path, (len(QUANTILES), 1)),
        )


class Failing:
    """Fails at every call."""

    name = "failing"

    def fit(self, history: History) -> Any:  # noqa: ANN401  # it never answers
        """Fail."""
        raise RuntimeError(history.group)


def calm() -> FloatArray:
    """3,000/s all the time."""
    return np.full(MINUTES + 120, 3_000.0)


def rows(row: MakeRow, rates: FloatArray, *, minutes: int = MINUTES) -> list[GroupInterval]:
    """The last `minutes` of these rates, with enough replicas for all of them."""
    return [
        row(NOW - timedelta(minutes=MINUTES - 1 - minute), float(rates[minute]), interval_seconds=60, members=24)
        for minute in range(MINUTES - minutes, MINUTES)
    ]


@pytest.fixture(name="quick")
def quick_fixture(profile: GroupProfile) -> GroupProfile:
    """A group whose pods are there after ten seconds."""
    return replace(profile, start_up_seconds=Seconds(10.0))


def session_with(
    forecaster: Any,  # noqa: ANN401
    profile: GroupProfile,
    row: MakeRow,
    rates: FloatArray,
    **changes: Any,  # noqa: ANN401
) -> Session:
    """A session of four days whose moves stop it for half a second."""
    settings = DecisionSettings(rebalance_pause_prior_seconds=0.5, price_per_move=0.002)
    return Session(profile, settings, rows(row, rates), forecaster=forecaster, **changes)


def test_c17_a_forecast_that_knows_the_jumps_is_used(quick: GroupProfile, row: MakeRow) -> None:
    """To be there when the load comes is cheaper than to come late: the tier with the forecast is used and reported."""
    session = session_with(Foresight(jumps()), quick, row, jumps())
    standing = session.review(NOW)
    assert standing is not None
    assert (standing.history_tier, standing.decisions) == ("daily", 60)
    costs = dict(standing.costs)
    assert costs["daily"] < costs["reactive"]
    decision = session.recommend(NOW)
    assert isinstance(decision, Recommendation)
    assert decision.forecast.model == "foresight"
    assert decision.forecast.gate == standing


def test_c17_a_forecast_that_costs_money_is_not_used(quick: GroupProfile, row: MakeRow) -> None:
    """16,000/s are foretold, and 3,000 come: from the review on, in the same cycle, arrivals are taken to stay."""
    session = session_with(Foresight(calm() + 13_000.0), quick, row, calm())
    before = session_with(Foresight(calm() + 13_000.0), quick, row, calm()).recommend(NOW)
    assert isinstance(before, Recommendation)
    assert before.forecast.model == "foresight"
    standing = session.review(NOW)
    assert standing is not None
    assert standing.history_tier == "reactive"
    decision = session.recommend(NOW)
    assert isinstance(decision, Recommendation)
    assert decision.forecast.model == "persistence"


@pytest.mark.slow
def test_a_forecaster_that_is_no_worse_stays_in_use(quick: GroupProfile, row: MakeRow) -> None:
    """Persistence by another name: the costs are equal, and a history tier is not left for nothing."""
    standing = session_with(PersistenceForecaster(name="other"), quick, row, jumps()).review(NOW)
    assert standing is not None
    assert standing.history_tier == "daily"
    assert len({cost for _, cost in standing.costs}) == 1


def test_a_forecaster_that_fails_leaves_nothing_to_compare(quick: GroupProfile, row: MakeRow) -> None:
    """There is no standing, and advice goes on without a forecast."""
    session = session_with(Failing(), quick, row, jumps())
    assert session.review(NOW) is None
    decision = session.recommend(NOW)
    assert isinstance(decision, Recommendation)
    assert decision.forecast.gate is None
    assert decision.forecast.model == "persistence"


def test_p8_a_slow_forecaster_does_not_hold_up_the_loop(quick: GroupProfile, row: MakeRow) -> None:
    """Each answer comes in time, sixty of them do not: the review ends without a result."""

    class Slow(Foresight):
        def forecast(self, history: History, *, steps: int) -> Forecast:
            time.sleep(0.05)
            return super().forecast(history, steps=steps)

    session = session_with(Slow(jumps()), quick, row, jumps(), caller=TimeLimit(2.0))
    assert session.review(NOW) is None
    decision = session.recommend(NOW)
    assert isinstance(decision, Recommendation)
    assert decision.forecast.model == "foresight"


@pytest.mark.parametrize("minutes", [20, 600, 2 * 1440 + 300])
def test_too_short_a_past_is_no_review(quick: GroupProfile, row: MakeRow, minutes: int) -> None:
    """Two days belong to the fit; of what is left ten decisions have to be made."""
    session = Session(quick, DecisionSettings(), rows(row, jumps(), minutes=minutes), forecaster=Foresight(jumps()))
    assert session.review(NOW) is None
    assert not session.review_due(NOW + timedelta(hours=1))


def test_a_review_outlives_a_restart(quick: GroupProfile, row: MakeRow) -> None:
    """The last advice carries it: the next session decides from the same tier, and reviews when it is due again."""
    first = session_with(Foresight(calm() + 13_000.0), quick, row, calm())
    first.review(NOW)
    advice = first.recommend(NOW)
    assert isinstance(advice, Recommendation)
    second = session_with(Foresight(calm() + 13_000.0), quick, row, calm(), previous=advice)
    assert not second.review_due(NOW + REVIEW_AFTER / 2)
    assert second.review_due(NOW + REVIEW_AFTER)
    decision = second.recommend(NOW + timedelta(minutes=1))
    assert isinstance(decision, Recommendation)
    assert decision.forecast.model == "persistence"


def test_the_daily_tier_looks_back_on_less_than_two_weeks(history: Callable[..., History]) -> None:
    """Of twenty days the weekly history tier sees all, the daily one the last thirteen; of an hour both see all."""
    hour = history(5.0, minutes=60)
    long = history_of(np.arange(20 * 1440.0), end_at=NOW)
    assert seen_from(long, "weekly") is long
    daily = seen_from(long, "daily")
    assert history_tier_of(daily) == "daily"
    assert daily.minutes == len(daily.members) == 13 * 1440
    assert daily.produce_messages_per_second[[0, -1]].tolist() == [7 * 1440.0, 20 * 1440.0 - 1.0]
    assert seen_from(hour, "daily").minutes == 60


@dataclass
class Table:
    """Rows of several groups, alike but for their names."""

    rows: Sequence[GroupInterval]
    names: Sequence[str]

    def groups(self) -> list[tuple[str, str]]:
        """All names, in one cluster."""
        return [("c", name) for name in self.names]

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[GroupInterval]:
        """The group's rows in that span."""
        return [
            replace(row, cluster=cluster, group=group)
            for row in self.rows
            if (since is None or row.interval_end_at > since) and (until is None or row.interval_end_at <= until)
        ]


@pytest.mark.slow
def test_one_group_a_cycle_is_reviewed_the_one_that_has_waited_longest_first(
    quick: GroupProfile, row: MakeRow, tmp_path: Path
) -> None:
    """Three groups, three cycles: each advice carries a review from the cycle after its own on."""
    names = ["a", "b", "c"]
    loop = Recommender(
        histories=Table(rows(row, jumps()), names),
        profile_of=lambda cluster, group, _: replace(quick, cluster=cluster, group=group),
        settings=DecisionSettings(),
        store=SqlDecisionStore(f"sqlite:///{tmp_path / 'decisions.db'}"),
        timer=perf_counter,
    )
    reviewed = []
    for minute in range(4):
        decisions = loop.run_once(now=NOW + timedelta(minutes=minute))
        loop.review(now=NOW + timedelta(minutes=minute))
        reviewed.append([d.group for d in decisions if isinstance(d, Recommendation) and d.forecast.gate is not None])
    assert reviewed == [[], ["a"], ["a", "b"], ["a", "b", "c"]]


def test_what_a_forecast_is_worth_is_said_in_a_sentence(advice: Callable[..., Recommendation]) -> None:
    """The history tier, the decisions it rests on, and what each history tier would have cost."""
    standing = GateStanding(
        reviewed_at=NOW,
        decisions=61,
        history_tier="weekly",
        costs=(("reactive", 1.845), ("weekly", 1.779)),
        currency="USD",
    )
    plain = advice()
    sentences = beliefs(replace(plain, forecast=replace(plain.forecast, gate=standing)))
    assert sentences[-1] == (
        "The weekly forecast is used: in USD each, 61 decisions of the days before 2026-01-05 12:00 would have cost "
        "1.845 without a forecast, 1.779 with the weekly one."
    )
