"""The account of who is followed is kept: whoever goes on with it goes on as if there had been no restart."""

import gc
import tracemalloc
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cost_model.physics.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.packing import pack
from forecasting.units import Replicas
from recommender.following.experts import PLANNERS, Experts
from recommender.following.kept_account import (
    SLOT_SECONDS,
    SLOTS,
    AccountSlot,
    CountedRow,
    CountedRows,
    account_of,
    kept_since,
    part_of,
)
from tests.recommender.following.by_the_row import NOON, PROFILE, RATE, row
from tests.recommender.following.test_experts import LEARNED, PRICES, experts

DAY_OF_ROWS = 5760


class Step(NamedTuple):
    """A stretch of equal rows, and what both kinds of plans want in it."""

    rows: int
    members: int
    rate: float
    lag_seconds: float
    wanted: tuple[int, int]


steps = st.lists(
    st.builds(
        Step,
        st.integers(1, 40),
        st.sampled_from([1, 4, 6, 8, 12, 24]),
        st.sampled_from([500.0, 4000.0, 5600.0, 9000.0]),
        st.sampled_from([0.5, 2.5, 30.0]),
        st.tuples(st.sampled_from([4, 8, 24]), st.sampled_from([4, 8, 24])),
    ),
    min_size=1,
    max_size=8,
)


def rows_of(drawn: Iterable[Step]) -> list[tuple[GroupInterval, Step]]:
    """All rows, each with its stretch."""
    rows: list[tuple[GroupInterval, Step]] = []
    for step in drawn:
        for _ in range(step.rows):
            each = row(len(rows), members=step.members, rate=step.rate, lag_seconds=step.lag_seconds)
            rows.append((each, step))
    return rows


def go_on(beside: Experts, rows: Iterable[tuple[GroupInterval, Step]]) -> list[object]:
    """Who is followed after each row, with every cost by which it is chosen."""
    found: list[object] = []
    for each, step in rows:
        beside.observe(each, capacity=RATE, learned=LEARNED)
        followed = beside.choose()
        for planner in PLANNERS:
            beside.plan(planner, lambda *_, count=step.wanted[planner]: count)
        found.append((followed, beside.standing, beside.forecast_value(proven=True), beside.regret, beside.cheapest))
    return found


def resumed(account: Sequence[AccountSlot], rows: Iterable[GroupInterval], *, members: int) -> Experts:
    """Another one that goes on with the account, after those of the rows that came before the first decision."""
    other = experts(members=members)
    for each in rows:
        if each.interval_end_at <= account[-1].state.decided_after:
            other.observe(each, capacity=RATE, learned=LEARNED)
    other.resume(account)
    return other


def through_a_store(kept: dict[int, str], changed: Sequence[AccountSlot]) -> Sequence[AccountSlot]:
    """What a store that has `kept` earlier parts gives back."""
    for slot in changed:
        kept[slot.slot] = part_of(slot, cluster="c", group="g").document
    parts = [part_of(slot, cluster="c", group="g") for slot in changed][:1]
    return account_of([parts[0]._replace(document=kept[slot]) for slot in sorted(kept)])


@settings(max_examples=40, deadline=None)
@given(drawn=steps, cut=st.integers(1, 200), kept_every=st.integers(1, 20), before=st.integers(0, 30))
@example(drawn=[Step(120, 24, 6000.0, 2.5, (24, 6))] * 2, cut=130, kept_every=1, before=0)
def test_p18_who_goes_on_with_a_kept_account_goes_on_as_the_one_before(
    drawn: list[Step], cut: int, kept_every: int, before: int
) -> None:
    """Wherever it is cut, after any rows without a decision: the same one is followed, and every cost is the same."""
    rows = rows_of(drawn)
    cut = min(cut, len(rows))
    earlier = [row(place - before, members=12) for place in range(before)]
    one, kept = experts(), dict[int, str]()
    account: Sequence[AccountSlot] = ()
    for each in earlier:
        one.observe(each, capacity=RATE, learned=LEARNED)
    for place in range(0, cut, kept_every):
        go_on(one, rows[place : min(place + kept_every, cut)])
        account = through_a_store(kept, one.drain_account())
    assume(account)
    other = resumed(account, [*earlier, *(each for each, _ in rows)], members=3)
    same = (other.standing, other.forecast_value(proven=True), other.regret, other.wanted)
    assert same == (one.standing, one.forecast_value(proven=True), one.regret, one.wanted)
    assert go_on(other, rows[cut:]) == go_on(one, rows[cut:])


