"""Scripted series for an HPA (`hpa_series.yaml`), the real controller's reads and commands, and those of our HPA."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from replay.policies.declared import rules_of, tolerance_of
from replay.policies.hpa import (
    BehaviorRules,
    Direction,
    LegacyRules,
    Rules,
    Tolerance,
    reconcile,
    wanted_for,
    wanted_for_value,
)
from replay.policies.hpa_cpu import wanted_for_cpu
from tests.live.harness.workload import CPU_REQUEST_MILLICORES

HPA_SERIES = Path(__file__).parent / "hpa_series.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The values that an HPA reads for `looks` looks, or a count that is set by hand after `seconds`."""

    looks: int = 0
    metric: tuple[int | None, ...] = ()
    cpu: int = 0
    unready: int = 0
    missing: int = 0
    hand: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look of the controller: its time, the values read (none without a query), and the pods that it found.

    `rescaled_at_seconds`: when it had commanded another count, if it did.
    """

    at_seconds: float
    read: Step | None
    replicas: int
    status_replicas: int
    ready: int = 0
    unready: int = 0
    missing: int = 0
    rescaled_at_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """A count that is set by hand where there were `replicas`."""

    at_seconds: float
    replicas: int
    sets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One HPA: its settings as the file has them, and the values that it reads."""

    name: str
    replicas: int
    steps: tuple[Step, ...]
    counts: tuple[int, ...]
    least: int = 1
    most: int = 40
    target: int | None = None
    target_value: int | None = None
    target_cpu: int | None = None
    behavior: Mapping[str, Any] | None = None
    start_delay: str = "0s"

    @property
    def metrics(self) -> int:
        """The count of its External metrics."""
        return max(len(step.metric) for step in self.steps)

    def rules(self, stabilisation_seconds: int, *, slack_seconds: float = 0.0) -> Rules:
        """Its behavior as rules of our HPA."""
        bounds = {"least": self.least, "most": self.most}
        rules = rules_of(self.behavior, **bounds, stabilisation_seconds=stabilisation_seconds)
        return with_slack(rules, slack_seconds)

    @property
    def near(self) -> Tolerance:
        """Its tolerances."""
        return tolerance_of(self.behavior)

    def pods(self, read: Step, replicas: int, *, at_seconds: float) -> Look:
        """A look that finds as many pods as commanded, and of them as many ready as the step gives."""
        ready = 0 if self.start_delay != "0s" else replicas - read.unready - read.missing
        groups = {"ready": ready, "unready": read.unready, "missing": read.missing}
        return Look(at_seconds=at_seconds, read=read, replicas=replicas, status_replicas=replicas, **groups)

    def wants(self, look: Look) -> list[int | None]:
        """The count that each metric of a look requires, according to our HPA."""
        assert look.read is not None
        if self.target_cpu is not None:
            share = look.read.cpu / CPU_REQUEST_MILLICORES
            pods = {"ready": look.ready, "unready": look.unready, "missing": look.missing}
            return [wanted_for_cpu(share, **pods, target_percent=self.target_cpu, replicas=look.replicas)]
        return [None if value is None else self._want(value, look) for value in look.read.metric]

    def _want(self, value: int, look: Look) -> int:
        if self.target is not None:
            return wanted_for(value, target=self.target, replicas=look.status_replicas, near=self.near)
        assert self.target_value is not None
        target, ready = self.target_value, look.ready
        return wanted_for_value(value, target=target, replicas=look.replicas, ready=ready, near=self.near)


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The file: the controller's flags, and the series."""

    sync_seconds: float
    stabilisation_seconds: int
    series: tuple[Series, ...]


def with_slack(rules: Rules, seconds: float) -> Rules:
    """The same rules, each window and period longer by so much; a window of 0 stays none."""
    if isinstance(rules, LegacyRules):
        return replace(rules, stabilisation_seconds=rules.stabilisation_seconds + seconds)
    return replace(rules, up=_longer(rules.up, seconds), down=_longer(rules.down, seconds))


def read_book(path: Path) -> Book:
    """The series of a file."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    series = tuple(
        Series(**(fields | {"steps": tuple(map(_step, fields["steps"])), "counts": tuple(fields["counts"])}))
        for fields in found.pop("series")
    )
    return Book(series=series, **found)


def missteps(
    series: Series, events: Sequence[Look | Hand], *, book: Book, slack_seconds: float
) -> list[tuple[Look, list[int]]]:
    """The looks whose command our HPA would not give, each with the counts that it would.

    At every look it knows what the controller saw and did before, and nothing of what that is about to do. Where a want
    or a rescale may just have left a window, within the slack, there are two answers.
    """
    memory, wrong = series.rules(book.stabilisation_seconds), []
    for event, after in pairwise(events):
        if isinstance(event, Hand):
            continue
        answers: dict[int, Rules] = {}
        for slack in (0.0, -slack_seconds, slack_seconds):
            trial = _with_memory_of(memory, series.rules(book.stabilisation_seconds, slack_seconds=slack))
            wants = [] if event.read is None else series.wants(event)
            answer = reconcile(wants, rules=trial, replicas=event.replicas, now_seconds=event.at_seconds)
            answers.setdefault(answer, trial)
        if after.replicas not in answers:
            wrong.append((event, sorted(answers)))
            continue
        memory = answers[after.replicas]
        if event.rescaled_at_seconds is not None and isinstance(memory, BehaviorRules):
            memory._changes[-1] = (event.rescaled_at_seconds, after.replicas - event.replicas)
    return wrong


def _with_memory_of(memory: Rules, rules: Rules) -> Rules:
    """The rules, remembering the same."""
    rules._wants = list(memory._wants)
    if isinstance(memory, BehaviorRules) and isinstance(rules, BehaviorRules):
        rules._changes = list(memory._changes)
    return rules


def counts_in_time(series: Series, *, book: Book) -> list[int]:
    """The counts that our HPA goes through where no look is ever late, and pods are there at once."""
    rules, count, counts, now = series.rules(book.stabilisation_seconds), series.replicas, [series.replicas], 0.0

    def look(read: Step | None, *, until_next_seconds: float) -> None:
        nonlocal now, count
        wants = [] if read is None else series.wants(series.pods(read, count, at_seconds=now))
        count = reconcile(wants, rules=rules, replicas=count, now_seconds=now)
        counts.append(count)
        now += until_next_seconds

    for step in series.steps:
        if step.hand is not None:
            for _ in range(2 if step.seconds else 0):
                look(None, until_next_seconds=step.seconds)
            count = step.hand
            counts.append(count)
        elif not series.least <= count <= series.most:
            look(None, until_next_seconds=book.sync_seconds)
        for _ in range(step.looks):
            look(step, until_next_seconds=book.sync_seconds)
    return distinct(counts)


def distinct(counts: Sequence[int]) -> list[int]:
    """Each count once for as long as it stays.

    >>> distinct([3, 3, 5, 5, 3])
    [3, 5, 3]
    """
    return [*counts[:1], *(after for before, after in pairwise(counts) if after != before)]


def _step(fields: dict[str, Any]) -> Step:
    metric = fields.get("metric", [])
    values = metric if isinstance(metric, list) else [metric]
    return Step(**(fields | {"metric": tuple(None if value == "lost" else value for value in values)}))


def _longer(direction: Direction, seconds: float) -> Direction:
    policies = tuple(replace(policy, period_seconds=policy.period_seconds + seconds) for policy in direction.policies)
    window = direction.window_seconds + (seconds if direction.window_seconds else 0.0)
    return replace(direction, window_seconds=window, policies=policies)
