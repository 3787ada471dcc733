"""Rebalances in time: when partitions changed their owners, when nothing was seen, and which moves were graded."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from api import schemas as wire
from api.pictures.picture import Column, Option, Picture, Table, Theme, base, millis, name_axis, time_axis
from api.pictures.timeline import MINUTE, unseen
from api.words import duration, instant

REBALANCE, UNSEEN, MOVE = "Rebalance", "Nothing seen", "Move, graded"


class _Span(NamedTuple):
    kind: str
    begins_at: datetime
    ends_at: datetime
    seconds: float | None
    words: str


def rebalances(day: wire.GroupDay, moves: Sequence[wire.Outcome]) -> Picture:
    """The minutes of a day in which partitions changed owners, joined, and the moves that were graded in it.

    A minute that is left out of the day is one in which nothing was seen, rebalances included. A group that was first
    seen within the day has no picture before.
    """
    begins_at = max(day.since_at, day.first_seen_at or day.since_at)
    graded = sorted((each for each in moves if day.since_at <= each.graded_at <= day.until_at), key=_graded_at)
    spans = [*_rebalances(day), *_unseen(day, since=begins_at), *map(_graded, graded)]
    spans.sort(key=lambda span: (span.begins_at, span.kind))
    return Picture(
        name="rebalances",
        title="Rebalances and moves",
        sentence=_sentence(day, spans),
        table=Table(
            columns=(
                Column(name="kind", title="What"),
                Column(name="begins_at", title="From"),
                Column(name="ends_at", title="Until"),
                Column(name="seconds", title="Rebalance or pause, s"),
                Column(name="words", title="In words"),
            ),
            rows=tuple(spans),
        ),
        draw=partial(_draw, since_at=begins_at, until_at=day.until_at),
    )


def _graded_at(move: wire.Outcome) -> datetime:
    return move.graded_at


def _rebalances(day: wire.GroupDay) -> Iterator[_Span]:
    """Minutes with a rebalance in them, those that follow each other as one span."""
    begins_at, ends_at, seconds = None, day.since_at, 0.0
    for minute in day.minutes:
        share = minute.in_rebalance_fraction
        if begins_at is not None and (share <= 0 or minute.ends_at - MINUTE > ends_at):
            yield _rebalance(begins_at, ends_at, seconds)
            begins_at, seconds = None, 0.0
        if share > 0:
            begins_at = begins_at if begins_at is not None else minute.ends_at - MINUTE
            ends_at, seconds = minute.ends_at, seconds + share * MINUTE.total_seconds()
    if begins_at is not None:
        yield _rebalance(begins_at, ends_at, seconds)


def _rebalance(begins_at: datetime, ends_at: datetime, seconds: float) -> _Span:
    return _Span(REBALANCE, begins_at, ends_at, seconds, f"rebalance, {duration(seconds)}")


def _unseen(day: wire.GroupDay, *, since: datetime) -> Iterator[_Span]:
    for begins_at, ends_at in unseen(day, since=since, until=day.until_at):
        yield _Span(UNSEEN, begins_at, ends_at, None, "nothing seen")


def _graded(move: wire.Outcome) -> _Span:
    pause = move.happened.rebalance_pause_seconds
    stood = f"pause {duration(pause)}" if pause is not None else "pause unknown"
    words = f"{move.from_replicas} to {move.to_replicas}, {stood}"
    return _Span(MOVE, move.graded_at, move.graded_at, pause, words)


def _sentence(day: wire.GroupDay, spans: Sequence[_Span]) -> str:
    if not day.minutes:
        return "Nothing was seen of the group here: another process decides on it, or its first minute is not over."
    seen = [span for span in spans if span.kind == REBALANCE]
    took = sum(span.seconds or 0.0 for span in seen)
    moves = [span for span in spans if span.kind == MOVE]
    known = [span.seconds for span in moves if span.seconds is not None]
    longest = f", with a pause of {duration(max(known))} at most" if known else ""
    gaps = sum(((span.ends_at - span.begins_at).total_seconds() for span in spans if span.kind == UNSEEN), 0.0)
    missing = f" Nothing was seen for {duration(gaps)}." if gaps else ""
    if day.first_seen_at is not None and day.first_seen_at > day.since_at:
        missing += f" The group was first seen at {instant(day.first_seen_at)}."
    return (
        f"{len(seen)} rebalance{'' if len(seen) == 1 else 's'} took {duration(took)} together; {len(moves)} "
        f"move{' was' if len(moves) == 1 else 's were'} graded{longest}.{missing}"
    )


def _draw(table: Table, theme: Theme, *, since_at: datetime, until_at: datetime) -> Option:
    colours = {REBALANCE: theme.series[1], UNSEEN: theme.quiet}
    rows = list(zip(*(table.column(name) for name in ("kind", "begins_at", "ends_at", "words")), strict=True))
    option = base(theme)
    del option["legend"]
    option["tooltip"] |= {"trigger": "item"}
    lanes = (*colours, MOVE)
    return option | {
        "grid": option["grid"] | {"top": 8, "right": 96},
        "xAxis": time_axis(theme, min=millis(since_at), max=millis(until_at)),
        "yAxis": name_axis(theme, lanes, inverse=True),
        "series": [
            {
                "type": "custom",
                "name": "Spans",
                "renderItem": {"$fn": "bar_of_span"},
                "encode": {"x": [1, 2], "y": 0, "itemName": 4},
                "data": [
                    [lanes.index(kind), millis(begins_at), millis(ends_at), colours[kind], words]
                    for kind, begins_at, ends_at, words in rows
                    if kind in colours
                ],
            },
            {
                "type": "scatter",
                "name": MOVE,
                "symbol": "diamond",
                "symbolSize": 12,
                "itemStyle": {"color": theme.series[0]},
                "label": {"show": True, "position": "right", "formatter": "{b}", "color": theme.text},
                "labelLayout": {"hideOverlap": True},
                "data": [
                    {"name": words, "value": [millis(begins_at), lanes.index(MOVE)]}
                    for kind, begins_at, _, words in rows
                    if kind == MOVE
                ],
            },
        ],
    }
