"""The ledger: what was paid, and what each scaler would have cost on the same messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from api import schemas as wire
from api.parts import LedgerItems
from api.pictures.bars import Look, Row, bar, stacked
from api.pictures.picture import Column, Option, Picture, Table, Theme
from api.words import amount, duration, number

PAID = "paid"
_LOOKS = {"replicas": Look("Replicas", 0, "plain"), "late": Look("Late messages", 1, "rising")}
# The patterns of a scaler whose cost cannot be told apart from what was paid.
_VAGUE = {"replicas": "level", "late": "squares"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    name: str
    items: LedgerItems
    is_distinguishable: bool
    saving: float | None = None


def group_ledger(sent: wire.GroupLedger) -> Picture:
    """The ledger of one group, cheapest first."""
    kept = sent.ledger
    accounts = [
        _Account(name=each.scaler, items=each, is_distinguishable=each.distinguishable, saving=each.saving)
        for each in kept.accounts
    ]
    counted = f"in {duration((sent.issued_at - kept.since_at).total_seconds())}"
    return _picture(kept.paid, accounts, kept.currency, counted)


def _picture(paid: LedgerItems, accounts: Sequence[_Account], currency: str, counted: str) -> Picture:
    columns = (
        Column(name="scaler", title="Scaler"),
        Column(name="replicas", title=f"Replicas, {currency}"),
        Column(name="late", title=f"Late messages, {currency}"),
        Column(name="total", title=f"Total, {currency}"),
        Column(name="saving", title=f"Saving, {currency}"),
        Column(name="distinguishable", title="Distinguishable"),
    )
    everyone = sorted(
        (_Account(name=PAID, items=paid, is_distinguishable=True), *accounts), key=lambda each: each.items.total
    )
    rows = tuple(
        (
            each.name,
            each.items.replicas,
            each.items.late,
            each.items.total,
            each.saving if each.name != PAID else "-",
            each.is_distinguishable if each.name != PAID else "-",
        )
        for each in everyone
    )
    return Picture(
        name="ledger",
        title="What was paid, and what others would have cost",
        sentence=_sentence(paid, accounts, currency, counted),
        table=Table(columns=columns, rows=rows),
        draw=partial(_draw, unit=f"{currency} {counted}"),
    )


def _sentence(paid: LedgerItems, accounts: Sequence[_Account], currency: str, counted: str) -> str:
    begin = f"{amount(paid.total, currency)} was paid {counted}"
    known = [each for each in accounts if each.is_distinguishable and each.saving is not None]
    if not known:
        return f"{begin}; no scaler's cost can be told apart from that."
    best = min(known, key=lambda each: each.saving or 0.0)
    saving = best.saving or 0.0
    how = f"{amount(abs(saving), currency)} {'more' if saving > 0 else 'less'}"
    return f"{begin}; of the scalers that can be told apart, {best.name} would have cost least, {how}."


def _draw(table: Table, theme: Theme, *, unit: str) -> Option:
    known = table.column("distinguishable")
    shown = zip(table.column("scaler"), table.column("total"), known, strict=True)
    rows = [
        Row(name, name == PAID, total, number(total) + (", not distinguishable" if is_known is False else ""))
        for name, total, is_known in shown
    ]
    bars = [
        bar(
            theme,
            look,
            [
                {"value": value, "itemStyle": look.style(theme, _VAGUE[item])} if is_known is False else value
                for value, is_known in zip(table.column(item), known, strict=True)
            ],
        )
        for item, look in _LOOKS.items()
    ]
    return stacked(theme, rows, bars, unit=unit, room=160)
