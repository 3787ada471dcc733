"""One group of a fleet that is decided on Spark: from its rows and what was kept of it to its decision.

    open_group    rows, kept        ->  what it teaches its kind, and itself as bytes    on a worker, for each group
    pooled        lessons of all    ->  what each kind begins from                       once
    decide_group  bytes, that prior ->  rows of FLEET_STATE                              on a worker, for each group
    refuse_group  what was kept     ->  rows of FLEET_STATE                              where workers die at the group

The loop itself decides, over a source with one group and a store in memory: it decides as it would among all others,
since groups share nothing but the lessons of their kind. Bytes are pickles, which workers of the same run alone read.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above

from cost_model.physics.pooling import pooled_by_kind
from cost_model.physics.similar import GroupKind, SimilarGroups
from forecasting.columns import FLEET_STATE
from forecasting.history import GroupInterval
from recommender.adapters.arrow_rows import condensed, rows_of
from recommender.adapters.documents import (
    from_document,
    from_outcome_document,
    kind,
    to_document,
    to_outcome_document,
)
from recommender.deciding.hold import Hold
from recommender.deciding.recommendation import Decision, GradedMove, Recommendation
from recommender.following.kept_account import kept_since
from recommender.obstacles import worker_died
from recommender.ports import (
    FORGOTTEN_AFTER,
    AccountPart,
    Condensed,
    Group,
    Histories,
    LoopStore,
    MalformedError,
    Obstacle,
    decision_id,
    issued_at,
)
from recommender.run import Recommender
from recommender.watched_groups import OUTCOMES_KEPT_IN_MIND, Pooling, Watched

DECISIONS, KEPT = "decisions", "kept"
# Kinds of rows in the table `kept`; those of `decisions` are the kinds of documents.
_GROUP, _ADVICE, _MOVE, _ACCOUNT = "group", "advice", "move", "account"
_AT = pa.timestamp("us", tz="UTC")
_SCHEMA = pa.schema([(column.name, _AT if column.kind == "timestamp" else pa.string()) for column in FLEET_STATE])

# What each kind of group begins from.
Prior = Mapping[GroupKind, SimilarGroups | None]


class MakeRecommender(Protocol):
    """The loop by the settings of this run, over these histories and this store."""

    def __call__(
        self,
        histories: Histories,
        store: LoopStore,
        *,
        pooling: Pooling,
        obstacles: Callable[[], Mapping[Group, Obstacle]] = dict,
    ) -> Recommender:
        """The loop, which refuses groups with such an obstacle."""
        ...


class KeptGroup:
    """A store of one group in memory: what was kept of it, what its next decision adds, and the holds in force.

    Where its advice or a move cannot be read, or `lost` tells why they may be lost, asking for the advice raises that:
    the group is refused. What cannot be read is not kept any longer, so that the next run begins without it.
    """

    def __init__(self, group: Group, rows: pa.Table, *, holds: tuple[Hold, ...], lost: str | None) -> None:
        self._group, self._holds = group, holds
        self._decided_at: datetime | None = None
        self._advice: Recommendation | None = None
        self._moves: dict[datetime, GradedMove] = {}
        self._account: dict[datetime, AccountPart] = {}
        self._unreadable = None if lost is None or rows.num_rows else MalformedError(lost)
        for row in rows.select(["kind", "at", "document"]).to_pylist():
            try:
                self._take(row["kind"], row["at"], row["document"])
            except MalformedError as error:
                self._unreadable = error

    def _take(self, kind_of_row: str, at: datetime, document: str) -> None:
        if kind_of_row == _GROUP:
            self._decided_at = at
        elif kind_of_row == _ADVICE:
            advice = from_document(Recommendation.__name__, document)
            self._advice = advice if isinstance(advice, Recommendation) else None
        elif kind_of_row == _MOVE:
            self._moves[at] = from_outcome_document(document)
        elif kind_of_row == _ACCOUNT:
            self._account[at] = AccountPart(*self._group, at, document)
        else:
            message = f"what was kept of a group has kind {kind_of_row!r}: was it written by a newer lagcast?"
            raise MalformedError(message)

    def save(self, decision: Decision, account: Sequence[AccountPart] = ()) -> None:
        """Keep advice in place of an earlier one, and these parts of the account."""
        to_document(decision)  # what no document can hold is refused before anything is kept, as by any other store
        self._account |= {part.began_at: part for part in account}
        if not isinstance(decision, Recommendation):
            return
        before = self._advice
        if before is None or (before.issued_at <= decision.issued_at and decision_id(before) != decision_id(decision)):
            self._advice = decision

    def save_all(self, decided: Sequence[tuple[Decision, Sequence[AccountPart]]]) -> None:
        """Keep each of them: in a run it is one."""
        for decision, account in decided:
            self.save(decision, account)

    def account(self, cluster: str, group: str, *, since: datetime) -> tuple[AccountPart, ...]:  # noqa: ARG002  # its own
        """The parts that began at `since` or later, oldest first."""
        return tuple(self._account[at] for at in sorted(self._account) if at >= since)

    def groups_with_account(self, *, since: datetime) -> frozenset[Group]:
        """Itself, if it has such a part."""
        return frozenset([self._group] if any(at >= since for at in self._account) else ())

    def latest_recommendation(self, cluster: str, group: str) -> Recommendation | None:  # noqa: ARG002  # its own
        """The advice issued last."""
        if self._unreadable is not None:
            raise self._unreadable
        return self._advice

    def keep_outcomes(self, moves: Sequence[GradedMove]) -> None:
        """Keep the moves; one with the same instant that is kept already stays."""
        for move in moves:
            self._moves.setdefault(move.graded_at, move)

    def outcomes(
        self,
        cluster: str,  # noqa: ARG002  # its own
        group: str,  # noqa: ARG002  # its own
        *,
        limit: int,
        before: datetime | None = None,
    ) -> tuple[GradedMove, ...]:
        """The last `limit` graded moves, newest first: all, or those graded earlier than `before`."""
        graded = sorted((at for at in self._moves if before is None or at < before), reverse=True)
        return tuple(self._moves[at] for at in graded[:limit])

    def holds(self, *, now: datetime) -> tuple[Hold, ...]:  # noqa: ARG002  # read at that instant
        """The holds in force."""
        return self._holds

    def thin(self, *, now: datetime) -> int:  # noqa: ARG002  # as above
        """Delete nothing: `rows` leaves out what is no longer needed."""
        return 0

    def rows(self, decision: Decision | None, *, now: datetime, is_listed: bool) -> pa.Table:
        """Its decision, and what the next one depends on, as rows of FLEET_STATE.

        A group that is gone is forgotten a quarter of a year after its last decision.
        """
        decided_at = now if is_listed else self._decided_at
        if decided_at is None or decided_at < now - FORGOTTEN_AFTER:
            return _SCHEMA.empty_table()
        rows = [] if decision is None else [(DECISIONS, kind(decision), issued_at(decision), to_document(decision))]
        rows.append((KEPT, _GROUP, decided_at, ""))
        if self._advice is not None:
            rows.append((KEPT, _ADVICE, self._advice.issued_at, to_document(self._advice)))
        newest = self.outcomes(*self._group, limit=OUTCOMES_KEPT_IN_MIND)
        rows += [(KEPT, _MOVE, move.graded_at, to_outcome_document(move)) for move in newest]
        account = self.account(*self._group, since=kept_since(now))
        rows += [(KEPT, _ACCOUNT, part.began_at, part.document) for part in account]
        cluster, group = self._group
        return pa.Table.from_pylist(
            [
                {"table": table, "cluster": cluster, "group": group, "kind": each, "at": at, "document": document}
                for table, each, at, document in rows
            ],
            schema=_SCHEMA,
        )


class _OneGroup:
    """The histories of one group alone; its rows are made when they are read, so that their errors are the group's."""

    def __init__(self, group: Group, rows: pa.Table | None) -> None:
        self._group, self._rows = group, rows

    def groups(self, *, now: datetime) -> tuple[Group, ...]:  # noqa: ARG002  # it is not gone
        return (self._group,)

    def intervals(
        self,
        cluster: str,  # noqa: ARG002  # its own
        group: str,  # noqa: ARG002  # its own
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[GroupInterval]:
        rows = self._between(since, until)
        return [] if rows is None else rows_of(rows)

    def intervals_in_turn(
        self, groups: Sequence[Group], *, since: datetime, until: datetime
    ) -> Iterator[tuple[Group, list[GroupInterval]]]:
        return ((each, self.intervals(*each, since=since, until=until)) for each in groups)

    def condensed_in_turns(
        self, groups: Sequence[Group], *, newest: timedelta, since: datetime, until: datetime
    ) -> Iterator[Sequence[tuple[Group, Condensed]]]:
        rows = self._between(since, until)
        for each in groups:
            past = Condensed(None, (), ()) if rows is None else condensed(rows, newest=newest)
            yield [(each, past)]

    def _between(self, since: datetime | None, until: datetime | None) -> pa.Table | None:
        """Its rows between these instants, in order of time."""
        if self._rows is None:
            return None
        rows, ends = self._rows, pc.field("interval_end_at")
        if since is not None:
            rows = rows.filter(ends > pa.scalar(since, _AT))
        if until is not None:
            rows = rows.filter(ends <= pa.scalar(until, _AT))
        return rows.sort_by("interval_end_at")


class _Opened(NamedTuple):
    """A group between both passes: `watched` where it is still to be decided, else its decision, if it got one."""

    group: Group
    store: KeptGroup
    is_listed: bool
    watched: Watched | None
    decision: Decision | None


class GroupWork(NamedTuple):
    """What workers of one run do for each group, decided at `now`. It is sent to them, with its settings."""

    make: MakeRecommender
    holds: tuple[Hold, ...]
    now: datetime

    def open_group(
        self, group: Group, rows: pa.Table, kept: pa.Table, *, is_listed: bool, lost: str | None
    ) -> tuple[bytes | None, bytes]:
        """What the group has learned from its own moves, None where it teaches nothing; and the group, opened.

        `rows` are its base rows until `now`, in any order; `kept` its rows of the table `kept`. A group that is not
        listed is gone, and stays as it was kept. `lost`: why what was kept of a group without rows may be lost.
        """
        store = KeptGroup(group, kept, holds=self.holds, lost=lost)
        if not is_listed:
            return None, pickle.dumps(_Opened(group, store, is_listed, None, None))
        loop = self.make(_OneGroup(group, rows), store, pooling=pooled_by_kind)
        try:
            watched = loop.watched.open(group, now=self.now)
        except Exception:  # noqa: BLE001  # the loop meets it again, and makes it the refusal of this group
            watched = None
        if watched is not None:
            return pickle.dumps(watched.lesson), pickle.dumps(_Opened(group, store, is_listed, watched, None))
        (decision,) = loop.run_once(now=self.now) or (None,)
        return None, pickle.dumps(_Opened(group, store, is_listed, None, decision))

    def decide_group(self, opened: bytes, prior: bytes) -> pa.Table:
        """The group's decision, and what is kept of it, as rows of FLEET_STATE."""
        group, store, is_listed, watched, decision = pickle.loads(opened)  # noqa: S301  # of this run
        if watched is not None:
            similar: Prior = pickle.loads(prior)  # noqa: S301  # as above
            loop = self.make(_OneGroup(group, None), store, pooling=lambda _: similar)
            loop.watched.resume(group, watched)
            (decision,) = loop.run_once(now=self.now)
        return store.rows(decision, now=self.now, is_listed=is_listed)

    def refuse_group(self, group: Group, kept: pa.Table, *, deaths: int) -> pa.Table:
        """The refusal of a group at which so many workers have died; its rows are not looked at, and `kept` stays."""
        store = KeptGroup(group, kept, holds=self.holds, lost=None)
        obstacles = {group: worker_died(deaths)}
        loop = self.make(_OneGroup(group, None), store, pooling=pooled_by_kind, obstacles=lambda: obstacles)
        (decision,) = loop.run_once(now=self.now)
        return store.rows(decision, now=self.now, is_listed=True)

    def pooled(self, lessons: Iterable[bytes]) -> bytes:
        """What each kind of group begins from, by the lessons of all groups."""
        return pickle.dumps(pooled_by_kind(pickle.loads(lesson) for lesson in lessons))  # noqa: S301  # as above
