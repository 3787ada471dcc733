"""The strip above the other pictures: whether data came, when partitions changed owner, and what was decided."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import groupby, pairwise
from typing import NamedTuple

from api import schemas as wire
from api.pictures.picture import Column, Option, Picture, Table, Theme, millis, name_axis
from api.pictures.timeline import MINUTE, Span, over_time, span_of, unseen
from api.words import code_in_words

DATA, GROUP, DECISION = "Data", "Group", "Decision"
LANES = (DATA, GROUP, DECISION)
SEEN, NO_DATA, STABLE, REBALANCE, STAYS, MOVE, REFUSED = (
    *("seen", "no data", "stable", "rebalance", "stays", "move advised", "refused"),
)


class Stretch(NamedTuple):
    """A state of one lane from one instant to another."""

    lane: str
    begins_at: datetime
    ends_at: datetime
    state: str
    note: str


def states(day: wire.GroupDay, advice: wire.RecommendationV1 | None) -> Picture:
    """The states of the day, lane by lane, where they changed."""
    span = span_of(day, advice)
    stretches = [*_observed(day, span), *_decided(day)]
    columns = (
        Column(name="lane", title="Of"),
        Column(name="begins_at", title="From (UTC)"),
        Column(name="ends_at", title="Until (UTC)"),
        Column(name="state", title="State"),
        Column(name="note", title="Reason"),
    )
    return Picture(
        name="states",
        title="Data, rebalances and decisions",
        sentence=_sentence(stretches),
        table=Table(columns=columns, rows=tuple(tuple(each) for each in stretches)),
        draw=partial(_draw, span=span),
    )


def _observed(day: wire.GroupDay, span: Span) -> Iterator[Stretch]:
    """Lanes of data and of the group, from the minutes; between two of them nothing was seen."""
    if not day.minutes:
        return
    seen_until, last = day.minutes[0].ends_at - MINUTE, day.minutes[-1].ends_at
    # The newest row is some seconds old: not yet a gap.
    until = span.now if span.now - last > 2 * MINUTE else last
    for begins_at, ends_at in unseen(day, since=seen_until, until=until):
        yield Stretch(DATA, seen_until, begins_at, SEEN, "")
        yield Stretch(DATA, begins_at, ends_at, NO_DATA, "")
        seen_until = ends_at
    if seen_until < until:
        yield Stretch(DATA, seen_until, until, SEEN, "")
    groups = [
        (minute.ends_at - MINUTE, minute.ends_at, REBALANCE if minute.in_rebalance_fraction > 0.0 else STABLE)
        for minute in day.minutes
    ]
    yield from _joined(GROUP, groups)


def _joined(lane: str, spans: Iterable[tuple[datetime, datetime, str]]) -> Iterator[Stretch]:
    """Neighbours of the same state as one."""
    for state, alike in groupby(spans, key=lambda each: each[2]):
        found = list(alike)
        begin = found[0]
        for one, other in pairwise(found):
            if other[0] > one[1]:
                yield Stretch(lane, begin[0], one[1], state, "")
                begin = other
        yield Stretch(lane, begin[0], found[-1][1], state, "")


def _decided(day: wire.GroupDay) -> Iterator[Stretch]:
    ends = [*(each.since_at for each in day.standings[1:]), day.until_at]
    for standing, ends_at in zip(day.standings, ends, strict=False):  # without one there is the end of the day alone
        if standing.desired_replicas is None:
            state = REFUSED
        else:
            state = STAYS if standing.desired_replicas == standing.current_replicas else MOVE
        note = code_in_words(standing.reason_code)
        if state == MOVE:
            note = f"{standing.current_replicas} to {standing.desired_replicas}, {note}"
        yield Stretch(DECISION, standing.since_at, ends_at, state, note)


def _sentence(stretches: list[Stretch]) -> str:
    if not stretches:
        return "Nothing was observed and nothing was decided in the last day."
    told = []
    observed = _minutes(stretches, DATA, SEEN) + _minutes(stretches, DATA, NO_DATA)
    if observed:
        told.append(f"{_minutes(stretches, DATA, SEEN):,.0f} of {observed:,.0f} minutes were seen")
        told.append(f"{_minutes(stretches, GROUP, REBALANCE):,.0f} had a rebalance in them")
    if any(each.lane == DECISION for each in stretches):
        moves = sum(each.state == MOVE for each in stretches)
        refused = _minutes(stretches, DECISION, REFUSED)
        told.append(f"{moves} time{'' if moves == 1 else 's'} a move was advised")
        told.append(f"no advice in {refused:,.0f} minutes" if refused else "there was advice all the time")
    text = "; ".join(told)
    return f"{text[0].upper()}{text[1:]}."


def _minutes(stretches: list[Stretch], lane: str, state: str) -> float:
    spans = (each.ends_at - each.begins_at for each in stretches if (each.lane, each.state) == (lane, state))
    return sum((span / MINUTE for span in spans), 0.0)


def _draw(table: Table, theme: Theme, *, span: Span) -> Option:
    colours = {
        SEEN: theme.shade,
        STABLE: theme.shade,
        STAYS: theme.good,
        MOVE: theme.series[1],
        NO_DATA: theme.bad,
        REBALANCE: theme.series[1],
        REFUSED: theme.bad,
    }
    lanes, begins, ends = table.column("lane"), table.column("begins_at"), table.column("ends_at")
    found, notes = table.column("state"), table.column("note")
    bars = [
        [LANES.index(lane), millis(begin), millis(end), colours[state], f"{state}, {note}" if note else state]
        for lane, begin, end, state, note in zip(lanes, begins, ends, found, notes, strict=True)
    ]
    option = over_time(theme, span, y_axis=name_axis(theme, LANES, inverse=True))
    option["tooltip"] |= {"trigger": "item"}
    del option["legend"]
    option["grid"] |= {"top": 4}
    option["series"] = [
        {
            "name": "State",
            "type": "custom",
            "renderItem": {"$fn": "bar_of_span"},
            "encode": {"x": [1, 2], "y": 0},
            "tooltip": {"formatter": {"$fn": "label_of_span"}},
            "data": bars,
        }
    ]
    return option
