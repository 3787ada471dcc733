"""The samples of decisions in Prometheus' text format: each decision's lines once, a page from all of them.

A page has each metric's samples together, so that the lines of a decision are kept by metric. They are made, as bytes,
when the decision is known, not when a page is asked for: 90 lines of 15,000 groups are 140 MB.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import NamedTuple, get_args

from prometheus_client.utils import floatToGoString

from forecasting.refusal import Refusal, RefusalReason
from forecasting.units import SECONDS_PER_HOUR
from recommender.deciding.recommendation import Decision, LedgerStanding, Recommendation
from recommender.forecast_accuracy import HORIZONS_SECONDS, ForecastAccuracy
from recommender.ports import Group, decision_id, issued_at, wire_code

GROUP_LABELS = ("cluster", "group")
DUE, AGE = "due_replicas", "data_age_seconds"
# The quantiles that advice keeps of its forecast, and how far ahead they are shown: 12 samples a group.
_FORECAST_QUANTILES = (("0.05", "p05"), ("0.5", "p50"), ("0.95", "p95"))
_REASONS: tuple[tuple[RefusalReason, str], ...] = tuple((each, wire_code(each)) for each in get_args(RefusalReason))
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Family(NamedTuple):
    """One metric of groups: its name without prefix, its help, and its labels beside cluster and group."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """The name on a page."""
        return f"lagcast_{self.name}"

    @property
    def head(self) -> str:
        """The lines before its samples."""
        return f"# HELP {self.full_name} {self.meaning}\n# TYPE {self.full_name} gauge\n"


FAMILIES = (
    Family("desired_replicas", "Replicas that the group should have from execute_at on."),
    Family("useful_maximum_replicas", "Replicas beyond which no more can help."),
    Family("execute_at_timestamp_seconds", "When to move to the desired replicas."),
    Family("valid_until_timestamp_seconds", "Until when the advice may be used."),
    Family("lead_time_seconds", "From the command to the new capacity being at work."),
    Family("lag_messages", "Lag of the group in messages."),
    Family("produce_messages_per_second", "Messages produced into the group's topics.", ("topic",)),
    Family("consume_messages_per_second", "Messages consumed by the group.", ("topic",)),
    Family("capacity_messages_per_second_per_replica", "The most one replica consumes.", ("quantile",)),
    Family(DUE, "Replicas that the group should have at this instant."),
    Family("lag_seconds", "Lag of the group in seconds."),
    Family("desired_replicas_lower", "The cheapest replica count in the lowest tenth of scenarios."),
    Family("desired_replicas_upper", "The cheapest replica count in the highest tenth of scenarios."),
    Family(
        "forecast_produce_messages_per_second",
        "Produce rate that is expected so many seconds after the forecast was made, by quantile.",
        ("quantile", "horizon_seconds"),
    ),
    Family(
        "forecast_error_ratio",
        "Error of the forecast's median so many seconds ahead against what came, over what came; older hours fade.",
        ("horizon_seconds",),
    ),
    Family("forecast_skill_ratio", "Part of a constant produce rate's error that the forecast has avoided."),
    Family("forecast_coverage_ratio", "Share of minutes between p05 and p95 of the forecast; 0.9 is right."),
    Family(
        "cost_per_hour",
        "Expected price of an hour of the advice, and of staying.",
        ("plan", "component", "currency"),
    ),
    Family(
        "ledger_cost",
        "Cost of the last 24 hours by item, of what was paid (scaler paid) and of each scaler's simulation.",
        ("scaler", "item"),
    ),
    Family("ledger_error_ratio", "Simulated cost of the group as it was, over what was paid."),
    Family(
        "saving_per_hour",
        "What each scaler would have cost beyond what was paid, by the hour; below 0 where it would have cost less.",
        ("against", "currency"),
    ),
    Family(
        "regret_per_hour", "Paid beyond the cheapest distinguishable scaler, an hour of the last 24.", ("currency",)
    ),
    Family("data_quality_samples", "Samples of the last 15 minutes that are not counted as load, by kind.", ("kind",)),
    Family("current_replicas", "Replicas that the group has."),
    Family("refusal", "1 for the reason why no advice is given, 0 for every other one.", ("reason",)),
    Family(AGE, "Age of the newest row that advice was based on."),
)

# A metric's name, the values of its labels beside cluster and group, and the value.
_Sample = tuple[str, tuple[str, ...], float]


class _Line(NamedTuple):
    """How a line of one metric is made: a text with places for the values of `order`, labels being sorted by name."""

    text: str
    order: tuple[int, ...]


def _line(family: Family) -> _Line:
    names = (*GROUP_LABELS, *family.labels)
    order = tuple(sorted(range(len(names)), key=lambda place: names[place]))
    labels = ",".join(f'{names[place]}="%s"' for place in order)
    return _Line(f"{family.full_name}{{{labels}}} %s\n", order)


_LINES = {family.name: _line(family) for family in FAMILIES}
# Metrics that have samples of a refusal too.
_AT_ANY_TIME = frozenset({"current_replicas", "refusal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The lines of one decision: of each of FAMILIES while its advice is in force, and by metric at any time.

    `due` are the lines before `execute_at` and from it on; `age` is the line of the age up to its value. `valid_until`
    and `as_of` are None for a refusal.
    """

    decision_id: str
    issued_at: datetime
    group: Group
    age: bytes
    in_force: tuple[bytes, ...]
    always: dict[str, bytes]
    valid_until: datetime | None = None
    execute_at: datetime | None = None
    due: tuple[bytes, bytes] = (b"", b"")
    as_of: datetime | None = None

    def is_in_force(self, now: datetime) -> bool:
        """True for advice that has not expired."""
        return self.valid_until is not None and now <= self.valid_until


