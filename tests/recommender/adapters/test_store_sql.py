"""Laws of every store of decisions, and that the SQL one outlives its process."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from forecasting.refusal import Refusal
from recommender.adapters import store_sql
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.borders import Borders
from recommender.concern import Urgency, concern_of, paid_per_hour, saving_per_hour
from recommender.deciding.hold import Hold, HoldScope
from recommender.deciding.recommendation import (
    Decision,
    GradedMove,
    LedgerStanding,
    PolicyFigures,
    Recommendation,
)
from recommender.ports import (
    FORGOTTEN_AFTER,
    AccountPart,
    DecisionStore,
    FleetTotal,
    MalformedError,
    Place,
    RejectedError,
    Standing,
    UnavailableError,
    changes_of,
    decision_id,
    dedup_key,
    issued_at,
    place_of,
    standing_of,
    thinned_until,
)

MakeAdvice = Callable[..., Recommendation]
MakeRefusal = Callable[..., Refusal]
MakeMove = Callable[..., GradedMove]
START = datetime(2026, 1, 5, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PROMISE = PolicyFigures(
    name="balanced",
    price_per_replica_hour=0.05,
    price_per_late_message=1e-6,
    price_per_duplicate_message=0.0,
    price_per_move=0.0,
    risk_weight=0.0,
    max_lag_seconds=10.0,
)


class MemoryDecisionStore:
    """The whole port in a dictionary."""

    def __init__(self) -> None:
        self._kept: dict[str, Decision] = {}
        self._moves: dict[tuple[str, str, datetime], GradedMove] = {}
        self._holds: dict[HoldScope, Hold] = {}
        self._parts: dict[tuple[str, str, datetime], AccountPart] = {}

    def save(self, decision: Decision, account: Sequence[AccountPart] = ()) -> None:
        """Store it unless its id is stored, and the parts."""
        self._kept.setdefault(decision_id(decision), decision)
        self._parts.update({part[:3]: part for part in account})

    def save_all(self, decided: Sequence[tuple[Decision, Sequence[AccountPart]]]) -> None:
        """Store each."""
        for decision, account in decided:
            self.save(decision, account)

    def account(self, cluster: str, group: str, *, since: datetime) -> tuple[AccountPart, ...]:
        """The parts of the group, sorted."""
        return tuple(
            part for key, part in sorted(self._parts.items()) if key[:2] == (cluster, group) and key[2] >= since
        )

    def groups_with_account(self, *, since: datetime) -> frozenset[tuple[str, str]]:
        """Those that have such a part."""
        return frozenset(key[:2] for key in self._parts if key[2] >= since)

    def latest(self, cluster: str, group: str) -> Decision | None:
        """The last of the group; of two with the same instant, the later saved one."""
        of_group = self._of(cluster, group)
        return of_group[-1] if of_group else None

    def latest_recommendation(self, cluster: str, group: str) -> Recommendation | None:
        """The last of the group that is advice."""
        advice = [d for d in self._of(cluster, group) if isinstance(d, Recommendation)]
        return advice[-1] if advice else None

    def recommendations_before_refusals(self) -> tuple[Recommendation, ...]:
        """Of each group."""
        advice = [
            self.latest_recommendation(*name) for name in self.groups() if isinstance(self.latest(*name), Refusal)
        ]
        return tuple(each for each in advice if each is not None)

    def by_id(self, decision_id: str) -> Decision | None:
        """The one with this id."""
        return self._kept.get(decision_id)

    def history(
        self, cluster: str, group: str, since: datetime, until: datetime, *, limit: int | None = None
    ) -> tuple[Decision, ...]:
        """The group's span, or the end of it."""
        found = tuple(d for d in self._of(cluster, group) if since <= issued_at(d) < until)
        return found if limit is None else found[max(0, len(found) - limit) :]

    def last_of_each(
        self, cluster: str, group: str, spans: Sequence[tuple[datetime, datetime]]
    ) -> tuple[Decision, ...]:
        """Span by span."""
        found = (self.history(cluster, group, since, until, limit=1) for since, until in spans)
        return tuple(sorted((each for of_span in found for each in of_span), key=issued_at))

    def standings(self, cluster: str, group: str, since: datetime, until: datetime) -> tuple[Standing, ...]:
        """The changes within the group's span."""
        return changes_of(map(standing_of, self.history(cluster, group, since, until)))

    def groups(self) -> tuple[tuple[str, str], ...]:
        """Sorted names."""
        return tuple(sorted({(d.cluster, d.group) for d in self._kept.values()}))

    def newest_ids(self) -> dict[tuple[str, str], str]:
        """Of the last of each group."""
        return {name: decision_id(self._of(*name)[-1]) for name in self.groups()}

    def latest_page(
        self,
        *,
        cluster: str | None = None,
        group: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> tuple[Decision, ...]:
        """The last of each group."""
        names = [
            name
            for name in self.groups()
            if cluster in (None, name[0]) and group in (None, name[1]) and (after is None or name > after)
        ]
        return tuple(self._of(*name)[-1] for name in names[:limit])

    def worst_page(
        self, *, cluster: str | None = None, group: str | None = None, after: Place | None = None, limit: int
    ) -> tuple[Decision, ...]:
        """The last of each group, sorted by place."""
        found = sorted(self.latest_page(cluster=cluster, group=group), key=place_of)
        return tuple([each for each in found if after is None or place_of(each) > after][:limit])

    def fleet_totals(
        self, *, cluster: str | None = None, group: str | None = None, now: datetime
    ) -> tuple[FleetTotal, ...]:
        """The sums over the last of each group, refusals first."""
        latest = self.latest_page(cluster=cluster, group=group)
        refused = [each for each in latest if isinstance(each, Refusal)]
        advised = [each for each in latest if isinstance(each, Recommendation)]
        found = [FleetTotal(None, len(refused), 0, len(refused), 0, 0, 0, 0, 0.0, 0, 0.0)] if refused else []
        for currency in sorted({each.currency for each in advised}):
            ours = [each for each in advised if each.currency == currency]
            valid = [each for each in ours if each.valid_until >= now]
            concerns = [concern_of(each) for each in valid]
            paid = [cost for each in valid if (cost := paid_per_hour(each)) is not None]
            found.append(
                FleetTotal(
                    currency=currency,
                    groups=len(ours),
                    expired=len(ours) - len(valid),
                    no_advice=0,
                    promise_missed=concerns.count("promise_missed"),
                    saving_forgone=concerns.count("saving_forgone"),
                    current_replicas=sum(each.current_replicas for each in valid),
                    desired_replicas=sum(each.desired_replicas for each in valid),
                    advised_saving_per_hour=sum(saving_per_hour(each) or 0.0 for each in valid),
                    groups_with_ledger=len(paid),
                    paid_per_hour=sum(paid),
                )
            )
        return tuple(found)

    def worst_page_with_totals(
        self,
        *,
        cluster: str | None = None,
        group: str | None = None,
        after: Place | None = None,
        limit: int,
        now: datetime,
    ) -> tuple[tuple[Decision, ...], tuple[FleetTotal, ...]]:
        """Both."""
        page = self.worst_page(cluster=cluster, group=group, after=after, limit=limit)
        return page, self.fleet_totals(cluster=cluster, group=group, now=now)

    def thin(self, *, now: datetime) -> int:
        """Delete repetitions within an hour, and very old decisions."""
        first_ones: set[tuple[object, ...]] = set()
        gone = []
        for name, decision in sorted(self._kept.items(), key=lambda kept: issued_at(kept[1])):
            at, group = issued_at(decision), (decision.cluster, decision.group)
            hour = (*group, at.date(), at.hour, *dedup_key(decision))
            repeats = at < thinned_until(now) and hour in first_ones
            first_ones.add(hour)
            if (repeats or at < now - FORGOTTEN_AFTER) and decision != self.latest(*group):
                gone.append(name)
        for name in gone:
            del self._kept[name]
        self._parts = {key: part for key, part in self._parts.items() if now - key[2] <= timedelta(hours=25)}
        return len(gone)

    def place_hold(self, hold: Hold) -> None:
        """Store it under its scope."""
        self._holds[hold.scope] = hold

    def release_hold(self, scope: HoldScope) -> Hold | None:
        """Remove it."""
        return self._holds.pop(scope, None)

    def holds(self, *, now: datetime) -> tuple[Hold, ...]:
        """Those in force."""
        return tuple(sorted((h for h in self._holds.values() if h.holds(now)), key=lambda h: h.placed_at))

    def keep_outcomes(self, moves: Sequence[GradedMove]) -> None:
        """Store each unless its group and instant are stored."""
        for move in moves:
            self._moves.setdefault((move.cluster, move.group, move.graded_at), move)

    def outcomes(
        self, cluster: str, group: str, *, limit: int, before: datetime | None = None
    ) -> tuple[GradedMove, ...]:
        """The group's last, newest first."""
        found = [
            move
            for move in self._moves.values()
            if (move.cluster, move.group) == (cluster, group) and (before is None or move.graded_at < before)
        ]
        return tuple(sorted(found, key=lambda move: move.graded_at, reverse=True)[:limit])

    def _of(self, cluster: str, group: str) -> list[Decision]:
        found = [d for d in self._kept.values() if (d.cluster, d.group) == (cluster, group)]
        return sorted(found, key=issued_at)


class DecisionStoreContract:
    """The laws of every store; an implementation only supplies `store`."""

    def test_a_decision_comes_back_as_it_was(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal
    ) -> None:
        """Advice and refusals are found by id and as the group's latest, equal in every field."""
        given = advice()
        store.save(given)
        assert store.by_id("r-1") == store.latest("prod-eu", "orders") == given
        refused = refusal(refused_at=given.issued_at + MINUTE)
        store.save(refused)
        assert store.by_id(decision_id(refused)) == store.latest("prod-eu", "orders") == refused

    def test_advice_is_found_behind_refusals(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal
    ) -> None:
        """The loop reads its previous advice, however many refusals came after it."""
        given = advice()
        store.save(given)
        for minute in (1, 2, 3):
            store.save(refusal(refused_at=given.issued_at + minute * MINUTE))
        assert store.latest_recommendation("prod-eu", "orders") == given

    def test_the_advice_of_all_refused_groups_is_found_at_once(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal
    ) -> None:
        """The last of each; not of a group that is advised, nor of one that never was, nor of its name elsewhere."""
        given = advice()
        later = given.issued_at + MINUTE
        newer = {group: advice(recommendation_id=f"r-{group}", group=group, issued_at=later) for group in ("a", "b")}
        store.save_all(
            [(replace(given, recommendation_id=f"old-{group}", group=group), ()) for group in ("a", "b", "c")]
        )
        store.save_all([(each, ()) for each in newer.values()])
        refused_at = later + MINUTE
        store.save_all([(refusal(group=group, refused_at=refused_at), ()) for group in ("b", "a", "never")])
        store.save(replace(given, recommendation_id="elsewhere", cluster="prod-us", group="never"))
        assert store.recommendations_before_refusals() == (newer["a"], newer["b"])

    def test_an_id_names_one_decision_for_good(self, store: DecisionStore, advice: MakeAdvice) -> None:
        """Saving again changes nothing, and neither does saving another decision under the same id."""
        store.save(advice())
        store.save(advice())
        store.save(advice(desired_replicas=12))
        assert store.by_id("r-1") == advice()
        assert len(store.history("prod-eu", "orders", advice().issued_at, advice().valid_until)) == 1

    def test_decisions_of_a_cycle_are_saved_together_as_one_by_one(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal
    ) -> None:
        """The newest of each group is found, in any order of them; a kept id stays as it is."""
        store.save(advice())
        first, later = (
            advice(recommendation_id=f"r-{number}", issued_at=advice().issued_at + number * MINUTE) for number in (2, 3)
        )
        refused = refusal(refused_at=advice().issued_at + MINUTE)
        other = replace(advice(recommendation_id="r-4"), group="other")
        part = AccountPart("prod-eu", "other", START, "{}")
        store.save_all(
            [(later, ()), (first, ()), (advice(desired_replicas=12), ()), (refused, ()), (other, [part]), (other, ())]
        )
        assert store.latest_page(cluster="prod-eu") == (later, other)
        assert list(store.newest_ids().items()) == [(("prod-eu", "orders"), "r-3"), (("prod-eu", "other"), "r-4")]
        assert store.history("prod-eu", "orders", START, later.issued_at + MINUTE) == (advice(), refused, first, later)
        assert store.account("prod-eu", "other", since=START) == (part,)
        store.save_all([])

    def test_a_decision_that_is_saved_late_is_not_the_latest(self, store: DecisionStore, advice: MakeAdvice) -> None:
        """A decision that was made earlier and saved later stays behind the newer one."""
        newer = advice(recommendation_id="r-2", issued_at=advice().issued_at + MINUTE)
        store.save(newer)
        store.save(advice())
        assert store.latest("prod-eu", "orders") == newer
        assert store.latest_page() == (newer,)
        assert store.newest_ids() == {("prod-eu", "orders"): "r-2"}

    def test_a_span_of_history_is_half_open(self, store: DecisionStore, advice: MakeAdvice) -> None:
        """`since` is inside, `until` is not, and the oldest comes first."""
        start = advice().issued_at
        decisions = [advice(recommendation_id=f"r-{i}", issued_at=start + i * MINUTE) for i in range(4)]
        for decision in reversed(decisions):
            store.save(decision)
        assert store.history("prod-eu", "orders", start + MINUTE, start + 3 * MINUTE) == tuple(decisions[1:3])
        assert store.history("prod-eu", "orders", start, start + 3 * MINUTE, limit=2) == tuple(decisions[1:3])

    def test_the_last_decision_of_each_span_comes_in_one_answer(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal
    ) -> None:
        """A span without one is left out, as are other groups; the order of the spans makes no difference."""
        start = advice().issued_at
        decisions = [advice(recommendation_id=f"r-{i}", issued_at=start + i * MINUTE) for i in range(6)]
        refused = refusal(refused_at=start + 5 * MINUTE + MINUTE / 2)
        given: list[Decision] = [*decisions, refused, advice(recommendation_id="other", group="other")]
        store.save_all([(each, ()) for each in given])
        spans = [(start + first * MINUTE, start + last * MINUTE) for first, last in ((3, 5), (0, 2), (5, 6), (6, 9))]
        assert store.last_of_each("prod-eu", "orders", spans) == (decisions[1], decisions[4], refused)
        assert store.last_of_each("prod-eu", "orders", spans[::-1]) == (decisions[1], decisions[4], refused)
        assert store.last_of_each("prod-eu", "orders", spans[-1:]) == store.last_of_each("prod-eu", "orders", ()) == ()

    def test_nothing_is_known_of_other_groups(self, store: DecisionStore, advice: MakeAdvice) -> None:
        """A group of the same name in another cluster is another group; without a decision the answer is None."""
        store.save(advice())
        assert store.latest("prod-us", "orders") is None
        assert store.latest_recommendation("prod-eu", "billing") is None
        assert store.by_id("r-9") is None
        assert store.history("prod-us", "orders", advice().issued_at, advice().valid_until) == ()

    def test_pages_meet_and_do_not_overlap(self, store: DecisionStore, advice: MakeAdvice) -> None:
        """Pages of two, each after the last group of the page before, show every group once, sorted."""
        names = [("a", "x"), ("a", "y"), ("b", "a"), ("b", "z"), ("c", "a/b ü")]
        for index, (cluster, group) in enumerate(reversed(names)):
            store.save(advice(recommendation_id=f"r-{index}", cluster=cluster, group=group))
        seen: list[tuple[str, str]] = []
        while page := store.latest_page(after=seen[-1] if seen else None, limit=2):
            seen += [(decision.cluster, decision.group) for decision in page]
        assert seen == names == list(store.groups())
        assert [d.group for d in store.latest_page(cluster="b")] == ["a", "z"]
        assert [d.cluster for d in store.latest_page(group="a")] == ["b"]

    def test_the_worst_come_first_and_each_group_that_stays_is_on_one_page(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal
    ) -> None:
        """Refused, then promises missed by how far, then savings by money, then the others; names where they tie.

        A group whose figures change between two pages moves; the others are still shown once each.
        """
        late = replace(advice().observed, lag_seconds=30.0)
        later = replace(advice().observed, lag_seconds=90.0)
        dear = replace(advice().stay, late=9.0)
        stays = {"desired_replicas": 6, "action": "hold"}
        fleet: dict[str, Decision] = {
            "b-refused": refusal(group="b-refused"),
            "c-refused": refusal(group="c-refused"),
            "z-later": advice(policy=PROMISE, observed=later, **stays),
            "a-late": advice(policy=PROMISE, observed=late),
            "y-dear": advice(policy=PROMISE, stay=dear),
            "d-cheap": advice(),
            "e-cheap": advice(),
            "a-pods": advice(currency="pod-hours", stay=dear),
            "f-fine": advice(**stays),
            "g-costs": advice(stay=advice().chosen, chosen=advice().stay),
        }
        for name, decision in reversed(fleet.items()):
            store.save(
                replace(decision, group=name, recommendation_id=name)
                if isinstance(decision, Recommendation)
                else decision
            )
        shown: list[Decision] = []
        while page := store.worst_page(after=place_of(shown[-1]) if shown else None, limit=3):
            shown += page
            if len(shown) == 3:  # a group of the first page gets better, and one behind it worse
                at = START + MINUTE
                store.save(advice(group="z-later", recommendation_id="n-1", issued_at=at, **stays))
                store.save(advice(group="d-cheap", recommendation_id="n-2", issued_at=at, stay=dear))
        stayed = [each.group for each in shown if each.group not in {"z-later", "d-cheap"}]
        assert stayed == [name for name in fleet if name not in {"z-later", "d-cheap"}]
        assert [each.group for each in shown[:3]] == ["b-refused", "c-refused", "z-later"]
        assert [each.group for each in store.worst_page(group="a-late", limit=9)] == ["a-late"]
        assert store.worst_page(cluster="other", limit=9) == ()

    def test_all_groups_are_added_up_by_currency(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal, ledger: LedgerStanding
    ) -> None:
        """What has expired and what is refused is counted, and is in no sum; what is not counted is no cost."""
        late = replace(advice().observed, lag_seconds=30.0)
        for number, decision in enumerate(
            (
                advice(ledger=ledger),
                advice(policy=PROMISE, observed=late),
                advice(desired_replicas=6, action="hold"),
                advice(valid_until=START - MINUTE, ledger=ledger),
                advice(currency="EUR", ledger=ledger),
            )
        ):
            store.save(replace(decision, group=f"g{number}", recommendation_id=f"r-{number}"))
        store.save(advice(group="g0", recommendation_id="r-old", issued_at=START - MINUTE, current_replicas=99))
        store.save(refusal())
        saving = 1.48 - 0.59
        assert [tuple(each) for each in store.fleet_totals(now=START)] == [
            (None, 1, 0, 1, 0, 0, 0, 0, 0.0, 0, 0.0),
            ("EUR", 1, 0, 0, 0, 1, 6, 8, pytest.approx(saving), 0, 0.0),
            ("USD", 4, 1, 0, 1, 1, 18, 22, pytest.approx(3 * saving), 1, pytest.approx(7.5 / 24)),
        ]
        assert store.fleet_totals(cluster="other", now=START) == ()
        assert [each.groups for each in store.fleet_totals(group="g2", now=START)] == [1]

    def test_a_page_with_its_totals_is_the_page_and_the_totals(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal
    ) -> None:
        """Whatever is asked for, in the same order; where nothing is found, both are empty."""
        late = replace(advice().observed, lag_seconds=30.0)
        for number, decision in enumerate(
            (advice(), advice(policy=PROMISE, observed=late), advice(currency="pod-hours"), advice(currency="EUR"))
        ):
            store.save(replace(decision, group=f"g{number}", recommendation_id=f"r-{number}"))
        store.save(refusal())
        (first, second), totals = store.worst_page_with_totals(limit=2, now=START)
        assert (first.group, second.group, len(totals)) == (refusal().group, "g1", 4)
        asked: tuple[dict[str, Any], ...] = (
            {"limit": 9},
            {"limit": 2, "after": place_of(second)},
            {"limit": 9, "group": "g2"},
            {"limit": 9, "cluster": "other"},
        )
        for words in asked:
            named = {name: words[name] for name in ("cluster", "group") if name in words}
            page, totals = store.worst_page_with_totals(**words, now=START)
            assert page == store.worst_page(**words)
            assert totals == store.fleet_totals(**named, now=START)
        assert (page, totals) == ((), ())

    def test_repetitions_older_than_a_day_go_and_changes_stay(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal
    ) -> None:
        """Of an hour of equal advice with a change, and a refusal made twice, 63 decisions, the 4 first ones remain."""
        hold = [advice(recommendation_id=f"r-{minute}", issued_at=START + minute * MINUTE) for minute in range(60)]
        change = advice(recommendation_id="r-c", desired_replicas=12, issued_at=START + 30.5 * MINUTE)
        refusals = [refusal(refused_at=START + minute * MINUTE) for minute in (40.5, 41.5)]
        newest = advice(recommendation_id="r-n", issued_at=START + timedelta(hours=25))
        everything: list[Decision] = [*hold, change, *refusals, newest]
        for decision in everything:
            store.save(decision)
        assert store.thin(now=START + timedelta(hours=24, minutes=59)) == 0
        assert store.thin(now=START + timedelta(hours=25)) == 60
        assert store.thin(now=START + timedelta(hours=25)) == 0
        kept = store.history("prod-eu", "orders", START, START + timedelta(days=2))
        assert kept == (hold[0], change, refusals[0], newest)

    def test_after_90_days_only_the_last_of_each_group_is_known(self, store: DecisionStore, advice: MakeAdvice) -> None:
        """A group without decisions for a quarter still has its last one."""
        old = [advice(recommendation_id=f"r-{hour}", issued_at=START + hour * 60 * MINUTE) for hour in range(3)]
        other = advice(recommendation_id="r-o", group="billing", issued_at=START)
        for decision in (*old, other):
            store.save(decision)
        assert store.thin(now=START + timedelta(days=91)) == 2
        assert store.latest("prod-eu", "orders") == old[-1]
        assert store.latest("prod-eu", "billing") == other

    def test_p18_an_account_comes_back_in_order_and_its_newest_parts_replace_older_ones(
        self, store: DecisionStore, advice: MakeAdvice
    ) -> None:
        """Parts are those of their own group, from an instant on, as they were written last."""
        parts = [AccountPart("prod-eu", "orders", START + quarter * 15 * MINUTE, f"{quarter}") for quarter in range(3)]
        other = AccountPart("prod-eu", "billing", START, "other")
        store.save(advice(), [*reversed(parts), other])
        changed = parts[2]._replace(document="changed")
        store.save(advice(recommendation_id="r-2"), [changed])
        store.save(advice(recommendation_id="r-3"))
        assert store.account("prod-eu", "orders", since=START + 15 * MINUTE) == (parts[1], changed)
        assert store.account("prod-eu", "billing", since=START) == (other,)
        assert store.groups_with_account(since=START) == {("prod-eu", "orders"), ("prod-eu", "billing")}
        assert store.groups_with_account(since=START + MINUTE) == {("prod-eu", "orders")}

    def test_an_account_is_kept_for_a_day(self, store: DecisionStore, advice: MakeAdvice) -> None:
        """A group that is gone leaves nothing behind."""
        parts = [AccountPart("prod-eu", "orders", START + hour * 60 * MINUTE, "{}") for hour in (0, 2)]
        store.save(advice(), parts)
        store.thin(now=START + timedelta(hours=24, minutes=15))
        assert len(store.account("prod-eu", "orders", since=START)) == 2
        store.thin(now=START + timedelta(hours=26))
        assert store.account("prod-eu", "orders", since=START) == (parts[1],)

    def test_graded_moves_are_never_forgotten(self, store: DecisionStore, graded_move: MakeMove) -> None:
        """They are used for learning at any age."""
        store.keep_outcomes([graded_move()])
        store.thin(now=graded_move().graded_at + timedelta(days=400))
        assert store.outcomes("prod-eu", "orders", limit=9) == (graded_move(),)

    def test_a_graded_move_comes_back_as_it_was(self, store: DecisionStore, graded_move: MakeMove) -> None:
        """The expectation and the outcome are equal in every field; a move without advice is stored as well."""
        advised = graded_move()
        own = replace(advised.outcome, advised_as=None, start_up_seconds=None, ungraceful=True)
        foreign = graded_move(graded_at=advised.graded_at + MINUTE, outcome=own, promised=None)
        store.keep_outcomes([advised, foreign])
        assert store.outcomes("prod-eu", "orders", limit=9) == (foreign, advised)

    def test_the_last_moves_come_first(self, store: DecisionStore, graded_move: MakeMove) -> None:
        """In any order of saving, the newest come first, at most as many as requested, from the given instant on."""
        moves = [graded_move(graded_at=graded_move().graded_at + minute * MINUTE) for minute in range(5)]
        store.keep_outcomes(moves[3:])
        store.keep_outcomes(moves[:3])
        assert store.outcomes("prod-eu", "orders", limit=2) == (moves[4], moves[3])
        assert store.outcomes("prod-eu", "orders", limit=2, before=moves[3].graded_at) == (moves[2], moves[1])
        assert store.outcomes("prod-us", "orders", limit=2) == store.outcomes("prod-eu", "billing", limit=2) == ()

    def test_a_move_is_kept_once(self, store: DecisionStore, graded_move: MakeMove) -> None:
        """Of two processes that grade the same move the first one's grade stays; an empty list stores nothing."""
        store.keep_outcomes([])
        store.keep_outcomes([graded_move()])
        store.keep_outcomes([graded_move(promised=None), graded_move(group="billing")])
        assert store.outcomes("prod-eu", "orders", limit=9) == (graded_move(),)
        assert store.outcomes("prod-eu", "billing", limit=9) == (graded_move(group="billing"),)

    def test_standings_are_the_changes_of_what_was_decided(
        self, store: DecisionStore, advice: MakeAdvice, refusal: MakeRefusal
    ) -> None:
        """Eight, eight again, none, eight, six: four standings, and only the asked span of the asked group."""
        refused = refusal(refused_at=START + 2 * MINUTE)
        for minute, count in ((0, 8), (1, 8), (3, 8), (4, 6), (9, 5)):
            at = START + minute * MINUTE
            store.save(advice(recommendation_id=f"r-{minute}", issued_at=at, desired_replicas=count))
        store.save(refused)
        store.save(advice(recommendation_id="other", group="billing", issued_at=START))
        found = store.standings("prod-eu", "orders", START, START + 9 * MINUTE)
        assert [(each.since_at, each.desired_replicas) for each in found] == [
            (START, 8),
            (START + 2 * MINUTE, None),
            (START + 3 * MINUTE, 8),
            (START + 4 * MINUTE, 6),
        ]
        assert [each.reason for each in found] == ["ramp_ahead", refused.reason, "ramp_ahead", "ramp_ahead"]
        assert store.standings("prod-eu", "orders", START + 4 * MINUTE, START + 9 * MINUTE) == found[3:]

    def test_a_hold_is_in_force_until_it_ends_or_is_released(self, store: DecisionStore) -> None:
        """Holds come back equal, oldest first, without those that are over; an instant is compared in UTC."""
        hour = timedelta(hours=1)
        fleet = Hold(scope=HoldScope(), reason="broker upgrade", placed_at=START, until=START + hour)
        shop = Hold(scope=HoldScope(namespace="shop"), reason="sale", placed_at=START + MINUTE)
        store.place_hold(shop)
        store.place_hold(fleet)
        assert store.holds(now=START + MINUTE) == (fleet, shop)
        assert store.holds(now=(START + hour).astimezone(timezone(timedelta(hours=2)))) == (shop,)
        assert store.release_hold(HoldScope(namespace="shop", group="orders")) is None
        assert store.release_hold(HoldScope(namespace="shop")) == shop
        assert store.holds(now=START) == (fleet,)

    def test_a_hold_replaces_the_one_with_the_same_scope(self, store: DecisionStore) -> None:
        """A longer hold on the same groups is one hold."""
        scope = HoldScope(cluster="prod-eu", group="orders")
        store.place_hold(Hold(scope=scope, reason="first", placed_at=START, until=START + MINUTE))
        longer = Hold(scope=scope, reason="second", placed_at=START, until=START + 2 * MINUTE)
        store.place_hold(longer)
        assert store.holds(now=START) == (longer,)


class TestMemoryStore(DecisionStoreContract):
    """The fake keeps to the contract, so tests may rely on it."""

    @pytest.fixture
    def store(self) -> DecisionStore:
        """An empty store."""
        return MemoryDecisionStore()


class TestSqlStore(DecisionStoreContract):
    """SQLite in a file."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """A file in a folder that does not exist yet."""
        return tmp_path / "state" / "decisions.sqlite"

    @pytest.fixture
    def store(self, path: Path) -> Iterator[SqlDecisionStore]:
        """An empty store."""
        store = SqlDecisionStore(sqlite_url(path))
        yield store
        store.close()

    def test_a_restart_forgets_nothing(self, store: SqlDecisionStore, path: Path, advice: MakeAdvice) -> None:
        """A second process reads what the first one saved, although the first did not close the store."""
        store.save(advice())
        second = SqlDecisionStore(sqlite_url(path))
        assert second.latest_recommendation("prod-eu", "orders") == advice()
        second.close()

    def test_many_writers_leave_one_newest_decision(
        self, store: SqlDecisionStore, path: Path, advice: MakeAdvice
    ) -> None:
        """Four writers with their own connections write to one group: no decision is lost, the newest is the latest."""
        start = advice().issued_at
        decisions = [advice(recommendation_id=f"r-{i}", issued_at=start + i * timedelta(seconds=1)) for i in range(40)]

        def write(part: list[Recommendation]) -> None:
            own = SqlDecisionStore(sqlite_url(path))
            for decision in part:
                own.save(decision)
            own.close()

        writers = [threading.Thread(target=write, args=(decisions[index::4],)) for index in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert store.latest("prod-eu", "orders") == decisions[-1]
        assert len(store.history("prod-eu", "orders", start, start + MINUTE)) == 40
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM decisions WHERE newest").fetchone() == (1,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()

    def test_a_store_of_the_first_revision_goes_on(
        self, tmp_path: Path, advice: MakeAdvice, refusal: MakeRefusal, graded_move: MakeMove
    ) -> None:
        """A file from before moves, holds, accounts and places were stored opens with its decisions, and stores all."""
        url = sqlite_url(tmp_path / "old.sqlite")
        old = SqlDecisionStore(url)
        old.save(advice())
        old.save(refusal(group="refused"))
        config = Config()
        config.set_main_option("script_location", str(Path(store_sql.__file__).parent / "migrations"))
        with old._database.engine.connect() as connection, connection.begin():
            config.attributes["connection"] = connection
            command.downgrade(config, "0001")
        old.close()
        store = SqlDecisionStore(url)
        assert store.standings("prod-eu", "orders", START - MINUTE, START + MINUTE) == ()
        assert [each.group for each in store.worst_page(limit=9)] == ["refused", "orders"]
        store.keep_outcomes([graded_move()])
        assert store.by_id("r-1") == advice()
        assert store.outcomes("prod-eu", "orders", limit=1) == (graded_move(),)
        store.place_hold(Hold(scope=HoldScope(), reason="upgrade", placed_at=advice().issued_at))
        assert len(store.holds(now=advice().issued_at)) == 1
        store.save(advice(recommendation_id="r-2"), [AccountPart("prod-eu", "orders", START, "{}")])
        assert len(store.account("prod-eu", "orders", since=START)) == 1
        assert len(store.standings("prod-eu", "orders", START, START + MINUTE)) == 1
        store.close()

    def test_a_decision_is_kept_with_its_account_or_not_at_all(
        self, store: SqlDecisionStore, advice: MakeAdvice
    ) -> None:
        """An account that was ahead of the advice, or behind it, would be another one than the advice was made from."""
        with store._database.engine.begin() as connection:
            connection.execute(
                sa.text("CREATE TRIGGER full BEFORE INSERT ON decisions BEGIN SELECT RAISE(ABORT, 'disk full'); END")
            )
        with pytest.raises(UnavailableError, match="disk full"):
            store.save_all(
                [(advice(), [AccountPart("prod-eu", "orders", START, "{}")]), (advice(recommendation_id="r-2"), ())]
            )
        assert store.account("prod-eu", "orders", since=START) == ()

    def test_all_moves_are_kept_or_none(self, store: SqlDecisionStore, graded_move: MakeMove) -> None:
        """The first of two moves is not kept if the second cannot be written."""
        with store._database.engine.begin() as connection:
            limit = "CREATE TRIGGER full BEFORE INSERT ON outcomes WHEN (SELECT count(*) FROM outcomes) = 1"
            connection.execute(sa.text(f"{limit} BEGIN SELECT RAISE(ABORT, 'disk full'); END"))
        with pytest.raises(UnavailableError, match="disk full"):
            store.keep_outcomes([graded_move(), graded_move(graded_at=graded_move().graded_at + MINUTE)])
        assert store.outcomes("prod-eu", "orders", limit=9) == ()

    def test_a_page_is_found_without_looking_at_the_history(self, store: SqlDecisionStore) -> None:
        """Pages, latest decisions and advice, last moves and accounts each read an index, for any length of history."""
        plans: list[str] = []

        def explain(connection: sa.Connection, _cursor: object, statement: str, parameters: Any, *_: object) -> None:  # noqa: ANN401  # the driver's own
            if statement.startswith("SELECT"):
                cursor = connection.connection.cursor()
                cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans.append(" ".join(str(step[-1]) for step in cursor.fetchall()))

        sa.event.listen(store._database.engine, "before_cursor_execute", explain)
        store.latest_page(after=("a", "b"), limit=50)
        store.latest("a", "b")
        store.latest_recommendation("a", "b")
        store.outcomes("a", "b", limit=5, before=START)
        store.account("a", "b", since=START)
        store.standings("a", "b", START, START)
        store.worst_page(limit=50)
        store.worst_page(after=Place(Urgency(2, "USD", -1.0), ("a", "b")), limit=50)
        store.fleet_totals(now=START)
        assert [plan.split(" (")[0] for plan in plans] == [
            "SEARCH decisions USING INDEX decisions_newest",
            "SEARCH decisions USING INDEX decisions_newest",
            "SEARCH decisions USING INDEX decisions_by_kind",
            "SEARCH outcomes USING INDEX sqlite_autoindex_outcomes_1",
            "SEARCH accounts USING INDEX sqlite_autoindex_accounts_1",
            "SEARCH decisions USING COVERING INDEX decisions_by_time",
            "SCAN decisions USING INDEX decisions_worst_first",
            "SEARCH decisions USING INDEX decisions_worst_first",
            "SCAN decisions USING COVERING INDEX decisions_worst_first USE TEMP B-TREE FOR GROUP BY",
        ]
        # A sort of its own would read all groups for one page.
        assert not [plan for plan in plans[:-1] if "TEMP B-TREE" in plan]
        plans.clear()
        store.worst_page_with_totals(limit=50, now=START)
        (both,) = plans
        assert both.count("SCAN decisions USING INDEX decisions_worst_first") == 1
        assert both.count("SCAN decisions USING COVERING INDEX decisions_worst_first") == 1

    def test_a_document_that_cannot_be_read_costs_its_own_place(
        self, path: Path, advice: MakeAdvice, graded_move: MakeMove
    ) -> None:
        """It made the whole page a 503; a refusal has the reason, until the next decision takes its place."""
        counted: list[str] = []
        store = SqlDecisionStore(sqlite_url(path), borders=Borders(counted.append))
        for number, group in enumerate(("a", "orders", "z")):
            store.save(advice(group=group, recommendation_id=f"r-{number}"))
        later = advice(recommendation_id="r-9", issued_at=advice().issued_at + MINUTE)
        store.save(later)
        store.keep_outcomes([graded_move(), graded_move(graded_at=graded_move().graded_at + MINUTE)])
        with store._database.engine.begin() as connection:
            connection.execute(sa.text("UPDATE decisions SET document = '{}' WHERE id = 'r-9'"))
            connection.execute(sa.text("UPDATE outcomes SET document = '{' WHERE rowid = 1"))
        first, broken, last = store.latest_page()
        assert (first.group, last.group) == ("a", "z")
        assert isinstance(broken, Refusal)
        assert (broken.group, broken.reason, broken.refused_at) == ("orders", "unsupported", later.issued_at)
        assert broken.sentence.startswith(
            "The decision r-9 cannot be read: a stored Recommendation cannot be read: field"
        )
        assert store.latest("prod-eu", "orders") == broken
        assert store.latest_recommendation("prod-eu", "orders") == advice(recommendation_id="r-1")
        assert len(store.outcomes("prod-eu", "orders", limit=5)) == 1
        assert store.thin(now=later.issued_at + timedelta(days=3)) == 0
        with pytest.raises(MalformedError, match="cannot be read"):
            store.by_id("r-9")
        assert set(counted) == {"document"}
        store.close()

    def test_a_store_of_a_newer_version_is_one_sentence(self, store: SqlDecisionStore, path: Path) -> None:
        """It was told as a bug of ours."""
        with store._database.engine.begin() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(RejectedError, match=r"decisions\.sqlite was written by a newer lagcast .*9999"):
            SqlDecisionStore(sqlite_url(path))

    def test_a_full_disk_is_told_as_an_outage_and_over_when_there_is_room(
        self, store: SqlDecisionStore, advice: MakeAdvice
    ) -> None:
        """SQLite itself says so at its own limit of pages; the loop refuses until the next write succeeds."""
        limit = ["PRAGMA max_page_count = 1"]

        def no_room(connection: Any, *_: object) -> None:  # noqa: ANN401  # the driver's own
            connection.execute(limit[0])

        sa.event.listen(store._database.engine, "checkout", no_room)
        decisions = [advice(recommendation_id=f"r-{n}", issued_at=START + n * MINUTE) for n in range(100)]
        with pytest.raises(UnavailableError, match=r"could not save to the decision store .*disk is full"):
            list(map(store.save, decisions))
        limit[0] = "PRAGMA max_page_count = 100000"
        store.save(advice(recommendation_id="later", issued_at=START + timedelta(days=1)))
        assert store.by_id("later") is not None

    def test_readers_who_take_all_connections_are_told_so_and_leave_another_store_alone(
        self, store: SqlDecisionStore, path: Path, advice: MakeAdvice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Forty readers of metrics took the loop's connections, and it ended."""
        monkeypatch.setattr("recommender.adapters.store_database._CONNECTION_TIMEOUT_SECONDS", 0.1)
        readers = SqlDecisionStore(sqlite_url(path))
        with ExitStack() as taken:
            for _ in range(5):
                taken.enter_context(readers._database.engine.connect())
            with pytest.raises(UnavailableError, match="all 5 connections were in use for"):
                readers.groups()
            store.save(advice())
        assert readers.groups() == (("prod-eu", "orders"),)
        readers.close()

    def test_a_file_that_is_no_database_is_named(self, tmp_path: Path) -> None:
        """The error names the store and has the database's message."""
        path = tmp_path / "notes.sqlite"
        path.write_text("not a database, but long enough to look like a file of one " * 20)
        with pytest.raises((UnavailableError, RejectedError), match=r"notes\.sqlite.*not a database"):
            SqlDecisionStore(sqlite_url(path))

    def test_a_url_that_is_none_is_refused(self) -> None:
        """The error shows the form of a store URL."""
        with pytest.raises(RejectedError, match="sqlite:////var"):
            SqlDecisionStore("not a url")


def test_the_error_for_a_driver_that_is_not_installed_names_the_supported_one() -> None:
    """The error has the form of the URL and the extra that installs its driver."""
    with pytest.raises(RejectedError, match=r"postgresql\+psycopg://.* pip install 'lagcast\[postgres\]'"):
        SqlDecisionStore("postgresql+pg8000://lagcast@db/lagcast")
