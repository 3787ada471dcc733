"""The ledger: what the group has paid, what others would have, and since when, by sums that a person can do."""

import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_model.physics.learned import Learned
from cost_model.physics.profile import Capacity
from cost_model.pricing.price import Prices
from forecasting.history import GroupInterval
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import LedgerAccount, LedgerStanding, Recommendation
from recommender.following.ledger import SCALERS, Ledger
from recommender.following.session import Session
from tests.recommender.following.by_the_row import NOON, PROFILE, RATE, row

PRICES = Prices.from_replica_hour(0.05, capacity=RATE)
LEARNED = Learned.assumed(rebalance_pause_seconds=5.0, risk=0.1)
ROW_SECONDS = 15.0
ROWS_OF_AN_HOUR = 240


def ledger_of(rows: list[GroupInterval], *, learned: Learned = LEARNED, members: int = 8) -> Ledger:
    ledger = Ledger(PROFILE, capacity=RATE, max_lag_seconds=10.0, learned=learned, members=members)
    for each in rows:
        ledger.observe(each, capacity=RATE, learned=learned)
    return ledger


def standing_of(rows: list[GroupInterval], *, prices: Prices = PRICES, learned: Learned = LEARNED) -> LedgerStanding:
    standing = ledger_of(rows, learned=learned).standing(prices)
    assert standing is not None
    return standing


def account_of(standing: LedgerStanding, scaler: str) -> LedgerAccount:
    return next(account for account in standing.accounts if account.scaler == scaler)


def hours_of(count: float, *, members: int = 8, rate: float = 6000.0, lag_seconds: float = 2.5) -> list[GroupInterval]:
    rows = range(round(count * ROWS_OF_AN_HOUR))
    return [row(place, members=members, rate=rate, lag_seconds=lag_seconds) for place in rows]


def test_before_the_first_row_there_is_no_ledger() -> None:
    """Nothing is counted, so that nothing is published."""
    assert ledger_of([]).standing(PRICES) is None


def test_a_steady_group_pays_its_replicas_and_staying_costs_the_same() -> None:
    """Eight replicas for two hours at 0.05 are 0.80, and 24 of them 2.40."""
    standing = standing_of(hours_of(2))
    assert standing.paid.replicas == pytest.approx(0.8)
    assert standing.paid.late == 0.0
    assert account_of(standing, "stay").total == pytest.approx(0.8)
    assert account_of(standing, "fixed-ceiling").total == pytest.approx(2.4)
    assert standing.error_ratio == pytest.approx(1.0)


def test_the_day_is_told_by_the_quarter_of_an_hour() -> None:
    """An hour of eight replicas from noon: four quarters of eight, and of the ceiling's 24."""
    day = ledger_of(hours_of(1 + 1 / ROWS_OF_AN_HOUR)[1:]).day()
    assert day is not None
    assert [at.strftime("%H:%M") for at in day.begun_at] == ["12:00", "12:15", "12:30", "12:45"]
    assert day.names[0] == "stay"
    assert day.names[-1] == "paid"
    assert day.replicas.shape == day.late_messages.shape == (4, len(SCALERS) + 1)
    assert day.replicas[:, -1] == pytest.approx([8.0] * 4)
    assert day.replicas[:, 1] == pytest.approx([24.0] * 4)
    assert day.late_messages[:, -1] == pytest.approx([0.0] * 4)
    assert ledger_of([]).day() is None


def test_a_quarter_of_an_hour_without_rows_is_not_known() -> None:
    """Rows of 12:00 to 12:15 and of 12:30 to 12:45; and the day forgets what is older."""
    rows = hours_of(1)[1:181]
    day = ledger_of([*rows[:60], *rows[120:]]).day()
    assert day is not None
    assert [bool(known) for known in day.replicas[:, -1] == day.replicas[:, -1]] == [True, False, True]
    long = ledger_of(hours_of(25)).day()
    assert long is not None
    assert len(long.begun_at) == 96
    assert long.replicas[:, -1] == pytest.approx([8.0] * 96)


def test_every_scaler_that_a_user_may_have_has_an_account() -> None:
    """Staying, all replicas, a rate margin, useful counts, HPA twice and KEDA four times."""
    assert [account.scaler for account in standing_of(hours_of(0.1)).accounts] == [
        *("stay", "fixed-ceiling", "rate-1.25", "useful-counts", "hpa-10000", "hpa-behavior-2000"),
        *("keda-500", "keda-2000", "keda-10000", "keda-50000"),
    ]


def test_a_low_lag_target_keeps_all_replicas_and_a_high_one_is_late() -> None:
    """15,000 messages are not committed at 6,000/s: 24 replicas for 500 each, and one for 50,000, until more wait.

    That many messages wait for longer than 10 s that they cost more than 24 replicas do.
    """
    standing = standing_of(hours_of(2))
    assert account_of(standing, "keda-500").total == pytest.approx(2.4, rel=0.05)
    assert account_of(standing, "keda-50000").late > 2.4


