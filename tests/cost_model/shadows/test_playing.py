"""Shadows: the cost of a group beside the real one, by formulas that a person can compute."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from cost_model.shadows.playing import (
    COLUMNS,
    LATE,
    PODS,
    REACTING,
    PlayedRows,
    Rules,
    Service,
    Shadows,
    play_rows,
    request,
    requested,
    shadows_of,
    steered,
)
from cost_model.shadows.tables import MoveTables, MoveTimes, tables_of
from forecasting.units import FloatArray, MessagesPerSecond, Partitions, Seconds

RATE = MessagesPerSecond(1000.0)
PROMISE_SECONDS = 10.0
PROFILE = GroupProfile(cluster="c", group="g", partitions=Partitions(24), capacity=None, start_up_seconds=Seconds(30.0))
# The place of 24 among the useful counts of 24 partitions.
LARGEST = 8


class Stage(NamedTuple):
    """Scalers on a stage of their own: `play` rows of 15 s, then read what they cost."""

    tables: MoveTables
    rules: Rules
    shadows: Shadows
    account: FloatArray

    def play(self, rates: list[float], *, followed: int = -1) -> None:
        """Let rows of 15 s come; each costs the group itself 7 pod-seconds and 3 late messages."""
        size = len(rates)
        rows = PlayedRows(
            seconds=np.full(size, 15.0),
            rate=np.array(rates),
            followed=np.full(size, followed),
            pod_seconds=np.full(size, 7.0),
            late_messages=np.full(size, 3.0),
            account=np.zeros(size, dtype=np.int64),
        )
        service = Service(RATE, PROMISE_SECONDS)
        play_rows(self.tables, self.rules, self.shadows, rows, service, self.account[None])

    def count(self, scaler: int = 0) -> int:
        """The count that was requested."""
        return int(self.tables.counts[requested(self.shadows, scaler)])

    def scale(self, replicas: int, *, at_once: bool = False) -> None:
        """Scale the first group from outside."""
        place = self.tables.counts.tolist().index(replicas)
        request(self.tables, self.shadows, 0, place, at_once=at_once)

    @property
    def late(self) -> float:
        """Late messages of the first group."""
        return float(self.account[0, LATE])


def members_of(group: Stage) -> int:
    return int(group.tables.counts[group.shadows.members[0]])


def tables(*, pause_seconds: float = 12.0, profile: GroupProfile = PROFILE) -> MoveTables:
    learned = Learned.assumed(rebalance_pause_seconds=pause_seconds, risk=0.1)
    times = MoveTimes.of(profile, learned)._replace(pause_up_seconds=pause_seconds, pause_down_seconds=pause_seconds)
    return tables_of(profile, times, max_lag_seconds=PROMISE_SECONDS)


def stage(rules: Rules, *, members: int = 8, of: MoveTables | None = None) -> Stage:
    known = tables() if of is None else of
    place = known.counts.tolist().index(members)
    size = rules.kind.size
    return Stage(known, rules, shadows_of(size, members=place), np.zeros((size, COLUMNS)))


def reacting(*settings: tuple[float, float], least: int = 0) -> Rules:
    """Scalers of (margin factor, hold seconds), with no less than the count in place `least`."""
    size = len(settings)
    return Rules(
        kind=np.full(size, REACTING),
        margin_factor=np.array([margin for margin, _ in settings]),
        hold_seconds=np.array([hold for _, hold in settings]),
        drain_seconds=np.full(size, 60.0),
        least=np.full(size, least),
    )


def test_a_fixed_count_costs_its_pods_and_nothing_else_while_it_carries_the_load() -> None:
    """24 replicas for two minutes are 2,880 pod-seconds; 20,000/s are less than the 24,000 that they carry."""
    held = stage(reacting((1.0, 0.0), least=LARGEST), members=24)
    held.play([20_000.0] * 8)
    assert held.account[0] == pytest.approx([2880.0, 0.0])


def test_a_scaler_that_reacts_has_its_pods_after_the_start_up_and_pays_them_from_the_command() -> None:
    """8 replicas at 6,000/s; 10,000/s call for 12. They are paid from the next row on, and work after 30 s."""
    scaler = stage(reacting((1.1, 600.0)))
    scaler.play([6000.0, 10_000.0])
    assert (scaler.count(), members_of(scaler)) == (12, 8)
    paid = scaler.account[0, PODS]
    scaler.play([10_000.0])
    assert scaler.account[0, PODS] - paid == pytest.approx(15.0 * 12)
    scaler.play([10_000.0, 10_000.0])
    assert members_of(scaler) >= 12


@pytest.mark.parametrize(("hold_seconds", "removed_after_rows"), [(30.0, 3), (120.0, 9)])
def test_a_scaler_removes_when_less_was_needed_for_as_long_as_it_holds(
    hold_seconds: float, removed_after_rows: int
) -> None:
    """7,000/s, then 3,000/s: the last need of 8 is older than the hold in the third row, or the ninth."""
    falling = stage(reacting((1.1, hold_seconds)))
    falling.play([7000.0] * 4)
    falling.play([3000.0] * (removed_after_rows - 1))
    assert falling.count() == 8
    falling.play([3000.0])
    assert falling.count() == 4


def test_a_stop_longer_than_the_promise_makes_as_many_messages_late_as_the_fluid_model() -> None:
    """A stop of 12 s at half the load, promised 10 s: 1,000/s x 2 s x 2,000 / 1,000 = 4,000 late."""
    four = GroupProfile(cluster="c", group="g", partitions=Partitions(4), capacity=None)
    group = stage(steered(1), members=4, of=tables(profile=four))
    group.play([1000.0])
    group.scale(2)
    group.play([1000.0] * 8)
    assert group.late == pytest.approx(4000.0, rel=0.03)  # the slower quarter does 6 % less


@pytest.mark.parametrize("pause_seconds", [1.0, 9.0])
def test_a_stop_within_the_promise_makes_nothing_late(pause_seconds: float) -> None:
    """No message waits for longer than the stop, as long as there is room to catch up."""
    group = stage(steered(1), members=24, of=tables(pause_seconds=pause_seconds))
    group.play([4000.0])
    group.scale(12)
    group.play([4000.0] * 8)
    assert group.late == 0.0


def test_a_shortage_makes_everything_late_once_the_backlog_takes_longer_than_promised() -> None:
    """12,000/s for eight replicas that do 8,000/s: after an hour, all of the last row, and 4,000/s of it wait."""
    short = stage(steered(1))
    short.play([12_000.0] * 239)
    before = short.late
    short.play([12_000.0])
    assert short.late - before == pytest.approx(15.0 * 12_000.0)
    assert short.shadows.backlog[0].sum() == pytest.approx(3600.0 * 4000.0, rel=0.03)


def test_pods_that_start_are_the_first_to_go() -> None:
    """From 8 to 24 and back to 12 at once: four go on starting, the members stay, and no member is stopped."""
    group = stage(steered(1))
    group.play([1000.0])
    group.scale(24)
    group.scale(12)
    assert (group.count(), members_of(group), group.shadows.pause_left_seconds[0]) == (12, 8, 0.0)
    group.play([1000.0] * 3)
    assert members_of(group) == 12


def test_pods_that_have_started_elsewhere_are_members_at_once() -> None:
    """A shadow of the present group takes its members from the rows, and is stopped by the change."""
    group = stage(steered(1))
    group.scale(12, at_once=True)
    assert (group.count(), members_of(group)) == (12, 12)
    assert group.shadows.pause_left_seconds[0] == pytest.approx(12.0)


def test_the_groups_own_cost_replaces_that_of_the_followed_scalers_shadow() -> None:
    """Two scalers, the second is followed for a row that cost 7 pod-seconds and 3 late messages."""
    two = stage(reacting((1.0, 0.0), (1.0, 0.0), least=LARGEST), members=24)
    two.play([1000.0], followed=1)
    assert two.account.tolist() == [[360.0, 0.0], [7.0, 3.0]]


def test_beliefs_that_differ_by_less_than_a_twentieth_are_one() -> None:
    """Values computed for every move are computed again only if the difference matters."""
    learned = Learned.assumed(rebalance_pause_seconds=10.0, risk=0.1)
    nearly = Learned.assumed(rebalance_pause_seconds=9.5, risk=0.1)
    other = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1)
    assert MoveTimes.of(PROFILE, learned) == MoveTimes.of(PROFILE, nearly) != MoveTimes.of(PROFILE, other)
    assert MoveTimes.of(PROFILE, learned).start_up_seconds == pytest.approx(30.0, rel=0.05)


@given(rates=st.lists(st.floats(0.0, 60_000.0), min_size=1, max_size=80), members=st.sampled_from([1, 8, 24]))
def test_no_shadow_has_fewer_pods_than_the_minimum_or_more_late_messages_than_came(
    rates: list[float], members: int
) -> None:
    """For any load pods are within the bounds, and a message is late once at most, except by stops of parts of it."""
    whole = stage(reacting((1.02, 30.0), (1.7, 1800.0)), members=members)
    whole.play(rates)
    seconds, total = 15.0 * len(rates), 15.0 * sum(rates)
    slack = 1e-6 * (1.0 + total)
    assert (whole.account[:, PODS] >= seconds - slack).all()
    assert (whole.account[:, PODS] <= 24.0 * seconds + slack).all()
    assert (whole.account[:, LATE] >= 0.0).all()
    assert (whole.account[:, LATE] <= 1.05 * total + slack).all()
