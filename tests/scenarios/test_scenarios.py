"""Decisions as a person would write them down; a new case is a new document in a YAML file, not new code.

What a document leaves out is usual: an hour of rows every 15 s in which the first forecast value arrived and was
consumed, lag that is but uncommitted work, settings and profile at their defaults, nothing learnt, no earlier advice.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cost_model.physics.learned import Learned, LogBelief
from cost_model.physics.profile import Capacity, GroupProfile, StreamsProfile
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import GroupInterval, History, HistoryBuffer
from forecasting.refusal import Refusal
from forecasting.units import FloatArray, MessagesPerSecond
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommend import day_one, recommend
from recommender.deciding.recommendation import Decision, Recommendation

Scenario = dict[str, Any]  # as YAML gives it; a missing or misspelt key fails the test that reads it

FOLDER = Path(__file__).parent
SCENARIOS: list[Scenario] = [
    document for file in sorted(FOLDER.glob("*.yaml")) for document in yaml.safe_load_all(file.read_text())
]
KEYS = {"id", "sentence", "now_at", "group", "forecast_messages_per_second", "expect", "why"}
OPTIONAL_KEYS = {"past", "settings", "learned", "previous"}
EXPECTED = {"action", "desired_replicas", "execute_between", "reason", "binding_rule", "refusal", "contains"}
# Prices of a document, where it names no others, are in USD beside this one.
PRICED = {"price_per_replica_hour": 0.05}
ROW_SECONDS = 15
PAST_MINUTES = 60
# In a document a spread names these; the quantiles between them lie on straight lines.
NAMED = {"p05": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99}


def clock(day: datetime, text: str) -> datetime:
    at = time.fromisoformat(text)
    return day.replace(hour=at.hour, minute=at.minute, second=at.second, microsecond=0)


def band_of(value: float | dict[str, float]) -> FloatArray:
    """(quantiles,): one rate for certain, or rates by name."""
    if not isinstance(value, dict):
        return np.full(len(QUANTILES), float(value))
    known = {NAMED[name]: rate for name, rate in value.items()}
    return np.interp(QUANTILES, list(known), list(known.values()))


def forecast_of(scenario: Scenario, now: datetime) -> Forecast:
    """Straight lines between the points; the last one lasts."""
    points = scenario["forecast_messages_per_second"]
    minutes = [(clock(now, at) - now).total_seconds() / 60 for at in points]
    bands = np.array([band_of(value) for value in points.values()])
    ahead = np.arange(1, 61)
    return Forecast(
        cluster="c",
        group="g",
        model="given",
        history_tier="weekly",
        origin_at=now,
        step_seconds=60,
        paths=np.array([np.interp(ahead, minutes, rates) for rates in bands.T]),
    )


def profile_of(group: Scenario) -> GroupProfile:
    """The group as it is described; `capacity_messages_per_second_per_replica` is a rate, a band, or null."""
    known = dict(group)
    del known["replicas"]
    rate = known.pop("capacity_messages_per_second_per_replica")
    if rate is not None:
        band: Scenario = rate if isinstance(rate, dict) else dict.fromkeys(("p20", "p50", "p90"), float(rate))
        p20, p50, p90 = (MessagesPerSecond(band[name]) for name in ("p20", "p50", "p90"))
        rate = Capacity(p20=p20, p50=p50, p90=p90, source=band.get("source", "configured"))
    if "streams" in known:
        known["streams"] = StreamsProfile(**known["streams"])
    if "partition_weights" in known:
        known["partition_weights"] = tuple(known["partition_weights"])
    return GroupProfile(cluster="c", group="g", capacity=rate, **known)


def rows_of(scenario: Scenario, profile: GroupProfile, arriving: float, now: datetime) -> Iterator[GroupInterval]:
    """The past, one row each 15 s up to `now`; `past.changes` name what was otherwise, and between which instants."""
    past, members = scenario.get("past", {}), scenario["group"]["replicas"]
    rate = past.get("arriving_messages_per_second", arriving)
    usual: dict[str, Any] = {
        "produce_messages_per_second": rate,
        "consume_messages_per_second": rate,
        "lag_messages": rate * profile.commit_interval_seconds / 2.0,
        "lag_seconds": profile.commit_interval_seconds / 2.0,
        "partitions": profile.partitions,
        "sampled_partitions": profile.partitions,
        "members": members,
    } | past.get("always", {})
    rows = past.get("minutes", PAST_MINUTES) * 60 // ROW_SECONDS
    for back in reversed(range(rows)):
        at = now - timedelta(seconds=back * ROW_SECONDS)
        columns = dict(usual)
        for change in past.get("changes", []):
            first, last = (clock(now, text) for text in change["between"])
            if first < at <= last:
                columns |= {name: value for name, value in change.items() if name != "between"}
        if not columns.pop("missing", False):
            yield GroupInterval(
                cluster="c", group="g", topics="t", interval_end_at=at, interval_seconds=ROW_SECONDS, **columns
            )


def history_of(scenario: Scenario, profile: GroupProfile, arriving: float, now: datetime) -> History:
    buffer = HistoryBuffer("c", "g")
    for row in rows_of(scenario, profile, arriving, now):
        buffer.append(row)
    history = buffer.history()
    assert history is not None
    return history


def learned_of(scenario: Scenario, settings: DecisionSettings, profile: GroupProfile) -> Learned | None:
    """Lessons of the group's moves: `stop_up_seconds`, `stop_down_seconds`, `move_risk`, from so many `moves`."""
    taught = scenario.get("learned")
    if taught is None or profile.capacity is None:
        return None
    prior = day_one(settings, profile.capacity)
    return replace(
        prior,
        pause_scale_out=LogBelief.around(taught["stop_up_seconds"]),
        pause_scale_in=LogBelief.around(taught["stop_down_seconds"]),
        risk_prior=taught.get("move_risk", prior.risk_prior),
        moves=taught["moves"],
        risk_excess=taught["moves"] * taught.get("move_risk", prior.risk_prior),
    )


