"""A group that is decided by itself gets the decision that it gets among all others, in its second run as well."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pytest

from cli.fleet import fleet_work
from cli.wiring import open_store, recommender
from forecasting.refusal import Refusal
from recommender.adapters.documents import from_document, kind, to_document, to_outcome_document
from recommender.adapters.feature_table import FeatureTable
from recommender.adapters.fleet import KeptGroup
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.configuring.settings import Settings, load_settings
from recommender.deciding.hold import Hold, HoldScope
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.following.kept_account import kept_since
from recommender.ports import FORGOTTEN_AFTER, AccountPart, Group
from recommender.watched_groups import OUTCOMES_KEPT_IN_MIND
from tests.feature_folder import SCHEMA, add_rows
from tests.fleet_of_kinds import BEGAN_AT, CONFIG, DECIDED, FIRST_AT, SECOND_AT, TEACHERS, rows_between

NOTHING_KEPT = pa.schema([(name, pa.string()) for name in ("kind", "document")]).append(
    pa.field("at", pa.timestamp("us", tz="UTC"))
)
Kept = Mapping[Group, pa.Table]
Run = Callable[..., tuple[list[Decision], dict[Group, pa.Table]]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of the fleet."""
    (tmp_path / "lagcast.yaml").write_text(CONFIG)
    return load_settings(tmp_path / "lagcast.yaml", {"LAGCAST_STATE_DIR": str(tmp_path / "state")})


@pytest.fixture
def run(settings: Settings) -> Run:
    """`run(now, kept=..., groups=...)`: the decisions on those groups, or on all, and the rows that are to be kept."""

    def decided(
        now: datetime,
        *,
        kept: Kept | None = None,
        groups: Collection[str] = (*DECIDED, "off"),
        holds: tuple[Hold, ...] = (),
        lost: str | None = None,
        gone: Collection[str] = (),
    ) -> tuple[list[Decision], dict[Group, pa.Table]]:
        work = fleet_work(settings, holds=holds, now=now)
        rows: dict[Group, list[dict[str, object]]] = {("c", group): [] for group in groups}
        for row in rows_between(BEGAN_AT, min(now, SECOND_AT)):
            if row.group in groups:
                rows[row.cluster, row.group].append({name: getattr(row, name) for name in SCHEMA.names})
        lessons, opened = [], []
        for group, values in rows.items():
            before = (kept or {}).get(group, NOTHING_KEPT.empty_table())
            table = pa.Table.from_pylist(values[::-1], SCHEMA)
            lesson, one = work.open_group(group, table, before, is_listed=group[1] not in gone, lost=lost)
            lessons += [] if lesson is None else [lesson]
            opened.append(one)
        prior = work.pooled(lessons)
        after = {group: work.decide_group(one, prior) for group, one in zip(rows, opened, strict=True)}
        kept_after = {group: table.filter(pc.equal(table["table"], "kept")) for group, table in after.items()}
        return [decision for table in after.values() for decision in _decisions(table)], kept_after

    return decided


def _decisions(rows: pa.Table) -> list[Decision]:
    found = rows.filter(pc.equal(rows["table"], "decisions")).select(["kind", "document"])
    return [from_document(row["kind"], row["document"]) for row in found.to_pylist()]


def _with(kept: Kept, group: str, kind_of_row: str, document: str) -> dict[Group, pa.Table]:
    """The same with another document in the rows of that kind of a group."""
    rows = [
        row | ({"document": document} if row["kind"] == kind_of_row else {}) for row in kept["c", group].to_pylist()
    ]
    return {**kept, ("c", group): pa.Table.from_pylist(rows, kept["c", group].schema)}


def _kept_of(rows: pa.Table) -> dict[str, list[str]]:
    """The documents that are kept of a group, by their kind."""
    kinds = ("advice", "move", "account")
    return {each: rows.filter(pc.equal(rows["kind"], each))["document"].to_pylist() for each in kinds}


def _stored(store: SqlDecisionStore, group: Group, *, now: datetime) -> dict[str, list[str]]:
    """The same in the store of one process."""
    advice = store.latest_recommendation(*group)
    return {
        "advice": [] if advice is None else [to_document(advice)],
        "move": [to_outcome_document(move) for move in store.outcomes(*group, limit=OUTCOMES_KEPT_IN_MIND)],
        "account": [part.document for part in store.account(*group, since=kept_since(now))],
    }


def _documents(decisions: list[Decision]) -> dict[str, str]:
    return {decision.group: kind(decision) + to_document(decision) for decision in decisions}


def test_two_runs_decide_as_one_process_that_runs_twice(run: Run, settings: Settings, tmp_path: Path) -> None:
    """Every document is equal to its last byte, of advice and refusals, with a hold, and what groups taught others."""
    store = open_store(settings)
    store.place_hold(Hold(scope=HoldScope(group="growing"), reason="a release", placed_at=BEGAN_AT, until=None))
    kept: Kept = {}
    for before, now in ((BEGAN_AT, FIRST_AT), (FIRST_AT, SECOND_AT)):
        add_rows(tmp_path / "features", rows_between(before, now))
        alone = recommender(FeatureTable(tmp_path / "features"), settings, store).run_once(now=now)
        decisions, kept = run(now, kept=kept, holds=store.holds(now=now))
        assert _documents(decisions) == _documents(list(alone))
        assert sorted(_documents(decisions)) == sorted(DECIDED)
        for group, rows in kept.items():
            assert _kept_of(rows) == _stored(store, group, now=now)
    by_name = {decision.group: decision for decision in decisions}
    growing, pupil, learned = by_name["growing"], by_name["pupil"], by_name["learned"]
    assert isinstance(growing, Recommendation)
    assert isinstance(pupil, Recommendation)
    assert isinstance(learned, Recommendation)
    # Otherwise the equality would say nothing on these.
    assert growing.supersedes is not None
    assert growing.binding_rule == "hold"
    assert pupil.learned is not None
    assert pupil.learned.similar_groups == len(TEACHERS)
    assert learned.capacity.source == "saturated_windows"
    assert {name for name, documents in _kept_of(kept["c", TEACHERS[0]]).items() if documents} == {"advice", "move"}
    assert {each.reason for each in decisions if isinstance(each, Refusal)} == {
        *("history_stale", "partial_data", "unsupported")
    }


