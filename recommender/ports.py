"""The Protocols that the recommender reads and writes through, and the names of decisions outside.

An adapter whose outside system fails raises one of the three `AdapterError`s, always `from` its cause.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import groupby
from typing import NamedTuple, Protocol

from forecasting.forecast import Forecast
from forecasting.history import GroupInterval, Minutes
from forecasting.refusal import RefusalReason
from recommender.concern import Urgency, urgency_of
from recommender.deciding.hold import Hold, HoldScope
from recommender.deciding.recommendation import Decision, GradedMove, Recommendation

# A day of decisions is kept whole, at four a minute 46 MB a group; then repetitions are deleted, and after a quarter
# all.
WHOLE_FOR = timedelta(days=1)
FORGOTTEN_AFTER = timedelta(days=90)

# Cluster and name of a consumer group.
Group = tuple[str, str]


class Obstacle(NamedTuple):
    """The reason why nothing can be decided for a group, as a sentence."""

    reason: RefusalReason
    sentence: str
    remedy: str
    hold_replicas: int | None = None


class AdapterError(Exception):
    """An outside system failed; the sentence names the adapter, the request and its receiver, and the response."""


class UnavailableError(AdapterError):
    """No response in time; a retry may help."""


class RejectedError(AdapterError):
    """A clear rejection; a retry does not help."""


class MalformedError(AdapterError):
    """A response outside the agreed schema."""


class AccountPart(NamedTuple):
    """A quarter of an hour, from `began_at` on, of what following has cost a group: a document that no store reads."""

    cluster: str
    group: str
    began_at: datetime
    document: str


class Standing(NamedTuple):
    """What was decided for a group from `since_at` on: counts, None for a refusal, and the reason of either."""

    since_at: datetime
    reason: str
    current_replicas: int | None
    desired_replicas: int | None


class Place(NamedTuple):
    """The place of a group in a list that begins with the worst: by urgency, then by name, so that no two have one."""

    urgency: Urgency
    group: Group


class FleetTotal(NamedTuple):
    """The groups whose last decision is in one currency, together; None: of refusals.

    `expired` are those whose advice has expired: they are groups, and in no other count and in no sum. Each other one
    is counted by its concern or, without any, in `groups` alone. Sums are of those that have advice in force:
    replicas, what it saves in an hour, and what was paid by the hour, for those `groups_with_ledger` of which it is
    known.
    """

    currency: str | None
    groups: int
    expired: int
    no_advice: int
    promise_missed: int
    saving_forgone: int
    current_replicas: int
    desired_replicas: int
    advised_saving_per_hour: float
    groups_with_ledger: int
    paid_per_hour: float


class Condensed(NamedTuple):
    """A past of which the older part is known by its minutes alone: `before` all `rows`, which are in order of time.

    `telling` are the rows of the older part at which members, partitions or what Kafka says of the group changed.
    """

    before: Minutes | None
    telling: Sequence[GroupInterval]
    rows: Sequence[GroupInterval]


class Histories(Protocol):
    """The source of observed rows: the feature table, or an object with the same methods."""

    def groups(self, *, now: datetime) -> Sequence[Group]:
        """Every (cluster, group) that has rows, but for those that are gone at `now`."""
        ...

    def intervals(
        self, cluster: str, group: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[GroupInterval]:
        """The group's base rows that end after `since` and no later than `until`, oldest first."""
        ...

    def intervals_in_turn(
        self, groups: Sequence[Group], *, since: datetime, until: datetime
    ) -> Iterator[tuple[Group, Sequence[GroupInterval]]]:
        """The same of each of these groups, one after the other, in as few reads as memory allows."""
        ...

    def condensed_in_turns(
        self, groups: Sequence[Group], *, newest: timedelta, since: datetime, until: datetime
    ) -> Iterator[Iterable[tuple[Group, Condensed]]]:
        """The same, with rows of `newest` before each group's newest row, or of more, and minutes before these.

        The groups of a turn are read together: of a turn that is not used up, that was for nothing.
        """
        ...


