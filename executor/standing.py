"""State of each workload from one look to the next, and over the executor's own end.

Beside the advice an executor needs two things: the count that it left a workload with, and whether somebody has taken
the workload from it. Both are kept where an owner looks, in the status of the group's ConsumerGroupScaler.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from typing import NamedTuple, Protocol

import structlog

from api.schemas import RecommendationV1, RefusalV1, Target
from executor.errors import OutsideError
from executor.plan import ConflictReason, Expected, Held, Scale

# Conflicts that last until the owner ends them; for the others the next look at the cluster shows the end.
_LASTING: tuple[ConflictReason, ...] = ("ChangedByOthers", "LimitedByCluster")

_log = structlog.get_logger()


class Spot(NamedTuple):
    """A group and the workload that runs it."""

    cluster: str
    group_id: str
    namespace: str
    api_version: str
    kind: str
    name: str

    @property
    def workload(self) -> str:
        """Kind and name."""
        return f"{self.kind}/{self.name}"

    @property
    def target(self) -> Target:
        """The workload as the wire has it."""
        return Target(api_version=self.api_version, kind=self.kind, name=self.name)


def spot_of(advice: RecommendationV1 | RefusalV1) -> Spot | None:
    """The workload of `advice`; None where none is known."""
    if advice.target is None or advice.namespace is None:
        return None
    target = advice.target
    return Spot(advice.cluster, advice.group_id, advice.namespace, target.api_version, target.kind, target.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The last count that an executor set: on which advice, and when."""

    recommendation_id: str
    replicas: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Somebody else has the count, since when, and what is known of it."""

    reason: ConflictReason
    message: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Record of an executor in one ConsumerGroupScaler, which it finds again by name and uid.

    `workload` is what it is about, as kind and name: an object may be given another target.
    """

    name: str
    uid: str
    workload: str | None = None
    applied: Applied | None = None
    conflict: Conflict | None = None


class Records(Protocol):
    """The object that keeps it."""

    def read(self, namespace: str) -> Mapping[tuple[str, str], Record]:
        """The ConsumerGroupScalers of a namespace by cluster and group. Errors: ScaleError."""
        ...

    def write(self, namespace: str, record: Record) -> None:
        """Keep what stands in `record`, and nothing else of an executor. Errors: ScaleError."""
        ...


@dataclass(slots=True)
class _Known:
    """State of one workload; `checked` is the advice on which it was last looked at without anything due."""

    expected: Expected | None = None
    applied: Applied | None = None
    conflict: Conflict | None = None
    checked: str | None = None


@dataclass(slots=True)
class Standings:
    """State of all workloads of one executor; thread-safe where each thread has its own groups.

    A group without a ConsumerGroupScaler is known for as long as the process runs. Errors of each method: ScaleError,
    where it cannot be read what was kept; without that nothing may be done.
    """

    records: Records
    _known: dict[Spot, _Known] = field(default_factory=dict)
    _kept: dict[str, dict[tuple[str, str], Record]] = field(default_factory=dict)
    _read_anew: set[str] = field(default_factory=set)
    _unwritten: set[Spot] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def begin(self) -> None:
        """A new look at all groups: objects that were made since the last one may be found."""
        self._read_anew.clear()

    def expected(self, spot: Spot) -> Expected | None:
        """The count that the workload was left with, by this executor or the one before it."""
        return self._of(spot).expected

    def lost(self, spot: Spot) -> Held | None:
        """The reason why a workload is left to others until its owner hands it over again; None where it is not."""
        known = self._of(spot).conflict
        if known is None or known.reason not in _LASTING:
            return None
        return Held(reason="conflicted", sentence=known.message, conflict=known.reason)

    def is_unchecked(self, spot: Spot, recommendation_id: str) -> bool:
        """True if nobody has looked at the workload since that advice came; the call counts as looking."""
        known = self._of(spot)
        before, known.checked = known.checked, recommendation_id
        return before != recommendation_id

    def found(self, spot: Spot, held: Held | None, scale: Scale, *, now: datetime) -> bool:
        """Take down how a workload stands; `held` says whether somebody else has the count. Whether that is news.

        The count that is there is what the next look expects, unless somebody has taken the workload away.
        """
        known = self._of(spot)
        reason = None if held is None else held.conflict
        if reason not in _LASTING and (known.expected is None or known.expected.replicas != scale.replicas):
            known.expected = Expected(replicas=scale.replicas, set_here=scale.is_ours)
        before = known.conflict
        if held is None or reason is None:
            known.conflict = None
        elif before is None or (before.reason, before.message) != (reason, held.sentence):
            known.conflict = Conflict(reason=reason, message=held.sentence, since=before.since if before else now)
        self._keep(spot, known)
        return known.conflict is not None and known.conflict != before

    def acted(self, spot: Spot, applied: Applied) -> None:
        """Take down what was set, nobody else having had the count then; `keep` is for the next executor."""
        known = self._of(spot)
        known.expected, known.applied = Expected(replicas=applied.replicas, set_here=True), applied
        known.conflict = None

    def keep(self, spot: Spot) -> None:
        """Write what is known of the workload where the next executor finds it."""
        self._keep(spot, self._of(spot))

    def keep_unwritten(self) -> None:
        """Try once more the writes that failed: the process may end next.

        What fails again ends it, for each failure of a cluster that is away may take ten seconds.
        """
        for spot in tuple(self._unwritten):
            self.keep(spot)
            if spot in self._unwritten:
                return

    def forget(self, spot: Spot) -> None:
        """The owner has handed the workload back: the record of its count and of its other writer is removed."""
        self._of(spot)
        self._known[spot] = _Known()
        self._keep(spot, self._known[spot])

    def _of(self, spot: Spot) -> _Known:
        if spot not in self._known:
            record = self._record(spot)
            known = _Known()
            if record is not None and record.workload == spot.workload:
                known.applied, known.conflict = record.applied, record.conflict
            if known.applied is not None:
                known.expected = Expected(replicas=known.applied.replicas, set_here=True)
            self._known[spot] = known
        return self._known[spot]

    def _record(self, spot: Spot, *, anew: bool = False) -> Record | None:
        """The group's object as it was when its namespace was read: once, and `anew` once in each look at all."""
        with self._lock:
            if anew and spot.namespace not in self._read_anew:
                self._read_anew.add(spot.namespace)
                self._kept.pop(spot.namespace, None)
            if spot.namespace not in self._kept:
                self._kept[spot.namespace] = dict(self.records.read(spot.namespace))
            return self._kept[spot.namespace].get((spot.cluster, spot.group_id))

    def _keep(self, spot: Spot, known: _Known) -> None:
        """Write what the group's object does not say yet; one that cannot be written is said, and tried again later."""
        self._unwritten.discard(spot)
        try:
            record = self._record(spot)
            if record is None and (known.applied or known.conflict):
                record = self._record(spot, anew=True)
            if record is None or (record.applied, record.conflict) == (known.applied, known.conflict):
                return
            record = replace(record, workload=spot.workload, applied=known.applied, conflict=known.conflict)
            self.records.write(spot.namespace, record)
            with self._lock:
                if spot.namespace in self._kept:
                    self._kept[spot.namespace][spot.cluster, spot.group_id] = record
        except OutsideError as error:
            # The object may be gone, or be another one by now: the next time the namespace is read again.
            with self._lock:
                self._kept.pop(spot.namespace, None)
                self._unwritten.add(spot)
            _log.warning("unrecorded", cluster=spot.cluster, group_id=spot.group_id, error=str(error))