@settings(max_examples=60, deadline=None)
@given(days=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 90)), max_size=12), before=st.integers(0, 200))
def test_rows_are_remembered_in_order_and_forgotten_by_the_slot(days: list[tuple[int, int]], before: int) -> None:
    """As a list of them would: any number of rows in a slot, slots without rows, rows without plans first."""
    rows = CountedRows()
    known, slot, count = list[CountedRow](), 1_964_000, 0
    for gap, in_slot in days:
        slot += gap
        for _ in range(in_slot):
            each = CountedRow(15.0, 0.125 * count, count % 22 - 1, 120.0, 0.0, slot, decided=count >= before)
            rows.append(each)
            known.append(each)
            count += 1
        rows.forget(slot - 2)
        known = [each for each in known if each.slot > slot - 2]
    assert len(rows) == len(known)
    assert rows.table.tolist() == known
    assert rows.newest.tolist() == known[-1:]
    assert rows.without_plans() == sum(not each.decided for each in known)
    for one in range(slot - 3, slot + 1):
        assert rows.decided_in(one) == tuple(each for each in known if each.decided and each.slot == one)


@given(rate=st.floats(0.0, 1e9), late=st.floats(0.0, 1e12))
def test_rates_and_costs_of_a_row_are_remembered_to_a_ten_millionth(rate: float, late: float) -> None:
    """Whatever they are; and what has been through the table once comes out of it unchanged."""
    rows, again = CountedRows(), CountedRows()
    rows.append(CountedRow(15.0, rate, -1, 120.0, late, 1_964_000, decided=True))
    (found,) = rows.decided_in(1_964_000)
    assert (found.rate, found.late_messages) == pytest.approx((rate, late), rel=1e-7)
    again.append(found)
    assert again.decided_in(1_964_000) == (found,)


