"""The fluid backlog, against figures worked by hand and against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_model.backlog import (
    backlog_from_visible_lag,
    expected_overrun,
    late_after_pause,
    late_share,
    late_while_draining,
    next_backlog,
)
from forecasting.units import Messages, MessagesPerSecond, Seconds


@pytest.mark.parametrize(
    ("produce", "capacity", "pause", "limit", "late"),
    [(1000, 1400, 3, 1, 7000), (1000, 2000, 10, 2, 16000), (500, 1000, 3, 5, 0)],
)
def test_oracle_6_one_pause(produce: float, capacity: float, pause: float, limit: float, late: float) -> None:
    """A pause of 3 s with a promise of 1 s makes 7,000 messages late at 1,000 of 1,400 messages/s."""
    found = late_after_pause(
        produce=MessagesPerSecond(produce),
        capacity=MessagesPerSecond(capacity),
        pause=Seconds(pause),
        max_lag=Seconds(limit),
    )
    assert found == pytest.approx(late)


@pytest.mark.parametrize(("produce", "capacity", "pause", "limit"), [(1000, 1400, 3, 1), (600, 2000, 10, 5)])
def test_one_pause_is_exact_for_a_fluid(produce: float, capacity: float, pause: float, limit: float) -> None:
    """Stepping the same pause in milliseconds finds the same late messages."""
    step, late, backlog = 0.001, 0.0, 0.0
    for tick in range(100_000):
        working = tick * step >= pause
        # A message that arrives now waits for the rest of the pause and for what is queued before it.
        wait = max(0.0, pause - tick * step) + backlog / capacity
        late += produce * step if wait > limit else 0.0
        backlog = max(0.0, backlog + (produce - capacity * working) * step)
    found = late_after_pause(
        produce=MessagesPerSecond(produce),
        capacity=MessagesPerSecond(capacity),
        pause=Seconds(pause),
        max_lag=Seconds(limit),
    )
    assert found == pytest.approx(late, rel=0.01)


def test_oracle_7_a_drain() -> None:
    """20,000 messages at 900 of 1,000 messages/s with a promise of 5 s: the last 150 s of 200 s of drain are late."""
    late = late_while_draining(
        backlog=Messages(20_000),
        produce=MessagesPerSecond(900),
        capacity=MessagesPerSecond(1_000),
        max_lag=Seconds(5),
    )
    # 100 messages/s to spare work 15,000 messages off in 150 s, in which 900 a second arrive.
    assert late == pytest.approx(900 * 150)


def test_a_group_at_its_limit_has_a_large_finite_price() -> None:
    """Without spare capacity a backlog never drains; a hundredth of capacity stands in."""
    at_limit = MessagesPerSecond(1_000)
    late = late_while_draining(backlog=Messages(2_000), produce=at_limit, capacity=at_limit, max_lag=Seconds(1))
    assert late == pytest.approx(1_000 * 1_000 / 10)
    assert np.isfinite(late_after_pause(produce=at_limit, capacity=at_limit, pause=Seconds(9), max_lag=Seconds(1)))
    idle = late_after_pause(produce=at_limit, capacity=MessagesPerSecond(0), pause=Seconds(9), max_lag=Seconds(1))
    assert np.isfinite(idle)


@given(st.floats(0, 1e6), st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 1e5))
def test_backlog_is_never_negative_and_conserves_messages(
    backlog: float, produce: float, capacity: float, unprocessed: float
) -> None:
    """What came in is worked off or still there; an idle group does not go into debt."""
    after = next_backlog(
        Messages(backlog),
        produce=MessagesPerSecond(produce),
        capacity=MessagesPerSecond(capacity),
        step=Seconds(60),
        unprocessed=Messages(unprocessed),
    )
    worked_off = backlog + produce * 60 - after
    assert after >= 0.0
    assert worked_off <= capacity * 60 + 1e-6


@settings(deadline=None)  # the first call may compile
@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100), st.floats(0, 10))
def test_late_share_is_a_share_and_grows_with_the_wait(before: float, after: float, limit: float, more: float) -> None:
    """A longer wait at the end of a step never makes fewer of its messages late."""
    share = late_share(Seconds(before), Seconds(after), max_lag=Seconds(limit))
    longer = late_share(Seconds(before), Seconds(after + more), max_lag=Seconds(limit))
    assert 0.0 <= share <= longer + 1e-12
    assert longer <= 1.0


@pytest.mark.parametrize(("wait", "share"), [(9.9, 0.0), (10.0, 0.0), (10.1, 1.0)])
def test_a_steady_wait_is_late_or_not(wait: float, share: float) -> None:
    """Exactly as long as promised is on time."""
    assert late_share(Seconds(wait), Seconds(wait), max_lag=Seconds(10.0)) == share


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
