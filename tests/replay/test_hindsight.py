"""The best plan found: its result on loads that can be planned by hand, and that no policy is cheaper."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import replay.hindsight
from forecasting.units import IntArray
from replay.contest import Contest, Entry, RunCost, play
from replay.hindsight import HINDSIGHT, best_plan
from replay.plans import (
    earlier_ups,
    later_ups,
    merged_moves,
    minute_plan,
    stretches_of,
    without_shortest_excursion,
)
from replay.trace import Trace
from replay.world import World

Worlds = Callable[..., World]
Loads = Callable[..., Trace]


def plan(world: World, trace: Trace, *, capacity_factor: float = 1.0, change: float = 0.1, lead: int = 1) -> list[int]:
    planned = minute_plan(world, trace, capacity_factor=capacity_factor, change_replica_hours=change, lead_minutes=lead)
    return list(planned)


@pytest.mark.parametrize(
    ("rate", "capacity_factor", "replicas"),
    # 24 partitions, 100 messages/s each: 6 carry 600, 8 carry 800, 12 carry 1,200, and nothing lies between.
    [
        (0.0, 1.0, 1),
        (590.0, 1.0, 6),
        (600.0, 1.0, 6),
        (610.0, 1.0, 8),
        (590.0, 1.1, 8),
        (801.0, 1.0, 12),
        (9e9, 1.0, 24),
    ],
)
def test_a_steady_load_gets_the_fewest_that_carry_it(
    calm_world: Worlds, load: Loads, rate: float, capacity_factor: float, replicas: int
) -> None:
    """One useful count, with the capacity factor, covers the whole load; where none is enough, it is the largest."""
    assert plan(calm_world(), load(*[rate] * 5), capacity_factor=capacity_factor) == [replicas] * 5


@pytest.mark.parametrize("lead", [0, 1, 2, 9])
def test_replicas_are_added_before_the_rate_rises(calm_world: Worlds, load: Loads, lead: int) -> None:
    """600 messages/s, then 1,100 from minute 5 to 8: twelve replicas `lead` minutes before, and six again at once."""
    trace = load(*[600.0] * 5, *[1_100.0] * 3, *[600.0] * 4)
    early = min(lead, 5)
    assert plan(calm_world(), trace, change=0.0, lead=lead) == [6] * (5 - early) + [12] * (3 + early) + [6] * 4


@pytest.mark.parametrize(("change", "fewest"), [(0.49, 6), (0.51, 12)])
def test_a_dip_is_used_only_if_it_pays_for_both_changes(
    calm_world: Worlds, load: Loads, change: float, fewest: int
) -> None:
    """Ten minutes with six instead of twelve save one replica-hour; scaling in and out again costs two changes."""
    trace = load(*[1_100.0] * 5, *[600.0] * 10, *[1_100.0] * 5)
    assert min(plan(calm_world(), trace, change=change)) == fewest


@pytest.mark.parametrize(
    ("rates", "replicas"),
    # 12 of 60 s at 700 are more than a tenth: eight carry them. 6 of 60 s are a tenth: the mean of 160 counts, two do.
    [([100.0, 100.0, 100.0, 100.0, 700.0], 8), ([100.0] * 9 + [700.0], 2)],
)
def test_rates_within_a_minute_are_planned_for(
    calm_world: Worlds, load: Loads, rates: list[float], replicas: int
) -> None:
    """In a trace with steps below a minute, the rate that is exceeded 10 % of the time counts, or a higher mean."""
    trace = load(*rates, *rates, step_seconds=60 // len(rates))
    assert plan(calm_world(), trace) == [replicas] * 2


def test_a_last_part_of_a_minute_is_planned_for(calm_world: Worlds, load: Loads) -> None:
    """150 s are a plan of three minutes."""
    assert plan(calm_world(), load(600.0, 600.0, 600.0, step_seconds=50)) == [6, 6, 6]


counts = st.lists(st.integers(1, 9), min_size=1, max_size=40).map(lambda listed: np.array(listed, dtype=np.int64))


def moves(planned: Iterable[int]) -> int:
    return sum(a != b for a, b in pairwise(planned))


@given(planned=counts)
def test_earlier_ups_only_add_and_later_ups_only_take_away(planned: IntArray) -> None:
    """Each adds or keeps the count of the next minute, or of the minute before."""
    early, late = earlier_ups(planned), later_ups(planned)
    assert (early >= planned).all()
    assert (late <= planned).all()
    assert np.array_equal(early[:-1], np.maximum(planned[:-1], planned[1:]))
    assert np.array_equal(late[1:], np.minimum(planned[:-1], planned[1:]))
    assert (early[-1], late[0]) == (planned[-1], planned[0])


@given(planned=counts, minutes=st.integers(1, 15))
def test_merging_moves_never_adds_a_move_nor_takes_a_replica(planned: IntArray, minutes: int) -> None:
    """Stretches of more minutes, and the two at the ends, keep their counts."""
    merged = merged_moves(planned, minutes=minutes)
    assert merged.shape == planned.shape
    assert (merged >= planned).all()
    assert moves(merged.tolist()) <= moves(planned.tolist())
    assert merged.max() == planned.max()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([4, 4, 6, 8, 8], [4, 4, 8, 8, 8]),  # two ups become one, at the first
        ([8, 8, 6, 4, 4], [8, 8, 8, 4, 4]),  # two downs become one, at the second
        ([8, 8, 4, 6, 6], [8, 8, 6, 6, 6]),  # a dip is filled to its lower side
        ([4, 4, 8, 4, 4], [4, 4, 8, 4, 4]),  # a peak stays
    ],
)
def test_moves_within_a_minute_are_merged_upwards(before: list[int], after: list[int]) -> None:
    """There are fewer moves for some replica time, and never more lateness."""
    assert merged_moves(np.array(before), minutes=1).tolist() == after


@given(planned=counts)
def test_without_its_shortest_excursion_a_plan_has_fewer_moves(planned: IntArray) -> None:
    """A plan that only rises, only falls, or rises and falls in steps has no excursion and stays as it is."""
    less = without_shortest_excursion(planned)
    assert less.shape == planned.shape
    changed = not np.array_equal(less, planned)
    assert (moves(less.tolist()) < moves(planned.tolist())) is changed


def test_peaks_and_dips_of_the_shortest_length_go() -> None:
    """A peak and a dip of one minute are removed, those of two minutes stay, and steps are no excursions."""
    planned = np.array([4, 9, 4, 4, 4, 6, 6, 4, 4, 2, 4, 4, 5, 7, 7, 7])
    assert without_shortest_excursion(planned).tolist() == [4, 4, 4, 4, 4, 6, 6, 4, 4, 4, 4, 4, 5, 7, 7, 7]


@given(planned=counts)
def test_stretches_are_the_plan(planned: IntArray) -> None:
    """Joined again, they equal the plan, and neighbours differ."""
    stretches = stretches_of(planned)
    assert [count for count, minutes in stretches for _ in range(minutes)] == planned.tolist()
    assert all(a != b for (a, _), (b, _) in pairwise(stretches))


@pytest.fixture(name="wave")
def wave_fixture(calm_world: Worlds, load: Loads, contest: Callable[[World, Trace], Contest]) -> Contest:
    """Two hours between 400 and 1,600 messages/s."""
    return contest(calm_world(), load(*(1_000 + 600 * np.sin(np.arange(120) / 19.0))))


def test_no_policy_is_cheaper_than_the_bound(wave: Contest) -> None:
    """The bound costs no more than any policy; on a wave that it knows in advance it is cheaper, and not late."""
    others = [play(name, wave) for name in ("fixed", "hpa", "hpa-behavior", "keda", "useful-counts")]
    bound = best_plan(wave, others)
    assert bound.policy == HINDSIGHT
    assert bound.cost.total < 0.9 * min(entry.cost.total for entry in others)
    assert bound.late_share < 0.05
    assert bound.note.startswith("best plan found: minute plan, capacity factor")


def replayed_by(search: Callable[[], Entry], monkeypatch: pytest.MonkeyPatch) -> tuple[Entry, list[Entry]]:
    """The entry that the search returned, and every entry that it replayed."""
    entries: list[Entry] = []

    def noted(contest: Contest, planned: IntArray, *, note: str) -> Entry:
        entries.append(original(contest, planned, note=note))
        return entries[-1]

    original = replay.hindsight._replayed
    monkeypatch.setattr(replay.hindsight, "_replayed", noted)
    return search(), entries


def test_the_search_is_bounded_and_quotes_the_cheapest(wave: Contest, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 17 different plans are replayed, and none of them is cheaper than the returned one."""
    bound, entries = replayed_by(lambda: best_plan(wave, []), monkeypatch)
    assert 8 <= len(entries) <= 17
    assert len({entry.note for entry in entries}) == len(entries)
    assert bound.cost.total == min(entry.cost.total for entry in entries)