def test_a_day_of_rows_takes_50_kilobytes() -> None:
    """After three days of them, each 15 s, with rates of which none is like another one."""
    rows, rates = CountedRows(), np.random.default_rng(7).lognormal(8.0, 0.1, 3 * DAY_OF_ROWS)
    pack(rates)  # loads what packs
    tracemalloc.start()
    for place, rate in enumerate(rates.tolist()):
        rows.append(CountedRow(15.0, rate, -1, 120.0, 0.0, 1_964_000 + place // 60, decided=True))
        rows.forget(1_964_000 + place // 60 - SLOTS)
    gc.collect()  # 12 kB of what only refers to itself may wait for it
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(rows) == SLOTS * 60
    assert held < 50_000


def test_only_what_has_changed_is_given_to_be_kept() -> None:
    """The present quarter of an hour, after each decision; a quarter that is over, not again."""
    beside = experts()
    step = Step(1, 8, 6000.0, 2.5, (8, 8))
    slots = []
    go_on(beside, [(row(0), step)])
    for place in range(1, 121):
        go_on(beside, [(row(place), step)])
        slots.append([(slot.slot, len(slot.rows)) for slot in beside.drain_account()])
    assert all(len(changed) == 1 for changed in slots)
    assert slots[-1][0] == (slots[0][0][0] + 1, 60)
    assert beside.drain_account() == ()


def test_what_was_not_stored_is_given_again_and_what_is_older_than_the_account_is_not() -> None:
    """Beside what has changed since; after two days, the quarter of an hour of the first one is no part of it."""
    beside = experts()
    step = Step(1, 8, 6000.0, 2.5, (8, 8))
    go_on(beside, [(row(place), step) for place in range(4)])
    (first,) = beside.drain_account()
    beside.keep_again()
    go_on(beside, [(row(70), step)])
    assert [slot.slot for slot in beside.drain_account()] == [first.slot, first.slot + 1]
    beside.keep_again()
    go_on(beside, [(row(2 * 5760), step)])
    (newest,) = beside.drain_account()
    assert newest.slot > first.slot + 96


def test_before_the_first_decision_nothing_has_to_be_kept() -> None:
    """Rows without a decision are those of the feature table."""
    beside = experts()
    for place in range(10):
        beside.observe(row(place), capacity=RATE, learned=LEARNED)
    assert beside.drain_account() == ()


def test_an_account_of_another_day_is_forgotten_row_by_row() -> None:
    """Half a day later the costs of the older half are gone, as they are for one that was never stopped."""
    step = Step(1, 24, 6000.0, 2.5, (24, 24))
    one, kept = experts(members=24), dict[int, str]()
    account: Sequence[AccountSlot] = ()
    for place in range(0, DAY_OF_ROWS, 60):
        go_on(one, [(row(each, members=24), step) for each in range(place, place + 60)])
        account = through_a_store(kept, one.drain_account())
    other = resumed(account, [row(0, members=24)], members=24)
    later = [(row(DAY_OF_ROWS + each, members=24), step) for each in range(0, DAY_OF_ROWS // 2, 10)]
    assert go_on(other, later) == go_on(one, later)


def test_a_quarter_is_kept_in_few_kilobytes() -> None:
    """One document a group and cycle is written: 4.6 kB at the end of a quarter with two moves under way."""
    beside = experts()
    go_on(beside, rows_of([Step(60, 8, 6123.456, 2.5, (24, 6))]))
    assert all(len(part_of(slot, cluster="c", group="g").document) < 6000 for slot in beside.drain_account())


def test_what_a_group_costs_while_no_advice_is_in_force_is_charged_to_nobody() -> None:
    """An hour on 24 replicas where plans want 6: they pay for it if they scaled the group, else what 6 would cost."""
    costs = {}
    for is_advised in (True, False):
        beside = experts(members=6)
        go_on(beside, rows_of([Step(4, 6, 5000.0, 2.5, (6, 6))]))
        for place in range(4, 244):
            each = row(place, members=24, rate=5000.0)
            beside.observe(each, capacity=RATE, learned=LEARNED, is_advised=is_advised)
        costs[is_advised] = beside.cost_followed
    assert costs[True] > 2.0 * costs[False]
    assert costs[False] > 0.0


def test_with_other_bounds_plans_that_are_not_followed_begin_with_the_groups_count() -> None:
    """Places of a kept account name other counts then; what was paid and who is followed stay."""
    one, kept = experts(members=24), dict[int, str]()
    go_on(one, rows_of([Step(200, 24, 5600.0, 2.5, (24, 6))]))
    account = through_a_store(kept, one.drain_account())
    bounds: GroupProfile = replace(PROFILE, min_replicas=Replicas(4), max_replicas=Replicas(12))
    other = Experts(bounds, capacity=RATE, prices=PRICES, max_lag_seconds=10.0, learned=LEARNED, members=12)
    other.resume(account)
    assert other.standing.used == pytest.approx(one.standing.used)
    asked: list[int] = []

    def plan(replicas: int, _: float) -> int:
        asked.append(replicas)
        return replicas

    for planner in PLANNERS:
        other.plan(planner, plan)
    assert asked == [12] * len(asked)


def test_an_account_begins_so_long_ago_as_slots_are_remembered() -> None:
    """The oldest quarter of an hour that counts begins a day before the present one."""
    since = kept_since(NOON)
    assert (NOON - since).total_seconds() == (SLOTS - 1) * SLOT_SECONDS
    assert np.isclose(since.timestamp() % SLOT_SECONDS, 0.0)