def test_replicas_that_start_are_paid_before_they_join() -> None:
    """Four more members in one row were paid for the 30 s of their start-up as well: 120 pod-seconds, not yet seen."""
    before = hours_of(1)
    joined = standing_of([*before, row(ROWS_OF_AN_HOUR, members=12)]).paid.replicas
    stayed = standing_of([*before, row(ROWS_OF_AN_HOUR, members=8)]).paid.replicas
    assert joined - stayed == pytest.approx(0.05 / 3600 * (4 * ROW_SECONDS + 4 * 30.0), rel=0.05)


def test_messages_that_the_lag_shows_to_wait_too_long_are_paid() -> None:
    """A minute behind all the time, every message is late: 6,000/s for an hour at 5e-7 are 10.80."""
    standing = standing_of(hours_of(1, lag_seconds=62.5))
    assert standing.paid.late == pytest.approx(10.8, rel=0.02)


def test_the_ledger_covers_a_day_and_says_since_when() -> None:
    """After 30 hours it counts from the begin of the quarter of an hour 24 hours ago, and no hour before."""
    rows = hours_of(30)
    assert standing_of(rows[:ROWS_OF_AN_HOUR]).since_at == rows[0].interval_end_at - timedelta(seconds=ROW_SECONDS)
    standing = standing_of(rows)
    counted = rows[-1].interval_end_at - standing.since_at
    assert timedelta(hours=23, minutes=45) <= counted <= timedelta(hours=24)
    assert standing.paid.replicas == pytest.approx(8 * 0.05 * counted.total_seconds() / 3600, rel=1e-6)


def test_after_a_gap_of_days_only_what_came_after_it_counts() -> None:
    """An hour, three days without rows, and another hour: eight replicas for one hour."""
    hour = hours_of(1)
    later = [replace(each, interval_end_at=each.interval_end_at + timedelta(days=3)) for each in hour]
    assert standing_of([*hour, *later]).paid.replicas == pytest.approx(0.4, rel=0.01)


@pytest.mark.parametrize("unknown", ["produce_messages_per_second", "lag_messages", "members"])
def test_a_row_of_unknown_rate_lag_or_members_counts_for_nobody(unknown: str) -> None:
    """What is not known is not taken for nothing: such a row changes no account."""
    rows = hours_of(0.5)
    holed: dict[str, Any] = {"interval_end_at": rows[-1].interval_end_at + timedelta(seconds=15), unknown: None}
    assert standing_of([*rows, replace(rows[-1], **holed)]) == standing_of(rows)


def test_a_scaler_within_the_error_is_not_told_apart() -> None:
    """Nine replicas where staying has eight: 12 % more than staying, and distinguishable; eight are not."""
    paid_more = standing_of([row(0, members=8), *hours_of(2, members=9)[1:]])
    assert account_of(paid_more, "stay").distinguishable
    assert not account_of(standing_of(hours_of(2)), "stay").distinguishable


def test_the_more_a_simulation_errs_the_less_is_told_apart() -> None:
    """A group that is late for reasons of its own is simulated too cheap, and then nothing cheaper is told apart."""
    standing = standing_of(hours_of(2, members=24, lag_seconds=62.5))
    assert standing.error_ratio is not None
    error = abs(standing.error_ratio - 1.0)
    assert error > 0.5
    for account, scaler in zip(standing.accounts, SCALERS, strict=True):
        differs = abs(account.total - standing.paid.total)
        greater = max(account.total, standing.paid.total)
        assert account.distinguishable == (differs > max(error, scaler.least_error) * greater)


def test_p22_the_shadow_of_the_group_as_it_is_costs_what_the_group_has_paid() -> None:
    """A group whose lag is that of a fluid with its members, short of capacity for an hour in three: within 5 %."""
    rows, backlog = [], 0.0
    for place in range(6 * ROWS_OF_AN_HOUR):
        rate = 9000.0 if place // ROWS_OF_AN_HOUR % 3 == 1 else 4000.0
        consumed = min(8000.0, rate + backlog / ROW_SECONDS)
        backlog += (rate - consumed) * ROW_SECONDS
        seen = row(place, rate=rate, lag_seconds=2.5 + backlog / rate)
        rows.append(replace(seen, consume_messages_per_second=consumed))
    standing = standing_of(rows)
    assert standing.paid.late > 1.0
    assert standing.error_ratio == pytest.approx(1.0, abs=0.05)


