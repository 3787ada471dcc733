"""The best plan found: what the search gives on loads that can be planned by hand, and that nobody is cheaper."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.contest import Bill, Contest, Entry, play
from replay.hindsight import HINDSIGHT, _cheapest_path, best_plan, minute_plan
from replay.trace import Trace
from replay.world import World

Worlds = Callable[..., World]
Loads = Callable[..., Trace]


def plan(world: World, trace: Trace, *, head_room: float = 1.0, change: float = 0.1) -> list[int]:
    return list(minute_plan(world, trace, head_room=head_room, change_replica_hours=change))


@pytest.mark.parametrize(
    ("rate", "head_room", "replicas"),
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
    calm_world: Worlds, load: Loads, rate: float, head_room: float, replicas: int
) -> None:
    """One stair for all times, head-room on top; what not even all carry gets all."""
    assert plan(calm_world(), load(*[rate] * 5), head_room=head_room) == [replicas] * 5


def test_more_is_asked_for_a_minute_early(calm_world: Worlds, load: Loads) -> None:
    """600 messages/s, then 1,100 from minute 5 to 8: twelve from minute 4 on, and six again at once."""
    trace = load(*[600.0] * 5, *[1_100.0] * 3, *[600.0] * 4)
    assert plan(calm_world(), trace, change=0.0) == [6] * 4 + [12] * 4 + [6] * 4


@pytest.mark.parametrize(("change", "fewest"), [(0.49, 6), (0.51, 12)])
def test_a_dip_is_used_only_if_it_pays_for_both_changes(
    calm_world: Worlds, load: Loads, change: float, fewest: int
) -> None:
    """Ten minutes with six instead of twelve save one replica-hour; going down and up again costs two changes."""
    trace = load(*[1_100.0] * 5, *[600.0] * 10, *[1_100.0] * 5)
    assert min(plan(calm_world(), trace, change=change)) == fewest


@pytest.mark.parametrize(
    ("rates", "replicas"),
    # 12 of 60 s at 700 are more than a tenth: eight carry them. 6 of 60 s are a tenth: the mean of 160 counts, two do.
    [([100.0, 100.0, 100.0, 100.0, 700.0], 8), ([100.0] * 9 + [700.0], 2)],
)
def test_what_a_minute_hides_is_planned_for(calm_world: Worlds, load: Loads, rates: list[float], replicas: int) -> None:
    """Of a trace finer than a minute, the rate that is exceeded a tenth of the time, or the mean if that is more."""
    trace = load(*rates, *rates, step_seconds=60 // len(rates))
    assert plan(calm_world(), trace) == [replicas] * 2


def test_a_last_part_of_a_minute_is_planned_for(calm_world: Worlds, load: Loads) -> None:
    """150 s are three minutes of plan."""
    assert plan(calm_world(), load(600.0, 600.0, 600.0, step_seconds=50)) == [6, 6, 6]


prices = st.floats(0.0, 10.0) | st.just(np.inf)


@given(
    rows=st.lists(st.tuples(prices, prices, st.floats(0.0, 10.0)), min_size=1, max_size=6),
    change=st.floats(0.0, 5.0),
)
def test_no_other_path_is_cheaper(rows: list[tuple[float, float, float]], change: float) -> None:
    """The search finds what trying every path finds."""
    price = np.array(rows)

    def cost(path: Iterable[int]) -> float:
        places = list(path)
        moves = sum(a != b for a, b in pairwise(places))
        return float(price[range(len(places)), places].sum()) + change * moves

    cheapest = min(cost(path) for path in product(range(3), repeat=len(rows)))
    assert cost(_cheapest_path(price, change).tolist()) == pytest.approx(cheapest)


@pytest.fixture(name="wave")
def wave_fixture(calm_world: Worlds, load: Loads, contest: Callable[[World, Trace], Contest]) -> Contest:
    """Two hours between 400 and 1,600 messages/s."""
    return contest(calm_world(), load(*(1_000 + 600 * np.sin(np.arange(120) / 19.0))))


def test_nobody_is_cheaper_than_the_bound(wave: Contest) -> None:
    """The bound costs no more than any policy; on a wave that it saw coming it is cheaper, and on time."""
    others = [play(name, wave) for name in ("fixed", "hpa", "hpa-behavior", "keda", "stair")]
    bound = best_plan(wave, others)
    assert bound.policy == HINDSIGHT
    assert bound.bill.total < 0.9 * min(entry.bill.total for entry in others)
    assert bound.late_share < 0.05
    assert bound.note.startswith("best plan found: minute plan, head-room")


def test_the_bound_is_what_another_did_if_that_was_cheaper(wave: Contest) -> None:
    """A plan is a bound only as long as nobody does better: then theirs is, and it says so."""
    lucky = replace(play("fixed", wave), policy="lucky", daily=(Bill(pods=1e-6, late=0.0, duplicates=0.0),))
    bound = best_plan(wave, [lucky])
    assert bound == replace(lucky, policy=HINDSIGHT, note="best plan found: what lucky did")


def test_an_entry_knows_its_total(wave: Contest) -> None:
    """Pod-hours, late messages and duplicates at the contest's prices add up to the bill."""
    entry: Entry = play("hpa", wave)
    arrivals = 1_000 * 7_200
    assert entry.bill.pods == pytest.approx(entry.pod_hours * wave.prices.replica_hour)
    assert entry.bill.late == pytest.approx(entry.late_share * arrivals * wave.prices.late_message, rel=0.05)
    assert entry.bill.duplicates == pytest.approx(entry.duplicate_messages * wave.prices.duplicate_message)
    assert entry.bill.total == pytest.approx(entry.bill.pods + entry.bill.late + entry.bill.duplicates)
