"""Checks of settings, each failure in one sentence: source, key, value and expectation."""

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Protocol

from pydantic import ValidationError

from forecasting.forecast import QUANTILES
from recommender.deciding.decision import BESIDE_REPLICAS, DecisionSettings

_UNKNOWN_KEY = {"extra_forbidden", "unexpected_keyword_argument"}


class SettingsError(ValueError):
    """Settings that do not validate; the sentence names source, key, value and expectation."""


# Limits of `DecisionSettings`, which checks nothing itself: what must hold, and the words for it.
_LIMITS: dict[str, tuple[Callable[[float], bool], str]] = {
    "price_per_replica_hour": (lambda price: price > 0, "above 0; without a price there is nothing to weigh"),
    "price_per_late_message": (lambda price: price >= 0, "0 or more"),
    "price_per_duplicate_message": (lambda price: price >= 0, "0 or more"),
    "price_per_move": (lambda price: price >= 0, "0 or more"),
    "price_per_restored_gigabyte": (lambda price: price >= 0, "0 or more"),
    "max_lag_seconds": (lambda seconds: seconds > 0, "above 0 s"),
    "target_utilization": (lambda share: 0.01 <= share <= 1, "from 0.01 to 1; it is a share, not a percentage"),
    "planning_quantile": (lambda share: share in QUANTILES, f"one of {', '.join(map(str, QUANTILES))}"),
    "rebalance_pause_prior_seconds": (lambda seconds: seconds > 0, "above 0 s"),
    "scenarios": (lambda count: 8 <= count <= 1024, "from 8 to 1,024"),
    "risk_weight": (lambda weight: 0 <= weight <= 1, "from 0 to 1"),
    "horizon_seconds": (
        lambda seconds: 60 <= seconds <= 86_400,
        "from 60 s to a day; forecasts have one step a minute",
    ),
    "cycle_seconds": (lambda seconds: seconds >= 1, "1 s or more"),
    "scale_in_cooldown_seconds": (lambda seconds: seconds >= 0, "0 s or more"),
    "max_moves_per_hour": (lambda count: count >= 1, "1 or more; `mode: off` leaves the group as it is"),
    "valid_for_seconds": (lambda seconds: seconds > 0, "above 0 s"),
    "freshness_limit_seconds": (lambda seconds: seconds > 0, "above 0 s"),
}


# Every one of them has to be below this: a typing error of some digits is a number that no cost can be added to.
_MOST = 1e12


class HasBounds(Protocol):
    """Settings or a profile with bounds of the replica count."""

    @property
    def min_replicas(self) -> int:
        """Fewest replicas to advise."""
        ...

    @property
    def max_replicas(self) -> int | None:
        """Most replicas to advise; None: as many as partitions."""
        ...


def invalid_decision(decision: DecisionSettings) -> str | None:
    """The first limit that `decision` misses, as a sentence; None where it keeps them all.

    >>> invalid_decision(DecisionSettings(target_utilization=85))
    'target_utilization is 85; it has to be from 0.01 to 1; it is a share, not a percentage'
    """
    for field in fields(decision):
        value = getattr(decision, field.name)
        if isinstance(value, bool | str) or not isinstance(value, int | float):
            continue
        holds, expected = _LIMITS[field.name]
        if not ((isinstance(value, int) or math.isfinite(value)) and holds(value)):
            return f"{field.name} is {value}; it has to be {expected}"
        if value > _MOST:
            # Of a whole number of more than 308 digits there is no float.
            return f"{field.name} is {min(value, sys.float_info.max):g}; it has to be {_MOST:g} at most"
    beside = next((name for name in BESIDE_REPLICAS if getattr(decision, name)), None)
    if decision.currency is not None and decision.price_per_replica_hour is None and beside is not None:
        return (
            f"{beside} is set, currency is {decision.currency!r}, and price_per_replica_hour is not set; set it too, "
            f"or leave out currency for a {beside} in pod-hours"
        )
    if decision.valid_for_seconds < decision.cycle_seconds:
        return (
            f"valid_for_seconds is {decision.valid_for_seconds}, shorter than cycle_seconds "
            f"{decision.cycle_seconds}; advice would expire before the next one is made"
        )
    return None


def invalid_bounds(bounds: HasBounds) -> str | None:
    """The sentence on a minimum above the maximum; None where the two are in order."""
    if bounds.max_replicas is None or bounds.min_replicas <= bounds.max_replicas:
        return None
    found = f"min_replicas is {bounds.min_replicas}, above max_replicas {bounds.max_replicas}"
    return f"{found}; lower one or raise the other"


def sentence(
    error: ValidationError,
    *,
    source: Callable[[tuple[str, ...]], str],
    known_keys: Callable[[tuple[str, ...]], Iterable[str]],
    below: tuple[str, ...] = (),
) -> str:
    """The first thing wrong, as one sentence.

    `source` names the origin of the value at a place, `known_keys` lists the keys that may stand at a place, and
    `below` is the place of the value that was checked.
    """
    first = error.errors()[0]
    place = (*below, *(str(part) for part in first["loc"]))
    key, where = ".".join(place), source(place)
    if first["type"] in _UNKNOWN_KEY:
        known = sorted(known_keys(place[:-1]))
        near = get_close_matches(place[-1], known, n=1)
        if not near:
            return f"{where}: unknown key '{key}'; known there: {', '.join(known)}"
        return f"{where}: unknown key '{key}'; the nearest known one is '{'.'.join((*place[:-1], *near))}'"
    if first["type"] == "missing":
        return f"{where}: '{key}' is missing; add it"
    expected = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":  # ours: the sentence names value and limit itself
        return f"{where}: {key}: {expected}"
    return f"{where}: '{key}' is {first['input']!r}; {expected[0].lower()}{expected[1:]}"