def shown(decision: Decision, accuracy: ForecastAccuracy | None) -> Shown:
    """The lines of a decision; `accuracy` is that of the group's forecasts, as it was judged with this decision."""
    group = decision.cluster, decision.group
    known = Shown(
        decision_id=decision_id(decision),
        issued_at=issued_at(decision),
        group=group,
        age=_by_metric(group, [(AGE, (), 0.0)])[AGE].removesuffix(b"0.0\n"),
        in_force=(),
        always=_by_metric(group, _refusals(decision)),
    )
    if isinstance(decision, Refusal):
        return known
    lines = _by_metric(group, _samples(decision, accuracy))
    before, after = (_by_metric(group, [(DUE, (), due)])[DUE] for due in _due(decision))
    return replace(
        known,
        in_force=tuple(lines.get(family.name, b"") for family in FAMILIES),
        valid_until=decision.valid_until,
        execute_at=decision.execute_at,
        due=(before, after),
        as_of=decision.observed.as_of,
    )


def parts_of_page(known: Sequence[Shown], ages_seconds: Iterable[tuple[Shown, float]], *, now: datetime) -> list[bytes]:
    """The parts, in order, of the page of these decisions at `now`; of each group whose data have an age, that too."""
    in_force = [each for each in known if each.is_in_force(now)]
    parts: list[bytes] = []
    for place, family in enumerate(FAMILIES):
        name = family.name
        parts.append(family.head.encode())
        if name == DUE:
            parts += [each.due[each.execute_at is not None and now >= each.execute_at] for each in in_force]
        elif name == AGE:
            parts += [b"%b%b\n" % (each.age, _value(seconds).encode()) for each, seconds in ages_seconds]
        else:
            parts += [each.in_force[place] for each in in_force]
        if name in _AT_ANY_TIME:
            parts += [each.always.get(name, b"") for each in known]
    return parts


def _by_metric(group: Group, samples: Iterable[_Sample]) -> dict[str, bytes]:
    """Samples as lines, those of one metric together."""
    of_group = tuple(name.translate(_ESCAPES) for name in group)
    lines: dict[str, str] = {}
    for name, labels, value in samples:
        text, order = _LINES[name]
        values = (*of_group, *(label.translate(_ESCAPES) for label in labels)) if labels else of_group
        lines[name] = lines.get(name, "") + text % (*(values[place] for place in order), _value(value))
    return {name: text.encode() for name, text in lines.items()}


def _value(value: float) -> str:
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]  # has no types
    return text


