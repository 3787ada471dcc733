"""Loads of hours in the independent plant, as a person would write them down: what lagcast may cost beside others.

A new case is a new document in a YAML file, not new code. The group begins with all of its 40 replicas of 1,000
messages/s, in a world of `benchmarks.decisions.worlds`, and was seen for so many hours before. `at_most` holds the
greatest ratio of lagcast's cost to that of a rival, `pods_at_most` the same for pods alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.signal import lfilter

from benchmarks.decisions.forecasters import Foresight
from benchmarks.decisions.tournament import contest_of, history_rows
from benchmarks.decisions.worlds import ALL_WORLDS, MOST_REPLICAS
from forecasting.forecaster import Forecaster
from forecasting.history import GroupInterval
from forecasting.persistence import PersistenceForecaster
from forecasting.units import SECONDS_PER_HOUR, FloatArray, read_only
from replay.contest import LAGCAST, Contest, Entry, run_policy
from replay.hindsight import HINDSIGHT, best_plan
from replay.plant.arrivals import draw_arrivals
from replay.policies.catalogue import CATALOGUE
from replay.policies.lagcast import Lagcast
from replay.trace import Trace

Day = dict[str, Any]  # as YAML gives it; a missing or misspelt key fails the test that reads it

FOLDER = Path(__file__).parent / "days"
DAYS: list[Day] = [day for file in sorted(FOLDER.glob("*.yaml")) for day in yaml.safe_load_all(file.read_text())]
KEYS = {"id", "sentence", "load", "world", "hours", "at_most"}
OPTIONAL_KEYS = {"told", "pods_at_most"}
STEP_SECONDS = 15
MINUTE_STEPS, HOUR_STEPS = 4, 240
SEED = 5
WITHOUT_FORECAST = "without-forecast"
START_AT = datetime(2026, 1, 5, tzinfo=UTC)


def daily(steps: int, *, lowest_share: float) -> FloatArray:
    """A factor that rises and falls once a day, highest at noon."""
    noon = 12 * HOUR_STEPS
    wave = 0.5 + 0.5 * np.cos(2.0 * np.pi * (np.arange(steps) - noon) / (24 * HOUR_STEPS))
    factor: FloatArray = lowest_share + (1.0 - lowest_share) * wave
    return factor


def noise(random: np.random.Generator, steps: int, *, sigma: float, memory_minutes: float) -> FloatArray:
    """A log-normal factor, of which a share is kept from step to step: 1/e after the memory."""
    keep = np.exp(-1.0 / (memory_minutes * MINUTE_STEPS))
    shocks = random.normal(0.0, sigma * np.sqrt(1.0 - keep**2), steps)
    factor: FloatArray = np.exp(lfilter([1.0], [1.0, -keep], shocks))
    return factor


def jumps(
    random: np.random.Generator,
    rates: FloatArray,
    *,
    messages_per_second: float,
    apart_minutes: Sequence[float],
    lasting_minutes: Sequence[float],
) -> FloatArray:
    """The rates with another one for random times, at random times."""
    jumped, begins = rates.copy(), 0
    while begins < rates.size:
        begins += max(1, round(random.uniform(apart_minutes[0], apart_minutes[1]) * MINUTE_STEPS))
        length = max(1, round(random.uniform(lasting_minutes[0], lasting_minutes[1]) * MINUTE_STEPS))
        jumped[begins : begins + length] = messages_per_second
        begins += length
    return jumped


def rates_of(load: Day, hours: int) -> FloatArray:
    """Messages per second at each step."""
    random, steps, parts = np.random.default_rng(SEED), hours * HOUR_STEPS, dict(load)
    if "each_minute_between" in parts:
        lowest, highest = parts["each_minute_between"]
        each_minute: FloatArray = random.uniform(lowest, highest, hours * 60)
        return each_minute.repeat(MINUTE_STEPS)
    rates = np.full(steps, float(parts.pop("messages_per_second")))
    if "daily_lowest_share" in parts:
        rates *= daily(steps, lowest_share=parts.pop("daily_lowest_share"))
    if "noise" in parts:
        rates *= noise(random, steps, **parts.pop("noise"))
    if "jumps" in parts:
        rates = jumps(random, rates, **parts.pop("jumps"))
    if "each_day" in parts:
        batch = parts.pop("each_day")
        for hour in (24 * day + at for day in range(hours // 24) for at in batch["at_hours"]):
            begins = hour * HOUR_STEPS
            rates[begins : begins + batch["lasting_minutes"] * MINUTE_STEPS] = batch["messages_per_second"]
    if "burst" in parts:
        burst = parts.pop("burst")
        begins = burst["at_hour"] * HOUR_STEPS
        rates[begins : begins + burst["lasting_minutes"] * MINUTE_STEPS] = burst["messages_per_second"]
    assert not parts, f"unknown parts of a load: {sorted(parts)}"
    return rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The judged hours of a day: the contest, the rows before it, and the rates of all minutes, known to foresight."""

    contest: Contest
    history: list[GroupInterval]
    foresight: Foresight

    def ours(self, forecaster: Forecaster | None) -> Entry:
        """The run of lagcast with this forecaster; None: its own."""
        contest = self.contest
        policy = Lagcast(
            contest.world, contest.settings, names=contest.names, history=self.history, forecaster=forecaster
        )
        return run_policy(LAGCAST, policy, contest)

    def rival(self, name: str) -> Entry:
        """The run of a rival, of hindsight, or of lagcast without a forecast."""
        if name == HINDSIGHT:
            return best_plan(self.contest, ())
        if name == WITHOUT_FORECAST:
            return self.ours(PersistenceForecaster())
        return run_policy(name, CATALOGUE[name].make(self.contest.world, MOST_REPLICAS), self.contest)


def judged(day: Day) -> Judged:
    """The contest of a document."""
    hours = day["hours"]
    whole = Trace(
        name=day["id"],
        start_at=START_AT,
        step_seconds=STEP_SECONDS,
        messages_per_second=read_only(rates_of(day["load"], hours["known"] + hours["judged"])),
    )
    past, trace = whole.split(hours["judged"] * SECONDS_PER_HOUR)
    assert past is not None
    world = ALL_WORLDS[day["world"]].world
    contest = replace(contest_of(trace, world, SEED), arrivals=draw_arrivals(world, trace, SEED))
    return Judged(
        contest=contest,
        history=history_rows(past, world.partitions, SEED, contest.names),
        foresight=Foresight(rates=whole.minute_rates(), start_at=START_AT),
    )


@pytest.mark.slow
@pytest.mark.parametrize("day", DAYS, ids=[day["id"] for day in DAYS])
def test_a_day_as_a_person_would_judge_it(day: Day) -> None:
    """The cost of lagcast is at most so many times that of each rival of the document."""
    assert KEYS <= set(day) <= KEYS | OPTIONAL_KEYS
    played = judged(day)
    ours = played.ours(played.foresight if day.get("told", False) else None)
    rivals = {name: played.rival(name) for name in day["at_most"]}
    costs = {name: round(ours.cost.total / rival.cost.total, 3) for name, rival in rivals.items()}
    assert all(costs[name] <= limit for name, limit in day["at_most"].items()), (day["sentence"], costs)
    pods = {name: round(ours.cost.pods / rivals[name].cost.pods, 3) for name in day.get("pods_at_most", {})}
    assert all(pods[name] <= limit for name, limit in day.get("pods_at_most", {}).items()), (day["sentence"], pods)
