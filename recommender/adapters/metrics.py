"""The Prometheus page: the last decision of each group in the store, and what this process has counted."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, generate_latest

from recommender.adapters.advice_metrics import GROUP_LABELS, Family, Shown, parts_of_page, shown
from recommender.borders import Unit
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.forecast_accuracy import ForecastAccuracy
from recommender.ports import DecisionStore, Group, wire_code
from recommender.steps import Step

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LEADER = Family("leader", "1 for the recommender that may publish, else 0.")
# Every group is decided in each cycle, of an hour at most; one that is gone is no longer shown.
_GONE_AFTER = timedelta(hours=2)
# More decisions that were not published here are read in one query with all others: 15,000 take a second.
_READ_ALONE = 100
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
        owns: Callable[[str, str], bool] = lambda *_: True,
    ) -> None:
        """`leads` is given where several recommenders share a lease: standbys show only their counters.

        `owns` is false for the groups that another recommender decides, and shows.
        """
        self.registry = CollectorRegistry()
        self._accuracies: dict[Group, ForecastAccuracy] = defaultdict(ForecastAccuracy)
        self._latest = _LatestDecisions(store, clock, leads, owns)
        self._decisions = Counter(
            "lagcast_decisions",
            "Decisions published, refusals included.",
            ("action", "reason"),
            registry=self.registry,
        )
        self._interruptions = Counter(
            "lagcast_interruptions",
            "Times that partitions of a group were seen to stop, by kind: rebalance, restart or stall.",
            (*GROUP_LABELS, "kind"),
            registry=self.registry,
        )
        self._pauses = Histogram(
            "lagcast_rebalance_pause_seconds",
            "How long partitions stopped, the mean of those that did, for each interruption in which any was seen to.",
            (*GROUP_LABELS, "kind"),
            buckets=_PAUSE_BUCKETS,
            registry=self.registry,
        )
        self._repeated = Counter(
            "lagcast_duplicate_messages",
            "Messages that a group has done again: those seen to be (least), and those that may have been (most).",
            (*GROUP_LABELS, "bound"),
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
            "The time of each step of a cycle, all groups together: read, forecast, decide, store, publish, catch up.",
            ("step",),
            buckets=_STEP_BUCKETS,
            registry=self.registry,
        )
        Info("lagcast_build", "The running version.", registry=self.registry).info({"version": version})

    def publish(self, decision: Decision) -> None:
        """Count `decision`, judge forecasts by what it observed, and make its part of the page."""
        accuracy = None
        if isinstance(decision, Recommendation):
            accuracy = self._accuracies[decision.cluster, decision.group]
            accuracy.add(decision)
        self._latest.keep(decision, accuracy)
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
        return b"".join([*self._latest.parts_of_page(), generate_latest(self.registry)])


class _LatestDecisions:
    """The last decision of each group: its lines, kept from when it was published, and read where it was not."""

    def __init__(
        self,
        store: DecisionStore,
        clock: Callable[[], datetime],
        leads: Callable[[], bool] | None,
        owns: Callable[[str, str], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._owns = owns
        self._known: dict[Group, Shown] = {}
        # When the newest row was that advice was based on, the last before a refusal too; None: there never was any.
        self._as_of: dict[Group, datetime | None] = {}

    def keep(self, decision: Decision, accuracy: ForecastAccuracy | None) -> None:
        """Make the lines of a decision."""
        made = shown(decision, accuracy)
        self._known[made.group] = made
        if made.as_of is not None:
            self._as_of[made.group] = made.as_of

    def parts_of_page(self) -> list[bytes]:
        """Who leads, and the samples of all groups that were decided lately. Errors: those of the store."""
        if self._leads is None:
            return self._decided()
        decided = self._decided()
        # Checked after the store was read, because reading takes time.
        leads = self._leads()
        leader = f"{LEADER.head}{LEADER.full_name} {float(leads)}\n".encode()
        return [leader, *decided] if leads else [leader]

    def _decided(self) -> list[bytes]:
        now = self._clock()
        newest = {group: name for group, name in self._store.newest_ids().items() if self._owns(*group)}
        self._read(newest)
        self._forget_all_but(newest)
        lately = [
            each
            for group in newest
            if (each := self._known.get(group)) is not None and each.issued_at >= now - _GONE_AFTER
        ]
        return parts_of_page(lately, list(self._ages(lately, now)), now=now)

    def _read(self, newest: Mapping[Group, str]) -> None:
        """Read the decisions that were not published here: after a start, or made by another process."""
        unknown = [
            group
            for group, name in newest.items()
            if (known := self._known.get(group)) is None or known.decision_id != name
        ]
        if len(unknown) > _READ_ALONE:
            read = list(self._store.latest_page())
        else:
            read = [each for of, name in unknown for each in self._store.latest_page(cluster=of, group=name)]
        missing = set(unknown)
        for decision in read:
            group = decision.cluster, decision.group
            if group not in missing:
                continue
            # Its id in the store: a refusal in place of a document that cannot be read has another.
            self._known[group] = replace(shown(decision, None), decision_id=newest[group])
            if isinstance(decision, Recommendation):
                self._as_of[group] = decision.observed.as_of

    def _forget_all_but(self, groups: Mapping[Group, str]) -> None:
        # A copy: the loop publishes meanwhile.
        for group in [each for each in tuple(self._known) if each not in groups]:
            self._known.pop(group, None)
            self._as_of.pop(group, None)

    def _ages(self, lately: Sequence[Shown], now: datetime) -> Iterator[tuple[Shown, float]]:
        unknown = [each.group for each in lately if each.group not in self._as_of]
        if len(unknown) > _READ_ALONE:  # a fleet that was refused before this process began
            self._as_of |= dict.fromkeys(unknown)
            advised = self._store.recommendations_before_refusals()
            self._as_of |= {(each.cluster, each.group): each.observed.as_of for each in advised}
        for each in lately:
            if each.group not in self._as_of:
                advice = self._store.latest_recommendation(*each.group)
                self._as_of[each.group] = None if advice is None else advice.observed.as_of
            as_of = self._as_of[each.group]
            if as_of is not None:
                yield each, (now - as_of).total_seconds()
