"""The one constructor of refusals that are read from a group's rows."""

from datetime import datetime

from forecasting.history import History
from forecasting.refusal import Refusal, RefusalReason


def refusal(
    history: History,
    now: datetime,
    reason: RefusalReason,
    sentence: str,
    *,
    remedy: str,
    evidence: tuple[tuple[str, float], ...] = (),
    hold: int | None = None,
) -> Refusal:
    """No advice for the group of `history` at `now`; it keeps `hold` replicas, where its count is known."""
    return Refusal(
        cluster=history.cluster,
        group=history.group,
        reason=reason,
        sentence=sentence,
        evidence=evidence,
        remedy=remedy,
        refused_at=now,
        hold_replicas=hold,
    )
