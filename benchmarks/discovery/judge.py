"""What was found of each group, held against what is true of it. Pure: readings of REST go in, verdicts come out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Figure = str | bool | float
# `found`: told as detected or measured, and right. `assumed`: told as an assumption or as a bound, and right or `off`.
# `wrong`: told as detected or measured, and not so. `silent`: not told.
Verdict = Literal["found", "assumed", "off", "wrong", "silent"]

# What one replica does is found where the middle of the band is this near.
CAPACITY_WITHIN = 0.1
# State grows while it is read, and is read every five minutes; commits are read twice a second.
_WITHIN: Mapping[str, float] = {"capacity": CAPACITY_WITHIN, "restore_bytes": 0.25, "commit_interval_seconds": 0.1}
# A group's size and state change while it runs, and what is known of a replica grows: the verdict is that of the end.
_AT_THE_END = frozenset({"members", "capacity", "restore_bytes"})
# A capacity of these sources is told as what replicas have shown at least.
_BOUNDS = frozenset({"lower_bound", "unsaturated_windows"})
# Kafka shows them of every group, so that whoever reads Kafka can know them.
SHOWN_BY_KAFKA = frozenset(
    {"protocol", "assignor", "client", "static_membership", "members", "work_units"}
    | {"tasks", "stateful", "standbys", "restore_bytes", "commit_interval_seconds"}
    | {"session_timeout_seconds", "consumer_heartbeat_seconds"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One figure as it was told, and its source."""

    value: Figure
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The newest decision on a group at a minute of the lab: advice with its figures, or a refusal and its `reason`."""

    minute: float
    reason: str
    is_advice: bool
    figures: Mapping[str, Told]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One figure of a group: what was told at last, what is true, and the first minute at which it was told wrongly."""

    name: str
    told: Told | None
    truth: Figure
    verdict: Verdict
    wrong_at_minute: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that is judged of a group; None for a minute that never came."""

    first_advice_minute: float | None
    capacity_minute: float | None
    figures: tuple[Judged, ...]
    refusals: tuple[tuple[str, float, float], ...]


def reading_of(latest: Mapping[str, Any], *, minute: float) -> Reading:
    """A decision of REST as a reading."""
    code = latest["reason"]["code"]
    if latest["kind"] != "Recommendation":
        return Reading(minute=minute, reason=code, is_advice=False, figures={})
    band = latest["capacity_messages_per_second_per_replica"]
    figures = {each["name"]: Told(value=_plain(each["value"]), source=each["source"]) for each in latest["profile"]}
    figures["members"] = Told(value=float(latest["current_replicas"]), source="detected")
    figures["work_units"] = Told(value=float(max(latest["useful_replicas"])), source="detected")
    figures["capacity"] = Told(value=float(band["p50"]), source=_source_of_capacity(band["source"]))
    return Reading(minute=minute, reason=code, is_advice=True, figures=figures)


def _source_of_capacity(source: str) -> str:
    return source if source in _BOUNDS else "measured"


def _plain(value: Any) -> Figure:  # noqa: ANN401  # JSON
    return value if isinstance(value, str | bool) else float(value)


def judged(readings: Sequence[Reading], truth: Mapping[str, Figure]) -> Found:
    """What the readings of one group, oldest first, have found of it."""
    advice = [reading for reading in readings if reading.is_advice]
    return Found(
        first_advice_minute=advice[0].minute if advice else None,
        capacity_minute=_lasting(advice, truth["capacity"]),
        figures=tuple(_judged(name, advice, true) for name, true in truth.items()),
        refusals=tuple(_refusals(readings)),
    )


def _judged(name: str, advice: Sequence[Reading], true: Figure) -> Judged:
    last = advice[-1].figures.get(name) if advice else None
    wrong = (each.minute for each in advice if verdict_of(name, each.figures.get(name), true) == "wrong")
    first = next(wrong, None)
    # What was told wrongly once is wrong, even if it was mended later.
    for_good = first is not None and name not in _AT_THE_END
    verdict: Verdict = "wrong" if for_good else verdict_of(name, last, true)
    return Judged(name=name, told=last, truth=true, verdict=verdict, wrong_at_minute=first)


def verdict_of(name: str, told: Told | None, true: Figure) -> Verdict:
    """The verdict on one figure.

    >>> verdict_of("protocol", Told(value="eager", source="assumed"), "cooperative")
    'off'
    >>> verdict_of("protocol", Told(value="eager", source="detected"), "cooperative")
    'wrong'
    >>> verdict_of("capacity", Told(value=27.0, source="measured"), 25.0)
    'found'
    """
    if told is None:
        return "silent"
    right = is_right(name, told.value, true)
    if told.source in {"detected", "measured"}:
        return "found" if right else "wrong"
    return "assumed" if right else "off"


def is_right(name: str, value: Figure, true: Figure) -> bool:
    """True if the value is true; numbers within the share that the figure allows, none for most."""
    if isinstance(value, float) and isinstance(true, float):
        return abs(value - true) <= _WITHIN.get(name, 0.0) * true + 1e-9
    return value == true


def _lasting(advice: Sequence[Reading], capacity: Figure) -> float | None:
    """The first minute from which on the capacity was within a tenth until the end, whatever its source."""
    since: float | None = None
    for reading in advice:
        told = reading.figures.get("capacity")
        if told is None or not is_right("capacity", told.value, capacity):
            since = None
        elif since is None:
            since = reading.minute
    return since


def _refusals(readings: Iterable[Reading]) -> Iterable[tuple[str, float, float]]:
    """Each reason with the first and the last minute of its being the newest decision without a break."""
    reason, begin, end = "", 0.0, 0.0
    for reading in readings:
        now = "" if reading.is_advice else reading.reason
        if reason and now != reason:
            yield reason, begin, end
        if now != reason:
            reason, begin = now, reading.minute
        end = reading.minute
    if reason:
        yield reason, begin, end
