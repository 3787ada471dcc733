"""State of each workload from one look to the next, and over a restart of the executor.

Beside the advice an executor needs two things: the count that it left a workload with, and whether another owner scales
the workload. Both are kept in the status of the group's ConsumerGroupScaler, where its owner can read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from typing import NamedTuple, Protocol

import structlog

from api.schemas import Target
from executor.claim import Claim
from executor.errors import OutsideError, ScaleError
from executor.plan import ConflictReason, Expected, Held, Scale

# Conflicts that last until the owner ends them; the others end when a look at the cluster no longer shows them.
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
        """The workload as a type of the wire."""
        return Target(api_version=self.api_version, kind=self.kind, name=self.name)


def spot_of(claim: Claim) -> Spot | None:
    """The workload that an owner hands over; None if the object names none."""
    target = claim.target
    if target is None:
        return None
    return Spot(*claim.group, claim.namespace, target.api_version, target.kind, target.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The last count that an executor set, its advice, and its time."""

    recommendation_id: str
    replicas: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Another owner of the count: the reason, the message, and since when."""

    reason: ConflictReason
    message: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Record of an executor in one ConsumerGroupScaler, which is identified by name and uid.

    `workload` is the workload of the record, as kind and name: the target of an object may change.
    """

    name: str
    uid: str
    workload: str | None = None
    applied: Applied | None = None
    conflict: Conflict | None = None


class Records(Protocol):
    """The store of the records."""

    def read(self, namespace: str) -> Mapping[tuple[str, str], Record | ScaleError]:
        """The records of a namespace by cluster and group, or the error of one. Errors: ScaleError."""
        ...

    def write(self, namespace: str, record: Record) -> None:
        """Store `record` in place of the executor's earlier record. Errors: ScaleError."""
        ...


@dataclass(slots=True)
class _Known:
    """State of one workload; `checked` is the advice on which it was last read without a due move."""

    expected: Expected | None = None
    applied: Applied | None = None
    conflict: Conflict | None = None
    checked: str | None = None


@dataclass(slots=True)
class Standings:
    """State of all workloads of one executor; thread-safe where each thread has its own groups.

    For a group without a ConsumerGroupScaler the state is kept as long as the process runs. Errors of each method:
    ScaleError if the stored record cannot be read; without it nothing may be done.
    """

    records: Records
    _known: dict[Spot, _Known] = field(default_factory=dict)
    _kept: dict[str, dict[tuple[str, str], Record | ScaleError]] = field(default_factory=dict)
    _read_anew: set[str] = field(default_factory=set)
    _unwritten: set[Spot] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def begin(self) -> None:
        """Begin a look at all groups, which finds objects that were created since the last one."""
        self._read_anew.clear()
        # A record that could not be read may have been mended.
        self._kept = {
            namespace: records
            for namespace, records in self._kept.items()
            if not any(isinstance(record, ScaleError) for record in records.values())
        }

    def expected(self, spot: Spot) -> Expected | None:
        """The count that the workload was left with, by this executor or the one before it."""
        return self._of(spot).expected

    def lost(self, spot: Spot) -> Held | None:
        """The reason why a workload is left alone until its owner hands it over again; None if it is not."""
        known = self._of(spot).conflict
        if known is None or known.reason not in _LASTING:
            return None
        return Held(reason="conflicted", sentence=known.message, conflict=known.reason)

    def is_unchecked(self, spot: Spot, recommendation_id: str) -> bool:
        """True if the workload was not read since this advice came; the call itself counts as a read."""
        known = self._of(spot)
        before, known.checked = known.checked, recommendation_id
        return before != recommendation_id

    def found(self, spot: Spot, held: Held | None, scale: Scale, *, now: datetime) -> bool:
        """Record the state of a workload; `held` has another owner of the count. Returns true if a conflict is new.

        The next look expects the present count, unless the workload is left to another owner.
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
        """Note the count that was set, without a conflict; `keep` stores it for the next executor."""
        known = self._of(spot)
        known.expected, known.applied = Expected(replicas=applied.replicas, set_here=True), applied
        known.conflict = None

    def keep(self, spot: Spot) -> None:
        """Store the state of the workload for the next executor."""
        self._keep(spot, self._of(spot))

    def keep_unwritten(self) -> None:
        """Retry the failed writes once, before the process ends.

        The first write that fails again stops the retries: each failure of an unreachable cluster may take ten seconds.
        """
        for spot in tuple(self._unwritten):
            self.keep(spot)
            if spot in self._unwritten:
                return

    def forget(self, spot: Spot) -> None:
        """Remove the record of the count and of its other owner, because the owner has handed the workload back."""
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
        """The group's record as of the last read of its namespace: one read, and with `anew` one more per look."""
        with self._lock:
            if anew and spot.namespace not in self._read_anew:
                self._read_anew.add(spot.namespace)
                self._kept.pop(spot.namespace, None)
            if spot.namespace not in self._kept:
                self._kept[spot.namespace] = dict(self.records.read(spot.namespace))
            found = self._kept[spot.namespace].get((spot.cluster, spot.group_id))
        if isinstance(found, ScaleError):
            raise found
        return found

    def _keep(self, spot: Spot, known: _Known) -> None:
        """Write the record if it has changed; a failed write is logged, and retried later."""
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
            # The object may be deleted or replaced by now: the next time the namespace is read again.
            with self._lock:
                self._kept.pop(spot.namespace, None)
                self._unwritten.add(spot)
            _log.warning("state_not_recorded", cluster=spot.cluster, group_id=spot.group_id, error=str(error))