def test_learned_pauses_change_what_moving_costs() -> None:
    """With stops of a minute, whoever moves on a load that changes each quarter of an hour makes messages late."""
    changing = [row(place, rate=3000.0 if place // 60 % 2 else 7500.0) for place in range(960)]
    slow = Learned.assumed(rebalance_pause_seconds=60.0, risk=0.1)
    quick = account_of(standing_of(changing), "useful-counts").late
    assert account_of(standing_of(changing, learned=slow), "useful-counts").late > quick + 0.1


def test_estimates_that_change_count_from_then_on() -> None:
    """What was counted with the old pause stays: an hour without a move costs the same under both."""
    ledger, slow = ledger_of(hours_of(1)), Learned.assumed(rebalance_pause_seconds=60.0, risk=0.1)
    ledger.observe(row(ROWS_OF_AN_HOUR), capacity=RATE, learned=slow)
    assert ledger.standing(PRICES) == standing_of([*hours_of(1), row(ROWS_OF_AN_HOUR)])


def test_members_beyond_the_bounds_are_paid_as_they_are() -> None:
    """30 members where 24 are the most: 30 are paid, and the shadow of the group is one of 24."""
    standing = standing_of([row(0, members=30), *hours_of(1, members=30)[1:]])
    assert standing.paid.replicas >= 30 * 0.05
    assert account_of(standing, "fixed-ceiling").replicas == pytest.approx(1.2)


ROWS = st.lists(st.tuples(st.floats(0.0, 40_000.0), st.integers(0, 24), st.floats(0.0, 100.0)), min_size=1, max_size=30)


def drawn_rows(drawn: list[tuple[float, int, float]]) -> list[GroupInterval]:
    return [row(place, rate=rate, members=members, lag_seconds=lag) for place, (rate, members, lag) in enumerate(drawn)]


@settings(deadline=None)
@given(drawn=ROWS)
def test_no_cost_is_negative_and_equal_rows_give_an_equal_ledger(drawn: list[tuple[float, int, float]]) -> None:
    """Whatever comes."""
    standing = standing_of(drawn_rows(drawn))
    assert standing == standing_of(drawn_rows(drawn))
    assert all(account.replicas >= 0.0 <= account.late for account in (standing.paid, *standing.accounts))


@settings(deadline=None)
@given(drawn=ROWS, replica_factor=st.floats(1.0, 10.0), late_factor=st.floats(1.0, 10.0))
def test_higher_prices_never_make_anything_cheaper(
    drawn: list[tuple[float, int, float]], replica_factor: float, late_factor: float
) -> None:
    """Of replicas and of late messages, for what was paid and for every scaler."""
    higher = replace(
        PRICES,
        price_per_replica_hour=replica_factor * PRICES.price_per_replica_hour,
        price_per_late_message=late_factor * PRICES.price_per_late_message,
    )
    ledger = ledger_of(drawn_rows(drawn))
    low, high = ledger.standing(PRICES), ledger.standing(higher)
    assert low is not None
    assert high is not None
    for cheap, dear in zip((low.paid, *low.accounts), (high.paid, *high.accounts), strict=True):
        assert dear.replicas >= cheap.replicas
        assert dear.late >= cheap.late
        assert dear.total == dear.replicas + dear.late


KNOWN = replace(PROFILE, capacity=Capacity(p20=RATE, p50=RATE, p90=RATE, source="configured"))


def advice_after(session: Session, rows: list[GroupInterval]) -> Recommendation:
    for each in rows:
        session.observe(each)
    advice = session.recommend(NOON + timedelta(seconds=ROW_SECONDS * (len(rows) - 1)))
    assert isinstance(advice, Recommendation), advice
    return advice


def test_advice_carries_the_ledger_whether_or_not_scalers_are_followed() -> None:
    """An hour of eight replicas, with the fallback policy and without."""
    for fallback_policy in (True, False):
        settings = DecisionSettings(fallback_policy=fallback_policy, price_per_replica_hour=0.05)
        ledger = advice_after(Session(KNOWN, settings), hours_of(1)).ledger
        assert ledger is not None
        assert ledger.paid.replicas == pytest.approx(0.4)


def test_after_a_restart_the_ledger_counts_the_rows_of_the_last_day_again() -> None:
    """30 hours as history, or observed one by one: the same ledger, but for the quarter of an hour that is cut."""
    rows = hours_of(30)
    running = advice_after(Session(KNOWN, DecisionSettings()), rows)
    restarted = Session(KNOWN, DecisionSettings(), rows).recommend(running.issued_at)
    assert isinstance(restarted, Recommendation)
    assert restarted.ledger is not None
    assert running.ledger is not None
    assert restarted.ledger.paid.total == pytest.approx(running.ledger.paid.total, rel=0.01)
    assert abs(restarted.ledger.since_at - running.ledger.since_at) <= timedelta(minutes=15)


LEDGER_IN_A_PROCESS = """
from tests.recommender.following.test_ledger import hours_of, standing_of
print(repr(standing_of(hours_of(1, rate=6543.21, lag_seconds=11.7))))
"""


@pytest.mark.slow
def test_p1_equal_rows_give_an_equal_ledger_in_any_process() -> None:
    """Another hash seed, locale or time zone does not change one digit."""
    seen = {
        subprocess.run(
            [sys.executable, "-c", LEDGER_IN_A_PROCESS],
            env=os.environ | environment,
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for environment in (
            {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"},
            {"PYTHONHASHSEED": "2026", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"},
        )
    }
    assert len(seen) == 1
    assert b"keda-2000" in seen.pop()
