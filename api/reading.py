"""Answers of the routes, as functions of the store and an instant, without HTTP."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

import structlog

from api import schemas as wire
from api.convert import (
    cursor_of_instant,
    cursor_of_place,
    group_of_cursor,
    instant_of_cursor,
    place_of_cursor,
    to_explanation,
    to_fleet_total,
    to_hold,
    to_learned,
    to_ledger,
    to_ledger_total,
    to_outcome,
    to_partitions,
    to_summary,
    to_what_if,
    to_wire,
)
from api.keys import group_key, group_of_key
from api.problems import NoAdviceError, NotFoundError, UndecidedError, UnfitError
from api.series import to_day, to_series
from api.wording import without_addresses
from forecasting.forecast import Forecast
from forecasting.refusal import Refusal
from recommender.adapters.metrics import Metrics
from recommender.configuring.settings import GroupSettings, InForce
from recommender.configuring.settings_check import invalid_bounds, invalid_decision
from recommender.deciding.recommendation import Decision, Recommendation, due_replicas
from recommender.deciding.what_if import Changes, changed, what_if
from recommender.known_groups import Decided, KnownGroups
from recommender.ledger_totals import ledger_of, totals
from recommender.outlook import Outlook, fitted_to, hour_ahead, outlook, week_ahead
from recommender.past_day import hourly_rates
from recommender.ports import (
    AdapterError,
    DecisionStore,
    FleetTotal,
    LongForecasts,
    PartitionSamples,
    issued_at,
    place_of,
)

# Most points that a chart can show; a week in minutes would be five times as many.
POINTS_LIMIT = 2000
_GROUPS_AT_ONCE = 500
DAY = timedelta(days=1)
# The checks of a service whose store has just given a decision.
READY: tuple[tuple[str, str | None], ...] = (("store", None), ("first_cycle", None))
_log = structlog.get_logger()

_Some = TypeVar("_Some", bound=Decision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads the store into messages of the wire; it blocks, so the routes call it in a thread."""

    store: DecisionStore
    clock: Callable[[], datetime]
    metrics: Metrics
    settings: InForce | None
    long_forecasts: LongForecasts | None
    known_groups: KnownGroups
    partition_samples: PartitionSamples | None = None

    def page(
        self, *, cluster: str | None, group: str | None, cursor: str | None, limit: int, worst_first: bool = False
    ) -> wire.GroupPage:
        """The `limit` groups after `cursor`; work grows with the page, not with the number of groups."""
        read = self._worst_page if worst_first else self._latest_page
        shown, following = read(cluster=cluster, group=group, cursor=cursor, limit=limit)
        return self._summed_up(shown, following)

    def worst_with_totals(
        self, *, cluster: str | None, group: str | None, cursor: str | None, limit: int
    ) -> tuple[wire.GroupPage, dict[str, wire.GroupLedger], wire.Fleet]:
        """The worst `limit` groups after `cursor`, the ledgers that their advice has by group key, and the totals."""
        after = place_of_cursor(cursor) if cursor is not None else None
        decisions, totals = self.store.worst_page_with_totals(
            cluster=cluster, group=group, after=after, limit=limit + 1, now=self.clock()
        )
        shown, following = _up_to(limit, decisions)
        ledgers = ((group_key(d.cluster, d.group), _ledger_in(d)) for d in shown)
        by_key = {key: ledger for key, ledger in ledgers if ledger is not None}
        return self._summed_up(shown, following), by_key, _fleet(cluster, totals)

    def fleet(self, *, cluster: str | None) -> wire.Fleet:
        """All groups of this cluster (None: of any) together, without reading a document of them."""
        return _fleet(cluster, self.store.fleet_totals(cluster=cluster, now=self.clock()))

    def _summed_up(self, shown: Sequence[Decision], following: str | None) -> wire.GroupPage:
        now = self.clock()
        groups = tuple(to_summary(each, self._settings_of(each), now=now) for each in shown)
        return wire.GroupPage(groups=groups, next=following)

    def decisions(self, *, cursor: str | None, limit: int) -> tuple[tuple[wire.DecisionV1, ...], str | None]:
        """The last decisions on the `limit` groups after `cursor`, in full, and the cursor of the page behind."""
        shown, following = self._latest_page(cluster=None, group=None, cursor=cursor, limit=limit)
        return tuple(map(self._as_wire, shown)), following

    def _latest_page(
        self, *, cluster: str | None, group: str | None, cursor: str | None, limit: int
    ) -> tuple[tuple[Decision, ...], str | None]:
        """The last decisions on the `limit` groups after `cursor`, and the cursor of the page behind."""
        after = group_of_cursor(cursor) if cursor is not None else None
        # One more than requested shows whether a next page exists.
        decisions = self.store.latest_page(cluster=cluster, group=group, after=after, limit=limit + 1)
        shown = decisions[:limit]
        return shown, group_key(shown[-1].cluster, shown[-1].group) if len(decisions) > limit else None

    def _worst_page(
        self, *, cluster: str | None, group: str | None, cursor: str | None, limit: int
    ) -> tuple[tuple[Decision, ...], str | None]:
        """The last decisions on the worst `limit` groups after `cursor`, and the cursor of the page behind."""
        after = place_of_cursor(cursor) if cursor is not None else None
        return _up_to(limit, self.store.worst_page(cluster=cluster, group=group, after=after, limit=limit + 1))

    def group(self, key: str) -> wire.Group:
        """Identity and latest decision of the group with this key."""
        decision = self._latest(key)
        return wire.Group(
            group_key=key, cluster=decision.cluster, group_id=decision.group, latest=self._as_wire(decision)
        )

    def recommendation(self, key: str) -> wire.DecisionV1:
        """The latest decision for the group with this key."""
        return self._as_wire(self._latest(key))

    def due_replicas(self, key: str) -> wire.DueReplicas:
        """The replicas that the group with this key should have now."""
        found = due_replicas(self._latest(key), now=self.clock())
        if isinstance(found, str):
            raise NoAdviceError(found)
        return wire.DueReplicas(value=found)

    def recommendations(
        self, key: str, *, since: datetime | None, until: datetime | None, cursor: str | None, limit: int
    ) -> wire.DecisionPage:
        """The `limit` decisions after `cursor` on the group with this key, newest first, of the last day by default."""
        latest, now = self._latest(key), self.clock()
        # Advice of this instant belongs to the page.
        try:
            end = (until or now) + timedelta(microseconds=1) if cursor is None else instant_of_cursor(cursor)
            begin = since if since is not None else (until or now) - timedelta(days=1)
        except OverflowError as error:
            message = f"'to' is {(until or now).isoformat()}, at an end of the calendar; give 'from', or another 'to'"
            raise UnfitError(message) from error
        if begin >= end and cursor is None:
            message = f"'from' is {begin.isoformat()}, not before 'to', {(until or now).isoformat()}; exchange them"
            raise UnfitError(message)
        decisions = self.store.history(latest.cluster, latest.group, begin, end, limit=limit + 1)[::-1]
        shown = decisions[:limit]
        return wire.DecisionPage(
            group_key=key,
            cluster=latest.cluster,
            group_id=latest.group,
            decisions=tuple(to_summary(decision, self._settings_of(decision), now=now) for decision in shown),
            next=cursor_of_instant(issued_at(shown[-1])) if len(decisions) > limit else None,
        )

    def outcomes(self, key: str, *, cursor: str | None, limit: int) -> wire.OutcomePage:
        """The `limit` graded moves after `cursor` of the group with this key, and the learned figures."""
        latest = self._latest(key)
        cluster, group = latest.cluster, latest.group
        before = instant_of_cursor(cursor) if cursor is not None else None
        moves = self.store.outcomes(cluster, group, limit=limit + 1, before=before)
        advice, shown = self.store.latest_recommendation(cluster, group), moves[:limit]
        return wire.OutcomePage(
            group_key=key,
            cluster=cluster,
            group_id=group,
            learned=to_learned(advice.learned) if advice is not None else None,
            outcomes=tuple(to_outcome(move) for move in shown),
            next=cursor_of_instant(shown[-1].graded_at) if len(moves) > limit else None,
        )

    def ledger(self, key: str) -> wire.GroupLedger:
        """The ledger of the group with this key, from its last advice."""
        latest = self._latest(key)
        counted = _ledger_in(self.store.latest_recommendation(latest.cluster, latest.group))
        if counted is None:
            message = (
                f"nothing is counted for group '{latest.group}' of cluster '{latest.cluster}' yet; a ledger begins "
                "with the first row that shows members, produce rate and lag, once the capacity of a replica is known"
            )
            raise NotFoundError(message)
        return counted

    def day(self, key: str) -> wire.GroupDay:
        """The last 24 hours of the group with this key."""
        latest, now = self._latest(key), self.clock()
        cluster, group = latest.cluster, latest.group
        # What was decided at this instant belongs to the day.
        standings = self.store.standings(cluster, group, now - DAY, now + timedelta(microseconds=1))
        return to_day(key, cluster, group, self.known_groups.of((cluster, group)), standings, span=(now - DAY, now))

    def partitions(self, key: str) -> wire.GroupPartitions:
        """The partitions of the group with this key, as this process has read them last."""
        latest, now = self._latest(key), self.clock()
        cluster, group = latest.cluster, latest.group
        found = None if self.partition_samples is None else self.partition_samples.loads(cluster, group, until=now)
        if found is None:
            message = (
                f"the partitions of group '{group}' of cluster '{cluster}' are not known here: `lagcast up` reads "
                "them, and shows those of its last minutes"
            )
            raise NotFoundError(message)
        return to_partitions(key, latest, self.store.latest_recommendation(cluster, group), found, most=POINTS_LIMIT)

    def hourly_rates(self, key: str) -> tuple[tuple[datetime, float | None], ...]:
        """The mean produce rate of each hour that this process knows of the group with this key, four weeks at most."""
        known = self.known_groups.of(group_of_key(key))
        return () if known is None or known.history is None else hourly_rates(known.history.unpacked())

    def hourly_advice(self, key: str) -> tuple[wire.RecommendationV1, ...]:
        """The last advice of each hour of the last day, oldest first: what was expected of the hour after it."""
        latest, now = self._latest(key), self.clock()
        cluster, group = latest.cluster, latest.group
        first = (now - DAY).replace(minute=0, second=0, microsecond=0)
        ends = (first + timedelta(hours=hour) for hour in range(round(DAY / timedelta(hours=1)) + 1))
        hours = [(end - timedelta(hours=1), end) for end in ends if end < now]
        sent = map(self._as_wire, self.store.last_of_each(cluster, group, hours))
        return tuple(each for each in sent if isinstance(each, wire.RecommendationV1))

    def holds(self) -> wire.Holds:
        """The holds of the store that are in force."""
        standing = self.store.holds(now=self.clock())
        return wire.Holds(holds=tuple(to_hold(hold) for hold in standing))

    def fleet_ledger(self, *, cluster: str | None, namespace: str | None) -> wire.FleetLedger:
        """The ledgers of all groups of `cluster` and `namespace` (None: of every one) together."""
        now, known, ledgers = self.clock(), 0, []
        for decision in self._all_latest(cluster):
            if namespace is not None and namespace != self._namespace_of(decision):
                continue
            known += 1
            advice = (
                decision
                if isinstance(decision, Recommendation)
                else self.store.latest_recommendation(decision.cluster, decision.group)
            )
            ledger = ledger_of(advice, now=now)
            if ledger is not None:
                ledgers.append(ledger)
        if not known and (cluster, namespace) != (None, None):
            within = [f"{kind} '{name}'" for kind, name in (("cluster", cluster), ("namespace", namespace)) if name]
            message = f"no group of {' and '.join(within)} is known; the list of groups has the known ones"
            raise NotFoundError(message)
        return wire.FleetLedger(
            cluster=cluster,
            namespace=namespace,
            totals=tuple(to_ledger_total(total) for total in totals(ledgers)),
            groups_without_ledger=known - len(ledgers),
        )

    def _all_latest(self, cluster: str | None) -> Iterator[Decision]:
        """The last decision of each group, read by the page: a decision is 10 kB."""
        after: tuple[str, str] | None = None
        while page := self.store.latest_page(cluster=cluster, after=after, limit=_GROUPS_AT_ONCE):
            yield from page
            after = page[-1].cluster, page[-1].group

    def _namespace_of(self, decision: Decision) -> str | None:
        return None if self.settings is None else self.settings.namespace_of(decision.cluster, decision.group)

    def what_if(self, key: str, changes: wire.WhatIfChanges) -> wire.WhatIf:
        """The decision in force for the group with this key, made again with these changes."""
        named = changes.model_dump(exclude_none=True)
        if not named:
            message = f"nothing is to be changed; give one of {', '.join(wire.WhatIfChanges.model_fields)}"
            raise UnfitError(message)
        decided = self._decided(key)
        asked = changed(decided.inputs, Changes(**named))
        if failure := invalid_decision(asked.settings) or invalid_bounds(asked.profile):
            raise UnfitError(failure)
        return to_what_if(what_if(asked), decided.advice, changes=changes)

    def _decided(self, key: str) -> Decided:
        """The advice in force for the group with this key, as this process has made it."""
        latest, now = self._latest(key), self.clock()
        name = f"group '{latest.group}' of cluster '{latest.cluster}'"
        if isinstance(latest, Refusal):
            message = f"there is no advice for {name} to compare with: {_told(latest).sentence} {latest.remedy}"
            raise UndecidedError(message)
        known = self.known_groups.of((latest.cluster, latest.group))
        decided = None if known is None else known.decided
        if decided is None:
            message = (
                f"this process has not decided on {name}: its first cycle is not over, or another process decides on "
                "it; ask again after a cycle, or ask that one"
            )
            raise UndecidedError(message)
        if now > decided.advice.valid_until:
            expired = f"{decided.advice.valid_until:%Y-%m-%dT%H:%M:%SZ}"
            message = f"the advice for {name} expired at {expired}; ask again when there is a newer one"
            raise UndecidedError(message)
        return decided

    def forecast(
        self, key: str, *, since: datetime | None, until: datetime | None, step_seconds: int | None
    ) -> wire.ForecastSeries:
        """The forecast for the group with this key from `since` (None: now) to `until` (None: its end)."""
        cluster, group = group_of_key(key)
        now = self.clock()
        hour = hour_ahead(self.store.latest_recommendation(cluster, group), now=now)
        begins_at = now if isinstance(hour, str) else hour.begins_at
        ahead = outlook(hour, self._week(cluster, group, until=begins_at, now=now))
        if not isinstance(ahead, Outlook):
            message = f"nothing is forecast for group '{group}' of cluster '{cluster}'. {' '.join(ahead)}"
            raise NotFoundError(message)
        try:
            shown = fitted_to(
                ahead, since=since or now, until=until, step_seconds=step_seconds, most_points=POINTS_LIMIT
            )
        except ValueError as error:
            raise UnfitError(str(error)) from error
        if not shown.points:
            ends_at = ahead.parts[-1].ends_at
            message = (
                f"no step lies in that span; the forecast covers {ahead.begins_at.isoformat()} to {ends_at.isoformat()}"
            )
            raise NotFoundError(message)
        return to_series(key, cluster, group, shown)

    def _week(self, cluster: str, group: str, *, until: datetime, now: datetime) -> Forecast | str:
        """The long forecast that was known at `until`, or the reason why there is none."""
        if self.long_forecasts is None:
            return "The week ahead is not known: the service was started without --forecasts."
        try:
            return week_ahead(self.long_forecasts.newest(cluster, group, until=until), now=now)
        except AdapterError as error:
            _log.warning("long_forecast_not_read", error=str(error))
            return "The week ahead is not known: its file cannot be read; the log has the reason."  # the hour still is

    def by_id(self, decision_id: str) -> wire.DecisionV1:
        """The decision with this id."""
        return self._as_wire(self._kept(decision_id))

    def explanation(self, decision_id: str) -> wire.Explanation:
        """The decision with this id in sentences."""
        return to_explanation(_told(self._kept(decision_id)))

    def _kept(self, decision_id: str) -> Decision:
        decision = self.store.by_id(decision_id)
        if decision is None:
            message = f"no recommendation or refusal has the id '{decision_id}'; the list of groups has the latest ids"
            raise NotFoundError(message)
        return decision

    def readiness(self) -> tuple[tuple[str, str | None], ...]:
        """The checks by name, each with its error, or None."""
        try:
            decided = self.store.latest_page(limit=1)
        except AdapterError:
            return ("store", "it does not answer"), ("first_cycle", "not known while the store does not answer")
        if decided:
            return READY
        waiting = "no decision has been made yet; are samples collected and features computed?"
        return ("store", None), ("first_cycle", waiting)

    def _latest(self, key: str) -> Decision:
        cluster, group = group_of_key(key)
        decision = self.store.latest(cluster, group)
        if decision is None:
            missing = f"nothing was decided for group '{group}' of cluster '{cluster}' yet"
            message = f"{missing}; the list of groups has the known ones"
            raise NotFoundError(message)
        return decision

    def _as_wire(self, decision: Decision) -> wire.DecisionV1:
        return to_wire(_told(decision), self._settings_of(decision), now=self.clock())

    def _settings_of(self, decision: Decision) -> GroupSettings:
        return self.settings.of(decision.cluster, decision.group) if self.settings is not None else GroupSettings()


def _told(decision: _Some) -> _Some:
    """The decision as callers are told: the sentence of an outage may name the file or the server that is away."""
    if isinstance(decision, Refusal):
        return replace(decision, sentence=without_addresses(decision.sentence))
    return decision


def _up_to(limit: int, decisions: tuple[Decision, ...]) -> tuple[tuple[Decision, ...], str | None]:
    """The first `limit` of the worst decisions, and the cursor of the page behind, which one more shows to exist."""
    shown = decisions[:limit]
    return shown, cursor_of_place(place_of(shown[-1])) if len(decisions) > limit else None


def _fleet(cluster: str | None, totals: Sequence[FleetTotal]) -> wire.Fleet:
    return wire.Fleet(cluster=cluster, totals=tuple(map(to_fleet_total, totals)))


def _ledger_in(decision: Decision | None) -> wire.GroupLedger | None:
    """The ledger in a decision; a refusal has none, nor has advice before anything is counted."""
    if not isinstance(decision, Recommendation) or decision.ledger is None:
        return None
    return wire.GroupLedger(
        group_key=group_key(decision.cluster, decision.group),
        cluster=decision.cluster,
        group_id=decision.group,
        issued_at=decision.issued_at,
        ledger=to_ledger(decision.ledger),
    )
