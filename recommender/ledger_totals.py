"""Ledgers of several groups as one: what they have cost together, and what each scaler would have. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from forecasting.units import SECONDS_PER_HOUR
from recommender.deciding.recommendation import LedgerAccount, LedgerStanding, Recommendation

# A ledger is of the last day. That of a group which has had no advice for longer than this is of another day.
FRESH_FOR = timedelta(hours=1)


class DatedLedger(NamedTuple):
    """A group's ledger, and the instant up to which it counts."""

    standing: LedgerStanding
    counted_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerTotal:
    """The cost of one scaler for all `groups` whose ledger has it; for some of them it can be told from what was paid.

    `saving` is that cost minus what was paid for the same groups: negative where the scaler would have cost less.
    """

    scaler: str
    groups: int
    distinguishable_groups: int
    replicas: float
    late: float
    saving: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTotal:
    """The ledgers of all groups with prices in one currency, together.

    `group_hours` is the time that they count, added up; `regret` what was paid beyond the cheapest distinguishable
    scaler of each group. `error_ratio` is the simulated cost of the groups as they were over what was paid for them.
    """

    currency: str
    groups: int
    group_hours: float
    since_at: datetime
    error_ratio: float | None
    paid: LedgerAccount
    regret: float
    accounts: tuple[ScalerTotal, ...]


def ledger_of(advice: Recommendation | None, *, now: datetime) -> DatedLedger | None:
    """The ledger of a group's last advice; None where there is none of the last day."""
    if advice is None or advice.ledger is None or now > advice.issued_at + FRESH_FOR:
        return None
    return DatedLedger(advice.ledger, advice.issued_at)


def totals(ledgers: Iterable[DatedLedger]) -> tuple[LedgerTotal, ...]:
    """The sums of the ledgers, one for each currency: money in two currencies has no sum."""
    by_currency: dict[str, list[DatedLedger]] = {}
    for ledger in ledgers:
        by_currency.setdefault(ledger.standing.currency, []).append(ledger)
    return tuple(_total(currency, by_currency[currency]) for currency in sorted(by_currency))


def _total(currency: str, ledgers: Sequence[DatedLedger]) -> LedgerTotal:
    standings = [ledger.standing for ledger in ledgers]
    seconds = [(ledger.counted_until - ledger.standing.since_at).total_seconds() for ledger in ledgers]
    checked = [(each.error_ratio, each.paid.total) for each in standings if each.error_ratio is not None]
    paid = sum(cost for _, cost in checked)
    names = dict.fromkeys(account.scaler for each in standings for account in each.accounts)
    accounts: Mapping[str, list[tuple[LedgerAccount, LedgerStanding]]] = {name: [] for name in names}
    for each in standings:
        for account in each.accounts:
            accounts[account.scaler].append((account, each))
    return LedgerTotal(
        currency=currency,
        groups=len(standings),
        group_hours=sum(seconds) / SECONDS_PER_HOUR,
        since_at=min(each.since_at for each in standings),
        error_ratio=sum(ratio * cost for ratio, cost in checked) / paid if paid > 0.0 else None,
        paid=LedgerAccount(
            scaler=standings[0].paid.scaler,
            replicas=sum(each.paid.replicas for each in standings),
            late=sum(each.paid.late for each in standings),
            distinguishable=False,
        ),
        regret=sum(each.regret for each in standings),
        accounts=tuple(_scaler_total(name, of_scaler) for name, of_scaler in accounts.items()),
    )


def _scaler_total(scaler: str, accounts: Sequence[tuple[LedgerAccount, LedgerStanding]]) -> ScalerTotal:
    return ScalerTotal(
        scaler=scaler,
        groups=len(accounts),
        distinguishable_groups=sum(account.distinguishable for account, _ in accounts),
        replicas=sum(account.replicas for account, _ in accounts),
        late=sum(account.late for account, _ in accounts),
        saving=sum(standing.saving_against(account) for account, standing in accounts),
    )
