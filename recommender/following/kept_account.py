"""The account of who is followed, as it is kept: by the quarter of an hour, so that a restart goes on with it.

Of the account, rows of the feature table give what messages came; who was followed, what that cost, and what plans
would have cost are known to nobody else. Each quarter is one document, which holds the state at its end as well, so
that the newest one and the rows of all are an account again.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from cost_model.physics.profile import Capacity
from cost_model.shadows.playing import Shadows, shadows_of
from cost_model.shadows.tables import MoveTimes
from forecasting.packing import pack, unpack
from forecasting.units import SECONDS_PER_DAY
from recommender.following.lateness import StandstillState, StrengthState, Waits
from recommender.ports import AccountPart

# The costs of a day are remembered, by the quarter of an hour: those of the last hours, and those of yesterday's next
# hours, for a scaler that suits the night may not suit the morning.
SLOT_SECONDS = 900
SLOTS = SECONDS_PER_DAY // SLOT_SECONDS + 1


def kept_since(now: datetime) -> datetime:
    """The beginning of the oldest quarter of an hour that an account of `now` consists of."""
    oldest = int(now.timestamp()) // SLOT_SECONDS - SLOTS + 1
    return datetime.fromtimestamp(oldest * SLOT_SECONDS, UTC)


class CountedRow(NamedTuple):
    """One row, which scaler was `followed` (-1: plans were), and pod-seconds and late messages of the group itself.

    `slot` counts quarters of an hour since 1970. `decided`: there were plans.
    """

    seconds: float
    rate: float
    followed: int
    pod_seconds: float
    late_messages: float
    slot: int
    decided: bool


# Rates and costs of a row to 6e-8, all else as it is: a row spans whole seconds, and places of scalers are below 128.
_ROW = np.dtype(list(zip(CountedRow._fields, ("f4", "f4", "i1", "f4", "f4", "i4", "?"), strict=True)))
# Four rows a minute; of a slot with more of them, the room doubles.
_ROWS_OF_A_SLOT = SLOT_SECONDS // 15


class _PackedSlot(NamedTuple):
    """The rows of a slot that is over."""

    slot: int
    rows: int
    rows_without_plans: int
    packed: bytes

    def unpacked(self) -> NDArray[np.void]:
        """(rows,): records with the fields of `CountedRow`."""
        return unpack(self.packed, dtype=_ROW, shape=(self.rows,))


class CountedRows:
    """Counted rows, oldest first, those without plans before the others, and slots in the order of their numbers.

    A row takes 8 B where its slot is over, 22 B before, and 240 as an object.
    """

    def __init__(self) -> None:
        self._over: list[_PackedSlot] = []
        self._newest = np.empty(_ROWS_OF_A_SLOT, _ROW)
        self._filled = 0

    def __len__(self) -> int:
        return sum(each.rows for each in self._over) + self._filled

    @property
    def table(self) -> NDArray[np.void]:
        """(rows,): all of them, records with the fields of `CountedRow`."""
        return np.concatenate([*(each.unpacked() for each in self._over), self._of_newest_slot])

    @property
    def newest(self) -> NDArray[np.void]:
        """(1,): the newest of them, (0,) where there is none; valid until the next change."""
        return self._of_newest_slot[-1:]

    @property
    def _of_newest_slot(self) -> NDArray[np.void]:
        return self._newest[: self._filled]

    def append(self, row: CountedRow) -> None:
        """Add the newest row."""
        if self._filled and self._newest["slot"][0] != row.slot:
            rows = self._of_newest_slot
            slot, without_plans = int(rows["slot"][0]), _without_plans(rows)
            self._over.append(_PackedSlot(slot, self._filled, without_plans, pack(rows)))
            self._newest, self._filled = np.empty(_ROWS_OF_A_SLOT, _ROW), 0
        if self._filled == len(self._newest):
            self._newest = np.concatenate([self._newest, np.empty_like(self._newest)])
        self._newest[self._filled] = row
        self._filled += 1

    def forget(self, slot: int) -> None:
        """Drop the rows of this slot and of those before it."""
        self._over = [each for each in self._over if each.slot > slot]
        if self._filled and self._newest["slot"][0] <= slot:
            self._filled = 0

    def without_plans(self) -> int:
        """The number of rows, the first ones, that came before there were plans."""
        return sum(each.rows_without_plans for each in self._over) + _without_plans(self._of_newest_slot)

    def decided_in(self, slot: int) -> tuple[CountedRow, ...]:
        """The rows of a slot for which there were plans."""
        tables = [each.unpacked() for each in self._over if each.slot == slot]
        if self._filled and self._newest["slot"][0] == slot:
            tables.append(self._of_newest_slot)
        rows = (row for table in tables for row in table[_without_plans(table) :].tolist())
        return tuple(map(CountedRow._make, rows))


def _without_plans(rows: NDArray[np.void]) -> int:
    return int(np.searchsorted(rows["decided"], v=True))


class SteeredState(NamedTuple):
    """The state of groups that are scaled from outside, by place: a `Shadows` without what only rules of its own need.

    `starting` and `ready_at` are as long as the moves under way.
    """

    members: tuple[int, ...]
    starting: tuple[tuple[int, ...], ...]
    ready_at: tuple[tuple[float, ...], ...]
    backlog: tuple[tuple[float, ...], ...]
    pause_left_seconds: tuple[float, ...]
    now: float

    @classmethod
    def of(cls, shadows: Shadows) -> "SteeredState":
        """What has to be kept of these groups."""
        moves = shadows.moves.tolist()
        return cls(
            members=tuple(shadows.members.tolist()),
            starting=tuple(tuple(each[:n].tolist()) for each, n in zip(shadows.starting, moves, strict=True)),
            ready_at=tuple(tuple(each[:n].tolist()) for each, n in zip(shadows.ready_at, moves, strict=True)),
            backlog=tuple(tuple(each.tolist()) for each in shadows.backlog),
            pause_left_seconds=tuple(shadows.pause_left_seconds.tolist()),
            now=float(shadows.now[0]),
        )

    def shadows(self, *, counts: int) -> Shadows:
        """The groups again, of which each has one of so many counts."""
        shadows = shadows_of(len(self.members), members=0, counts=counts)
        shadows.members[:], shadows.pause_left_seconds[:] = self.members, self.pause_left_seconds
        shadows.backlog[:], shadows.now[0] = np.array(self.backlog), self.now
        for group, (starting, ready_at) in enumerate(zip(self.starting, self.ready_at, strict=True)):
            moves = min(len(starting), shadows.starting.shape[1])
            shadows.moves[group] = moves
            shadows.starting[group, :moves], shadows.ready_at[group, :moves] = starting[:moves], ready_at[:moves]
        return shadows


class Proof(NamedTuple):
    """The last comparison of the forecaster with persistence, out of sample, and whether the forecaster was better."""

    proven_at: datetime
    is_proven: bool


class MeasuredCapacity(NamedTuple):
    """The capacity of a replica as it was found at an instant in what was known of the group then."""

    looked_at: datetime
    capacity: Capacity


class AccountState(NamedTuple):
    """Who was followed at the end of a quarter, and all that the next row and the next choice depend on.

    The last row that was seen ended at `seen_until`, the last one before the first choice at `decided_after`. `counts`
    are those that places name. `played_times`, `played_capacity` and `played_members`: what shadows were played with
    last. `target_utilization` is what rows have taught of it, those before the account among them. `proof` is that of
    the forecasts that plans were made with, `measured` the capacity that was found in the group's history.
    """

    seen_until: datetime
    decided_after: datetime
    counts: tuple[int, ...]
    followed: int | None
    planner: int
    regret: float
    handing_over_seconds: float
    since_plans_seconds: tuple[float, ...]
    members: int
    capacity: float
    played_times: MoveTimes
    played_capacity: float
    played_members: int
    late_played: float
    late_seen: float
    waits: Waits
    strength: StrengthState
    standstill: StandstillState
    beside: SteeredState
    target_utilization: float | None = None
    proof: Proof | None = None
    measured: MeasuredCapacity | None = None


class AccountSlot(NamedTuple):
    """A quarter of an hour: its rows, what plans (planners, COLUMNS) and the group (COLUMNS,) have cost in it.

    `state` is that of the moment when the quarter was kept.
    """

    slot: int
    rows: tuple[CountedRow, ...]
    plans: tuple[tuple[float, ...], ...]
    paid: tuple[float, ...]
    state: AccountState


_SLOT = TypeAdapter(AccountSlot)


def part_of(slot: AccountSlot, *, cluster: str, group: str) -> AccountPart:
    """The quarter as a store keeps it, every float to its last bit."""
    document = json.dumps(_SLOT.dump_python(slot, mode="json"), allow_nan=False, separators=(",", ":"))
    return AccountPart(cluster, group, datetime.fromtimestamp(slot.slot * SLOT_SECONDS, UTC), document)


def account_of(parts: Iterable[AccountPart]) -> Sequence[AccountSlot]:
    """The quarters that were kept, oldest first. Errors: ValueError where one is not of this version."""
    return [_SLOT.validate_json(part.document) for part in parts]
