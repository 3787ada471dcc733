"""Series for the wire: an outlook and a day as messages, and a message, of a forecast or a ledger, as CSV."""

import csv
from collections.abc import Iterator, Sequence
from datetime import datetime
from io import StringIO

import numpy as np

from api import parts
from api import schemas as wire
from forecasting.history import History
from forecasting.units import FloatArray
from recommender.following.ledger import LedgerDay
from recommender.hindsight import hindsight
from recommender.known_groups import Decided, KnownGroup
from recommender.outlook import Outlook
from recommender.past_day import first_seen_at, observed_day
from recommender.ports import Standing, wire_code

# From one instant to another.
Span = tuple[datetime, datetime]


def to_series(key: str, cluster: str, group: str, ahead: Outlook) -> wire.ForecastSeries:
    """The outlook of the group with this key as it is published."""
    paths: dict[str, FloatArray] = {
        f"p{round(100 * quantile):02d}": path for quantile, path in zip(ahead.quantiles, ahead.paths, strict=True)
    }
    return wire.ForecastSeries(
        group_key=key,
        cluster=cluster,
        group_id=group,
        parts=tuple(
            parts.ForecastPart(
                model=part.model,
                history_tier=part.history_tier,
                issued_at=part.issued_at,
                step_seconds=part.step_seconds,
                ends_at=part.ends_at,
            )
            for part in ahead.parts
        ),
        ends_at=ahead.ends_at,
        step_seconds=tuple(ahead.step_seconds.tolist()),
        produce_messages_per_second=parts.QuantileSeries.model_validate(
            {name: tuple(path.tolist()) for name, path in paths.items()}
        ),
        notes=ahead.notes or None,
    )


def to_day(
    key: str, cluster: str, group: str, known: KnownGroup | None, standings: Sequence[Standing], *, span: Span
) -> wire.GroupDay:
    """The day of the group with this key as it is published; None: this process does not decide on it."""
    history = None if known is None or known.history is None else known.history.unpacked()
    day = None if known is None else known.day
    decided = None if known is None else known.decided
    return wire.GroupDay(
        group_key=key,
        cluster=cluster,
        group_id=group,
        since_at=span[0],
        until_at=span[1],
        max_lag_seconds=None if decided is None else decided.inputs.settings.max_lag_seconds,
        first_seen_at=None if history is None else first_seen_at(history),
        minutes=() if history is None else tuple(_minutes(history, decided)),
        standings=tuple(
            parts.Standing(
                since_at=each.since_at,
                reason_code=wire_code(each.reason),
                current_replicas=each.current_replicas,
                desired_replicas=each.desired_replicas,
            )
            for each in standings
        ),
        quarters=() if day is None else tuple(_quarters(day)),
    )


def _minutes(history: History, decided: Decided | None) -> Iterator[parts.ObservedMinute]:
    """What was observed, and which count would have been cheapest; unknown where the group is refused."""
    cheapest = {} if decided is None else hindsight(history, decided.inputs.profile, decided.advice)
    for minute in observed_day(history):
        # Checked when it was read: the check of 1,440 of them takes five times as long as all else.
        yield parts.ObservedMinute.model_construct(**minute._asdict(), hindsight_replicas=cheapest.get(minute.ends_at))


def _quarters(day: LedgerDay) -> Iterator[parts.LedgerQuarter]:
    for begins_at, replicas, late in zip(day.begun_at, day.replicas, day.late_messages, strict=True):
        if not np.isnan(replicas).any():
            yield parts.LedgerQuarter(
                begins_at=begins_at,
                replicas=dict(zip(day.names, replicas.tolist(), strict=True)),
                late_messages=dict(zip(day.names, late.tolist(), strict=True)),
            )


def to_csv(series: wire.ForecastSeries) -> str:
    """A header and one row for each step, with the forecast in which it ends."""
    paths = series.produce_messages_per_second.model_dump(exclude_none=True)
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rates = [f"produce_messages_per_second_{name}" for name in paths]
    rows.writerow(["ends_at", "step_seconds", *rates, "model", "history_tier", "issued_at"])
    for ends_at, step_seconds, *values in zip(series.ends_at, series.step_seconds, *paths.values(), strict=True):
        part = next(part for part in series.parts if ends_at <= part.ends_at)
        made = [part.model, part.history_tier, _instant(part.issued_at)]
        rows.writerow([_instant(ends_at), step_seconds, *values, *made])
    return text.getvalue()


def partitions_csv(found: wire.GroupPartitions) -> str:
    """A header and one row for each partition, the busiest first."""
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    names = ("topic", "partition", "produce_messages_per_second", "lag_messages")
    rows.writerow([*names, "since_at", "until_at"])
    span = [_instant(found.since_at), _instant(found.until_at)]
    for load in found.loads:
        values = (getattr(load, name) for name in names)
        rows.writerow([*("" if value is None else value for value in values), *span])
    return text.getvalue()


def ledger_csv(counted: wire.GroupLedger) -> str:
    """A header, one row for what was paid, and one for each scaler."""
    ledger = counted.ledger
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        [
            *("scaler", "replicas", "late", "total", "distinguishable", "currency", "error_ratio", "since_at"),
            *("issued_at", "saving", "regret"),
        ]
    )
    error = "" if ledger.error_ratio is None else ledger.error_ratio
    common = [ledger.currency, error, _instant(ledger.since_at), _instant(counted.issued_at)]
    paid = ledger.paid
    rows.writerow(["paid", paid.replicas, paid.late, paid.total, "", *common, "", ledger.regret])
    for account in ledger.accounts:
        differs = str(account.distinguishable).lower()
        rows.writerow(
            [account.scaler, account.replicas, account.late, account.total, differs, *common, account.saving, ""]
        )
    return text.getvalue()


def fleet_ledger_csv(counted: wire.FleetLedger) -> str:
    """A header, and for each currency one row for what was paid and one for each scaler."""
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        [
            *("scaler", "groups", "distinguishable_groups", "replicas", "late", "total", "saving", "regret"),
            *("currency", "group_hours", "error_ratio", "since_at"),
        ]
    )
    for total in counted.totals:
        error = "" if total.error_ratio is None else total.error_ratio
        common = [total.currency, total.group_hours, error, _instant(total.since_at)]
        paid = total.paid
        rows.writerow(["paid", total.groups, "", paid.replicas, paid.late, paid.total, "", total.regret, *common])
        for each in total.accounts:
            counts = [each.scaler, each.groups, each.distinguishable_groups]
            rows.writerow([*counts, each.replicas, each.late, each.total, each.saving, "", *common])
    return text.getvalue()


def _instant(instant: datetime) -> str:
    """The instant as in JSON: RFC 3339 with a Z."""
    return instant.isoformat().replace("+00:00", "Z")