class LoopStore(Protocol):
    """What the loop writes to a store, and reads of it: for each group what its next decision depends on, and holds.

    Decisions and moves come back equal to the saved ones. Errors: UnavailableError where the store does not respond,
    MalformedError on a record that cannot be read, where there is no other in its place.
    """

    def save(self, decision: Decision, account: Sequence[AccountPart] = ()) -> None:
        """Keep `decision`, unless one with its id is kept already: an id names one decision for good.

        In the same transaction `account`: the parts of the account that it was made from which have changed, in place
        of those with the same group and beginning.
        """
        ...

    def save_all(self, decided: Sequence[tuple[Decision, Sequence[AccountPart]]]) -> None:
        """Keep each decision with its parts as `save` does; all of them or, on an error, none."""
        ...

    def account(self, cluster: str, group: str, *, since: datetime) -> tuple[AccountPart, ...]:
        """The parts of the group's account that began at `since` or later, oldest first."""
        ...

    def groups_with_account(self, *, since: datetime) -> frozenset[Group]:
        """The groups of whose account a part is kept that began at `since` or later."""
        ...

    def latest_recommendation(self, cluster: str, group: str) -> Recommendation | None:
        """The advice issued last for this group, however many refusals came after it."""
        ...

    def thin(self, *, now: datetime) -> int:
        """Delete decisions that are no longer needed; returns the number of deleted ones. Accounts are kept for a day.

        Older than a day: those that repeat an earlier decision of the group in the same clock hour. Older than 90 days:
        all but the last one of each group. Graded moves stay: learning needs them.
        """
        ...

    def keep_outcomes(self, moves: Sequence[GradedMove]) -> None:
        """Keep all of `moves` or, on an error, none; a kept move with the same group and instant stays."""
        ...

    def holds(self, *, now: datetime) -> tuple[Hold, ...]:
        """The holds in force, oldest first."""
        ...

    def outcomes(
        self, cluster: str, group: str, *, limit: int, before: datetime | None = None
    ) -> tuple[GradedMove, ...]:
        """The group's last `limit` graded moves, newest first: all, or those graded earlier than `before`."""
        ...


