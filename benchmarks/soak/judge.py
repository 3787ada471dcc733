"""What a soak has shown: figures of its log, its store, its topic, and its memory, each beside its bar."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import Any

import sqlalchemy as sa
from confluent_kafka import Consumer, TopicPartition

from benchmarks.soak.groups import FLEET
from benchmarks.soak.stage import PUBLISHED, Look, Stage
from recommender.ports import thinned_until

MOST_CYCLES = 2
MOST_GROWTH = 1.10
# Reading the topic to its end.
_POLL_SECONDS = 20.0
# What is told to begin, and what is told when it is over; the words of both name the same unit.
_OVER = {
    "step_failed": "step_works_again",
    "part_failed": "part_works_again",
    "group_failed": "group_works_again",
    "publishing_failed": "publishing_resumed",
    "brokers_unreachable": "brokers_reachable",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """A fault that has happened: when it began and was over, and how many groups had advice before it and live.

    `failure` says why it was never over.
    """

    name: str
    began_at: datetime
    ended_at: datetime
    seconds: float
    advised: int
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """A cycle as the store has it: the groups of the fleet that got advice."""

    at: datetime
    advised: int


@dataclass(slots=True)
class Log:
    """What the lines of a process have told."""

    decisions: list[int] = field(default_factory=list)
    not_over: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    undelivered: int = 0


def log_of(text: str) -> Log:
    """The cycles, the failures that are not over, and the tracebacks of a log."""
    log, open_failures = Log(), dict[tuple[str, str], str]()
    for line in text.splitlines():
        try:
            told: dict[str, Any] = json.loads(line)
        except ValueError:
            if line.startswith("Traceback"):
                log.tracebacks.append(line)
            continue
        event = str(told.get("event"))
        name = str(told.get("name") or told.get("group") or told.get("where") or "")
        if event == "cycle":
            log.decisions.append(int(told["decisions"]))
        # A part that fails is told with its traceback, since nobody may have foreseen it; the faults end parts.
        if "exception" in told and event != "part_failed":
            log.tracebacks.append(f"{event} {name}: {told.get('error')}")
        if event in _OVER:
            open_failures[_OVER[event], name] = f"{event} {name}: {told.get('error')}"
        open_failures.pop((event, name), None)
        if event == "group_failure_over":
            open_failures.pop(("group_works_again", name), None)
        log.undelivered += int(told.get("undelivered_messages", 0))
    log.not_over = list(open_failures.values())
    return log


def cycles_to_advice(fault: Struck, cycles: Sequence[Cycle]) -> int | None:
    """The number of the cycle, from 1 for the first that began after the fault, in which all groups had advice again.

    None where that was never so, or the fault never over.
    """
    if fault.failure:
        return None
    first = bisect_right([cycle.at for cycle in cycles], fault.ended_at)
    return next(
        (number for number, cycle in enumerate(cycles[first:], start=1) if cycle.advised >= fault.advised), None
    )


def growth(looks: Iterable[Look], *, settling: float) -> float:
    """The memory of a process at its end over that after its first `settling` hours: medians of a sixth of the time.

    Of the processes that had the role one after the other it is the one that was seen for longest: where a fault ends
    one, the level of the next is no growth.

    >>> growth([Look(0.0, 1.0, 7), *(Look(hour, 100.0 + hour, 7) for hour in range(1, 25))], settling=1.0)
    1.19...
    """
    lives: dict[int, list[Look]] = {}
    for look in looks:
        lives.setdefault(look.process, []).append(look)
    life = max(lives.values(), key=lambda each: each[-1].hour - each[0].hour, default=[])
    if not life:
        return float("nan")
    since, until = life[0].hour + settling, life[-1].hour
    span = (until - since) / 6.0
    early = [look.mebibytes for look in life if since <= look.hour < since + span]
    late = [look.mebibytes for look in life if until - span <= look.hour]
    return median(late) / median(early) if early and late else float("nan")


def cycles_in(stage: Stage) -> list[Cycle]:
    """The cycles of the store, oldest first. All decisions of a cycle have its instant."""
    words = (
        "SELECT issued_at, count(*) FILTER (WHERE kind = 'Recommendation') FROM decisions WHERE cluster = :cluster"
        " GROUP BY issued_at ORDER BY issued_at"
    )
    with stage.engine.connect() as connection:
        rows = connection.execute(sa.text(words), {"cluster": FLEET}).all()
    return [Cycle(at=row[0].replace(tzinfo=UTC), advised=row[1]) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The ids in the store, and the refusals by reason; `without_reason` have no sentence."""

    ids: frozenset[str]
    refusals: Mapping[str, int]
    without_reason: int


