"""Following the best: simple scalers are played beside the group, and one of them is followed where plans cost more.

Each simple scaler has a shadow, a simulated group that gets the real one's messages. Plans cost what the group really
costs while they are followed; while they are not, they have a shadow too. Costs fade, and who is followed changes when
another one has been cheaper by more than a share, the price of a change, and what changes have cost lately: following
the leader with a lag, as in the literature on combining online algorithms (Blum and Burch, On-line learning and the
metrical task system problem, Machine Learning 39, 2000), with a lag that grows with the regret (de Rooij and others,
Follow the leader if you can, hedge if you must, Journal of Machine Learning Research 15, 2014). So the followed one has
never cost more than (1 + SLACK_RATIO) of the best one, one change and the regret, as far as shadows are right.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import useful_counts
from cost_model.pricing.price import Prices
from cost_model.shadows.playing import (
    COLUMNS,
    LATE,
    PODS,
    REACTING,
    PlayedRows,
    Rules,
    Service,
    Shadows,
    play_row,
    play_rows,
    request,
    requested,
    shadows_of,
    steered,
)
from cost_model.shadows.tables import MoveTimes, tables_of, to_a_tenth
from forecasting.history import GroupInterval
from forecasting.packing import Resting
from forecasting.units import SECONDS_PER_DAY, SECONDS_PER_HOUR, FloatArray, MessagesPerSecond, Replicas, read_only
from recommender.deciding.recommendation import FallbackStanding, ForecastValue
from recommender.following.kept_account import (
    SLOT_SECONDS,
    SLOTS,
    AccountSlot,
    AccountState,
    CountedRow,
    CountedRows,
    SteeredState,
)
from recommender.following.lateness import HALF_LIFE_SECONDS, Lateness, Standstill, Strength

# Margins over the produce rate, and times without need before a removal. Which is cheapest differs: on bursts and quick
# rebalances 1.1 with 30 s, on a load of flash crowds 1.4 with 120 s, with slow rebalances 1.1 with half an hour.
MARGIN_FACTORS = (1.1, 1.2, 1.4, 1.7)
HOLD_SECONDS = (30.0, 120.0, 600.0, 1800.0, 7200.0)
DRAIN_SECONDS = 60.0
# The first scaler never moves from the largest useful count.
FIXED = 0
# The places of groups that are scaled from outside: by plans that are not followed, and as the group is.
WITH_FORECAST, WITHOUT_FORECAST, AS_IT_IS = 0, 1, 2
PLANNERS = (WITH_FORECAST, WITHOUT_FORECAST)
# Another one is followed once it was cheaper by this share, and by what all replicas cost in so many hours.
SLACK_RATIO = 0.02
CHANGE_HOURS_OF_ALL = 0.05
# What was paid above the cost of the followed one fades with this half-life: four times as slowly as costs, so that
# a mistake is remembered for longer than the lull that led to it.
REGRET_HALF_LIFE_SECONDS = 24.0 * SECONDS_PER_HOUR
# Rows before the first decision rank the scalers, but may be coarser than those after it: they count half.
WEIGHT_BEFORE = 0.5
# What all replicas cost in so many hours may be late by chance, before the ratio of lateness seen to played counts.
CHANCE_HOURS_OF_ALL = 0.25
MOST_RATIO = 4.0
# What is not known yet is feared as a mistake that was paid for already: the price of all replicas in so many hours
# before the first row, half of it after each six hours of rows.
UNKNOWN_HOURS_OF_ALL = 0.25
# A group that is as the one followed before left it is not charged to the next one for so many start-ups.
HAND_OVER_START_UPS = 2.0
# Plans that are not followed scale their own group so often, or as soon as it carries too little: a decision of theirs
# costs as much as one that is published.
PLANS_EVERY_SECONDS = 180.0
# A capacity that differs by less changes no rank.
LEAST_CHANGE = 0.02


class FollowedPolicy(NamedTuple):
    """Who is followed: plans with or without a forecast, by their place; and the count of a simple scaler, else None.

    Where a scaler is followed, `planner` is the cheaper one of both kinds of plans.
    """

    planner: int
    replicas: int | None


class Experts:
    """The shadows of one group, the account of its plans, and who is followed."""

    def __init__(
        self,
        profile: GroupProfile,
        *,
        capacity: MessagesPerSecond,
        prices: Prices,
        max_lag_seconds: float,
        learned: Learned,
        members: int,
    ) -> None:
        self._profile, self._prices, self._limit = profile, prices, max_lag_seconds
        self._capacity, self._learned = capacity, learned
        settings = list(product(MARGIN_FACTORS, HOLD_SECONDS))
        counts = useful_counts(
            profile, minimum=Replicas(profile.replica_floor), maximum=Replicas(profile.replica_ceiling)
        )
        self._most, scalers = counts[-1], 1 + len(settings)
        self._rules = Rules(
            kind=np.full(scalers, REACTING),
            margin_factor=np.array([1.0, *(margin for margin, _ in settings)]),
            hold_seconds=np.array([0.0, *(hold for _, hold in settings)]),
            drain_seconds=np.full(scalers, DRAIN_SECONDS),
            least=np.array([len(counts) - 1, *[0] * len(settings)]),
        )
        self._rows = CountedRows()
        self._slot = 0
        self._members = members
        self._lateness, self._strength = Lateness(profile, max_lag_seconds=max_lag_seconds), Strength(profile)
        self._standstill = Standstill(profile)
        self._followed: int | None = None  # a scaler
        self._planner = WITH_FORECAST  # whose plans are followed where no scaler is
        self._handing_over_seconds = 0.0
        self._decided = False
        self._since_plans_seconds = [PLANS_EVERY_SECONDS for _ in PLANNERS]
        self._plans, self._paid = np.zeros((SLOTS, len(PLANNERS), COLUMNS)), np.zeros((SLOTS, COLUMNS))
        self._regret = 0.0
        self._seen_until = self._decided_after = datetime.min.replace(tzinfo=UTC)
        self._changed_slots: set[int] = set()
        self._drained_slots: set[int] = set()
        self.replay_due_at: datetime | None = None
        self.replay()
        self._beside = self._new_groups(len(PLANNERS) + 1, members=members)

    def replay(self) -> None:
        """Play everything that is remembered again, with the estimates of now: 50 ms with a day of rows."""
        self.replay_due_at = None
        self._play_all(MoveTimes.of(self._profile, self._learned))

    def _play_all(self, times: MoveTimes) -> None:
        """Play everything that is remembered again, with these times of moves, and the capacity and members of now."""
        self._played_with, self._played_members = (times, self._capacity), self._members
        self._tables = tables_of(self._profile, self._played_with[0], max_lag_seconds=self._limit)
        pauses = self._tables.whole_seconds + self._tables.longer_seconds.max(axis=2)
        self._longest_pause_seconds = float(pauses.max())
        self._shadows = self._new_groups(self._rules.kind.size, members=self._members)
        rows, before = self._rows.table, self._rows.without_plans()
        # A day after the first choice nothing came before it.
        self._before = Resting(self._played(rows[:before])) if before else None
        self._since = Resting(self._played(rows[before:]))
        # Late messages of the group as its shadow has them, and as its lag shows them.
        self._late_played, self._late_seen = 0.0, 0.0

    def resume(self, account: Sequence[AccountSlot]) -> None:
        """Go on with an account that was kept, oldest slot first; rows before its first one were observed already.

        Where useful counts have changed since, plans that are not followed begin with the group's own.
        """
        state = account[-1].state
        self._decided, self._slot = True, account[-1].slot
        for slot in account:
            if slot.slot <= self._slot - SLOTS:
                continue
            for row in slot.rows:
                self._rows.append(row)
            self._plans[slot.slot % SLOTS], self._paid[slot.slot % SLOTS] = np.array(slot.plans), np.array(slot.paid)
        self._forget()
        self._members, self._capacity = state.played_members, MessagesPerSecond(state.played_capacity)
        self._play_all(state.played_times)
        self._members, self._capacity = state.members, MessagesPerSecond(state.capacity)
        self._late_played, self._late_seen = state.late_played, state.late_seen
        self._followed, self._planner, self._regret = state.followed, state.planner, state.regret
        self._handing_over_seconds = state.handing_over_seconds
        self._since_plans_seconds = list(state.since_plans_seconds)
        self._lateness.waits, self._strength.state = state.waits, state.strength
        self._standstill.state = state.standstill
        self._seen_until, self._decided_after = state.seen_until, state.decided_after
        self._beside = self._new_groups(len(PLANNERS) + 1, members=self._members)
        if state.counts == self._counts:
            self._beside = state.beside.shadows(counts=len(state.counts))

    def drain_account(self) -> tuple[AccountSlot, ...]:
        """The slots of the account that have changed since the last call, oldest first, to be kept."""
        # After a long outage of the store some are older than the account.
        changed = sorted(slot for slot in self._changed_slots if slot > self._slot - SLOTS)
        self._drained_slots, self._changed_slots = self._changed_slots, set()
        if not changed:
            return ()
        state = self._state
        return tuple(
            AccountSlot(
                slot=slot,
                rows=self._rows.decided_in(slot),
                plans=tuple(tuple(costs) for costs in self._plans[slot % SLOTS].tolist()),
                paid=tuple(self._paid[slot % SLOTS].tolist()),
                state=state,
            )
            for slot in changed
        )

    def keep_again(self) -> None:
        """What was drained last was not kept: it is drained again."""
        self._changed_slots |= self._drained_slots

    def rest(self) -> None:
        """Take less memory until the next row: costs of a day are 33 kB, and 2 kB packed."""
        self._since.rest()
        if self._before is not None:
            self._before.rest()

    @property
    def _counts(self) -> tuple[int, ...]:
        return tuple(int(count) for count in self._tables.counts)

    @property
    def _state(self) -> AccountState:
        return AccountState(
            seen_until=self._seen_until,
            decided_after=self._decided_after,
            counts=self._counts,
            followed=self._followed,
            planner=self._planner,
            regret=self._regret,
            handing_over_seconds=self._handing_over_seconds,
            since_plans_seconds=tuple(self._since_plans_seconds),
            members=self._members,
            capacity=self._capacity,
            played_times=self._played_with[0],
            played_capacity=self._played_with[1],
            played_members=self._played_members,
            late_played=self._late_played,
            late_seen=self._late_seen,
            waits=self._lateness.waits,
            strength=self._strength.state,
            standstill=self._standstill.state,
            beside=SteeredState.of(self._beside),
            target_utilization=self._learned.target_utilization,
        )

    def _place_of(self, members: int) -> int:
        """The place of the useful count that carries as much as so many members; the least for none."""
        return max(int(np.searchsorted(self._tables.counts, members, side="right")) - 1, 0)

    def _new_groups(self, groups: int, *, members: int) -> Shadows:
        """Groups that have nothing to do yet, each with so many members."""
        return shadows_of(groups, members=self._place_of(members), counts=self._tables.counts.size)

    @property
    def _service(self) -> Service:
        return Service(self._capacity, self._limit)

    def _played(self, rows: NDArray[np.void]) -> FloatArray:
        """(SLOTS, n, COLUMNS): what these rows cost in the shadows of simple scalers."""
        spent = np.zeros((SLOTS, self._rules.kind.size, COLUMNS))
        self._play(rows, spent)
        return spent

    def _play(self, rows: NDArray[np.void], spent: FloatArray) -> None:
        """Play rows, records with the fields of `CountedRow`, in the shadows of simple scalers."""
        played = PlayedRows(
            rows["seconds"].astype(np.float64),
            rows["rate"].astype(np.float64),
            rows["followed"].astype(np.int64),
            rows["pod_seconds"].astype(np.float64),
            rows["late_messages"].astype(np.float64),
            account=rows["slot"].astype(np.int64) % SLOTS,
        )
        play_rows(self._tables, self._rules, self._shadows, played, self._service, spent)

    def observe(
        self,
        row: GroupInterval,
        *,
        capacity: MessagesPerSecond,
        learned: Learned,
        is_advised: bool = True,
        may_replay: bool = True,
    ) -> None:
        """Let one base row pass in all shadows; one whose rate, lag or members are unknown passes none.

        Nor does one without members where nobody may ask for none. Where no advice was in force, nobody is charged for
        what the group has cost: it was not scaled by who is followed. Where estimates have changed and it may not
        replay, `replay_due_at` is the end of the first such row, and the estimates of before are used until `replay`.
        """
        rate = row.produce_messages_per_second
        if row.members is None or row.lag_messages is None or not (row.members or self._profile.scale_to_zero):
            return
        carried = self._capacity * float(self._tables.carried[self._place_of(row.members)])
        self._seen_until = row.interval_end_at
        longest = self._longest_pause_seconds
        self._standstill.see(row, members=row.members, lag=row.lag_messages, carried=carried, pause_seconds=longest)
        if rate is None:
            return
        self._begin(row)
        seconds = float(row.interval_seconds)
        late = self._lateness.late_messages(row, rate=rate, lag=row.lag_messages, carried=carried)
        if not self._decided:  # played as soon as one is to be chosen
            self._capacity, self._learned, self._members = capacity, learned, row.members
            self._remember(CountedRow(seconds, rate, -1, 0.0, 0.0, self._slot, decided=False))
            return
        share = self._strength.see(row, members=row.members, rate=rate, late=late, capacity=capacity)
        if self._standstill.excuses(late=late):
            late = 0.0
        self._capacity, self._learned = MessagesPerSecond(to_a_tenth(share) * capacity), learned
        newest = self._row(row.members, rate, seconds, late, is_advised=is_advised)
        self._remember(newest)
        self._changed_slots.add(newest.slot)
        if not self._estimates_changed():
            self.replay_due_at = None
            self._play(self._rows.newest, self._since.values)
        elif may_replay:
            self.replay()
        else:
            self.replay_due_at = self.replay_due_at or row.interval_end_at
            self._play(self._rows.newest, self._since.values)
        if is_advised:
            self._count_regret(newest, late)

    def _begin(self, row: GroupInterval) -> None:
        """Begin the slot of a row, if it is another one: costs of the day before, and its rows, are forgotten."""
        slot = (int(row.interval_end_at.timestamp()) - row.interval_seconds) // SLOT_SECONDS
        if slot == self._slot:
            return
        begun = [each % SLOTS for each in range(max(self._slot, slot - SLOTS) + 1, slot + 1)]
        for spent in (self._since.values, self._plans, self._paid):
            spent[begun] = 0.0
        if self._before is not None:
            self._before.values[begun] = 0.0
        self._slot = slot
        self._forget()

    def _forget(self) -> None:
        """Forget the rows that are older than the account."""
        self._rows.forget(self._slot - SLOTS)
        if not self._rows.without_plans():
            self._before = None

    def _remember(self, row: CountedRow) -> None:
        self._rows.append(row)
        for planner in PLANNERS:
            self._since_plans_seconds[planner] += row.seconds

    def _count_regret(self, newest: CountedRow, late_messages: float) -> None:
        """Count what was paid above the cost of the followed one, had it been followed all the time."""
        self._paid[newest.slot % SLOTS] += (newest.pod_seconds, late_messages)
        alone = self._costs_of_plans[self._planner]
        if self._followed is not None:
            alone = float(self._priced(self._weighted(self._since.values))[self._followed])
        faded = self._regret * 0.5 ** (newest.seconds / REGRET_HALF_LIFE_SECONDS)
        self._regret = max(faded, self._price_of(self._weighted(self._paid)) - alone)

    def _weighted(self, spent: FloatArray) -> FloatArray:
        """The sum over all slots, each with its weight."""
        # As np.tensordot, which takes five times as long to find out that this is one product.
        weighted: FloatArray = np.dot(_weights(self._slot % SLOTS), spent.reshape(SLOTS, -1)).reshape(spent.shape[1:])
        return weighted

    def _estimates_changed(self) -> bool:
        """True if the estimates differ from those that the shadows were played with."""
        times, capacity = self._played_with
        return (
            times != MoveTimes.of(self._profile, self._learned) or abs(self._capacity / capacity - 1.0) > LEAST_CHANGE
        )

    def _row(self, members: int, rate: float, seconds: float, late: float, *, is_advised: bool) -> CountedRow:
        """The row, with what it has cost the group and plans; these cost what the group does while followed."""
        place, beside = self._place_of(members), self._beside
        started = max(0, members - self._members) * self._played_with[0].start_up_seconds
        self._members = members
        fade = 0.5 ** (seconds / HALF_LIFE_SECONDS)
        request(self._tables, beside, AS_IT_IS, place, at_once=True)
        played = np.zeros((len(PLANNERS) + 1, COLUMNS))
        play_row(self._tables, steered(len(played)), beside, rate, seconds, self._service, played)
        self._late_seen = self._late_seen * fade + late
        self._late_played = self._late_played * fade + played[AS_IT_IS, LATE]
        pod_seconds, plans = members * seconds + started, played[: len(PLANNERS)].copy()
        plans[:, LATE] *= self.lateness_ratio
        charged = self._charged(members, seconds, late) and is_advised
        if self._followed is None and charged:
            plans[self._planner] = (pod_seconds, late)
        self._plans[self._slot % SLOTS] += plans
        return CountedRow(
            seconds=seconds,
            rate=rate,
            followed=self._followed if self._followed is not None and charged else -1,
            pod_seconds=pod_seconds,
            late_messages=late / self.lateness_ratio,
            slot=self._slot,
            decided=True,
        )

    def _charged(self, members: int, seconds: float, late: float) -> bool:
        """True if whoever is followed is charged what the group costs: not while it is as the one before left it.

        That lasts until the group has the count that is wanted and nothing is late, two start-ups at most.
        """
        if self._handing_over_seconds > 0.0:
            arrived = late == 0.0 and self.wanted in (None, members)
            self._handing_over_seconds = 0.0 if arrived else self._handing_over_seconds - seconds
        return self._handing_over_seconds <= 0.0

    @property
    def lateness_ratio(self) -> float:
        """Late messages that the group's lag shows, over those of its own shadow: it scales all shadows."""
        chance, price = CHANCE_HOURS_OF_ALL * self._cost_of_all_hours, self._prices.price_per_late_message
        ratio = (price * self._late_seen + chance) / (price * self._late_played + chance)
        return min(max(ratio, 1.0 / MOST_RATIO), MOST_RATIO)

    @property
    def _cost_of_all_hours(self) -> float:
        """The price of the largest useful count for an hour."""
        return self._most * self._prices.price_per_replica_hour

    def _priced(self, account: FloatArray) -> FloatArray:
        """(n,): pods at their price, and late messages scaled by the ratio of lateness."""
        pods = self._prices.price_per_replica_hour / SECONDS_PER_HOUR * account[:, PODS]
        priced: FloatArray = pods + self.lateness_ratio * self._prices.price_per_late_message * account[:, LATE]
        return priced

    @property
    def _costs(self) -> FloatArray:
        """(n,): what each scaler has cost since there are plans, and by how much it was worse than the best before."""
        since = self._priced(self._weighted(self._since.values))
        if self._before is None:
            return since
        before = WEIGHT_BEFORE * self._priced(self._weighted(self._before.values))
        costs: FloatArray = since + before - before.min()
        return costs

    @property
    def _costs_of_plans(self) -> FloatArray:
        """(planners,): what plans with and without a forecast have cost."""
        return np.array([self._price_of(account) for account in self._weighted(self._plans)])

    def _price_of(self, account: FloatArray) -> float:
        """The price of pods and of late messages as they were seen."""
        pods = self._prices.price_per_replica_hour / SECONDS_PER_HOUR * account[PODS]
        return float(pods + self._prices.price_per_late_message * account[LATE])

    @property
    def regret(self) -> float:
        """The cost that changes of the followed one have caused, faded, in currency."""
        return self._regret

    @property
    def _lead(self) -> float:
        """The price of a change: by so much, beside a share, the next one to follow has to be cheaper."""
        return CHANGE_HOURS_OF_ALL * self._cost_of_all_hours + self._regret

    @property
    def _allowed_scalers(self) -> FloatArray:
        """(n,): the cost of the followed one above which each scaler takes over.

        Changes have cost something where replicas were removed and missed: none is feared to who never removes any.
        """
        allowed: FloatArray = (1.0 + SLACK_RATIO) * self._costs + self._lead
        allowed[FIXED] -= self._regret
        return allowed

    def choose(self) -> FollowedPolicy:
        """Choose who is followed."""
        if not self._decided:
            self._decided, self._decided_after = True, self._seen_until
            self.replay()
            known_seconds = float(self._rows.table["seconds"].sum(dtype=np.float64))
            unknown_hours = UNKNOWN_HOURS_OF_ALL * 0.5 ** (known_seconds / HALF_LIFE_SECONDS)
            self._regret = unknown_hours * self._cost_of_all_hours
            self._beside = self._new_groups(len(PLANNERS) + 1, members=self._members)
        scalers, plans = self._allowed_scalers, (1.0 + SLACK_RATIO) * self._costs_of_plans + self._lead
        best, planner = int(scalers.argmin()), int(plans.argmin())
        least = min(float(scalers[best]), float(plans[planner]))
        before = (self._followed, self._planner if self._followed is None else None)
        if self._followed is None:
            if self._costs_of_plans[self._planner] > least:
                self._leave_plans()
                if scalers[best] < plans[planner]:
                    self._followed = best
                self._planner = planner
        else:
            self._planner = planner
            if self._costs[self._followed] > least:
                self._followed = None if plans[planner] <= scalers[best] else best
        if before != (self._followed, self._planner if self._followed is None else None):
            self._handing_over_seconds = HAND_OVER_START_UPS * self._played_with[0].start_up_seconds
        return FollowedPolicy(self._planner, self.wanted)

    def _leave_plans(self) -> None:
        """From now on these plans have a group of their own, which is as the real one is."""
        for of_group in self._beside:
            if of_group.shape[0] > 1:
                of_group[self._planner] = of_group[AS_IT_IS]
        place = self._place_of(self._members)
        waiting = self._lateness.mean_wait_seconds * self._capacity * self._tables.carried[place]
        self._beside.backlog[self._planner] = waiting * self._tables.class_shares[place]

    def plan(self, planner: int, replicas_for: Callable[[int, float], int]) -> None:
        """Let plans that are not followed scale their own group: by its count and its backlog."""
        if self._followed is None and planner == self._planner:
            return
        place, backlog = requested(self._beside, planner), float(self._beside.backlog[planner].sum())
        rate = float(self._rows.newest["rate"].sum())  # 0.0 before the first row
        enough = rate <= self._capacity * float(self._tables.carried[place]) and backlog <= self._limit * rate
        if enough and self._since_plans_seconds[planner] < PLANS_EVERY_SECONDS:
            return
        self._since_plans_seconds[planner] = 0.0
        count = int(self._tables.counts[place])
        wanted = replicas_for(count, backlog)
        if wanted != count:
            request(self._tables, self._beside, planner, self._place_of(wanted), at_once=False)

    @property
    def wanted(self) -> int | None:
        """The present count of the scaler that is followed."""
        if self._followed is None:
            return None
        return int(self._tables.counts[requested(self._shadows, self._followed)])

    @property
    def cost_followed(self) -> float:
        """The faded cost of the followed one, in currency."""
        costs = self._costs_of_plans[self._planner] if self._followed is None else self._costs[self._followed]
        return float(costs)

    @property
    def cheapest(self) -> float:
        """The faded cost of the cheapest one, plans among them."""
        return float(min(self._costs_of_plans.min(), self._costs.min()))

    def forecast_value(self, *, proven: bool) -> ForecastValue | None:
        """The accounts of plans with and without a forecast, as they are published; None while there is nothing in.

        Without a `proven` forecast both kinds of plans take the produce rate to stay as it is.
        """
        costs = self._costs_of_plans
        if not costs.any():
            return None
        return ForecastValue(
            cost_with_forecast=float(costs[WITH_FORECAST]),
            cost_without_forecast=float(costs[WITHOUT_FORECAST]),
            forecast_proven=proven,
            forecast_used=proven and self._planner == WITH_FORECAST,
        )

    @property
    def standing(self) -> FallbackStanding:
        """The accounts, as they are published: a scaler is followed while `used` is above `limit`."""
        costs, allowed = self._costs, self._allowed_scalers
        if self._followed is None:
            shown = int(allowed.argmin())
            limit = float(allowed[shown])
        else:
            shown = self._followed
            limit = (float(costs[shown]) - self._lead) / (1.0 + SLACK_RATIO)
        return FallbackStanding(
            policy="fixed" if shown == FIXED else "useful-counts",
            slack_ratio=SLACK_RATIO,
            used=float(self._costs_of_plans[self._planner]),
            limit=limit,
        )


@lru_cache(maxsize=SLOTS)
def _weights(slot: int) -> FloatArray:
    """(1, SLOTS): what a slot counts as one of the last hours, and as one of yesterday's next hours."""
    ages = SLOT_SECONDS * ((slot - np.arange(SLOTS)) % SLOTS)
    weights = 0.5 ** (ages / HALF_LIFE_SECONDS) + 0.5 ** ((SECONDS_PER_DAY - ages) / HALF_LIFE_SECONDS)
    return read_only(weights[None, :])
