"""The watch: a few groups are read twice a second, and four times a second while one of them is interrupted.

Readings each 15 s do not show a pause of 3 s. The requests of the watch are bounded: 8 groups, and per look
one request for their states, one for the commits of each, and three for their partitions.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import groupby

import structlog

from collector.errors import AdapterError
from collector.kafka_admin import Collected
from collector.meter import Interruption, Meter
from collector.run import Collector
from collector.sample import OffsetSample
from forecasting.columns import REBALANCING_STATES

RESTING_SECONDS = 0.5
RESTLESS_SECONDS = 0.25
MOST_GROUPS = 8

_log = structlog.get_logger(__name__)


class Attention:
    """The groups that the watch reads: all if they are few, else the `MOST_GROUPS` that last were unsettled.

    It receives each round of the collector; among many groups, a quiet group is watched from its next rebalance that
    a round shows.
    """

    def __init__(self) -> None:
        self._members: dict[str, int | None] = {}
        self._unsettled_at: dict[str, datetime] = {}

    def note_round(self, collected: Collected) -> None:
        """Note the groups of a round, and those whose members have changed or are changing partitions."""
        for group, rows in _by_group(collected.samples):
            newest = rows[0]
            changed = group in self._members and self._members[group] != newest.members
            if changed or newest.group_state in REBALANCING_STATES:
                self._unsettled_at[group] = newest.sampled_at
            self._members[group] = newest.members

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups to look at, by name."""
        if len(self._members) <= MOST_GROUPS:
            return tuple(sorted(self._members))
        newest_first = sorted(self._unsettled_at, key=lambda group: self._unsettled_at[group], reverse=True)
        return tuple(sorted(newest_first[:MOST_GROUPS]))


def watch_forever(
    collector: Collector,
    groups: Callable[[], Sequence[str]],
    on_interruption: Callable[[Interruption], object],
    *,
    clock: Callable[[], datetime],
    wait: Callable[[float], bool],
) -> None:
    """Read the groups that `groups` returns at each look, and call `on_interruption` with each one that is over.

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
