"""What the routes answer, as functions of the store and an instant; no HTTP in here."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from api import schemas as wire
from api.convert import (
    group_key,
    group_of_key,
    instant_of_cursor,
    outcome_cursor,
    to_learned,
    to_outcome,
    to_summary,
    to_wire,
)
from api.problems import NotFoundError
from recommender.adapters.metrics import Metrics
from recommender.ports import AdapterError, DecisionStore
from recommender.recommendation import Decision
from recommender.settings import GroupSettings, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The store as the wire shows it; it blocks, so the routes call it in a thread."""

    store: DecisionStore
    clock: Callable[[], datetime]
    metrics: Metrics
    settings: Settings | None

    def page(self, *, cluster: str | None, group: str | None, cursor: str | None, limit: int) -> wire.GroupPage:
        """The `limit` groups behind `cursor`; work grows with the page, not with the number of groups."""
        after = group_of_key(cursor) if cursor is not None else None
        now = self.clock()
        # One more than asked tells whether a next page exists.
        decisions = self.store.latest_page(cluster=cluster, group=group, after=after, limit=limit + 1)
        shown = decisions[:limit]
        return wire.GroupPage(
            groups=tuple(to_summary(d, self._settings_of(d), now=now) for d in shown),
            next=group_key(shown[-1].cluster, shown[-1].group) if len(decisions) > limit else None,
        )

    def group(self, key: str) -> wire.Group:
        """Identity and latest decision of the group called `key`."""
        decision = self._latest(key)
        return wire.Group(
            group_key=key, cluster=decision.cluster, group_id=decision.group, latest=self._as_wire(decision)
        )

    def recommendation(self, key: str) -> wire.DecisionV1:
        """What was last decided for the group called `key`."""
        return self._as_wire(self._latest(key))

    def outcomes(self, key: str, *, cursor: str | None, limit: int) -> wire.OutcomePage:
        """The `limit` graded moves behind `cursor` of the group called `key`, and what moves have taught."""
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
            next=outcome_cursor(shown[-1].graded_at) if len(moves) > limit else None,
        )

    def by_id(self, decision_id: str) -> wire.DecisionV1:
        """The decision of this id."""
        decision = self.store.by_id(decision_id)
        if decision is None:
            message = (
                f"no recommendation or refusal has the id '{decision_id}'; GET /api/v1/groups shows the latest ids"
            )
            raise NotFoundError(message)
        return self._as_wire(decision)

    def readiness(self) -> tuple[tuple[str, str | None], ...]:
        """The checks by name, each with what is wrong, or None."""
        try:
            decided = self.store.latest_page(limit=1)
        except AdapterError as error:
            return ("store", str(error)), ("first_cycle", "not known while the store does not answer")
        waiting = None if decided else "no decision has been made yet; are samples collected and features computed?"
        return ("store", None), ("first_cycle", waiting)

    def _latest(self, key: str) -> Decision:
        cluster, group = group_of_key(key)
        decision = self.store.latest(cluster, group)
        if decision is None:
            missing = f"nothing was decided for group '{group}' of cluster '{cluster}' yet"
            message = f"{missing}; GET /api/v1/groups lists the known groups"
            raise NotFoundError(message)
        return decision

    def _as_wire(self, decision: Decision) -> wire.DecisionV1:
        return to_wire(decision, self._settings_of(decision), now=self.clock())

    def _settings_of(self, decision: Decision) -> GroupSettings:
        return self.settings.group(decision.group) if self.settings is not None else GroupSettings()
