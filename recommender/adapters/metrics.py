"""The Prometheus page: the last decision for each group, computed from the store at each request."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from forecasting.refusal import Refusal, RefusalReason
from forecasting.units import SECONDS_PER_HOUR
from recommender.borders import Unit
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.forecast_accuracy import HORIZONS_SECONDS, ForecastAccuracy
from recommender.ports import DecisionStore, Group, issued_at, wire_code
from recommender.steps import Step

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Every group is decided in each cycle, of an hour at most; one that is gone is no longer shown.
_GONE_AFTER = timedelta(hours=2)
_GROUP_LABELS = ("cluster", "group")
_REASONS: tuple[RefusalReason, ...] = get_args(RefusalReason)

# Name, help; the value is read off a recommendation that has neither expired nor been followed by a refusal.
_ADVICE: tuple[tuple[str, str, Callable[[Recommendation], float]], ...] = (
    ("desired_replicas", "Replicas that the group should have from execute_at on.", lambda r: r.desired_replicas),
    ("useful_maximum_replicas", "Replicas beyond which no more can help.", lambda r: max(r.useful_replicas)),
    ("execute_at_timestamp_seconds", "When to move to the desired replicas.", lambda r: r.execute_at.timestamp()),
    ("valid_until_timestamp_seconds", "Until when the advice may be used.", lambda r: r.valid_until.timestamp()),
    ("lead_time_seconds", "From the command to the new capacity being at work.", lambda r: r.lead_time_seconds),
    ("lag_messages", "Lag of the group in messages.", lambda r: r.observed.lag_messages),
)


# The quantiles that advice keeps of its forecast, and how far ahead they are shown: 12 samples a group.
_FORECAST_QUANTILES = (("0.05", "p05"), ("0.5", "p50"), ("0.95", "p95"))
# From a heartbeat to a session of the default length, and beyond it.
_PAUSE_BUCKETS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 45.0, 60.0, 120.0, 300.0)
# From one small group to a thousand, whose decisions take 20 s; a step of a minute takes the whole cycle.
_STEP_BUCKETS = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """A `Publisher` that counts decisions, interruptions and requests, and judges forecasts by what came; and the page.

    The page shows all that beside the advice in force.

    Unknown values have no sample: while a group is refused or its advice has expired, a scaler that reads
    `lagcast_due_replicas` finds no value and holds.
    """

    def __init__(
        self,
        store: DecisionStore,
        *,
        clock: Callable[[], datetime],
        version: str,
        leads: Callable[[], bool] | None = None,
    ) -> None:
        """`leads` is given where several recommenders share a lease: standbys show only their counters."""
        self.registry = CollectorRegistry()
        self._accuracies: dict[Group, ForecastAccuracy] = defaultdict(ForecastAccuracy)
        self.registry.register(_LatestDecisions(store, clock, leads, self._accuracies))
        self._decisions = Counter(
            "lagcast_decisions",
            "Decisions published, refusals included.",
            ("action", "reason"),
            registry=self.registry,
        )
        self._interruptions = Counter(
            "lagcast_interruptions",
            "Times that partitions of a group were seen to stop, by kind: rebalance, restart or stall.",
            (*_GROUP_LABELS, "kind"),
            registry=self.registry,
        )
        self._pauses = Histogram(
            "lagcast_rebalance_pause_seconds",
            "How long partitions stopped, the mean of those that did, for each interruption in which any was seen to.",
            (*_GROUP_LABELS, "kind"),
            buckets=_PAUSE_BUCKETS,
            registry=self.registry,
        )
        self._repeated = Counter(
            "lagcast_duplicate_messages",
            "Messages that a group has done again: those seen to be (least), and those that may have been (most).",
            (*_GROUP_LABELS, "bound"),
            registry=self.registry,
        )
        self._requests = Counter(
            "lagcast_source_requests",
            "Rounds of requests to a source, and of each round the groups that could not be read, by outcome.",
            ("source", "outcome"),
            registry=self.registry,
        )
        self._failures = Counter(
            "lagcast_failures",
            "Errors that ended at the border of one unit: a group, object, file, document, step or part.",
            ("unit",),
            registry=self.registry,
        )
        self._steps = Histogram(
            "lagcast_step_duration_seconds",
            "How long each step of a cycle took, all groups together: read, forecast, decide, store, publish.",
            ("step",),
            buckets=_STEP_BUCKETS,
            registry=self.registry,
        )
        Info("lagcast_build", "The running version.", registry=self.registry).info({"version": version})

    def publish(self, decision: Decision) -> None:
        """Count `decision`, and judge forecasts by what it observed."""
        if isinstance(decision, Recommendation):
            self._accuracies[decision.cluster, decision.group].add(decision)
        action = decision.action if isinstance(decision, Recommendation) else "refuse"
        self._decisions.labels(action=action, reason=wire_code(decision.reason)).inc()

    def interrupted(
        self,
        cluster: str,
        group: str,
        *,
        kind: str,
        rebalance_pause_seconds: float | None,
        repeated_least: int,
        repeated_most: int,
    ) -> None:
        """Count an interruption that was measured; its pause is None where no partition was seen to stop."""
        self._interruptions.labels(cluster, group, kind).inc()
        if rebalance_pause_seconds is not None:
            self._pauses.labels(cluster, group, kind).observe(rebalance_pause_seconds)
        self._repeated.labels(cluster, group, "least").inc(repeated_least)
        self._repeated.labels(cluster, group, "most").inc(repeated_most)

    def requested(self, source: str, outcome: str) -> None:
        """Count a round of requests to a source, or a group of it that could not be read."""
        self._requests.labels(source, outcome).inc()

    def failed(self, unit: Unit) -> None:
        """Count an error that ended at the border of a unit of this kind."""
        self._failures.labels(unit).inc()

    def observe_steps(self, seconds: Mapping[Step, float]) -> None:
        """Count a cycle with the seconds that each of its steps took."""
        for step, taken in seconds.items():
            self._steps.labels(step).observe(taken)

    def page(self) -> bytes:
        """The page, in the text format that `CONTENT_TYPE` names. Errors: those of the store."""
        return generate_latest(self.registry)


class _LatestDecisions(Collector):
    def __init__(
        self,
        store: DecisionStore,
        clock: Callable[[], datetime],
        leads: Callable[[], bool] | None,
        accuracies: Mapping[Group, ForecastAccuracy],
    ) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._accuracies = accuracies

    def describe(self) -> Iterable[Metric]:
        """Nothing to check names against, so that registering does not read the store."""
        return ()

    def collect(self) -> Iterable[Metric]:
        families = list(self._decided())
        if self._leads is None:
            yield from families
            return
        # Checked after the store was read, because reading takes time.
        leads = self._leads()
        yield GaugeMetricFamily("lagcast_leader", "1 for the recommender that may publish, else 0.", float(leads))
        if leads:
            yield from families

    def _decided(self) -> Iterable[Metric]:
        now = self._clock()
        decided_since = now - _GONE_AFTER
        decisions = [each for each in self._store.latest_page() if issued_at(each) >= decided_since]
        in_force = [d for d in decisions if isinstance(d, Recommendation) and now <= d.valid_until]
        yield from _plain(in_force)
        yield from _rates(in_force)
        yield _due(in_force, now)
        yield _lag_seconds(in_force)
        yield from _ranges(in_force)
        yield _forecasts(in_force)
        yield from _accuracy(in_force, self._accuracies)
        yield _costs(in_force)
        yield from _ledgers(in_force)
        yield _oddities(in_force)
        yield _current(decisions, in_force)
        yield _refusals(decisions)
        yield self._ages(decisions, now)

    def _ages(self, decisions: Iterable[Decision], now: datetime) -> Metric:
        family = _family("data_age_seconds", "Age of the newest row that advice was based on.")
        for decision in decisions:
            advice = (
                decision
                if isinstance(decision, Recommendation)
                else self._store.latest_recommendation(decision.cluster, decision.group)
            )
            if advice is not None:
                family.add_metric(_labels(decision), (now - advice.observed.as_of).total_seconds())
        return family


def _plain(in_force: Iterable[Recommendation]) -> Iterable[Metric]:
    for name, meaning, value_of in _ADVICE:
        family = _family(name, meaning)
        for advice in in_force:
            family.add_metric(_labels(advice), value_of(advice))
        yield family


def _rates(in_force: Iterable[Recommendation]) -> Iterable[Metric]:
    produced = _family("produce_messages_per_second", "Messages produced into the group's topics.", "topic")
    consumed = _family("consume_messages_per_second", "Messages consumed by the group.", "topic")
    capacity = _family("capacity_messages_per_second_per_replica", "The most one replica consumes.", "quantile")
    for advice in in_force:
        rated = (*_labels(advice), ",".join(advice.topics))
        produced.add_metric(rated, advice.observed.produce_messages_per_second)
        if advice.observed.consume_messages_per_second is not None:
            consumed.add_metric(rated, advice.observed.consume_messages_per_second)
        for quantile, value in (
            ("0.2", advice.capacity.p20),
            ("0.5", advice.capacity.p50),
            ("0.9", advice.capacity.p90),
        ):
            capacity.add_metric((*_labels(advice), quantile), value)
    return produced, consumed, capacity


def _ranges(in_force: Iterable[Recommendation]) -> Iterable[Metric]:
    lower = _family("desired_replicas_lower", "The cheapest replica count in the lowest tenth of scenarios.")
    upper = _family("desired_replicas_upper", "The cheapest replica count in the highest tenth of scenarios.")
    for advice in in_force:
        for family, count in ((lower, advice.desired_replicas_lower), (upper, advice.desired_replicas_upper)):
            if count is not None:
                family.add_metric(_labels(advice), count)
    return lower, upper


def _forecasts(in_force: Iterable[Recommendation]) -> Metric:
    family = _family(
        "forecast_produce_messages_per_second",
        "Produce rate that is expected so many seconds after the forecast was made, by quantile.",
        "quantile",
        "horizon_seconds",
    )
    for advice in in_force:
        step_seconds = advice.forecast.step_seconds
        for label, name in _FORECAST_QUANTILES:
            path: tuple[float, ...] = getattr(advice.forecast, name)
            for horizon_seconds in HORIZONS_SECONDS:
                step = horizon_seconds // step_seconds - 1
                if 0 <= step < len(path):
                    family.add_metric((*_labels(advice), label, str(horizon_seconds)), path[step])
    return family


def _accuracy(in_force: Iterable[Recommendation], accuracies: Mapping[Group, ForecastAccuracy]) -> Iterable[Metric]:
    errors = _family(
        "forecast_error_ratio",
        "Error of the forecast's median so many seconds ahead against what came, over what came; older hours fade.",
        "horizon_seconds",
    )
    skills = _family("forecast_skill_ratio", "Part of a constant produce rate's error that the forecast has avoided.")
    coverages = _family(
        "forecast_coverage_ratio", "Share of minutes between p05 and p95 of the forecast; 0.9 is right."
    )
    for advice in in_force:
        accuracy = accuracies.get((advice.cluster, advice.group))
        if accuracy is None:
            continue
        for horizon_seconds, ratio in accuracy.error_ratio.items():
            errors.add_metric((*_labels(advice), str(horizon_seconds)), ratio)
        for family, known in ((skills, accuracy.skill_ratio), (coverages, accuracy.coverage_ratio)):
            if known is not None:
                family.add_metric(_labels(advice), known)
    return errors, skills, coverages


def _costs(in_force: Iterable[Recommendation]) -> Metric:
    family = _family(
        "cost_per_hour", "Expected price of an hour of the advice, and of staying.", "plan", "component", "currency"
    )
    for advice in in_force:
        hours = advice.horizon_seconds / SECONDS_PER_HOUR
        for plan, cost in (("chosen", advice.chosen), ("stay", advice.stay)):
            for component, price in asdict(cost).items():
                family.add_metric((*_labels(advice), plan, component, advice.currency), price / hours)
    return family


def _oddities(in_force: Iterable[Recommendation]) -> Metric:
    family = _family(
        "data_quality_samples", "Samples of the last 15 minutes that are not counted as load, by kind.", "kind"
    )
    for advice in in_force:
        for kind, count in advice.data_counts:
            family.add_metric((*_labels(advice), kind), count)
    return family


def _due(in_force: Iterable[Recommendation], now: datetime) -> Metric:
    family = _family("due_replicas", "Replicas that the group should have at this instant.")
    for advice in in_force:
        family.add_metric(_labels(advice), advice.due_replicas(now=now))
    return family


def _lag_seconds(in_force: Iterable[Recommendation]) -> Metric:
    family = _family("lag_seconds", "Lag of the group in seconds.")
    for advice in in_force:
        if advice.observed.lag_seconds is not None:
            family.add_metric(_labels(advice), advice.observed.lag_seconds)
    return family


def _ledgers(in_force: Iterable[Recommendation]) -> Iterable[Metric]:
    costs = _family(
        "ledger_cost",
        "Cost of the last 24 hours by item, of what was paid (scaler paid) and of each scaler's simulation.",
        "scaler",
        "item",
    )
    errors = _family("ledger_error_ratio", "Simulated cost of the group as it was, over what was paid.")
    savings = _family(
        "saving_per_hour",
        "What each scaler would have cost beyond what was paid, by the hour; below 0 where it would have cost less.",
        "against",
        "currency",
    )
    regrets = _family(
        "regret_per_hour", "Paid beyond the cheapest distinguishable scaler, an hour of the last 24.", "currency"
    )
    for advice in in_force:
        if advice.ledger is None:
            continue
        hours = (advice.issued_at - advice.ledger.since_at).total_seconds() / SECONDS_PER_HOUR
        if hours > 0.0:
            currency = advice.ledger.currency
            regrets.add_metric((*_labels(advice), currency), advice.ledger.regret / hours)
            for account in advice.ledger.accounts:
                saving = advice.ledger.saving_against(account) / hours
                savings.add_metric((*_labels(advice), account.scaler, currency), saving)
        for account in (advice.ledger.paid, *advice.ledger.accounts):
            costs.add_metric((*_labels(advice), account.scaler, "replicas"), account.replicas)
            costs.add_metric((*_labels(advice), account.scaler, "late"), account.late)
        if advice.ledger.error_ratio is not None:
            errors.add_metric(_labels(advice), advice.ledger.error_ratio)
    return costs, errors, savings, regrets


def _current(decisions: Iterable[Decision], in_force: Iterable[Recommendation]) -> Metric:
    family = _family("current_replicas", "Replicas that the group has.")
    for advice in in_force:
        family.add_metric(_labels(advice), advice.current_replicas)
    for refusal in decisions:
        if isinstance(refusal, Refusal) and refusal.hold_replicas is not None:
            family.add_metric(_labels(refusal), refusal.hold_replicas)
    return family


def _refusals(decisions: Iterable[Decision]) -> Metric:
    family = _family("refusal", "1 for the reason why no advice is given, 0 for every other one.", "reason")
    for decision in decisions:
        refused_for = decision.reason if isinstance(decision, Refusal) else None
        for reason in _REASONS:
            family.add_metric((*_labels(decision), wire_code(reason)), float(reason == refused_for))
    return family


def _family(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"lagcast_{name}", meaning, labels=(*_GROUP_LABELS, *labels))


def _labels(decision: Decision) -> tuple[str, str]:
    return decision.cluster, decision.group
