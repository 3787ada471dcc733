"""Exchange between objects and decisions once a cycle: requests of objects come in, decisions go out."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import structlog

from recommender.borders import Borders
from recommender.cluster.leadership import Fence, NotLeadingError
from recommender.cluster.scaler import Document, GroupRequest, ScalerRequests, group_of, place_of, standing
from recommender.cluster.scaler_status import Status, Transition, is_news, rejected_status, status_of, transition
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import GroupSettings, Settings
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Decision
from recommender.ports import AdapterError, Group, Obstacle, UnavailableError

_REMEDY = "Correct the ConsumerGroupScaler, or remove it: the settings apply then."
_HELD_REMEDY = "Remove hold from the ConsumerGroupScaler to have advice again."
_NO_ROWS = "No offsets of this group have been seen yet."
_NO_ROWS_REMEDY = "Check cluster and groupId of the ConsumerGroupScaler, and that the collector may read the group."
# The cluster does not answer, or another recommender leads.
_NO_FAULT_OF_AN_OBJECT = (UnavailableError, NotLeadingError)

_log = structlog.get_logger()


class ScalerObjects(Protocol):
    """The ConsumerGroupScalers of a cluster, as they are known now. Errors: those of `recommender.ports`."""

    def documents(self) -> Sequence[Document]:
        """All of them; a call costs nothing."""
        ...

    def write_status(self, document: Document, status: Status) -> None:
        """Set the status of an object, unless it is another one by now."""
        ...

    def record_event(self, document: Document, event: Transition, *, now: datetime) -> None:
        """Let those who look at the object know of a change."""
        ...

    def create(self, document: Document) -> bool:
        """Create an object; False if its name is taken."""
        ...


class FencedObjects:
    """`ScalerObjects` that are written behind a fence. Errors: NotLeadingError, and those of the objects."""

    def __init__(self, objects: ScalerObjects, fence: Fence) -> None:
        self._objects, self._fence = objects, fence

    def documents(self) -> Sequence[Document]:
        """All of them, whichever recommender leads."""
        return self._objects.documents()

    def write_status(self, document: Document, status: Status) -> None:
        """Set the status of an object."""
        self._fence.check()
        self._objects.write_status(document, status)

    def record_event(self, document: Document, event: Transition, *, now: datetime) -> None:
        """Let those who look at the object know of a change."""
        self._fence.check()
        self._objects.record_event(document, event, now=now)

    def create(self, document: Document) -> bool:
        """Create an object; False if its name is taken."""
        self._fence.check()
        return self._objects.create(document)


@dataclass(slots=True, kw_only=True)
class Scalers:
    """The settings, with those of the objects of a cluster laid over them.

    `look` reads the objects anew; between two looks all answers are of one moment, for callers in any thread. Objects
    of groups that this recommender does not own count for conflicts and answers, and are never written.
    """

    objects: ScalerObjects
    settings: Settings
    tenants: Tenants
    owns: Callable[[str, str], bool] = lambda *_: True
    borders: Borders = field(default_factory=Borders)
    _standing: ScalerRequests = field(default_factory=lambda: ScalerRequests(requests={}, invalid={}))
    _failing: bool = False
    _events_failing: bool = False

    @property
    def decision(self) -> DecisionSettings:
        """Settings of decisions where no object has its own."""
        return self.settings.decision

    def of(self, cluster: str, group: str) -> GroupSettings:
        """Settings of a group."""
        request = self._standing.requests.get((cluster, group))
        return self.settings.of(cluster, group) if request is None else request.group

    def decision_of(self, cluster: str, group: str) -> DecisionSettings:
        """Settings of decisions on a group."""
        request = self._standing.requests.get((cluster, group))
        return self.settings.decision_of(cluster, group) if request is None else request.decision

    def namespace_of(self, cluster: str, group: str) -> str | None:
        """The namespace of the workload that runs a group by the settings, else of the group's object."""
        request = self._standing.requests.get((cluster, group))
        below = self.settings.namespace_of(cluster, group)
        return request.scaler.namespace if below is None and request is not None else below

    def rightful(self) -> Sequence[Document]:
        """The objects now, without those that the last look has found to claim a group of another namespace."""
        refused = {place for place, invalid in self._standing.invalid.items() if invalid.reason == "NotGranted"}
        return [document for document in self.objects.documents() if place_of(document) not in refused]

    def look(self, observed: Collection[Group], *, now: datetime) -> Mapping[Group, Obstacle]:
        """Read the objects anew; the groups without advice: not valid, held, or not among the `observed`."""
        self._standing = standing(self.settings, self.objects.documents(), self.tenants.objection)
        bad = {
            invalid.group: Obstacle(
                "conflicted" if invalid.reason == "Conflicted" else "config_invalid", invalid.sentence, _REMEDY
            )
            for invalid in self._standing.invalid.values()
            if invalid.group is not None
        }
        unseen = {
            group: Obstacle("no_data", _NO_ROWS, _NO_ROWS_REMEDY)
            for group, request in self._standing.requests.items()
            if group not in observed and request.group.mode != "off"
        }
        held = {
            group: Obstacle("paused", request.scaler.hold.sentence, _HELD_REMEDY, request.scaler.hold.replicas)
            for group, request in self._standing.requests.items()
            if request.scaler.hold is not None and request.scaler.hold.holds(now) and request.group.mode != "off"
        }
        return unseen | held | bad

    def report(self, decisions: Sequence[Decision], *, now: datetime) -> int:
        """Write the decision to each object where it has changed; how many statuses were written.

        An object that cannot be written is a failure of its own, and the rest go on; a cluster that does not answer is
        left alone until the next cycle, and logged when that begins and when it is over.
        """
        newest = {(decision.cluster, decision.group): decision for decision in decisions}
        followed = {
            (request.scaler.namespace, request.scaler.name): request for request in self._standing.requests.values()
        }
        written = 0
        for document in self.objects.documents():
            # One without a group, which no schema lets in, is told by one shard too.
            if not self.owns(*(group_of(document) or place_of(document))):
                continue
            try:
                with self.borders.around(
                    "object", "/".join(place_of(document)), expected=(AdapterError,), passing=_NO_FAULT_OF_AN_OBJECT
                ):
                    written += self._visit(document, followed, newest, now=now)
            except UnavailableError as error:
                if not self._failing:
                    _log.warning("reporting_failed", error=str(error))
                self._failing = True
                return written
        if self._failing and written:
            _log.info("reporting_resumed")
            self._failing = False
        return written

    def _visit(
        self,
        document: Document,
        followed: Mapping[tuple[str, str], GroupRequest],
        newest: Mapping[Group, Decision],
        *,
        now: datetime,
    ) -> bool:
        status = self._status(document, followed, newest, now=now)
        before = document.get("status", {})
        if status is None or not is_news(before, status, now=now, cycle_seconds=self.decision.cycle_seconds):
            return False
        self.objects.write_status(document, status)
        event = transition(before, status)
        if event is not None:
            self._record_event(document, event, now=now)
        return True

    def _record_event(self, document: Document, event: Transition, *, now: datetime) -> None:
        try:
            self.objects.record_event(document, event, now=now)
            self._events_failing = False
        except AdapterError as error:  # the status has the reason
            if not self._events_failing:
                _log.warning("event_not_made", object="/".join(place_of(document)), error=str(error))
            self._events_failing = True

    def _status(
        self,
        document: Document,
        followed: Mapping[tuple[str, str], GroupRequest],
        newest: Mapping[Group, Decision],
        *,
        now: datetime,
    ) -> Status | None:
        place = place_of(document)
        if place in self._standing.invalid:
            return rejected_status(document, self._standing.invalid[place], now=now)
        request = followed.get(place)
        if request is None:  # it came since the look: its status is written in the next cycle
            return None
        return status_of(document, request, newest.get((request.scaler.cluster, request.scaler.group)), now=now)