def kept_in(stage: Stage, *, since: datetime) -> Kept:
    """What the store has at the end: the ids of what was issued since then, and all refusals."""
    with stage.engine.connect() as connection:
        newer = sa.text("SELECT id FROM decisions WHERE issued_at >= :since")
        ids = frozenset(connection.scalars(newer, {"since": since.replace(tzinfo=None)}))
        documents = connection.scalars(sa.text("SELECT document FROM decisions WHERE kind = 'Refusal'"))
        refusals = [document if isinstance(document, dict) else json.loads(document) for document in documents]
    reasons = Counter(str(refusal.get("reason", "unreadable")) for refusal in refusals)
    silent = sum(1 for refusal in refusals if refusal and not (refusal.get("reason") and refusal.get("sentence")))
    return Kept(ids=ids, refusals=dict(reasons.most_common()), without_reason=silent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The decisions on the topic: ids of advice, and of refusals by their reason."""

    advice: frozenset[str]
    refusals: Mapping[str, str]


def told_on(bootstrap: str, *, since: datetime) -> Told:
    """All decisions that were published and issued since then."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "judge", "enable.partition.eof": True})
    reader.assign([TopicPartition(PUBLISHED, 0, 0)])
    advice, refusals = set[str](), dict[str, str]()
    try:
        while (message := reader.poll(_POLL_SECONDS)) is not None and message.error() is None:
            headers = {name: value for name, value in dict(message.headers() or ()).items() if isinstance(value, bytes)}
            if datetime.fromisoformat(str(headers["ce_time"], "utf-8")) < since:
                continue
            identity = str(headers["ce_id"], "utf-8")
            if headers["ce_type"] == b"io.lagcast.recommendation.changed.v1":
                advice.add(identity)
            else:
                refusals[identity] = json.loads(message.value() or b"{}")["reason"]["code"]
    finally:
        reader.close()
    return Told(advice=frozenset(advice), refusals=refusals)


def judged(stage: Stage, faults: Sequence[Struck], *, begin: float, end: float) -> dict[str, Any]:
    """End the processes; the figures of a soak between two simulated hours of its clock."""
    ended = stage.end()
    up, land = log_of(stage.logged("up")), log_of(stage.logged("land"))
    # Repetitions that are older than a day are deleted: what was told before is not looked for.
    whole_since = thinned_until(stage.clock.now())
    cycles, kept, told = (
        cycles_in(stage),
        kept_in(stage, since=whole_since),
        told_on(stage.broker.address, since=whole_since),
    )
    answered = {each for each, issued_at in stage.seen.answered.items() if issued_at >= whole_since}
    full = up.decisions[next((place for place, count in enumerate(up.decisions) if count >= stage.groups), 0) :]
    # While the store is away all are refused, and these refusals are published though they cannot be stored.
    unstored = {
        each for each, reason in told.refusals.items() if each not in kept.ids and reason != "SourceUnreachable"
    }
    return {
        "simulated_hours": end - begin,
        "real_groups": len(stage.real.names),
        "ends": ended,
        "livez": {status: count for status, count in stage.seen.statuses.items() if status.startswith("livez")},
        "answers": {status: count for status, count in stage.seen.statuses.items() if status.isdigit()},
        "unexpected_answers": stage.seen.unexpected_answers,
        "cycles": len(full),
        "decisions": sum(full),
        "least_decisions": min(full, default=0),
        "kept": len(kept.ids),
        "refusals": kept.refusals,
        "refusals_without_reason": kept.without_reason,
        "published": len(told.advice) + len(told.refusals),
        "published_not_kept": len(told.advice - kept.ids) + len(unstored),
        "kept_not_published": len(kept.ids - told.advice - told.refusals.keys()),
        "answered": len(answered),
        "answered_not_kept": len(answered - kept.ids),
        "undelivered": up.undelivered,
        "not_over": up.not_over + land.not_over,
        "tracebacks": up.tracebacks + land.tracebacks,
        "faults": [
            {
                "name": fault.name,
                "hour": (fault.began_at - stage.clock.shown_at).total_seconds() / 3600.0 - begin,
                "seconds": fault.seconds,
                "advised": fault.advised,
                "failure": fault.failure,
                "cycles": cycles_to_advice(fault, cycles),
            }
            for fault in faults
        ],
        "resident": {
            role: [(round(look.hour - begin, 2), round(look.mebibytes, 1)) for look in looks]
            for role, looks in stage.seen.resident.items()
        },
        "growth": {
            role: growth(looks, settling=min(1.0, (end - begin) / 4.0)) for role, looks in stage.seen.resident.items()
        },
    }
