"""What it costs to see a group through Prometheus: the same load, day and world, read from Kafka and from scrapes.

A scrape shows the group as it was some seconds before the round that reads it: one, where it is stored at once, as
rounds come when scrapes are due. Where scrapes are more than 15 s apart, rows between two of them are on the line
between their offsets, as the live collector writes them.

    python -m benchmarks.decisions.scrapes --hours 24
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from benchmarks.decisions.tournament import contest_of, history_rows, judged_day, own_loads, rescaled
from benchmarks.decisions.worlds import ALL_WORLDS
from forecasting.history import GroupInterval
from forecasting.units import SECONDS_PER_HOUR, IntArray
from replay.contest import LAGCAST, Contest, Entry, entry_of, play
from replay.plant.observation import Observation
from replay.plant.plant import GRID_SECONDS
from replay.policies.lagcast import Lagcast

WORLDS = ("fine", "real-quick")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrapes:
    """Scrapes each `every_seconds`, a multiple of 15, each `offset_seconds` before the round that reads it."""

    every_seconds: int
    offset_seconds: int

    @property
    def name(self) -> str:
        """Its name in the table."""
        return f"scrapes each {self.every_seconds} s, {self.offset_seconds} s old when read"


PLAYED = (
    Scrapes(every_seconds=15, offset_seconds=1),
    Scrapes(every_seconds=15, offset_seconds=4),
    Scrapes(every_seconds=15, offset_seconds=14),
    Scrapes(every_seconds=30, offset_seconds=1),
    Scrapes(every_seconds=60, offset_seconds=1),
)


def play_scraped(scrapes: Scrapes, contest: Contest, history: Sequence[GroupInterval] = ()) -> Entry:
    """The entry of lagcast where it sees the group only as it was scraped."""
    policy = Lagcast(contest.world, contest.settings, names=contest.names, history=history)
    plant, before = contest.plant(), None
    while plant.remaining_seconds > 0:
        plant.advance(GRID_SECONDS - scrapes.offset_seconds)
        scraped = plant.observation()
        if scrapes.offset_seconds:
            plant.advance(min(scrapes.offset_seconds, plant.remaining_seconds))
        now = plant.observation()
        is_scraped = now.time_seconds % scrapes.every_seconds == 0
        rows = [] if not is_scraped else [*_between(before, scraped, now), _as_read(scraped, now)]
        replicas = policy.decide_on(rows, now)
        before = _as_read(scraped, now) if is_scraped else before
        if replicas != now.replicas:
            plant.scale(replicas)
    return entry_of(scrapes.name, plant, contest)


def _as_read(scraped: Observation, now: Observation) -> Observation:
    """The scrape as the row of the interval in which it was made, which ends with the round that reads it."""
    return replace(scraped, at=now.at, time_seconds=now.time_seconds)


def _between(before: Observation | None, scraped: Observation, now: Observation) -> Iterator[Observation]:
    """The rows between two scrapes."""
    if before is None:
        return
    whole = now.time_seconds - before.time_seconds
    for seconds in range(GRID_SECONDS, whole, GRID_SECONDS):
        share = seconds / whole
        yield replace(
            before,
            at=before.at + timedelta(seconds=seconds),
            time_seconds=before.time_seconds + seconds,
            end_offsets=_on_line(before.end_offsets, scraped.end_offsets, share),
            committed_offsets=_on_line(before.committed_offsets, scraped.committed_offsets, share),
        )


def _on_line(earlier: IntArray, later: IntArray, share: float) -> IntArray:
    offsets: IntArray = earlier + np.rint((later - earlier) * share).astype(np.int64)
    return offsets


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the cost of each kind of scrapes over that of reading Kafka itself, load by load and world by world."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--hours", type=int, default=24, help="hours of the last day to play")
    options.add_argument("--worlds", nargs="+", default=WORLDS, choices=sorted(ALL_WORLDS))
    words = options.parse_args(arguments)
    for load in own_loads():
        past, judged = judged_day(rescaled(load), 0)
        _, judged = judged.split(words.hours * SECONDS_PER_HOUR)
        for name in words.worlds:
            contest = contest_of(judged, ALL_WORLDS[name].world, 0)
            history = [] if past is None else history_rows(past, contest.world.partitions, 0, contest.names)
            direct = play(LAGCAST, contest, history)
            _show(load.name, name, direct, direct)
            for scrapes in PLAYED:
                _show(load.name, name, play_scraped(scrapes, contest, history), direct)
    return 0


def _show(load: str, world: str, entry: Entry, direct: Entry) -> None:
    ratio = entry.cost.total / direct.cost.total
    label = "Kafka itself" if entry is direct else entry.policy
    late = f"pods {entry.cost.pods:.2f}, late {entry.cost.late:.2f}, {entry.moves} moves"
    sys.stdout.write(f"{load:10} {world:10} {label:36} {entry.cost.total:8.2f}  x{ratio:.3f}  ({late})\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
