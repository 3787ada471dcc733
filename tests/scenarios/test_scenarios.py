"""Decisions as a person would write them down; a new case is a new document in the YAML file, not new code."""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cost_model.profile import Capacity, GroupProfile
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import GroupInterval, HistoryBuffer
from forecasting.units import MessagesPerSecond, Partitions, Seconds
from recommender.decision import DecisionSettings
from recommender.recommend import recommend
from recommender.recommendation import Recommendation

Scenario = dict[str, Any]  # as YAML gives it; a missing or misspelt key fails the test that reads it

SCENARIOS: list[Scenario] = list(yaml.safe_load_all((Path(__file__).parent / "decisions.yaml").read_text()))


def clock(day: datetime, text: str) -> datetime:
    hours, minutes = text.split(":")
    return day.replace(hour=int(hours), minute=int(minutes))


def forecast_of(scenario: Scenario, now: datetime) -> Forecast:
    points = [(clock(now, at), rate) for at, rate in scenario["forecast_messages_per_second"].items()]
    minutes = [(at - now).total_seconds() / 60 for at, _ in points]
    path = np.interp(np.arange(1, 61), minutes, [rate for _, rate in points])
    return Forecast(
        cluster="c",
        group="g",
        model="given",
        rung="weekly",
        origin_at=now,
        step_seconds=60,
        paths=np.tile(path, (len(QUANTILES), 1)),
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["sentence"][:40] for scenario in SCENARIOS])
def test_the_decision_is_what_the_scenario_expects(scenario: Scenario) -> None:
    """Each document's sentence holds: action, count and time."""
    now = datetime.fromisoformat(scenario["now_at"])
    group = scenario["group"]
    rate = MessagesPerSecond(float(group["capacity_messages_per_second_per_replica"]))
    profile = GroupProfile(
        cluster="c",
        group="g",
        partitions=Partitions(group["partitions"]),
        capacity=Capacity(p20=rate, p50=rate, p90=rate, source="configured"),
        start_up_seconds=Seconds(float(group["start_up_seconds"])),
    )
    forecast = forecast_of(scenario, now)
    arriving = float(forecast.path(0.5)[0])
    buffer = HistoryBuffer("c", "g")
    buffer.append(
        GroupInterval(
            cluster="c",
            group="g",
            topics="t",
            interval_end_at=now,
            interval_seconds=15,
            produce_messages_per_second=arriving,
            consume_messages_per_second=arriving,
            lag_messages=0.0,
            lag_seconds=0.0,
            partitions=group["partitions"],
            sampled_partitions=group["partitions"],
            members=group["replicas"],
        )
    )
    history = buffer.history()
    assert history is not None
    advice = recommend(history, forecast, profile, DecisionSettings(), previous=None, now=now)
    assert isinstance(advice, Recommendation)
    expected = scenario["expect"]
    assert (advice.action, advice.desired_replicas) == (expected["action"], expected["desired_replicas"])
    if "execute_between" in expected:
        first, last = (clock(now, text) for text in expected["execute_between"])
        assert first <= advice.execute_at <= last
    if "reason" in expected:
        assert advice.reason == expected["reason"]