def _due(advice: Recommendation) -> tuple[float, float]:
    return advice.current_replicas, advice.desired_replicas


def _samples(advice: Recommendation, accuracy: ForecastAccuracy | None) -> Iterator[_Sample]:
    """All samples of advice in force but those that depend on the instant of the page."""
    observed, capacity, topics = advice.observed, advice.capacity, ",".join(advice.topics)
    yield "desired_replicas", (), advice.desired_replicas
    yield "useful_maximum_replicas", (), max(advice.useful_replicas)
    yield "execute_at_timestamp_seconds", (), advice.execute_at.timestamp()
    yield "valid_until_timestamp_seconds", (), advice.valid_until.timestamp()
    yield "lead_time_seconds", (), advice.lead_time_seconds
    yield "lag_messages", (), observed.lag_messages
    yield "produce_messages_per_second", (topics,), observed.produce_messages_per_second
    for quantile, each in (("0.2", capacity.p20), ("0.5", capacity.p50), ("0.9", capacity.p90)):
        yield "capacity_messages_per_second_per_replica", (quantile,), each
    known = (
        ("consume_messages_per_second", (topics,), observed.consume_messages_per_second),
        ("lag_seconds", (), observed.lag_seconds),
        ("desired_replicas_lower", (), advice.desired_replicas_lower),
        ("desired_replicas_upper", (), advice.desired_replicas_upper),
    )
    for name, labels, value in known:
        if value is not None:
            yield name, labels, value
    yield from _forecast(advice)
    if accuracy is not None:
        yield from _accuracy(accuracy)
    hours = advice.horizon_seconds / SECONDS_PER_HOUR
    for plan, cost in (("chosen", advice.chosen), ("stay", advice.stay)):
        for component, price in asdict(cost).items():
            yield "cost_per_hour", (plan, component, advice.currency), price / hours
    if advice.ledger is not None:
        yield from _ledger(advice.ledger, issued=advice.issued_at)
    for kind, count in advice.data_counts:
        yield "data_quality_samples", (kind,), count
    yield "current_replicas", (), advice.current_replicas


def _forecast(advice: Recommendation) -> Iterator[_Sample]:
    step_seconds = advice.forecast.step_seconds
    for label, name in _FORECAST_QUANTILES:
        path: tuple[float, ...] = getattr(advice.forecast, name)
        for horizon_seconds in HORIZONS_SECONDS:
            step = horizon_seconds // step_seconds - 1
            if 0 <= step < len(path):
                yield "forecast_produce_messages_per_second", (label, str(horizon_seconds)), path[step]


def _accuracy(accuracy: ForecastAccuracy) -> Iterator[_Sample]:
    for horizon_seconds, ratio in accuracy.error_ratio.items():
        yield "forecast_error_ratio", (str(horizon_seconds),), ratio
    ratios = (("forecast_skill_ratio", accuracy.skill_ratio), ("forecast_coverage_ratio", accuracy.coverage_ratio))
    for name, known in ratios:
        if known is not None:
            yield name, (), known


def _ledger(ledger: LedgerStanding, *, issued: datetime) -> Iterator[_Sample]:
    hours, currency = (issued - ledger.since_at).total_seconds() / SECONDS_PER_HOUR, ledger.currency
    if hours > 0.0:
        yield "regret_per_hour", (currency,), ledger.regret / hours
        for account in ledger.accounts:
            yield "saving_per_hour", (account.scaler, currency), ledger.saving_against(account) / hours
    for account in (ledger.paid, *ledger.accounts):
        yield "ledger_cost", (account.scaler, "replicas"), account.replicas
        yield "ledger_cost", (account.scaler, "late"), account.late
    if ledger.error_ratio is not None:
        yield "ledger_error_ratio", (), ledger.error_ratio


def _refusals(decision: Decision) -> Iterator[_Sample]:
    """Which reason a refusal has, none for advice; and the replicas that a refusal holds."""
    refused_for = decision.reason if isinstance(decision, Refusal) else None
    for reason, code in _REASONS:
        yield "refusal", (code,), float(reason == refused_for)
    if isinstance(decision, Refusal) and decision.hold_replicas is not None:
        yield "current_replicas", (), decision.hold_replicas
