"""The compiled loop that plays simple scalers beside a group: the same messages, other replicas, as a fluid.

Pods start as slowly, rebalances stop as long and partitions are dealt as unevenly as in the real group, as far as these
are known. What a row's mean hides is not known here.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cost_model.physics.backlog import HIGHEST_LOAD
from cost_model.physics.fluid import share_late
from cost_model.pricing.rollout import LONGEST_CATCH_UP_SECONDS
from cost_model.shadows.tables import MoveTables
from forecasting.compiled import compiled
from forecasting.units import FloatArray, IntArray

CLASSES = 3
# Places among useful counts, of which 65,000 partitions have 510.
_Place = np.int16
# Moves up under way at once: at one each 15 s a start-up of 10 minutes has 40 of them; a further one waits.
MOST_STARTING = 40
# Needs of the past that no later one exceeds; of 1,800 s in rows of 15 s there are 120 at most.
MOST_NEEDS = 128
# Columns of an account: pod-seconds, and late messages.
PODS, LATE, COLUMNS = 0, 1, 2
# A count that carries nothing keeps its wait a number.
LEAST_CARRIED = 1e-9


# Kinds of groups: one that a rule of its own scales, and one that is scaled from outside by `request`.
REACTING, STEERED = 0, 1


class Rules(NamedTuple):
    """One value for each scaler (n,): room for `margin_factor` times the produce rate, and down after `hold_seconds`.

    Backlogs are to drain within `drain_seconds`. It never has less than the count in place `least`. What is STEERED has
    no rule: `kind` names it.
    """

    kind: IntArray
    margin_factor: FloatArray
    hold_seconds: FloatArray
    drain_seconds: FloatArray
    least: IntArray


def steered(groups: int) -> Rules:
    """No rules: groups that are scaled from outside."""
    nothing = np.zeros(groups)
    return Rules(np.full(groups, STEERED), nothing, nothing, nothing + 1.0, np.zeros(groups, dtype=np.int64))


class Service(NamedTuple):
    """Messages/s that one replica consumes, and the wait that the group promises not to exceed."""

    capacity: float
    max_lag_seconds: float


class Shadows(NamedTuple):
    """The state of each scaler's group, changed in place: choices are places among the counts of the tables.

    `members` (n,) work; `starting` (n, at most MOST_STARTING) is what they become at `ready_at`, `moves` (n,) of them
    are under way. `backlog` (n, CLASSES) waits, `pause_left_seconds` (n,) remain of a rebalance pause. `needs` (n, at
    most MOST_NEEDS) were there at `needed_at`, from place `first_need` on `held` of them. `now` (1,) is seconds since
    the first row.
    """

    members: IntArray
    starting: NDArray[np.int16]
    ready_at: FloatArray
    moves: IntArray
    backlog: FloatArray
    pause_left_seconds: FloatArray
    needs: NDArray[np.int16]
    needed_at: FloatArray
    first_need: IntArray
    held: IntArray
    now: FloatArray


def shadows_of(scalers: int, *, members: int, counts: int | None = None) -> Shadows:
    """Groups that have nothing to do yet, each of the count in place `members`; all they need is one of so many."""
    # Counts that start rise all along, and needs that are held fall: no more than there are counts.
    most_starting, most_needs = (min(counts or most, most) for most in (MOST_STARTING, MOST_NEEDS))
    return Shadows(
        members=np.full(scalers, members, dtype=np.int64),
        starting=np.zeros((scalers, most_starting), dtype=_Place),
        ready_at=np.zeros((scalers, most_starting)),
        moves=np.zeros(scalers, dtype=np.int64),
        backlog=np.zeros((scalers, CLASSES)),
        pause_left_seconds=np.zeros(scalers),
        needs=np.zeros((scalers, most_needs), dtype=_Place),
        needed_at=np.zeros((scalers, most_needs)),
        first_need=np.zeros(scalers, dtype=np.int64),
        held=np.zeros(scalers, dtype=np.int64),
        now=np.zeros(1),
    )


@compiled
def requested(shadows: Shadows, scaler: int) -> int:
    """The count, by its place, that the scaler last requested."""
    moves = shadows.moves[scaler]
    return int(shadows.starting[scaler, moves - 1] if moves > 0 else shadows.members[scaler])


@compiled
def stops_of(tables: MoveTables, before: int, after: int) -> tuple[int, int]:
    """The useful counts, by their places, whose move stops the group as this one does.

    A move between counts that carry the same is a rebalance too: it stops as a move to the next useful count does.
    """
    begin, end, last = tables.places[before], tables.places[after], tables.whole_seconds.shape[0] - 1
    if begin == end and after > before:
        return (begin, end + 1) if end < last else (max(begin - 1, 0), end)
    if begin == end:
        return (begin + 1, end) if begin < last else (begin, max(end - 1, 0))
    return begin, end


@compiled
def become(tables: MoveTables, shadows: Shadows, scaler: int, after: int, rate: float, service: Service) -> float:
    """Change the members: partitions stop and are dealt again; messages late where they stop longer than others."""
    before = shadows.members[scaler]
    if after == before:
        return 0.0
    begin, end = stops_of(tables, before, after)
    shadows.pause_left_seconds[scaler] += tables.whole_seconds[begin, end]
    waiting = shadows.backlog[scaler].sum()
    shadows.members[scaler] = after
    for place in range(CLASSES):
        shadows.backlog[scaler, place] = tables.class_shares[after, place] * waiting
    load = min(rate / max(tables.carried[after] * service.capacity, LEAST_CARRIED), HIGHEST_LOAD)
    late = 0.0
    for place in range(CLASSES):
        over = tables.longer_seconds[begin, end, place] - service.max_lag_seconds
        if over > 0.0:
            late += tables.longer_shares[begin, end, place] * min(over / (1.0 - load), LONGEST_CATCH_UP_SECONDS)
    return late * rate


@compiled
def scale(tables: MoveTables, shadows: Shadows, scaler: int, wanted: int) -> int:
    """Request a count; members that it means at once: pods that start are the first to go."""
    members, moves = shadows.members[scaler], shadows.moves[scaler]
    while moves > 0 and shadows.starting[scaler, moves - 1] > wanted:
        moves -= 1
    before = int(shadows.starting[scaler, moves - 1]) if moves > 0 else members
    # A move that was cut down to less keeps its own instant.
    if moves < shadows.moves[scaler] and wanted > before:
        shadows.starting[scaler, moves] = wanted
        moves += 1
    elif wanted > before and moves < shadows.starting.shape[1]:
        shadows.starting[scaler, moves] = wanted
        shadows.ready_at[scaler, moves] = (
            shadows.now[0] + tables.lead_seconds[tables.places[before], tables.places[wanted]]
        )
        moves += 1
    shadows.moves[scaler] = moves
    return int(min(members, wanted))


@compiled
def remember(shadows: Shadows, scaler: int, need: int, hold_seconds: float) -> int:
    """Keep the need of now; the highest one of the last `hold_seconds`, one exactly as old included."""
    first, held, now = shadows.first_need[scaler], shadows.held[scaler], shadows.now[0]
    most = shadows.needs.shape[1]
    # Needs that a later one reaches decide nothing any more: the first is the highest.
    while held > 0 and shadows.needs[scaler, (first + held - 1) % most] <= need:
        held -= 1
    if held == most:
        first, held = (first + 1) % most, held - 1
    place = (first + held) % most
    shadows.needs[scaler, place], shadows.needed_at[scaler, place] = need, now
    held += 1
    while shadows.needed_at[scaler, first] < now - hold_seconds:
        first, held = (first + 1) % most, held - 1
    shadows.first_need[scaler], shadows.held[scaler] = first, held
    return int(shadows.needs[scaler, first])


@compiled
def smallest_carrying(tables: MoveTables, messages_per_second: float, service: Service) -> int:
    """The fewest replicas, by their place, that carry so much; the most there are where none do."""
    return min(int(np.searchsorted(tables.carried, messages_per_second / service.capacity)), tables.carried.size - 1)


@compiled
def need_of(tables: MoveTables, shadows: Shadows, rules: Rules, scaler: int, rate: float, service: Service) -> int:
    """The count, by its place, that the scaler requests after a row: up to the need, down to the highest one held."""
    drained = shadows.backlog[scaler].sum() / rules.drain_seconds[scaler]
    wanted = rules.margin_factor[scaler] * rate + drained
    need = max(smallest_carrying(tables, wanted, service), rules.least[scaler])
    highest = remember(shadows, scaler, need, rules.hold_seconds[scaler])
    return int(max(need, min(requested(shadows, scaler), highest)))


@compiled
def play_class(
    lag: float, arriving: float, carried: float, stop: float, stopped: float, worked: float, limit: float
) -> tuple[float, float]:
    """Backlog of one class after a row, and its late messages: first no replica works, then all do.

    The wait of what arrives is the rest of the stop, and the time that the backlog in front of it takes.
    """
    late = 0.0
    if stopped > 0.0:
        after = lag + arriving * stopped
        late += arriving * stopped * share_late(stop + lag / carried, stop - stopped + after / carried, limit)
        lag = after
    after = lag + (arriving - carried) * worked
    if after >= 0.0:
        return after, late + arriving * worked * share_late(lag / carried, after / carried, limit)
    return 0.0, late + arriving * lag / (carried - arriving) * share_late(lag / carried, 0.0, limit)


@compiled
def pass_messages(
    tables: MoveTables, shadows: Shadows, rate: float, seconds: float, service: Service, account: FloatArray
) -> None:
    """Let the messages of so many seconds come in each group, `rate` of them per second.

    Adds pod-seconds, those of pods that start included, and late messages to `account` (n, COLUMNS).
    """
    limit = service.max_lag_seconds
    for scaler in range(shadows.members.size):
        account[scaler, PODS] += tables.counts[requested(shadows, scaler)] * seconds
        late, moves = 0.0, shadows.moves[scaler]
        ready = 0
        while ready < moves and shadows.ready_at[scaler, ready] <= shadows.now[0]:
            ready += 1
        if ready > 0:
            late += become(tables, shadows, scaler, int(shadows.starting[scaler, ready - 1]), rate, service)
            for place in range(ready, moves):
                shadows.starting[scaler, place - ready] = shadows.starting[scaler, place]
                shadows.ready_at[scaler, place - ready] = shadows.ready_at[scaler, place]
            shadows.moves[scaler] = moves - ready
        members, stop = shadows.members[scaler], shadows.pause_left_seconds[scaler]
        stopped = min(stop, seconds)
        for place in range(CLASSES):
            share = tables.class_shares[members, place]
            if share > 0.0:
                carried = max(tables.class_replicas[members, place] * service.capacity, LEAST_CARRIED)
                lag, more = play_class(
                    shadows.backlog[scaler, place], share * rate, carried, stop, stopped, seconds - stopped, limit
                )
                shadows.backlog[scaler, place] = lag
                late += more
        shadows.pause_left_seconds[scaler] = stop - stopped
        account[scaler, LATE] += late
    shadows.now[0] += seconds


@compiled
def follow(
    tables: MoveTables, shadows: Shadows, scaler: int, wanted: int, rate: float, service: Service, account: FloatArray
) -> None:
    """Request the count in place `wanted`, if it is another one; what its stop makes late is added to `account`."""
    if wanted != requested(shadows, scaler):
        members = scale(tables, shadows, scaler, wanted)
        account[scaler, LATE] += become(tables, shadows, scaler, members, rate, service)


@compiled
def play_row(
    tables: MoveTables,
    rules: Rules,
    shadows: Shadows,
    rate: float,
    seconds: float,
    service: Service,
    account: FloatArray,
) -> None:
    """Let the messages of one row come in each group, `rate` of them per second, and let its scaler answer."""
    pass_messages(tables, shadows, rate, seconds, service, account)
    for scaler in range(rules.kind.size):
        if rules.kind[scaler] == REACTING:
            wanted = need_of(tables, shadows, rules, scaler, rate, service)
            follow(tables, shadows, scaler, wanted, rate, service, account)


class PlayedRows(NamedTuple):
    """Rows that have come, oldest first, one value each: `seconds`, the mean produce `rate`, and who was `followed`.

    What the group itself spent on it, `pod_seconds` and `late_messages`, takes the place of what the shadow of the
    followed scaler did; -1: none was. What is spent goes to the row's `account`, by its place.
    """

    seconds: FloatArray
    rate: FloatArray
    followed: IntArray
    pod_seconds: FloatArray
    late_messages: FloatArray
    account: IntArray


@compiled
def play_rows(
    tables: MoveTables, rules: Rules, shadows: Shadows, rows: PlayedRows, service: Service, accounts: FloatArray
) -> None:
    """Let rows come, oldest first, and add to `accounts` (slots, n, COLUMNS)."""
    for row in range(rows.rate.size):
        account, followed = accounts[rows.account[row]], rows.followed[row]
        pods, late = account[followed, PODS], account[followed, LATE]
        play_row(tables, rules, shadows, rows.rate[row], rows.seconds[row], service, account)
        if followed >= 0:
            account[followed, PODS] = pods + rows.pod_seconds[row]
            account[followed, LATE] = late + rows.late_messages[row]


@compiled
def request(tables: MoveTables, shadows: Shadows, scaler: int, wanted: int, *, at_once: bool) -> None:
    """Scale a group from outside to the count in place `wanted`; `at_once`: its pods have started already."""
    if at_once:
        shadows.moves[scaler] = 0
    members = wanted if at_once else scale(tables, shadows, scaler, wanted)
    # Nothing is late yet: longer stops of parts of a group are left out here.
    become(tables, shadows, scaler, members, 0.0, Service(1.0, 0.0))
