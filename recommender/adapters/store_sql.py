"""Decisions, graded moves, holds and accounts in SQL: the queries of the store."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from forecasting.refusal import Refusal
from recommender.adapters.documents import (
    from_document,
    from_outcome_document,
    kind,
    to_document,
    to_outcome_document,
)
from recommender.adapters.store_database import Database
from recommender.borders import Borders
from recommender.concern import CONCERNS, paid_per_hour, saving_per_hour, urgency_of
from recommender.deciding.hold import Hold, HoldScope
from recommender.deciding.recommendation import Decision, GradedMove, Recommendation
from recommender.ports import (
    FORGOTTEN_AFTER,
    AccountPart,
    FleetTotal,
    Group,
    MalformedError,
    Place,
    Standing,
    changes_of,
    decision_id,
    dedup_key,
    issued_at,
    standing_of,
    thinned_until,
)

_TABLE = sa.table(
    "decisions",
    *(sa.column(name) for name in ("id", "cluster", "group", "kind")),
    sa.column("issued_at", sa.DateTime()),
    sa.column("valid_until", sa.DateTime()),
    sa.column("newest", sa.Boolean()),
    *(sa.column(name) for name in ("document", "reason", "current_replicas", "desired_replicas")),
    *(sa.column(name) for name in ("rank", "unit", "minus_weight", "currency", "saving_per_hour", "paid_per_hour")),
)
_OUTCOMES = sa.table(
    "outcomes",
    *(sa.column(name) for name in ("cluster", "group", "recommendation_id", "document")),
    sa.column("graded_at", sa.DateTime()),
)
_HOLDS = sa.table(
    "holds",
    *(sa.column(name) for name in ("cluster", "namespace", "group", "reason")),
    sa.column("placed_at", sa.DateTime()),
    sa.column("until", sa.DateTime()),
)
_ACCOUNTS = sa.table(
    "accounts",
    *(sa.column(name) for name in ("cluster", "group", "document")),
    sa.column("began_at", sa.DateTime()),
)
# Parts of accounts are needed for a day and a quarter of an hour.
_ACCOUNTS_KEPT_LONGER = timedelta(hours=1)
_COLUMNS, _MOVES, _PARTS = _TABLE.c, _OUTCOMES.c, _ACCOUNTS.c
# The order of an index of the newest decisions.
_RANKED = tuple(_COLUMNS[name] for name in ("rank", "unit", "minus_weight"))
_PLACE = (*_RANKED, _COLUMNS.cluster, _COLUMNS.group)
_SCOPE = ("cluster", "namespace", "group")
# A saved decision is the newest of its group unless a later one is kept.
_MARKED = ("id", "cluster", "group", "issued_at")
_OF_GROUP = (_COLUMNS.cluster == sa.bindparam("the_cluster")) & (_COLUMNS.group == sa.bindparam("the_group"))
_NEWEST_NO_MORE = (
    sa.update(_TABLE)
    .where(_OF_GROUP, _COLUMNS.newest, _COLUMNS.issued_at <= sa.bindparam("the_issued_at"))
    .where(_COLUMNS.id != sa.bindparam("the_id"))
    .values(newest=False)
)
_LATER = sa.alias(_TABLE)
_IS_LATER = (
    (_LATER.c.cluster == sa.bindparam("the_cluster"))
    & (_LATER.c.group == sa.bindparam("the_group"))
    & (_LATER.c.issued_at > sa.bindparam("the_issued_at"))
)
_NEWEST_NOW = (
    sa.update(_TABLE).where(_COLUMNS.id == sa.bindparam("the_id"), ~sa.exists().where(_IS_LATER)).values(newest=True)
)
_READ = sa.select(_COLUMNS.id, _COLUMNS.cluster, _COLUMNS.group, _COLUMNS.issued_at, _COLUMNS.kind, _COLUMNS.document)
_REFUSED, _EARLIER = sa.alias(_TABLE), sa.alias(_TABLE)
# Found by the index of a group's instants, one look for each refused group.
_LAST_ADVICE = (
    sa.select(_EARLIER.c.id)
    .where(_EARLIER.c.cluster == _REFUSED.c.cluster, _EARLIER.c.group == _REFUSED.c.group)
    .where(_EARLIER.c.kind == Recommendation.__name__)
    .order_by(_EARLIER.c.issued_at.desc())
    .limit(1)
    .scalar_subquery()
)
_ADVICE_BEFORE_REFUSALS = _READ.where(
    _COLUMNS.id.in_(sa.select(_LAST_ADVICE).where(_REFUSED.c.newest, _REFUSED.c.kind == Refusal.__name__))
).order_by(_COLUMNS.cluster, _COLUMNS.group)
# So many of a group's last recommendations are looked at for one that can be read.
_RECOMMENDATIONS_TRIED = 20


class SqlDecisionStore:
    """A `DecisionStore` over one database. Safe to share between threads; several processes may open the same file.

    `may_write` is called last before each commit, when no lock is left to wait for; its exception undoes the write.
    A stored document that cannot be read costs its own place in a list, where a refusal says so, and is told to
    `borders`. Each store has five connections of its own, so readers should open another one than the loop's.
    """

    def __init__(
        self, url: str, *, may_write: Callable[[], None] = lambda: None, borders: Borders | None = None
    ) -> None:
        """Open the database at `url`, creating missing tables. Errors: UnavailableError, RejectedError."""
        self._may_write = may_write
        self._borders = Borders() if borders is None else borders
        self._database = Database(url)

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    def save(self, decision: Decision, account: Sequence[AccountPart] = ()) -> None:
        """Keep `decision` unless one with its id is kept; and what has changed of the account that it was made from."""
        self.save_all([(decision, account)])

    def save_all(self, decided: Sequence[tuple[Decision, Sequence[AccountPart]]]) -> None:
        """Keep all of them, each as `save` does, in one transaction."""
        if not decided:
            return
        rows = [_row(decision) for decision, _ in decided]
        with self._writing("save to") as connection:
            self._keep_account(connection, [part for _, account in decided for part in account])
            # The write comes first, so that SQLite takes its lock before any read of data that another may change.
            insert = self._insert_unless_kept(_TABLE, ["id"]).returning(_COLUMNS.id)
            new = set(connection.scalars(insert, rows))
            marked = [{f"the_{name}": row[name] for name in _MARKED} for row in rows if row["id"] in new]
            for statement in (_NEWEST_NO_MORE, _NEWEST_NOW) if marked else ():
                connection.execute(statement, marked)

    def _keep_account(self, connection: sa.Connection, account: Sequence[AccountPart]) -> None:
        if not account:
            return
        insert = self._insert(_ACCOUNTS)
        upsert = insert.on_conflict_do_update(
            index_elements=["cluster", "group", "began_at"], set_={"document": insert.excluded.document}
        )
        connection.execute(upsert, [part._asdict() | {"began_at": _utc(part.began_at)} for part in account])

    def account(self, cluster: str, group: str, *, since: datetime) -> tuple[AccountPart, ...]:
        """The parts of the group's account that began at `since` or later, oldest first."""
        of_group = (_PARTS.cluster == cluster) & (_PARTS.group == group)
        parts = sa.select(_ACCOUNTS).where(of_group, _PARTS.began_at >= _utc(since)).order_by(_PARTS.began_at)
        found = self._rows(parts)
        return tuple(
            AccountPart(row.cluster, row.group, row.began_at.replace(tzinfo=UTC), row.document) for row in found
        )

    def groups_with_account(self, *, since: datetime) -> frozenset[Group]:
        """The groups of whose account a part is kept that began at `since` or later."""
        names = sa.select(_PARTS.cluster, _PARTS.group).where(_PARTS.began_at >= _utc(since)).distinct()
        return frozenset((row.cluster, row.group) for row in self._rows(names))

    def latest(self, cluster: str, group: str) -> Decision | None:
        """The decision issued last for this group, be it advice or a refusal."""
        return self._one(_READ.where(_COLUMNS.cluster == cluster, _COLUMNS.group == group, _COLUMNS.newest))

    def latest_recommendation(self, cluster: str, group: str) -> Recommendation | None:
        """The advice issued last for this group, however many refusals came after it."""
        advice = _READ.where(
            _COLUMNS.cluster == cluster, _COLUMNS.group == group, _COLUMNS.kind == Recommendation.__name__
        )
        newest_first = advice.order_by(_COLUMNS.issued_at.desc())
        found = self._one(newest_first.limit(1))
        if isinstance(found, Refusal):  # in place of one that cannot be read
            readable = self._many(newest_first.limit(_RECOMMENDATIONS_TRIED))
            found = next((each for each in readable if isinstance(each, Recommendation)), None)
        return found if isinstance(found, Recommendation) else None

    def recommendations_before_refusals(self) -> tuple[Recommendation, ...]:
        """The advice issued last for each group whose last decision is a refusal, sorted; none that is unreadable."""
        return tuple(each for each in self._many(_ADVICE_BEFORE_REFUSALS) if isinstance(each, Recommendation))

    def by_id(self, decision_id: str) -> Decision | None:
        """The decision with this id. Errors: MalformedError where it cannot be read."""
        row = self._rows(_READ.where(_COLUMNS.id == decision_id))
        return from_document(row[0].kind, row[0].document) if row else None

    def history(
        self, cluster: str, group: str, since: datetime, until: datetime, *, limit: int | None = None
    ) -> tuple[Decision, ...]:
        """The group's decisions issued from `since` on and before `until`, oldest first: all, or the last `limit`."""
        span = (_COLUMNS.issued_at >= _utc(since)) & (_COLUMNS.issued_at < _utc(until))
        of_group = _READ.where(_COLUMNS.cluster == cluster, _COLUMNS.group == group, span)
        newest_first = of_group.order_by(_COLUMNS.issued_at.desc(), _COLUMNS.id.desc()).limit(limit)
        return self._many(newest_first)[::-1]

    def last_of_each(
        self, cluster: str, group: str, spans: Sequence[tuple[datetime, datetime]]
    ) -> tuple[Decision, ...]:
        """The group's last decision of each span, from its begin on and before its end, oldest first; in one query."""
        of_group = _READ.where(_COLUMNS.cluster == cluster, _COLUMNS.group == group)
        newest_first = of_group.order_by(_COLUMNS.issued_at.desc(), _COLUMNS.id.desc()).limit(1)
        of_spans = (
            newest_first.where(_COLUMNS.issued_at >= _utc(since), _COLUMNS.issued_at < _utc(until))
            for since, until in spans
        )
        # SQLite takes an order and a limit of a part of a union only within a subquery.
        parts = [sa.select(of_span.subquery()) for of_span in of_spans]
        return tuple(sorted(self._many(sa.union_all(*parts)), key=issued_at)) if parts else ()

    def standings(self, cluster: str, group: str, since: datetime, until: datetime) -> tuple[Standing, ...]:
        """What was decided for the group from `since` on and before `until`, oldest first, where it changed."""
        shown = (_COLUMNS.issued_at, _COLUMNS.reason, _COLUMNS.current_replicas, _COLUMNS.desired_replicas)
        span = (_COLUMNS.issued_at >= _utc(since)) & (_COLUMNS.issued_at < _utc(until)) & _COLUMNS.reason.is_not(None)
        of_group = sa.select(*shown).where(_COLUMNS.cluster == cluster, _COLUMNS.group == group, span)
        found = self._rows(of_group.order_by(_COLUMNS.issued_at))
        return changes_of(
            Standing(row.issued_at.replace(tzinfo=UTC), row.reason, row.current_replicas, row.desired_replicas)
            for row in found
        )

    def groups(self) -> tuple[tuple[str, str], ...]:
        """Every (cluster, group) that a decision was made for, sorted."""
        names = sa.select(_COLUMNS.cluster, _COLUMNS.group).where(_COLUMNS.newest)
        with self._database.reading() as connection:
            found = connection.execute(names.order_by(_COLUMNS.cluster, _COLUMNS.group))
            return tuple((str(row[0]), str(row[1])) for row in found)

    def newest_ids(self) -> Mapping[Group, str]:
        """The id of the last decision of each group, sorted by (cluster, group)."""
        newest = sa.select(_COLUMNS.cluster, _COLUMNS.group, _COLUMNS.id).where(_COLUMNS.newest)
        return {
            (row.cluster, row.group): row.id for row in self._rows(newest.order_by(_COLUMNS.cluster, _COLUMNS.group))
        }

    def latest_page(
        self,
        *,
        cluster: str | None = None,
        group: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> tuple[Decision, ...]:
        """The last decision of each group, sorted by (cluster, group): all, or the first `limit` after `after`."""
        named = _READ.where(_COLUMNS.newest, *_named(cluster, group))
        page = named.order_by(_COLUMNS.cluster, _COLUMNS.group).limit(limit)
        if after is not None:
            page = page.where(sa.tuple_(_COLUMNS.cluster, _COLUMNS.group) > after)
        return self._many(page)

    def worst_page(
        self, *, cluster: str | None = None, group: str | None = None, after: Place | None = None, limit: int
    ) -> tuple[Decision, ...]:
        """The last decision of each group, the worst first: the first `limit` whose place is behind `after`."""
        return self._many(_worst(_READ, *_named(cluster, group), after=after, limit=limit))

    def fleet_totals(
        self, *, cluster: str | None = None, group: str | None = None, now: datetime
    ) -> tuple[FleetTotal, ...]:
        """The last decisions of all groups together, as of `now`, by currency; no document is read."""
        found = self._rows(_sums(*_named(cluster, group), now=now).order_by(_COLUMNS.currency.nulls_first()))
        return tuple(FleetTotal._make(row) for row in found)

    def worst_page_with_totals(
        self,
        *,
        cluster: str | None = None,
        group: str | None = None,
        after: Place | None = None,
        limit: int,
        now: datetime,
    ) -> tuple[tuple[Decision, ...], tuple[FleetTotal, ...]]:
        """What `worst_page` and `fleet_totals` give, in one statement: a database elsewhere is waited for once."""
        named = _named(cluster, group)
        page = _worst(_READ.add_columns(*_RANKED), *named, after=after, limit=limit).subquery()
        sums = _sums(*named, now=now).subquery()
        # Each row has the columns of both, those of the other one without a value.
        both = sa.union_all(
            sa.select(*page.c, *(sa.null().label(f"total_{place}") for place in range(len(sums.c)))),
            sa.select(*(sa.null() for _ in page.c), *sums.c),
        ).subquery()
        order = (*(both.c[column.name] for column in _PLACE), both.c.total_0.nulls_first())
        found = self._rows(sa.select(both).order_by(*order))
        decisions = tuple(self._decision_of(row) for row in found if row.id is not None)
        return decisions, tuple(FleetTotal._make(row[len(page.c) :]) for row in found if row.id is None)

    def thin(self, *, now: datetime) -> int:
        """Delete repetitions older than a day, and decisions older than 90 days; returns how many were deleted."""
        accounts_kept_since = thinned_until(now) - _ACCOUNTS_KEPT_LONGER
        old = ~_COLUMNS.newest & (_COLUMNS.issued_at < _utc(now - FORGOTTEN_AFTER))
        with self._writing("thin out") as connection:
            gone = connection.execute(sa.delete(_TABLE).where(old)).rowcount
            connection.execute(sa.delete(_ACCOUNTS).where(_PARTS.began_at < _utc(accounts_kept_since)))
        hours = [sa.extract(part, _COLUMNS.issued_at) for part in ("year", "month", "day", "hour")]
        crowded = (
            sa.select(_COLUMNS.cluster, _COLUMNS.group, sa.func.min(_COLUMNS.issued_at).label("first"))
            .where(_COLUMNS.issued_at < _utc(thinned_until(now)))
            .group_by(_COLUMNS.cluster, _COLUMNS.group, *hours)
            .having(sa.func.count() > 1)
        )
        with self._database.reading() as connection:
            found = connection.execute(crowded).all()
        return gone + sum(self._thin_hour(row.cluster, row.group, row.first) for row in found)

    def _thin_hour(self, cluster: str, group: str, first: datetime) -> int:
        """Delete the repetitions in one hour of a group, in a transaction of its own: other writers wait less."""
        decisions = self.history(cluster, group, first.replace(tzinfo=UTC), _next_hour(first.replace(tzinfo=UTC)))
        kept: set[tuple[str | int, ...]] = set()
        repeated = []
        for decision in decisions:
            if dedup_key(decision) in kept:
                repeated.append(decision_id(decision))
            kept.add(dedup_key(decision))
        if not repeated:
            return 0
        doomed = _COLUMNS.id.in_(repeated) & ~_COLUMNS.newest
        with self._writing("thin out") as connection:
            return connection.execute(sa.delete(_TABLE).where(doomed)).rowcount

    def keep_outcomes(self, moves: Sequence[GradedMove]) -> None:
        """Keep all of `moves` in one transaction; a move with the same group and instant that is kept already stays."""
        if not moves:
            return
        insert = self._insert_unless_kept(_OUTCOMES, ["cluster", "group", "graded_at"])
        with self._writing("save to") as connection:
            connection.execute(insert, [_outcome_row(move) for move in moves])

    def outcomes(
        self, cluster: str, group: str, *, limit: int, before: datetime | None = None
    ) -> tuple[GradedMove, ...]:
        """The group's last `limit` graded moves, newest first: all, or those graded earlier than `before`."""
        page = sa.select(_MOVES.document).where(_MOVES.cluster == cluster, _MOVES.group == group)
        if before is not None:
            page = page.where(_MOVES.graded_at < _utc(before))
        with self._database.reading() as connection:
            documents = connection.scalars(page.order_by(_MOVES.graded_at.desc()).limit(limit)).all()
        outcomes: list[GradedMove] = []
        for document in documents:
            with self._borders.around("document", f"move of {cluster}/{group}", expected=(MalformedError,)):
                outcomes.append(from_outcome_document(document))
        return tuple(outcomes)

    def place_hold(self, hold: Hold) -> None:
        """Keep `hold`, in place of one with the same scope; those that are over are forgotten."""
        over = _HOLDS.c.until < _utc(hold.placed_at)
        with self._writing("save to") as connection:
            connection.execute(sa.delete(_HOLDS).where(over | _in_scope(hold.scope)))
            connection.execute(sa.insert(_HOLDS), [_hold_row(hold)])

    def release_hold(self, scope: HoldScope) -> Hold | None:
        """Remove the hold with exactly this scope; returns it, or None where there is none."""
        with self._writing("save to") as connection:
            found = connection.execute(sa.delete(_HOLDS).where(_in_scope(scope)).returning(*_HOLDS.c)).first()
        return None if found is None else _hold_of(found)

    def holds(self, *, now: datetime) -> tuple[Hold, ...]:
        """The holds in force, oldest first."""
        standing = sa.select(_HOLDS).where(_HOLDS.c.until.is_(None) | (_HOLDS.c.until > _utc(now)))
        with self._database.reading() as connection:
            found = connection.execute(
                standing.order_by(_HOLDS.c.placed_at, *(_HOLDS.c[name] for name in _SCOPE))
            ).all()
        return tuple(_hold_of(row) for row in found)

    @contextmanager
    def _writing(self, action: str) -> Iterator[sa.Connection]:
        """A transaction that is committed at the end of the block, if this process may write then."""
        with self._database.writing(action) as connection:
            yield connection
            self._may_write()

    def _insert(self, table: sa.TableClause) -> postgresql.Insert | sqlite.Insert:
        # What a conflict does is written alike in both databases, but not part of standard SQL: each has its own class.
        return (postgresql.insert if self._database.engine.dialect.name == "postgresql" else sqlite.insert)(table)

    def _insert_unless_kept(self, table: sa.TableClause, key: list[str]) -> postgresql.Insert | sqlite.Insert:
        return self._insert(table).on_conflict_do_nothing(index_elements=key)

    def _one(self, query: sa.Select[Any]) -> Decision | None:
        found = self._many(query)
        return found[0] if found else None

    def _many(self, query: sa.Select[Any] | sa.CompoundSelect[Any]) -> tuple[Decision, ...]:
        return tuple(self._decision_of(row) for row in self._rows(query))

    def _rows(self, query: sa.Select[Any] | sa.CompoundSelect[Any]) -> Sequence[sa.Row[Any]]:
        with self._database.reading() as connection:
            return connection.execute(query).all()

    def _decision_of(self, row: sa.Row[Any]) -> Decision:
        """The decision of a row; a refusal with the reason in place of one that cannot be read."""
        try:
            return from_document(row.kind, row.document)
        except MalformedError as error:
            self._borders.failed("document", row.id, error, is_expected=True)
            return Refusal(
                cluster=row.cluster,
                group=row.group,
                reason="unsupported",
                sentence=f"The decision {row.id} cannot be read: {error}",
                evidence=(),
                remedy="Read it with the version of lagcast that wrote it; the next decision takes its place.",
                refused_at=row.issued_at.replace(tzinfo=UTC),
            )


def sqlite_url(path: Path) -> str:
    """The store URL of a SQLite file.

    >>> sqlite_url(Path("/var/lib/lagcast/decisions.sqlite"))
    'sqlite:////var/lib/lagcast/decisions.sqlite'
    """
    return f"sqlite:///{path}"


def _row(decision: Decision) -> dict[str, Any]:
    standing, urgency = standing_of(decision), urgency_of(decision)
    advice = decision if isinstance(decision, Recommendation) else None
    return {
        "id": decision_id(decision),
        "cluster": decision.cluster,
        "group": decision.group,
        "kind": kind(decision),
        "issued_at": _utc(issued_at(decision)),
        "valid_until": None if advice is None else _utc(advice.valid_until),
        "newest": False,
        "document": to_document(decision),
        "reason": standing.reason,
        "current_replicas": standing.current_replicas,
        "desired_replicas": standing.desired_replicas,
        "rank": urgency.rank,
        "unit": urgency.currency,
        "minus_weight": urgency.minus_weight,
        "currency": None if advice is None else advice.currency,
        "saving_per_hour": None if advice is None else saving_per_hour(advice),
        "paid_per_hour": None if advice is None else paid_per_hour(advice),
    }


def _named(cluster: str | None, group: str | None) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of these names; None stands for any."""
    asked = ((_COLUMNS.cluster, cluster), (_COLUMNS.group, group))
    return tuple(column == name for column, name in asked if name is not None)


def _worst(read: sa.Select[Any], *named: sa.ColumnElement[bool], after: Place | None, limit: int) -> sa.Select[Any]:
    """The first `limit` of the newest decisions of these names behind `after`, the worst first."""
    page = read.where(_COLUMNS.newest, *named).order_by(*_PLACE).limit(limit)
    return page if after is None else page.where(sa.tuple_(*_PLACE) > (*after.urgency, *after.group))


def _sums(*named: sa.ColumnElement[bool], now: datetime) -> sa.Select[Any]:
    """The columns of `FleetTotal` over the newest decisions of these names, a row for each currency."""
    is_over = _COLUMNS.valid_until.is_not(None) & (_COLUMNS.valid_until < _utc(now))

    def counted(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.sum(sa.case((condition, 1), else_=0))

    def summed(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.sum(sa.case((is_over, 0), else_=sa.func.coalesce(column, 0)))

    shown = (
        _COLUMNS.currency,
        sa.func.count(),
        counted(is_over),
        *(counted(~is_over & (_COLUMNS.rank == rank)) for rank in range(len(CONCERNS))),
        *(summed(_COLUMNS[name]) for name in ("current_replicas", "desired_replicas", "saving_per_hour")),
        counted(~is_over & _COLUMNS.paid_per_hour.is_not(None)),
        summed(_COLUMNS.paid_per_hour),
    )
    return sa.select(*shown).where(_COLUMNS.newest, *named).group_by(_COLUMNS.currency)


def _next_hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def _outcome_row(move: GradedMove) -> dict[str, Any]:
    return {
        "cluster": move.cluster,
        "group": move.group,
        "graded_at": _utc(move.graded_at),
        "recommendation_id": move.outcome.advised_as,
        "document": to_outcome_document(move),
    }


def _in_scope(scope: HoldScope) -> sa.ColumnElement[bool]:
    return sa.and_(*(_HOLDS.c[name] == (getattr(scope, name) or "") for name in _SCOPE))


def _hold_row(hold: Hold) -> dict[str, Any]:
    """The row of a hold: an empty name stands for any, because a column of the key cannot be NULL."""
    return {name: getattr(hold.scope, name) or "" for name in _SCOPE} | {
        "reason": hold.reason,
        "placed_at": _utc(hold.placed_at),
        "until": None if hold.until is None else _utc(hold.until),
    }


def _hold_of(row: sa.Row[Any]) -> Hold:
    return Hold(
        scope=HoldScope(**{name: getattr(row, name) or None for name in _SCOPE}),
        reason=row.reason,
        placed_at=row.placed_at.replace(tzinfo=UTC),
        until=None if row.until is None else row.until.replace(tzinfo=UTC),
    )


def _utc(instant: datetime) -> datetime:
    """The instant with its zone: SQL's instants carry none, and ours are always UTC."""
    return instant.astimezone(UTC).replace(tzinfo=None)
