"""Ledgers of several groups together."""

from dataclasses import replace
from datetime import timedelta

import pytest

from recommender.deciding.recommendation import LedgerStanding
from recommender.ledger_totals import DatedLedger, totals
from tests.conftest import ISSUED_AT


def test_sums_are_those_of_the_groups(ledger: LedgerStanding) -> None:
    """Twice the same ledger is twice the money, with the same error."""
    (one,) = totals([DatedLedger(ledger, ISSUED_AT)])
    (two,) = totals([DatedLedger(ledger, ISSUED_AT)] * 2)
    assert (two.groups, two.group_hours) == (2, 48.0)
    assert (two.paid.total, two.regret) == (2 * one.paid.total, 2 * one.regret)
    assert two.error_ratio == one.error_ratio == ledger.error_ratio
    assert [each.saving for each in two.accounts] == [2 * each.saving for each in one.accounts]


def test_a_scaler_that_cannot_be_told_from_what_was_paid_causes_no_regret(ledger: LedgerStanding) -> None:
    """An estimate within the error is no proof that less could have been paid."""
    near = replace(ledger.accounts[0], replicas=6.5)
    assert not near.distinguishable
    assert replace(ledger, accounts=(near,)).regret == 0.0
    assert replace(ledger, accounts=(replace(near, distinguishable=True),)).regret == 1.0


def test_each_group_regrets_its_own_cheapest_scaler(ledger: LedgerStanding) -> None:
    """The cheapest scaler of one group is not that of another, and a group that paid least regrets nothing."""
    keda, hpa = ledger.accounts[1:]
    first = replace(ledger, accounts=(replace(keda, replicas=5.0), hpa))
    second = replace(ledger, accounts=(keda, replace(hpa, late=0.0)))
    (total,) = totals([DatedLedger(each, ISSUED_AT) for each in (first, second, ledger)])
    assert total.regret == pytest.approx(2.25 + 1.5)


def test_the_error_of_a_sum_is_weighed_by_what_was_paid(ledger: LedgerStanding) -> None:
    """An error of 10 % on nine tenths of the money and none on the rest is 9 %; nothing paid has no error."""
    large = replace(ledger, error_ratio=1.1, paid=replace(ledger.paid, replicas=9.0, late=0.0))
    small = replace(ledger, error_ratio=1.0, paid=replace(ledger.paid, replicas=1.0, late=0.0))
    nothing = replace(ledger, error_ratio=None, paid=replace(ledger.paid, replicas=0.0, late=0.0))
    (total,) = totals([DatedLedger(each, ISSUED_AT) for each in (large, small, nothing)])
    assert total.error_ratio == pytest.approx(1.09)
    (unpaid,) = totals([DatedLedger(nothing, ISSUED_AT - timedelta(hours=1))])
    assert unpaid.error_ratio is None
