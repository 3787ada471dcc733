"""Refusal: no result, with its reason, as a value.

It is published like a recommendation, so that missing advice never looks like health. A `Refusal` is for conditions
outside (history too short, capacity unknown); our own bugs stay exceptions.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

RefusalReason = Literal[
    "source_unreachable",
    "no_data",
    "history_stale",
    "partial_data",
    "not_enough_history",
    "capacity_unknown",
    "rebalancing",
    "rollout_in_progress",
    "livelock_suspected",
    "conflicted",
    "paused",
    "no_target",
    "ambiguous_target",
    "config_invalid",
    "unsupported",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No advice for this group now, with the figures behind the reason and the next step.

    `evidence` pairs a quantity (unit in its name) with its value, the limit it missed included.
    `remedy` is one sentence with the next step; `hold_replicas` is the group's present count, where that is known.
    """

    cluster: str
    group: str
    reason: RefusalReason
    sentence: str
    evidence: tuple[tuple[str, float], ...]
    remedy: str
    refused_at: datetime
    retry_at: datetime | None = None
    hold_replicas: int | None = None
