"""Series for the wire: an outlook as a message, and a message, of a forecast or a ledger, as CSV."""

import csv
from datetime import datetime
from io import StringIO

from api import parts
from api import schemas as wire
from forecasting.units import FloatArray
from recommender.outlook import Outlook


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


def ledger_csv(counted: wire.GroupLedger) -> str:
    """A header, one row for what was paid, and one for each scaler."""
    ledger = counted.ledger
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        ["scaler", "replicas", "late", "total", "distinguishable", "currency", "error_ratio", "since_at", "issued_at"]
    )
    error = "" if ledger.error_ratio is None else ledger.error_ratio
    common = [ledger.currency, error, _instant(ledger.since_at), _instant(counted.issued_at)]
    rows.writerow(["paid", ledger.paid.replicas, ledger.paid.late, ledger.paid.total, "", *common])
    for account in ledger.accounts:
        differs = str(account.distinguishable).lower()
        rows.writerow([account.scaler, account.replicas, account.late, account.total, differs, *common])
    return text.getvalue()


def _instant(instant: datetime) -> str:
    """The instant as in JSON: RFC 3339 with a Z."""
    return instant.isoformat().replace("+00:00", "Z")
