"""The fluid backlog, compared with figures computed by hand and with brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_model.physics.backlog import backlog_from_visible_lag, expected_overrun
from cost_model.physics.fluid import share_late
from cost_model.pricing.rollout import SimulationInputs, class_step, pause_late
from cost_model.pricing.simulation_inputs import simulation_inputs_of
from cost_model.pricing.situation import Situation, Uncertainty
from cost_model.search.problem import tabulate
from forecasting.units import Messages, MessagesPerSecond, Seconds


def _stopping(plain: Situation, *, capacity: float, pause: float, limit: float) -> SimulationInputs:
    """A field on which every move stops the whole group so long, and every count carries `capacity`."""
    demand = plain.demand_messages_per_second[None, :]
    certain = Uncertainty(
        demand_messages_per_second=demand,
        rate_now_messages_per_second=600.0,
        risk_weight=0.0,
        rest_up_steps=1,
        rest_down_steps=5,
    )
    inputs, _ = simulation_inputs_of(plain, certain)
    shares = np.zeros_like(inputs.shares)
    shares[:, :, 0] = 1.0
    return inputs._replace(
        carried=np.full_like(inputs.carried, capacity),
        shares=shares,
        pauses=np.full_like(inputs.pauses, pause),
        pause_factor=np.ones(1),
        capacity_factor=np.ones(1),
        max_lag_seconds=limit,
    )


def _late(plain: Situation, *, produce: float, capacity: float, pause: float, limit: float) -> float:
    return pause_late(_stopping(plain, capacity=capacity, pause=pause, limit=limit), 0, 1, produce, 0)


@pytest.mark.parametrize(
    ("produce", "capacity", "pause", "limit", "late"),
    [(1000, 1400, 3, 1, 7000), (1000, 2000, 10, 2, 16000), (500, 1000, 3, 5, 0)],
)
def test_oracle_6_one_pause(  # noqa: PLR0917 - the columns of the table above
    plain: Situation, produce: float, capacity: float, pause: float, limit: float, late: float
) -> None:
    """A pause of 3 s with a promise of 1 s makes 7,000 messages late at 1,000 of 1,400 messages/s."""
    found = _late(plain, produce=produce, capacity=capacity, pause=pause, limit=limit)
    assert found == pytest.approx(late)


@pytest.mark.parametrize(("produce", "capacity", "pause", "limit"), [(1000, 1400, 3, 1), (600, 2000, 10, 5)])
def test_one_pause_is_exact_for_a_fluid(
    plain: Situation, produce: float, capacity: float, pause: float, limit: float
) -> None:
    """Stepping the same pause in milliseconds finds the same late messages."""
    step, late, backlog = 0.001, 0.0, 0.0
    for tick in range(100_000):
        working = tick * step >= pause
        # A message that arrives now waits for the rest of the pause and for what is queued before it.
        wait = max(0.0, pause - tick * step) + backlog / capacity
        late += produce * step if wait > limit else 0.0
        backlog = max(0.0, backlog + (produce - capacity * working) * step)
    found = _late(plain, produce=produce, capacity=capacity, pause=pause, limit=limit)
    assert found == pytest.approx(late, rel=0.01)


def test_oracle_7_a_drain(plain: Situation) -> None:
    """20,000 messages at 900 of 1,000 messages/s with a promise of 5 s: the last 150 s of 200 s of drain are late."""
    ending = tabulate(replace(plain, replicas=10, demand_messages_per_second=np.full(60, 900.0))).ending
    # 100 messages/s to spare work 15,000 messages off in 150 s, in which 900 a second arrive.
    assert ending.late(20_000.0) == pytest.approx(plain.prices.price_per_late_message * 900 * 150)


def test_a_group_at_its_limit_has_a_large_finite_price(plain: Situation) -> None:
    """Without spare capacity a backlog never drains; a hundredth of capacity stands in."""
    ending = tabulate(replace(plain, replicas=10, demand_messages_per_second=np.full(60, 1000.0))).ending
    assert ending.late(6_000.0) == pytest.approx(plain.prices.price_per_late_message * 1_000 * 1_000 / 10)
    assert np.isfinite(_late(plain, produce=1_000.0, capacity=1_000.0, pause=9.0, limit=1.0))


@settings(deadline=None)  # the first call may compile
@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_backlog_is_never_negative_and_conserves_messages(backlog: float, arriving: float, worked: float) -> None:
    """Messages that came in are consumed or in the backlog; idle time gives no debt, and no more is late than came."""
    after, late = class_step(backlog, arriving, worked, 5.0)
    assert after >= 0.0
    assert backlog + arriving - after <= worked + 1e-6
    assert 0.0 <= late <= arriving


@settings(deadline=None)  # the first call may compile
@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100), st.floats(0, 10))
def test_late_share_is_a_share_and_grows_with_the_wait(before: float, after: float, limit: float, more: float) -> None:
    """A longer wait at the end of a step never makes fewer of its messages late."""
    share = share_late(before, after, limit)
    longer = share_late(before, after + more, limit)
    assert 0.0 <= share <= longer + 1e-12
    assert longer <= 1.0


@pytest.mark.parametrize(("wait", "share"), [(9.9, 0.0), (10.0, 0.0), (10.1, 1.0)])
def test_a_steady_wait_is_late_or_not(wait: float, share: float) -> None:
    """A wait of exactly the promise is on time."""
    assert share_late(wait, wait, 10.0) == share


def test_visible_lag_counts_work_already_done() -> None:
    """At 1,000 messages/s and a commit each 5 s, 2,500 messages of visible lag are no backlog."""
    rate, interval = MessagesPerSecond(1_000), Seconds(5)
    seen = [backlog_from_visible_lag(Messages(lag), consume=rate, commit_interval=interval) for lag in (2_000, 4_000)]
    assert seen == [0.0, 1_500.0]


@pytest.mark.parametrize(("mean", "spread", "limit"), [(8.0, 0.5, 10.0), (3.0, 1.0, 1.0), (12.0, 0.2, 10.0)])
def test_expected_overrun_is_the_mean_over_random_pauses(mean: float, spread: float, limit: float) -> None:
    """The closed form agrees with a million drawn pauses."""
    pauses = np.random.default_rng(11).lognormal(np.log(mean) - spread**2 / 2, spread, 1_000_000)
    drawn = np.maximum(pauses - limit, 0.0).mean()
    assert expected_overrun(mean=Seconds(mean), spread=spread, limit=Seconds(limit)) == pytest.approx(drawn, rel=0.02)


@given(st.floats(0, 100), st.floats(0, 1.5), st.floats(0, 60))
def test_expected_overrun_lies_between_certainty_and_the_whole_pause(mean: float, spread: float, limit: float) -> None:
    """Uncertainty only adds: never less than a certain pause would overrun, never more than the pause."""
    overrun = expected_overrun(mean=Seconds(mean), spread=spread, limit=Seconds(limit))
    assert max(0.0, mean - limit) - 1e-9 <= overrun <= mean + 1e-9
