"""The watch: a few groups are read twice a second, and four times a second while one of them is interrupted.

Readings each 15 s do not show a pause of 3 s. The requests of the watch are bounded: 8 groups, and per look
one request for their states, one for the commits of each, and three for their partitions.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby

import structlog

from collector.errors import AdapterError
from collector.kafka_admin import Collected
from collector.meter import Interruption, Meter
from collector.run import Collector
from collector.sample import OffsetSample
from forecasting.columns import REBALANCING_STATES

# Of many groups, this many places are for groups whose commit interval is not known yet, each for as many rounds at a
# time: two minutes.
LEARNING_GROUPS = 2
LEARNING_ROUNDS = 8
RESTING_SECONDS = 0.5
RESTLESS_SECONDS = 0.25
MOST_GROUPS = 8

_log = structlog.get_logger(__name__)


class Attention:
    """The groups that the watch reads: all if they are few, else `MOST_GROUPS` of them.

    It receives each round of the collector, and the commit intervals that the watch has learnt. Of many groups those
    that last were unsettled are read, and in turn two whose commit interval is not known.
    """

    def __init__(self) -> None:
        self._members: dict[str, int | None] = {}
        self._unsettled_at: dict[str, datetime] = {}
        self._rounds_learning: Counter[str] = Counter()
        self._commit_intervals: dict[str, float] = {}

    def note_round(self, collected: Collected) -> None:
        """Note the groups of a round, and those whose members have changed or are changing partitions."""
        for group, rows in _by_group(collected.samples):
            newest = rows[0]
            changed = group in self._members and self._members[group] != newest.members
            if changed or newest.group_state in REBALANCING_STATES:
                self._unsettled_at[group] = newest.sampled_at
            self._members[group] = newest.members
        self._rounds_learning.update(self._learning)

    def note_commit_interval(self, group: str, seconds: float) -> None:
        """Note what the meter of a group has learnt."""
        self._commit_intervals[group] = seconds

    def with_commit_intervals(self, samples: Sequence[OffsetSample]) -> list[OffsetSample]:
        """The samples of a round, with the commit intervals of their groups where they are known."""
        known = self._commit_intervals
        return [replace(row, commit_interval_seconds=known.get(row.group)) for row in samples]

    @property
    def _learning(self) -> tuple[str, ...]:
        """The groups whose turn it is to have their commit interval learnt."""
        unknown = sorted(self._members.keys() - self._commit_intervals.keys())
        return tuple(
            sorted(unknown, key=lambda group: self._rounds_learning[group] // LEARNING_ROUNDS)[:LEARNING_GROUPS]
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups to look at, by name."""
        if len(self._members) <= MOST_GROUPS:
            return tuple(sorted(self._members))
        newest_first = sorted(self._unsettled_at, key=lambda group: self._unsettled_at[group], reverse=True)
        learning = self._learning
        unsettled = [group for group in newest_first if group not in learning]
        return tuple(sorted([*unsettled[: MOST_GROUPS - len(learning)], *learning]))


def watch_forever(
    collector: Collector,
    groups: Callable[[], Sequence[str]],
    on_interruption: Callable[[Interruption], object],
    *,
    on_commit_interval: Callable[[str, float], object] = lambda _group, _seconds: None,
    clock: Callable[[], datetime],
    wait: Callable[[float], bool],
) -> None:
    """Read the groups that `groups` returns at each look, and call `on_interruption` with each one that is over.

    `on_commit_interval` is called with each group and its commit interval in seconds, once that is known.
    `wait(seconds)` sleeps that long and is true if the watch should stop. A look that fails is a gap; a group that is
    no longer returned is forgotten. Errors: none of the source's; those of `on_interruption` end the watch.
    """
    meters: dict[str, Meter] = {}
    while not wait(RESTLESS_SECONDS if any(meter.restless for meter in meters.values()) else RESTING_SECONDS):
        named = tuple(groups())
        meters = {group: meters.get(group, Meter()) for group in named}
        if not named:
            continue
        try:
            collected = collector.collect(named, now=clock())
        except AdapterError as error:
            _log.debug("metering_failed", error=str(error))  # the rounds log a failure that lasts
            continue
        for group, rows in _by_group(collected.samples):
            interruption = meters[group].observe(rows)
            commit_interval = meters[group].commit_interval_seconds
            if commit_interval is not None:
                on_commit_interval(group, commit_interval)
            if interruption is not None:
                _log.info(
                    "interrupted",
                    group=group,
                    kind=interruption.kind,
                    rebalance_pause_seconds=round(interruption.rebalance_pause_seconds, 2),
                    stopped_partitions=len(interruption.stops),
                    resolution_seconds=round(interruption.resolution_seconds, 2),
                )
                on_interruption(interruption)


def _by_group(samples: Sequence[OffsetSample]) -> Iterator[tuple[str, list[OffsetSample]]]:
    """The samples of each group; a round brings them one group after the other."""
    for group, rows in groupby(samples, key=lambda row: row.group):
        yield group, list(rows)
