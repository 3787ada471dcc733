"""The ledger: what a group has paid in the last day, and what each autoscaler that its owner may have would have cost.

Every scaler has a shadow, a simulated group that gets the real one's messages. The group as it really was has one as
well: what this one gets wrong is the ledger's error, and a scaler that differs by no more is not told apart.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from cost_model.pricing.price import Prices
from cost_model.shadows.autoscalers import (
    BEHAVIOR,
    BEHAVIOR_SECONDS,
    HELD,
    LEGACY,
    RATE,
    RATE_PASSES,
    STABILISATION_SECONDS,
    USEFUL,
    Autoscalers,
    Commits,
    play_passes,
)
from cost_model.shadows.playing import COLUMNS, LATE, PODS, Service, request, shadows_of
from cost_model.shadows.tables import MoveTables, MoveTimes, of_every_count, tables_of, to_a_tenth
from forecasting.history import GroupInterval
from forecasting.packing import Resting
from forecasting.units import SECONDS_PER_DAY, SECONDS_PER_HOUR, FloatArray, MessagesPerSecond
from recommender.deciding.recommendation import LedgerAccount, LedgerStanding
from recommender.following.lateness import Lateness, Strength

# A day is counted by the quarter of an hour, the present one included.
SLOT_SECONDS = 900
SLOTS = SECONDS_PER_DAY // SLOT_SECONDS
DRAIN_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scaler:
    """One scaler that a user may have; a `lag_target` is messages per replica, capped at the partitions by KEDA."""

    name: str
    kind: int
    margin_factor: float = 1.0
    hold_seconds: float = 0.0
    lag_target: float = 1.0
    is_capped: bool = False

    @property
    def least_error(self) -> float:
        """The error of its shadow at least, as a share of the greater cost."""
        if self.kind == HELD:
            return HELD_ERROR
        return RATE_ERROR if self.kind in {RATE, USEFUL} else LAG_ERROR


def _keda(lag_target: int) -> _Scaler:
    return _Scaler(
        name=f"keda-{lag_target}",
        kind=LEGACY,
        hold_seconds=STABILISATION_SECONDS,
        lag_target=float(lag_target),
        is_capped=True,
    )


STAY, CEILING = 0, 1
SCALERS = (
    _Scaler(name="stay", kind=HELD),
    _Scaler(name="fixed-ceiling", kind=HELD),
    _Scaler(name="rate-1.25", kind=RATE, margin_factor=1.25, hold_seconds=300.0),
    _Scaler(name="useful-counts", kind=USEFUL, margin_factor=1.2, hold_seconds=600.0),
    _Scaler(name="hpa-10000", kind=LEGACY, hold_seconds=STABILISATION_SECONDS, lag_target=10_000.0),
    _Scaler(name="hpa-behavior-2000", kind=BEHAVIOR, hold_seconds=BEHAVIOR_SECONDS, lag_target=2_000.0),
    *(_keda(lag_target) for lag_target in (500, 2_000, 10_000, 50_000)),
)
PAID_NAME = "paid"
NAMES = (*(scaler.name for scaler in SCALERS), PAID_NAME)
# The places behind those of the scalers: the shadow of the group as it was, and the group itself.
AS_IT_IS, PAID = len(SCALERS), len(SCALERS) + 1
# What shadows get wrong of an independent simulation at least, as a share of the greater cost: those that keep their
# count, those that react to the produce rate, and those that follow the lag. On seven loads in six worlds shadows of
# HPA and KEDA cost 0.6 to 1.4 times what the real rules did there, but for one of 2.1 where the batches of consumers
# are as long as their commits, and 0.5 to 6.5 where leavers stay members for 45 s.
HELD_ERROR, RATE_ERROR, LAG_ERROR = 0.05, 0.25, 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LedgerDay:
    """The day of a ledger by the quarter of an hour, oldest first, as it is kept for showing: to 6e-8 of each value.

    Shapes: `spent` (slots, names, COLUMNS) in `seconds` (slots,) of rows; of `names` the last is what was paid.
    """

    first_slot: int
    names: tuple[str, ...]
    spent: NDArray[np.float32]
    seconds: NDArray[np.float32]

    @property
    def begun_at(self) -> tuple[datetime, ...]:
        """When each quarter of an hour began."""
        slots = range(self.first_slot, self.first_slot + self.seconds.size)
        return tuple(datetime.fromtimestamp(slot * SLOT_SECONDS, tz=UTC) for slot in slots)

    @property
    def replicas(self) -> FloatArray:
        """(slots, names): their mean, those that start included; NaN where no row was counted."""
        return self.spent[:, :, PODS] / self._known_seconds

    @property
    def late_messages(self) -> FloatArray:
        """(slots, names): NaN where no row was counted."""
        return self.spent[:, :, LATE] + 0.0 * self._known_seconds

    @property
    def _known_seconds(self) -> FloatArray:
        seconds = self.seconds.astype(np.float64)
        return np.where(seconds > 0.0, seconds, np.nan)[:, np.newaxis]


class Ledger:
    """The accounts of one group and of the shadows beside it, over the last 24 hours."""

    def __init__(
        self,
        profile: GroupProfile,
        *,
        capacity: MessagesPerSecond,
        max_lag_seconds: float,
        learned: Learned,
        members: int,
    ) -> None:
        self._profile, self._limit = profile, max_lag_seconds
        self._lateness, self._strength = Lateness(profile, max_lag_seconds=max_lag_seconds), Strength(profile)
        self._capacity = capacity
        self._times = MoveTimes.of(profile, learned)
        self._tables = self._tables_now()
        self._autoscalers = _autoscalers(profile.partitions)
        self._commits = Commits(profile.commits_every_seconds, profile.commits_every_seconds / 2.0)
        self._members = members
        self._shadows = shadows_of(AS_IT_IS + 1, members=self._place_of(members))
        self._shadows.members[CEILING] = self._tables.counts.size - 1
        self._rates = np.full(RATE_PASSES, np.nan)
        self._spent = Resting(np.zeros((SLOTS, PAID + 1, COLUMNS)))
        self._seconds: FloatArray = np.zeros(SLOTS)
        self._slot = 0
        self._began_at: datetime | None = None

    def _tables_now(self) -> MoveTables:
        useful = tables_of(self._profile, self._times, max_lag_seconds=self._limit)
        return of_every_count(useful, self._profile)

    def _place_of(self, members: int) -> int:
        """The place of so many members among all counts; of the nearest one where they are beyond the bounds."""
        return min(max(members - int(self._tables.counts[0]), 0), self._tables.counts.size - 1)

    def observe(self, row: GroupInterval, *, capacity: MessagesPerSecond, learned: Learned) -> None:
        """Let one base row pass in the group and in all shadows; one of unknown rate, lag or members passes in none."""
        rate, members, lag = row.produce_messages_per_second, row.members, row.lag_messages
        if rate is None or members is None or lag is None:
            return
        account = self._account_of(row)
        late = self._late_messages(row, members=members, rate=rate, lag=lag, capacity=capacity)
        times = MoveTimes.of(self._profile, learned)
        if times != self._times:
            self._times = times
            self._tables = self._tables_now()
        started = max(0, members - self._members) * self._times.start_up_seconds
        self._members = members
        pod_seconds = members * float(row.interval_seconds) + started
        account[PAID] += (pod_seconds, late)
        before = account[AS_IT_IS, PODS]
        request(self._tables, self._shadows, AS_IT_IS, self._place_of(members), at_once=True)
        service = Service(self._capacity, self._limit)
        play_passes(
            self._tables,
            self._autoscalers,
            self._shadows,
            self._rates,
            rate,
            float(row.interval_seconds),
            service,
            self._commits,
            account[:PAID],
        )
        # Its pods are the group's own.
        account[AS_IT_IS, PODS] = before + pod_seconds

    def _account_of(self, row: GroupInterval) -> FloatArray:
        """The accounts (n, COLUMNS) of a row's slot; where another one begins, that of the day before is emptied."""
        begun_at = row.interval_end_at - timedelta(seconds=row.interval_seconds)
        if self._began_at is None:
            self._began_at = begun_at
        slot = int(begun_at.timestamp()) // SLOT_SECONDS
        spent = self._spent.values
        for begun in range(max(self._slot, slot - SLOTS) + 1, slot + 1):
            spent[begun % SLOTS] = 0.0
            self._seconds[begun % SLOTS] = 0.0
        self._slot = slot
        self._seconds[slot % SLOTS] += float(row.interval_seconds)
        account: FloatArray = spent[slot % SLOTS]
        return account

    def _late_messages(
        self, row: GroupInterval, *, members: int, rate: float, lag: float, capacity: MessagesPerSecond
    ) -> float:
        """Late messages of the row as the lag shows them; the group's strength is learned from it."""
        carried = self._capacity * float(self._tables.carried[self._place_of(members)])
        late = self._lateness.late_messages(row, rate=rate, lag=lag, carried=carried)
        share = self._strength.see(row, members=members, rate=rate, late=late, capacity=capacity)
        self._capacity = MessagesPerSecond(to_a_tenth(share) * capacity)
        return late

    def rest(self) -> None:
        """Take less memory until the next row."""
        self._spent.rest()

    def day(self) -> LedgerDay | None:
        """What was counted in each quarter of an hour so far; None before the first row."""
        if self._began_at is None:
            return None
        first = max(self._slot - SLOTS + 1, int(self._began_at.timestamp()) // SLOT_SECONDS)
        slots = np.arange(first, self._slot + 1)
        shown = [*range(len(SCALERS)), PAID]
        return LedgerDay(
            first_slot=first,
            names=NAMES,
            spent=self._spent.values[slots % SLOTS][:, shown].astype(np.float32),
            seconds=self._seconds[slots % SLOTS].astype(np.float32),
        )

    def standing(self, prices: Prices) -> LedgerStanding | None:
        """All accounts at these prices, what was paid first; None before the first row."""
        if self._began_at is None:
            return None
        spent = self._spent.values.sum(axis=0)
        replicas = prices.price_per_replica_hour / SECONDS_PER_HOUR * spent[:, PODS]
        late = prices.price_per_late_message * spent[:, LATE]
        totals = replicas + late
        paid, played = float(totals[PAID]), float(totals[AS_IT_IS])
        error_ratio = played / paid if paid > 0.0 else None
        seen_error = 0.0 if error_ratio is None else abs(error_ratio - 1.0)
        accounts = [
            LedgerAccount(
                scaler=scaler.name,
                replicas=float(replicas[place]),
                late=float(late[place]),
                distinguishable=_differ(
                    float(totals[place]),
                    paid,
                    by=max(seen_error, scaler.least_error),
                ),
            )
            for place, scaler in enumerate(SCALERS)
        ]
        first_slot_at = datetime.fromtimestamp((self._slot - SLOTS + 1) * SLOT_SECONDS, tz=UTC)
        return LedgerStanding(
            since_at=max(self._began_at, first_slot_at),
            currency=prices.currency,
            error_ratio=error_ratio,
            paid=LedgerAccount(
                scaler=PAID_NAME, replicas=float(replicas[PAID]), late=float(late[PAID]), distinguishable=False
            ),
            accounts=tuple(accounts),
        )


def _differ(one: float, other: float, *, by: float) -> bool:
    """True if two costs differ by more than this share of the greater one.

    >>> _differ(1.0, 1.04, by=0.05), _differ(1.0, 1.1, by=0.05)
    (False, True)
    """
    return abs(one - other) > by * max(one, other)


def _autoscalers(partitions: int) -> Autoscalers:
    """The scalers as the compiled loop takes them, and behind them the group as it is, which is scaled from outside."""
    played = (*SCALERS, _Scaler(name="as it is", kind=HELD))
    return Autoscalers(
        kind=np.array([scaler.kind for scaler in played]),
        margin_factor=np.array([scaler.margin_factor for scaler in played]),
        drain_seconds=np.full(len(played), DRAIN_SECONDS),
        lag_target=np.array([scaler.lag_target for scaler in played]),
        capped_partitions=np.array([partitions if scaler.is_capped else 0 for scaler in played]),
        hold_seconds=np.array([scaler.hold_seconds for scaler in played]),
    )
