"""What templates show of a group and of a decision: messages of the wire, and tables that are made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from api import schemas as wire
from api.keys import group_key
from api.parts import DataQuality, FleetTotal

# A forecast is shown in steps of so many minutes.
STEP_MINUTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSums:
    """All groups together: counts of all currencies, and the sums of each one."""

    groups: int
    no_advice: int
    promise_missed: int
    saving_forgone: int
    expired: int
    current_replicas: int
    desired_replicas: int
    by_currency: tuple[FleetTotal, ...]

    @property
    def unconcerned(self) -> int:
        """Groups of which nothing is to be done."""
        return self.groups - self.expired - self.no_advice - self.promise_missed - self.saving_forgone


def fleet_sums(totals: Sequence[FleetTotal]) -> FleetSums:
    """Counts of groups and replicas have a sum over currencies; money has none."""
    counted = {
        name: sum(getattr(total, name) for total in totals)
        for name in FleetSums.__dataclass_fields__
        if name != "by_currency"
    }
    return FleetSums(by_currency=tuple(total for total in totals if total.currency is not None), **counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The produce rate in the minute that ends at `at`, in messages/s: between two of twenty, and in the middle."""

    at: datetime
    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """One decision with its sentences."""

    decision: wire.RecommendationV1 | wire.RefusalV1
    explanation: wire.Explanation

    @property
    def key(self) -> str:
        """The key of its group."""
        return group_key(self.decision.cluster, self.decision.group_id)

    @property
    def advice(self) -> wire.RecommendationV1 | None:
        """The decision where it is no refusal."""
        return self.decision if isinstance(self.decision, wire.RecommendationV1) else None

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The forecast of the next hour, every ten minutes; none for a refusal."""
        if self.advice is None:
            return ()
        forecast, paths = self.advice.forecast, self.advice.forecast.produce_messages_per_second
        every = max(1, STEP_MINUTES * 60 // forecast.step_seconds)
        steps = range(every - 1, len(paths.p50), every)
        step = timedelta(seconds=forecast.step_seconds)
        return tuple(
            Expected(
                at=self.advice.issued_at + (number + 1) * step,
                low=paths.p05[number],
                middle=paths.p50[number],
                high=paths.p95[number],
            )
            for number in steps
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group: its latest decision, earlier ones, its moves, its last day, and what it has cost in it."""

    key: str
    latest: wire.RecommendationV1 | wire.RefusalV1
    explanation: wire.Explanation
    decisions: tuple[wire.GroupSummary, ...]
    moves: tuple[wire.Outcome, ...]
    ledger: wire.GroupLedger | None
    day: wire.GroupDay
    hourly_advice: tuple[wire.RecommendationV1, ...]
    hourly_rates: tuple[tuple[datetime, float | None], ...]
    partitions: wire.GroupPartitions | None

    @property
    def now(self) -> DecisionView:
        """The latest decision."""
        return DecisionView(decision=self.latest, explanation=self.explanation)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRow:
    """What the last decision on one group rests on; `data` is None for a refusal, which has a `reason`."""

    key: str
    cluster: str
    group_id: str
    data: DataQuality | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityView:
    """The data of a page of groups, the counts that any of them has, and the checks of the service."""

    rows: tuple[QualityRow, ...]
    checks: tuple[tuple[str, str | None], ...]
    next: str | None

    @property
    def counts(self) -> tuple[str, ...]:
        """The names of the counts, as in the feature table."""
        return tuple(dict.fromkeys(name for row in self.rows if row.data is not None for name in row.data.counts))


def quality_row(decision: wire.RecommendationV1 | wire.RefusalV1) -> QualityRow:
    """The row of a group with this latest decision."""
    return QualityRow(
        key=group_key(decision.cluster, decision.group_id),
        cluster=decision.cluster,
        group_id=decision.group_id,
        data=decision.data if isinstance(decision, wire.RecommendationV1) else None,
        reason=decision.reason.code,
    )