@pytest.mark.parametrize("kind_of_row", ["advice", "move"])
def test_a_group_of_which_something_kept_cannot_be_read_is_refused_once(run: Run, kind_of_row: str) -> None:
    """Its refusal has the reason, others are decided as ever, and the next run begins without what was unreadable."""
    groups = ("teacher-a", "teacher-b")
    _, kept = run(FIRST_AT, groups=groups)
    broken = _with(kept, "teacher-a", kind_of_row, '{"half": ')
    (refusal, other), after = run(SECOND_AT, kept=broken, groups=groups)
    assert isinstance(refusal, Refusal)
    assert (refusal.group, refusal.reason) == ("teacher-a", "source_unreachable")
    assert refusal.sentence.startswith("MalformedError: a stored ")
    (_, as_ever), _ = run(SECOND_AT, kept=kept, groups=groups)
    assert to_document(other) == to_document(as_ever)
    (again, _), _ = run(SECOND_AT + timedelta(minutes=1), kept=after, groups=groups)
    assert isinstance(again, Recommendation)
    assert again.supersedes is None or kind_of_row == "move"


def test_where_a_file_of_kept_rows_is_lost_only_groups_without_any_are_refused(run: Run) -> None:
    """A group whose kept rows are there is decided; one without may have lost them, and begins anew in the next run."""
    groups = ("pupil", "eager")
    _, kept = run(FIRST_AT, groups=groups)
    (decided, refusal), after = run(
        SECOND_AT, kept={("c", "pupil"): kept["c", "pupil"]}, groups=groups, lost="x is gone"
    )
    assert isinstance(decided, Recommendation)
    assert isinstance(refusal, Refusal)
    assert refusal.sentence == "MalformedError: x is gone"
    (_, again), _ = run(SECOND_AT + timedelta(minutes=1), kept=after, groups=groups, lost="x is gone")
    assert isinstance(again, Recommendation)


def test_a_group_at_which_workers_die_is_refused_and_goes_on_from_what_was_kept(run: Run, settings: Settings) -> None:
    """The refusal tells how often and what helps; advice and moves stay, so that a run with more memory continues."""
    group = ("c", "teacher-a")
    _, kept = run(FIRST_AT, groups=("teacher-a",))
    rows = fleet_work(settings, holds=(), now=SECOND_AT).refuse_group(group, kept[group], deaths=8)
    (refusal,) = _decisions(rows)
    assert isinstance(refusal, Refusal)
    assert (refusal.cluster, refusal.group, refusal.reason) == (*group, "unsupported")
    assert refusal.refused_at == SECOND_AT
    assert "died 8 times" in refusal.sentence
    assert "more memory" in refusal.remedy
    assert "`mode: off`" in refusal.remedy
    after = rows.filter(pc.equal(rows["table"], "kept"))
    assert _kept_of(after) == _kept_of(kept[group])
    later = SECOND_AT + timedelta(minutes=1)
    (again,), _ = run(later, kept={group: after}, groups=("teacher-a",))
    (as_ever,), _ = run(later, kept=kept, groups=("teacher-a",))
    assert to_document(again) == to_document(as_ever)


def test_a_group_that_is_gone_is_kept_for_a_quarter_and_one_that_is_off_is_not_decided(run: Run) -> None:
    """Neither gets a decision; the moves of the one that is gone are there when it comes back, and not for ever."""
    groups = ("off", "teacher-a")
    _, kept = run(FIRST_AT, groups=groups)
    decisions, after = run(SECOND_AT, kept=kept, groups=groups, gone=("teacher-a",))
    assert decisions == []
    assert after["c", "teacher-a"].sort_by("at") == kept["c", "teacher-a"].sort_by("at")
    late = FIRST_AT + FORGOTTEN_AFTER + timedelta(seconds=1)
    _, forgotten = run(late, kept=kept, groups=("teacher-a",), gone=("teacher-a",))
    assert forgotten["c", "teacher-a"].num_rows == 0


def test_parts_of_an_account_are_kept_for_a_day_and_replaced_where_they_have_changed(run: Run) -> None:
    """The newest of two parts with the same beginning comes back, and one that no account of now has does not."""
    decisions, kept = run(FIRST_AT, groups=("pupil",))
    group = ("c", "pupil")
    store = KeptGroup(group, kept[group], holds=(), lost=None)
    old, now = kept_since(FIRST_AT) - timedelta(minutes=15), FIRST_AT - timedelta(minutes=15)
    store.save(decisions[0], [AccountPart(*group, old, "old"), AccountPart(*group, now, "first")])
    store.save(decisions[0], [AccountPart(*group, now, "second")])
    rows = store.rows(None, now=FIRST_AT, is_listed=True)
    again = KeptGroup(group, rows, holds=(), lost=None)
    assert again.account(*group, since=old) == (AccountPart(*group, now, "second"),)
