"""One run of the soak: what happens in which order, and the document of it."""

import os
import random
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.discovery.__main__ import commit
from benchmarks.rebalances.run import kafka_version
from benchmarks.soak.faults import FAULTS, Blow, Fault
from benchmarks.soak.judge import Struck, judged, log_of
from benchmarks.soak.stage import Stage, hours_of, staged, watched

HOURS = 24.0
# Real seconds between the end of a fault and the next one, and those in which advice is waited for after one.
_REST_SECONDS = (10.0, 40.0)
_ADVICE_SECONDS, _SETTLING_SECONDS = 300.0, 90.0


def soaked(*, minutes: float, seed: int, groups: int) -> dict[str, Any]:
    """Run the long form: a simulated day in so many minutes; its document."""
    begun_at = commit()  # what runs is the code of the start, whatever is committed meanwhile
    dice = random.Random(seed)  # noqa: S311  # no secret depends on it
    rate = HOURS * 60.0 / minutes
    with (
        tempfile.TemporaryDirectory(prefix="lagcast-soak-") as name,
        staged(Path(name), groups=groups, rate=rate) as stage,
    ):
        faults, waiting = list[Struck](), list[Fault]()
        with watched(stage):
            begin = hours_of(stage)
            while True:
                # Each fault once before any is repeated, so that a short run has had all of them.
                waiting = waiting or dice.sample(FAULTS, k=len(FAULTS))
                time.sleep(dice.uniform(*_REST_SECONDS))
                if hours_of(stage) >= begin + HOURS:
                    break
                faults.append(struck(stage, waiting.pop(), dice, short=False))
            end = hours_of(stage)
            _settle(stage)
        figures = judged(stage, faults, begin=begin, end=end)
        loads = stage.seen.loads
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "minutes": minutes,
        "seed": seed,
        "groups": groups,
        "rate": rate,
        "processors": os.cpu_count(),
        "mean_load": sum(loads) / len(loads),
        "kafka": kafka_version(),
        **figures,
    }


def struck(stage: Stage, fault: Fault, dice: random.Random, *, short: bool) -> Struck:
    """Let a fault happen, and wait until all groups that had advice before have it again, or for long enough."""
    before, began_at, began = stage.advised(), stage.clock.now(), time.monotonic()
    print(f"{hours_of(stage):6.2f} h {fault.name}: {len(before)} advised", file=sys.stderr, flush=True)
    failure = ""
    try:
        fault.strike(Blow(stage, dice, short))
    except TimeoutError as error:
        failure = str(error)
    ended_at, seconds = stage.clock.now(), time.monotonic() - began
    until = time.monotonic() + _ADVICE_SECONDS
    while not before - stage.fleet.dead <= stage.advised(ended_at) and time.monotonic() < until:
        time.sleep(0.2)
    return Struck(
        name=fault.name, began_at=began_at, ended_at=ended_at, seconds=seconds, advised=len(before), failure=failure
    )


def _settle(stage: Stage) -> None:
    """Wait until each failure is told to be over, or for long enough: that of a part is after a minute."""
    until = time.monotonic() + _SETTLING_SECONDS
    while log_of(stage.logged()).not_over and time.monotonic() < until:
        time.sleep(1.0)
