"""Measures the CPU time of one decision with all of its parts, by partitions, horizon and scenarios.

    python -m benchmarks.speed.decision_time          or: make bench-decision-time

On a morning of the project's own workload, after two weeks of it, a decision is made each minute: forecast, 64
scenarios of an hour in minutes, every candidate plan, guards, sentences, and the sensitivity. The forecaster is fitted
again each hour, within the measured time: one decision in sixty. The first decision, which compiles, is left out. Each
of partitions, horizon and scenarios is varied alone.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from statistics import median, quantiles

from benchmarks.decisions.run import FIRST_SEED
from benchmarks.decisions.tournament import PEAK_SHARE, history_rows
from forecasting.history import GroupInterval
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.following.session import Session
from replay.contest import PRICED
from replay.policies.lagcast import profile_of
from replay.sampling import Names
from replay.workload import orders_workload
from replay.world import World

NAMES = Names(cluster="bench", group="orders")
DAYS = 15
DECIDED_HOURS = range(6, 12)
# The load at its mean takes three quarters of the members.
FILLED_SHARE = 0.75


PARTITIONS = (8, 24, 40, 120, 1000)
HORIZONS_SECONDS = (900, 3600, 7200)
SCENARIOS = (16, 64, 256)
BASE_PARTITIONS = 24


def main() -> int:
    """Decide with each size, print a table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    base = PRICED.horizon_seconds, PRICED.scenarios
    varied = [(partitions, *base) for partitions in PARTITIONS]
    varied += [(BASE_PARTITIONS, seconds, base[1]) for seconds in HORIZONS_SECONDS if seconds != base[0]]
    varied += [(BASE_PARTITIONS, base[0], scenarios) for scenarios in SCENARIOS if scenarios != base[1]]
    print("| partitions | horizon, s | scenarios | counts that differ | decisions | median | 95th percentile |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for partitions, horizon_seconds, scenarios in varied:
        settings = replace(PRICED, horizon_seconds=horizon_seconds, scenarios=scenarios)
        first, *decided = decisions(partitions, settings)
        milliseconds = [1000.0 * seconds for seconds, _ in decided]
        high = quantiles(milliseconds, n=20)[-1]
        sizes = f"{partitions} | {horizon_seconds} | {scenarios} | {len(first[1].useful_replicas)} | {len(decided)}"
        print(f"| {sizes} | {median(milliseconds):.1f} ms | {high:.1f} ms |", flush=True)
    return 0


def decisions(partitions: int, settings: DecisionSettings) -> Iterator[tuple[float, Recommendation]]:
    """Seconds of CPU and the advice, decision by decision."""
    trace = orders_workload(days=DAYS)
    rates = trace.minute_rates()
    capacity = float(rates.max()) / (PEAK_SHARE * partitions)
    world = World(partitions=partitions, capacity_messages_per_second_per_replica=capacity)
    members = max(1, min(partitions, round(float(rates.mean()) / (FILLED_SHARE * capacity))))
    rows = [replace(row, members=members) for row in history_rows(trace, partitions, FIRST_SEED, NAMES)]
    first, last = (24 * 60 * (DAYS - 1) + 60 * hour for hour in (DECIDED_HOURS.start, DECIDED_HOURS.stop))
    session = Session(profile_of(world, NAMES), settings, rows[:first])
    for row in rows[first:last]:
        session.observe(row)
        yield timed(session, row)


def timed(session: Session, row: GroupInterval) -> tuple[float, Recommendation]:
    """One decision and its CPU seconds."""
    begun = time.process_time()
    advice = session.recommend(row.interval_end_at, sensitivity="any")
    seconds = time.process_time() - begun
    if not isinstance(advice, Recommendation):
        message = f"a refusal was timed: {advice}"
        raise TypeError(message)
    return seconds, advice


if __name__ == "__main__":
    sys.exit(main())
