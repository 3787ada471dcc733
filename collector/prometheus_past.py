"""Weeks of a group's past from Prometheus: the plan of the queries, their cost, and the samples that they return.

Values are taken at whole minutes, each no older than the time between two scrapes: an exporter that was down leaves a
gap, where a plain query would repeat its last value for five minutes and so make a rate of 0.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

from collector.errors import RejectedError
from collector.prometheus_found import HOUR_SECONDS, Discovered
from collector.prometheus_http import PrometheusRequests, RangeQuery
from collector.prometheus_queries import expressions
from collector.prometheus_rows import STEP_SECONDS, GroupPast, Readings, sample_rows
from forecasting.units import AnyArray

# Points of all series in one answer: 500,000 are about 12 MB of JSON, and 1 % of what Prometheus loads for one query.
MAX_POINTS = 500_000
# Most rows that one run writes: two weeks of 990 partitions.
MAX_ROWS = 20_000_000
# A stretch is a day at most: an eighth of the 11,000 points that Prometheus returns for a series.
_LONGEST_MINUTES = 1440
# With a longer time between scrapes, minutes have no rates: ten scrapes in ten minutes, one a minute, are 67 s at most.
SLOWEST_SECONDS = 70.0
# A minute counts as missing if its scrape is later than this.
_LATE_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Minutes that are requested together, by their first and last second, and how old a value may be at each.

    `is_news`: if true, the time after a group's known samples is requested, otherwise the time before them.
    """

    first_seconds: int
    last_seconds: int
    window_seconds: int
    is_news: bool

    @property
    def minutes(self) -> range:
        """Its minutes, in seconds since 1970."""
        return range(self.first_seconds, self.last_seconds + 1, STEP_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPlan:
    """The requests, in this order, and the known samples: by group, their first and last second.

    `slow_minutes` are left out: scraped less than once a minute, they have no rates.
    """

    discovered: Discovered
    known: Mapping[str, tuple[int, int]]
    stretches: tuple[Stretch, ...]
    slow_minutes: int

    def wanted(self, group: str, stretch: Stretch) -> AnyArray:
        """The minutes of a stretch that are requested for the group, one boolean each."""
        minutes = np.array(stretch.minutes)
        if group not in self.known:
            return np.full(len(minutes), not stretch.is_news)
        first, last = self.known[group]
        wanted: AnyArray = minutes > last if stretch.is_news else minutes < first
        return wanted

    @property
    def queries(self) -> int:
        """The number of queries of the plan."""
        return len(self.stretches) * len(_expressions(self.discovered, window_seconds=STEP_SECONDS))

    @property
    def points(self) -> int:
        """The most points in the answer to one query."""
        return max((len(stretch.minutes) for stretch in self.stretches), default=0) * _series(self.discovered)

    @property
    def rows(self) -> int:
        """Rows in the result if every partition is known at every minute."""
        return sum(
            int(self.wanted(group, stretch).sum()) * sum(self.discovered.partitions.get(topic, 0) for topic in own)
            for stretch in self.stretches
            for group, own in self.discovered.topics.items()
        )


def plan_past(discovered: Discovered, *, known: Mapping[str, tuple[datetime, datetime]]) -> PastPlan:
    """The plan of requests: the time after the `known` samples, oldest first, then the time before, newest first.

    If the run is stopped at any point, the samples of a group have no hole, and the next run resumes from them.
    Errors: RejectedError if there are more rows than `MAX_ROWS`.
    """
    stretches, slow_minutes = [], 0
    seconds = {group: (int(first.timestamp()), int(last.timestamp())) for group, (first, last) in known.items()}
    for first, last, is_news in _spans(discovered, seconds):
        hours = [every for end, every in discovered.every_hour.items() if first <= end < last + HOUR_SECONDS]
        if not hours:
            continue
        # The hours in which a source begins or ends have few scrapes; of three hours, the median is a full hour.
        every = median(hours) if len(hours) > 2 else min(*hours, SLOWEST_SECONDS)
        if every > SLOWEST_SECONDS:
            slow_minutes += (last - first) // STEP_SECONDS + 1
            continue
        window = math.ceil(every) + _LATE_SECONDS
        stretches.append(Stretch(first_seconds=first, last_seconds=last, window_seconds=window, is_news=is_news))
    plan = PastPlan(discovered=discovered, known=seconds, stretches=tuple(stretches), slow_minutes=slow_minutes)
    if plan.rows > MAX_ROWS:
        message = (
            f"that would be {plan.rows:,} rows, and one run writes {MAX_ROWS:,} at most; name groups with --group, or "
            "give fewer --days"
        )
        raise RejectedError(message)
    return plan


def past_tables(prometheus: PrometheusRequests, plan: PastPlan, *, cluster: str) -> Iterator[pa.Table]:
    """The samples of each stretch, in the order of the plan.

    Errors: AdapterError if the server stops answering; the stretches that were returned before are complete.
    """
    for stretch in plan.stretches:
        wanted = {group: plan.wanted(group, stretch) for group in sorted(plan.discovered.topics)}
        topics = {group: plan.discovered.topics[group] for group, minutes in wanted.items() if minutes.any()}
        expressions = _expressions(replace(plan.discovered, topics=topics), window_seconds=stretch.window_seconds)
        queries = [
            RangeQuery(
                expression=expression,
                first_seconds=stretch.first_seconds,
                last_seconds=stretch.last_seconds,
                step_seconds=STEP_SECONDS,
            )
            for expression in expressions.values()
        ]
        answers = dict(zip(expressions, prometheus.ranges(queries), strict=True))
        groups = [GroupPast(group=group, topics=own, wanted=wanted[group]) for group, own in topics.items()]
        readings = Readings(minutes=np.array(stretch.minutes), **answers)
        yield sample_rows(plan.discovered.spoken.dialect, readings, groups, cluster=cluster)


def _spans(discovered: Discovered, known: Mapping[str, tuple[int, int]]) -> Iterator[tuple[int, int, bool]]:
    """First and last minute of each stretch that a group needs, and whether it is news: these come first."""
    since, now = discovered.since_seconds, discovered.now_seconds
    longest = max(1, min(_LONGEST_MINUTES, MAX_POINTS // max(1, _series(discovered)))) * STEP_SECONDS
    ends = min((last for _, last in known.values()), default=now)
    for first in range(max((ends // STEP_SECONDS + 1) * STEP_SECONDS, since), now + 1, longest):
        yield first, min(first + longest - STEP_SECONDS, now), True
    begins = max((known[group][0] if group in known else now + 1 for group in discovered.topics), default=since)
    for last in range(min(now, (begins - 1) // STEP_SECONDS * STEP_SECONDS), since - 1, -longest):
        yield max(last - longest + STEP_SECONDS, since), last, False


def _series(discovered: Discovered) -> int:
    """Series in the longest answer: every partition, for each group that reads it."""
    own = [sum(discovered.partitions.get(topic, 0) for topic in topics) for topics in discovered.topics.values()]
    return max(sum(own), sum(discovered.partitions.values()))


def _expressions(discovered: Discovered, *, window_seconds: int) -> dict[str, str]:
    """The expressions of a stretch, whose values are no older than this at each of its minutes."""
    return expressions(discovered, newest=lambda selector: f"last_over_time({selector}[{window_seconds}s])")
