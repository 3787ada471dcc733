"""Scripted series for KEDA (`keda_series.yaml`), a real KEDA's reads and commands, and those of our own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from replay.policies.declared import rules_of
from replay.policies.keda import Fallback, Keda, Loop, capped_lag, even_lag, whole_lag
from tests.live.harness.hpa_shadow import Book, with_slack

KEDA_SERIES = Path(__file__).parent / "keda_series.yaml"
METRICS: dict[str, Callable[..., int]] = {"capped": capped_lag, "even": even_lag, "whole": whole_lag}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """A lag for so many seconds; None is one that cannot be read."""

    seconds: float
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A read of the trigger: by KEDA's own loop, by the HPA, or none, if the HPA moves a count to its bounds."""

    at_seconds: float
    by: Literal["loop", "hpa", "none"]
    replicas: int
    lag: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaSeries:
    """One ScaledObject: its settings as the file has them, and its lag over time."""

    name: str
    replicas: int
    spells: tuple[Spell, ...]
    counts: tuple[int, ...]
    threshold: int = 10
    activation: int = 0
    least: int = 0
    most: int = 40
    idle: int | None = None
    cooldown: int = 300
    polling: int = 1
    fallback: Mapping[str, int] | None = None
    behavior: Mapping[str, Any] | None = None
    partitions: int | None = None
    metric: str = "capped"

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return sum(spell.seconds for spell in self.spells)

    def lag_at(self, seconds: float) -> int | None:
        """The lag so long after the beginning; the last one stays."""
        for spell in self.spells:
            if seconds < spell.seconds:
                return spell.lag
            seconds -= spell.seconds
        return self.spells[-1].lag

    def shadow(self, *, stabilisation_seconds: int, slack_seconds: float) -> Keda:
        """Our KEDA of that ScaledObject, each window longer by the slack."""
        bounds = {"least": max(1, self.least), "most": self.most}
        fallback = None
        if self.fallback is not None:
            replicas, failures = self.fallback["replicas"], self.fallback["failureThreshold"]
            fallback = Fallback(replicas=replicas, failure_threshold=failures)
        return Keda(
            threshold_messages=self.threshold,
            rules=with_slack(
                rules_of(self.behavior, **bounds, stabilisation_seconds=stabilisation_seconds), slack_seconds
            ),
            metric=METRICS[self.metric] if self.partitions else whole_lag,
            fallback=fallback,
            loop=Loop(
                least=self.least,
                idle=self.idle,
                cooldown_seconds=self.cooldown + slack_seconds,
                activation_messages=self.activation,
            ),
        )


def read_keda_series(path: Path) -> list[KedaSeries]:
    """The series of a file."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))["series"]
    return [
        KedaSeries(**(fields | {"spells": tuple(map(_spell, fields.pop("steps"))), "counts": tuple(fields["counts"])}))
        for fields in found
    ]


def shadowed_keda(
    series: KedaSeries,
    readings: Sequence[Reading],
    *,
    stabilisation_seconds: int,
    slack_seconds: float = 0.0,
    lost: Collection[Reading] = (),
) -> list[int]:
    """The counts that our KEDA and its HPA find at each reading of the real ones; `lost` ones are not read."""
    keda = series.shadow(stabilisation_seconds=stabilisation_seconds, slack_seconds=slack_seconds)
    count, counts = series.replicas, list[int]()
    for reading in readings:
        counts.append(count)
        if reading in lost:
            continue
        if reading.by == "loop":
            count = keda.poll(reading.lag, replicas=count, now_seconds=reading.at_seconds)
        else:
            partitions = series.partitions or 0
            at_seconds = reading.at_seconds
            count = keda.reconcile(reading.lag, partitions=partitions, replicas=count, now_seconds=at_seconds)
    return counts


def overtaken(readings: Sequence[Reading], *, within_seconds: float) -> list[Reading]:
    """The loop's failed reads so near to a failed one of the HPA that KEDA may count the two as one.

    Each of the two counts on its own copy of the ScaledObject and patches its status (`IncrementFailure`): a copy that
    was read before the other's patch came back from the API server has the same number again.
    """
    failed = [reading.at_seconds for reading in readings if reading.by == "hpa" and reading.lag is None]
    return [
        reading
        for reading in readings
        if reading.by == "loop"
        and reading.lag is None
        and any(abs(reading.at_seconds - at) <= within_seconds for at in failed)
    ]


def keda_counts_in_time(series: KedaSeries, *, book: Book) -> list[int]:
    """The counts that our KEDA and its HPA go through without any delay: both read as often as they should."""
    keda = series.shadow(stabilisation_seconds=book.stabilisation_seconds, slack_seconds=0.0)
    looks = [book.sync_seconds * number for number in range(1, int(series.seconds / book.sync_seconds) + 1)]
    alone = series.least > 0 and series.idle is None
    polls = [] if alone else [float(second) for second in range(0, int(series.seconds), series.polling)]
    counts = [series.replicas]
    for now in sorted([*looks, *polls]):
        lag, count = series.lag_at(now), counts[-1]
        if now in polls:
            counts.append(keda.poll(lag, replicas=count, now_seconds=now))
        elif count > 0:
            partitions = series.partitions or 0
            counts.append(keda.reconcile(lag, partitions=partitions, replicas=count, now_seconds=now))
    return counts


def _spell(fields: Mapping[str, Any]) -> Spell:
    return Spell(seconds=fields["seconds"], lag=None if fields["lag"] == "lost" else fields["lag"])
