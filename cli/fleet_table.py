# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""The fleet as a table: what each group has and should have, what that saves, and how its load went."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean
from typing import TYPE_CHECKING, Any

from api.words import code_in_words, duration, number
from cli.output import Field, Record, Table
from cli.sparkline import sparkline

if TYPE_CHECKING:
    from forecasting.history import GroupInterval
    from recommender.deciding.recommendation import Decision

HOURS = 24
# The figures of a fleet that `--fail-if` bounds.
FIGURES = ("groups", "advised", "refused", "moves", "replicas", "desired_replicas", "saving_per_hour")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """A decision on a group, and its mean produce rate in each of the last 24 hours, None where it is unknown."""

    decision: "Decision"
    hourly_messages_per_second: tuple[float | None, ...]

    @property
    def is_idle(self) -> bool:
        """True if no message is known to have been produced in that day."""
        return not any(self.hourly_messages_per_second)


def hourly(rows: "Sequence[GroupInterval]", *, until: datetime) -> tuple[float | None, ...]:
    """The mean produce rate of each of the 24 hours before `until`, in messages/s; None where no row tells it."""
    rates: list[list[float]] = [[] for _ in range(HOURS)]
    for row in rows:
        ago = int((until - row.interval_end_at) / timedelta(hours=1))
        if row.produce_messages_per_second is not None and 0 <= ago < HOURS:
            rates[HOURS - 1 - ago].append(row.produce_messages_per_second)
    return tuple(fmean(own) if own else None for own in rates)


def fleet_table(scanned: Sequence[Scanned], *, ascii_only: bool) -> Table:
    """A row for each group, what saves most first, and groups without advice last."""
    fields = (
        Field(key="group", heading="Group", left=True),
        Field(key="cluster", heading="Cluster", left=True, wide=True),
        Field(key="current_replicas", heading="Now"),
        Field(key="desired_replicas", heading="Should"),
        Field(key="desired_replicas_lower", heading="At least", wide=True),
        Field(key="desired_replicas_upper", heading="At most", wide=True),
        Field(key="execute_at", heading="From", show=lambda at: f"{at:%H:%M}Z"),
        Field(
            key="hourly_messages_per_second",
            heading="Produced in 24 h",
            show=lambda rates: sparkline(rates, ascii_only=ascii_only),
            left=True,
        ),
        Field(key="produce_messages_per_second", heading="Now/s", show=number, wide=True),
        Field(key="lag_seconds", heading="Lag", show=duration),
        Field(key="history_seconds", heading="Data", show=duration),
        Field(key="history_tier", heading="Tier", left=True, wide=True),
        Field(key="confidence_level", heading="Confidence", left=True),
        Field(key="confidence", heading="Share", show=lambda share: f"{share:.0%}", wide=True),
        Field(key="saving_per_hour", heading="Saves/h", show=lambda saving: f"{saving:,.3f}"),
        Field(key="currency", heading="", left=True),
        Field(key="reason", heading="Note", show=code_in_words, left=True),
        Field(key="sentence", heading="Why", left=True, wide=True),
    )
    return Table(fields=fields, records=sorted((_record(each) for each in scanned), key=_worst_first))


def figures(records: Sequence[Record]) -> dict[str, float | None]:
    """The figures of the fleet by name; a sum of money is unknown where it would be of several currencies or none."""
    advised = [record for record in records if record["desired_replicas"] is not None]
    currencies = {record["currency"] for record in advised}
    return {
        "groups": len(records),
        "advised": len(advised),
        "refused": len(records) - len(advised),
        "moves": sum(record["desired_replicas"] != record["current_replicas"] for record in advised),
        "replicas": sum(record["current_replicas"] for record in advised),
        "desired_replicas": sum(record["desired_replicas"] for record in advised),
        "saving_per_hour": sum(record["saving_per_hour"] for record in advised) if len(currencies) == 1 else None,
    }


def _record(scanned: Scanned) -> dict[str, Any]:
    from forecasting.refusal import Refusal

    decision = scanned.decision
    known: dict[str, Any] = {
        "group": decision.group,
        "cluster": decision.cluster,
        "current_replicas": None,
        "desired_replicas": None,
        "desired_replicas_lower": None,
        "desired_replicas_upper": None,
        "execute_at": None,
        "hourly_messages_per_second": scanned.hourly_messages_per_second,
        "produce_messages_per_second": None,
        "lag_seconds": None,
        "history_seconds": None,
        "history_tier": None,
        "confidence_level": None,
        "confidence": None,
        "saving_per_hour": None,
        "currency": None,
        "reason": decision.reason,
    }
    if isinstance(decision, Refusal):
        return known | {"sentence": f"{decision.sentence} Next: {decision.remedy}"}
    moves = decision.action != "hold"
    return known | {
        "current_replicas": decision.current_replicas,
        "desired_replicas": decision.desired_replicas,
        "desired_replicas_lower": decision.desired_replicas_lower,
        "desired_replicas_upper": decision.desired_replicas_upper,
        "execute_at": decision.execute_at if moves else None,
        "produce_messages_per_second": decision.observed.produce_messages_per_second,
        "lag_seconds": decision.observed.lag_seconds,
        "history_seconds": decision.history_seconds,
        "history_tier": decision.forecast.history_tier,
        "confidence_level": decision.confidence_level,
        "confidence": decision.confidence,
        "saving_per_hour": decision.saving * 3600 / decision.horizon_seconds,
        "currency": decision.currency,
        "sentence": decision.sentences[-1] if decision.sentences else None,
    }


def _worst_first(record: Record) -> tuple[bool, float, str, str]:
    saving = record["saving_per_hour"]
    return saving is None, -(saving or 0.0), record["group"], record["cluster"]