def test_each_day_has_its_own_best(
    calm_world: Worlds, load: Loads, contest: Callable[[World, Trace], Contest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """99 of 100 messages/s need one replica for a day; 99.95 the next day need a second, or messages wait ten seconds.

    Every capacity factor gives both days one replica, or both two; the last replay has one for a day and then two.
    """
    trace = load(99.0, 99.95, step_seconds=86_400)
    _, entries = replayed_by(lambda: best_plan(contest(calm_world(partitions=2), trace), []), monkeypatch)
    *earlier, last = entries
    assert last.note == "best plan found: the best plan of each day"
    assert last.pod_hours == pytest.approx(24 + 48, rel=0.01)
    assert last.cost.total < 0.8 * min(entry.cost.total for entry in earlier)


def test_ups_come_a_start_up_early(
    calm_world: Worlds, load: Loads, contest: Callable[[World, Trace], Contest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods that start in 61 s need a lead of two minutes; with one less, 500 messages/s would be too many for 60 s."""
    leads: set[int] = set()

    def noted(world: World, trace: Trace, **words: float) -> IntArray:
        leads.add(int(words["lead_minutes"]))
        return original(world, trace, **words)  # type: ignore[arg-type]  # passed on as they came

    original = minute_plan
    monkeypatch.setattr(replay.hindsight, "minute_plan", noted)
    trace = load(*[600.0] * 10, *[1_100.0] * 10)
    best_plan(contest(calm_world(start_up_seconds=61.0), trace), [])
    assert leads == {2}


def test_the_bound_is_the_plan_of_a_cheaper_policy(wave: Contest) -> None:
    """If a policy is cheaper than the plan found, its entry becomes the bound, and the note names the policy."""
    lucky = replace(play("fixed", wave), policy="lucky", daily=(RunCost(pods=1e-6, late=0.0, duplicates=0.0),))
    bound = best_plan(wave, [lucky])
    assert bound == replace(lucky, policy=HINDSIGHT, note="best plan found: what lucky did")


def test_an_entry_knows_its_total(wave: Contest) -> None:
    """Pod-hours, late messages and duplicates at the contest's prices add up to the cost."""
    entry: Entry = play("hpa", wave)
    arrivals = 1_000 * 7_200
    assert entry.cost.pods == pytest.approx(entry.pod_hours * wave.prices.price_per_replica_hour)
    assert entry.cost.late == pytest.approx(entry.late_share * arrivals * wave.prices.price_per_late_message, rel=0.05)
    assert entry.cost.duplicates == pytest.approx(entry.duplicate_messages * wave.prices.price_per_duplicate_message)
    assert entry.cost.total == pytest.approx(entry.cost.pods + entry.cost.late + entry.cost.duplicates)
