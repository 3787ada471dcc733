"""One run of the soak: what happens in which order, and the document of it."""

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.command import commit
from benchmarks.rebalances.run import kafka_version
from benchmarks.soak.faults import FAULTS, Blow, Fault
from benchmarks.soak.judge import Struck, judged, log_of
from benchmarks.soak.stage import FRESHNESS_SECONDS, Stage, hours_of, staged, watched

HOURS = 24.0
# What is kept of a group grows for a day: what it and the shadows beside it have cost.
PAST = timedelta(hours=26)
# In the short form: nothing but the faults takes the time, one after the other; the past is enough for advice.
SHORT_RATE, SHORT_PAST = 96.0, timedelta(hours=2)
# Real seconds between the end of a fault and the next one, and those in which advice is waited for after one: longer
# than two cycles after an outage of Spark, which read the rows of hours: one took 168 s to read, in a trial.
_REST_SECONDS = (5.0, 20.0)
_ADVICE_SECONDS, _SETTLING_SECONDS = 900.0, 90.0


@dataclass(slots=True, kw_only=True)
class Soak:
    """A soak that goes on: its stage, its dice, the simulated hour in which it began, and the faults so far."""

    stage: Stage
    dice: random.Random
    short: bool
    begin: float
    faults: list[Struck] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)

    def strike(self, fault: Fault) -> None:
        """Let a fault happen, and wait until all groups that had advice before have it again, or for long enough."""
        stage, began_at, began = self.stage, self.stage.clock.now(), time.monotonic()
        before, failure = stage.advised(), ""
        print(f"{hours_of(stage) - self.begin:6.2f} h {fault.name}", file=sys.stderr, flush=True)
        try:
            fault.strike(Blow(stage, self.dice, self.short))
        except TimeoutError as error:
            failure = str(error)
        ended_at, seconds = stage.clock.now(), time.monotonic() - began
        until = time.monotonic() + _ADVICE_SECONDS
        while not before - stage.fleet.dead <= stage.advised(ended_at) and time.monotonic() < until:
            time.sleep(0.2)
        self.faults.append(
            Struck(
                name=fault.name,
                began_at=began_at,
                ended_at=ended_at,
                seconds=seconds,
                advised=len(before - stage.fleet.dead),
                failure=failure,
            )
        )


def soaked(*, minutes: float, seed: int, groups: int) -> dict[str, Any]:
    """Run the long form: a simulated day in so many minutes, or until each fault has happened; its document."""
    with _soaking(rate=HOURS * 60.0 / minutes, past=PAST, seed=seed, groups=groups, short=False) as soak:
        waiting: list[Fault] = []
        while True:
            # Each fault once before any is repeated.
            waiting = waiting or soak.dice.sample(FAULTS, k=len(FAULTS))
            time.sleep(soak.dice.uniform(*_REST_SECONDS))
            if hours_of(soak.stage) >= soak.begin + HOURS and len(soak.faults) >= len(FAULTS):
                break
            soak.strike(waiting.pop())
    return {"minutes": minutes, **soak.document}


def soaked_briefly(*, seed: int, groups: int) -> dict[str, Any]:
    """Run the short form: each fault once, in a random order, without rests; its document."""
    with _soaking(rate=SHORT_RATE, past=SHORT_PAST, seed=seed, groups=groups, short=True) as soak:
        for fault in soak.dice.sample(FAULTS, k=len(FAULTS)):
            soak.strike(fault)
    return soak.document


@contextmanager
def _soaking(*, rate: float, past: timedelta, seed: int, groups: int, short: bool) -> Iterator[Soak]:
    """A soak during the block; its document has the figures afterwards."""
    begun_at = commit()  # what runs is the code of the start, whatever is committed meanwhile
    dice = random.Random(seed)  # noqa: S311  # no secret depends on it
    with (
        tempfile.TemporaryDirectory(prefix="lagcast-soak-") as name,
        staged(Path(name), groups=groups, rate=rate, past=past) as stage,
    ):
        soak = Soak(stage=stage, dice=dice, short=short, begin=hours_of(stage))
        with watched(stage):
            yield soak
            end = hours_of(stage)
            _settle(stage)
        loads = stage.seen.loads
        soak.document = {
            "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
            "commit": begun_at,
            "seed": seed,
            "groups": groups,
            "rate": rate,
            "past_hours": past / timedelta(hours=1),
            "freshness_limit_seconds": FRESHNESS_SECONDS * rate,
            "processors": os.cpu_count(),
            "mean_load": sum(loads) / len(loads),
            "kafka": kafka_version(),
            **judged(stage, soak.faults, begin=soak.begin, end=end),
        }


def _settle(stage: Stage) -> None:
    """Wait until each failure is told to be over, or for long enough: that of a part is after a minute."""
    until = time.monotonic() + _SETTLING_SECONDS
    while log_of(stage.logged()).not_over and time.monotonic() < until:
        time.sleep(1.0)