def decision_of(scenario: Scenario, *, later: timedelta = timedelta(0)) -> Decision:
    now = datetime.fromisoformat(scenario["now_at"]) + later
    profile, settings = profile_of(scenario["group"]), DecisionSettings(**PRICED | scenario.get("settings", {}))
    forecast = forecast_of(scenario, now)
    history = history_of(scenario, profile, float(forecast.path(0.5)[0]), now)
    learned = learned_of(scenario, settings, profile)
    if "previous" not in scenario:
        return recommend(history, forecast, profile, settings, previous=None, now=now, learned=learned)
    # Earlier advice is the present one with the document's changes: only few of its fields are read.
    given = scenario["previous"]
    issued_at = clock(now, given["issued_at"])
    template = recommend(history, forecast, profile, settings, previous=None, now=now, learned=learned)
    assert isinstance(template, Recommendation)
    previous = replace(
        template,
        issued_at=issued_at,
        action=given["action"],
        current_replicas=given["current_replicas"],
        desired_replicas=given["desired_replicas"],
        execute_at=clock(now, given["execute_at"]),
    )
    return recommend(history, forecast, profile, settings, previous=previous, now=now, learned=learned)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_the_decision_meets_the_expectation_of_the_scenario(scenario: Scenario) -> None:
    """Each document's expectation holds: action, count and time, or the refusal, and the words of the advice."""
    decision = decision_of(scenario)
    now, expected = datetime.fromisoformat(scenario["now_at"]), scenario["expect"]
    if "refusal" in expected:
        assert isinstance(decision, Refusal), decision.sentences
        assert decision.reason == expected["refusal"]
        assert decision.hold_replicas == expected.get("desired_replicas", decision.hold_replicas)
        published = f"{decision.sentence} {decision.remedy}"
    else:
        assert isinstance(decision, Recommendation), decision
        published = " ".join(decision.sentences)
        assert (decision.action, decision.desired_replicas) == (expected["action"], expected["desired_replicas"]), (
            published
        )
        assert decision.reason == expected.get("reason", decision.reason)
        assert decision.binding_rule == expected.get("binding_rule")
        if "execute_between" in expected:
            first, last = (clock(now, text) for text in expected["execute_between"])
            assert first <= decision.execute_at <= last
    for words in expected.get("contains", []):
        assert words in published


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_the_same_situation_on_another_day_is_the_same_decision(scenario: Scenario) -> None:
    """Three days later, all else equal: the same move, as long ahead, at the same prices; or the same refusal."""
    later = timedelta(days=3)
    first, second = decision_of(scenario), decision_of(scenario, later=later)
    if isinstance(first, Refusal) or isinstance(second, Refusal):
        assert isinstance(first, Refusal)
        assert isinstance(second, Refusal)
        assert replace(first, refused_at=second.refused_at) == second
        return
    assert (first.action, first.desired_replicas) == (second.action, second.desired_replicas)
    assert first.execute_at + later == second.execute_at
    assert (first.chosen, first.stay, first.alternatives[0].cost) == (
        second.chosen,
        second.stay,
        second.alternatives[0].cost,
    )


def test_scenario_documents_are_whole() -> None:
    """Every document has an id of its own, a sentence and its reasons, and no unknown key."""
    ids = [scenario["id"] for scenario in SCENARIOS]
    assert sorted(set(ids)) == sorted(ids)
    for scenario in SCENARIOS:
        assert KEYS <= scenario.keys() <= KEYS | OPTIONAL_KEYS, scenario["id"]
        assert scenario["expect"].keys() <= EXPECTED, scenario["id"]
        assert scenario["why"], scenario["id"]