class DecisionStore(LoopStore, Protocol):
    """Keeps every decision that was published and every move that was graded: a saved record is never changed.

    It keeps the holds in force, too, at most one for each scope, and the last day of each group's account.

    In a list, a decision that cannot be read is a refusal with that reason.
    """

    def latest(self, cluster: str, group: str) -> Decision | None:
        """The decision issued last for this group, be it advice or a refusal."""
        ...

    def recommendations_before_refusals(self) -> tuple[Recommendation, ...]:
        """The advice issued last for each group whose last decision is a refusal, sorted; one without any is left out.

        One whose last advice cannot be read is left out too.
        """
        ...

    def by_id(self, decision_id: str) -> Decision | None:
        """The decision whose `decision_id(...)` this is. Errors: MalformedError where it cannot be read."""
        ...

    def history(
        self, cluster: str, group: str, since: datetime, until: datetime, *, limit: int | None = None
    ) -> tuple[Decision, ...]:
        """The group's decisions issued from `since` on and before `until`, oldest first: all, or the last `limit`."""
        ...

    def last_of_each(
        self, cluster: str, group: str, spans: Sequence[tuple[datetime, datetime]]
    ) -> tuple[Decision, ...]:
        """The group's last decision of each span, from its begin on and before its end, oldest first; in one query.

        Spans do not overlap, and may be without one.
        """
        ...

    def standings(self, cluster: str, group: str, since: datetime, until: datetime) -> tuple[Standing, ...]:
        """What was decided for the group from `since` on and before `until`, oldest first, where it changed.

        It takes time by the number of decisions and not by their length: no document is read.
        """
        ...

    def groups(self) -> tuple[tuple[str, str], ...]:
        """Every (cluster, group) that a decision was made for, sorted."""
        ...

    def newest_ids(self) -> Mapping[Group, str]:
        """The id of the last decision of each group, sorted by (cluster, group); no document is read."""
        ...

    def latest_page(
        self,
        *,
        cluster: str | None = None,
        group: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> tuple[Decision, ...]:
        """The last decision of each group, sorted by (cluster, group): all, or the first `limit` after `after`."""
        ...

    def worst_page(
        self, *, cluster: str | None = None, group: str | None = None, after: Place | None = None, limit: int
    ) -> tuple[Decision, ...]:
        """The last decision of each group, the worst first: the first `limit` whose place is behind `after`."""
        ...

    def fleet_totals(
        self, *, cluster: str | None = None, group: str | None = None, now: datetime
    ) -> tuple[FleetTotal, ...]:
        """The last decisions of all groups together, as of `now`, by currency; no document is read."""
        ...

    def worst_page_with_totals(
        self,
        *,
        cluster: str | None = None,
        group: str | None = None,
        after: Place | None = None,
        limit: int,
        now: datetime,
    ) -> tuple[tuple[Decision, ...], tuple[FleetTotal, ...]]:
        """What `worst_page` and `fleet_totals` give, of one reading: no decision comes between the two."""
        ...

    def place_hold(self, hold: Hold) -> None:
        """Keep `hold`, in place of one with the same scope."""
        ...

    def release_hold(self, scope: HoldScope) -> Hold | None:
        """Remove the hold with exactly this scope; returns it, or None where there is none."""
        ...


class LongForecasts(Protocol):
    """Forecasts of the weeks ahead, one issue after the other."""

    def newest(self, cluster: str, group: str, *, until: datetime) -> Forecast | None:
        """The group's forecast that was issued last, no later than `until` and no earlier than a week before it.

        Errors: MalformedError on an issue that cannot be read.
        """
        ...


class PartitionLoad(NamedTuple):
    """What is produced into a partition, in messages/s, and how many messages wait in it; None: not known."""

    topic: str
    partition: int
    produce_messages_per_second: float | None
    lag_messages: int | None


class GroupLoads(NamedTuple):
    """A group's partitions by name: lags as of `until_at`, rates since `since_at`."""

    since_at: datetime
    until_at: datetime
    partitions: tuple[PartitionLoad, ...]


class PartitionSamples(Protocol):
    """What was read last of each partition."""

    def loads(self, cluster: str, group: str, *, until: datetime) -> GroupLoads | None:
        """The group's partitions as of its newest reading, up to `until`; None where none is of the last minutes."""
        ...


class Publisher(Protocol):
    """A receiver of published decisions. Publishing the same one twice does no harm."""

    def publish(self, decision: Decision) -> None:
        """Publish `decision`, or raise an AdapterError."""
        ...


def decision_id(decision: Decision) -> str:
    """The id under which a decision is stored and read; for a refusal a digest of group, cycle and reason.

    >>> from datetime import UTC, datetime
    >>> from forecasting.refusal import Refusal
    >>> refusal = Refusal(cluster="prod", group="orders", reason="no_data", sentence="no rows", evidence=(),
    ...                   remedy="run lagcast doctor", refused_at=datetime(2026, 1, 1, tzinfo=UTC))
    >>> decision_id(refusal)
    'f-...'
    """
    if isinstance(decision, Recommendation):
        return decision.recommendation_id
    cycle = decision.refused_at.astimezone(UTC).isoformat()
    text = f"{decision.cluster}\0{decision.group}\0{cycle}\0{decision.reason}"
    return f"f-{sha256(text.encode()).hexdigest()[:20]}"


def issued_at(decision: Decision) -> datetime:
    """Instant of the decision."""
    return decision.issued_at if isinstance(decision, Recommendation) else decision.refused_at


def place_of(decision: Decision) -> Place:
    """The place of the decision's group in a list that begins with the worst."""
    return Place(urgency_of(decision), (decision.cluster, decision.group))


def standing_of(decision: Decision) -> Standing:
    """What a picture of a day shows of the decision."""
    if isinstance(decision, Recommendation):
        counts = decision.current_replicas, decision.desired_replicas
        return Standing(decision.issued_at, decision.reason, *counts)
    return Standing(decision.refused_at, decision.reason, None, None)


def changes_of(standings: Iterable[Standing]) -> tuple[Standing, ...]:
    """Those that differ from the one before in more than their instant.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> six = Standing(at, "cheaper_to_stay", 6, 6)
    >>> len(changes_of([six, six._replace(since_at=at + timedelta(minutes=1)), six._replace(desired_replicas=8)]))
    2
    """
    return tuple(next(alike) for _, alike in groupby(standings, key=lambda each: each[1:]))


def thinned_until(now: datetime) -> datetime:
    """Decisions issued before this instant, the beginning of an hour, are kept without their repetitions."""
    return (now.astimezone(UTC) - WHOLE_FOR).replace(minute=0, second=0, microsecond=0)


def dedup_key(decision: Decision) -> tuple[str | int, ...]:
    """Key of the advised count and its reason; two decisions with the same key are a repetition.

    The instant of the move is left out: for a move due at once, or in a quarter of an hour, it is later in each
    decision.

    >>> from datetime import UTC, datetime
    >>> from forecasting.refusal import Refusal
    >>> dedup_key(Refusal(cluster="prod", group="orders", reason="no_data", sentence="no rows", evidence=(),
    ...              remedy="run lagcast doctor", refused_at=datetime(2026, 1, 1, tzinfo=UTC)))
    ('refused', 'no_data')
    """
    if isinstance(decision, Recommendation):
        return decision.action, decision.current_replicas, decision.desired_replicas, decision.reason
    return "refused", decision.reason


def wire_code(reason: str) -> str:
    """The code of an internal reason on the wire: CamelCase, converted mechanically.

    >>> wire_code("not_enough_history")
    'NotEnoughHistory'
    """
    return "".join(word.capitalize() for word in reason.split("_"))
