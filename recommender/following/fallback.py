"""The fallback policy: the cost of simpler scalers on the same load, and the most that advice may cost beyond it.

Two simpler scalers are played beside the group in a fluid model: one that never moves from the largest useful count,
and one that reacts to the produce rate with the useful replica counts in mind. When what was advised has cost more than
the cheaper of them by more than an allowance, that one is followed until the gap has closed.
"""

from collections import deque
from dataclasses import dataclass, field

from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import carried_by_count, useful_counts
from cost_model.pricing.price import Prices
from forecasting.history import GroupInterval
from forecasting.units import SECONDS_PER_HOUR, MessagesPerSecond
from recommender.deciding.recommendation import FallbackStanding

HEADROOM_FACTOR = 1.2
DRAIN_SECONDS = 300.0
HOLD_ROWS = 40  # ten minutes of base rows
# Costs fade with this half-life, so that a good month does not pay for a bad day.
HALF_LIFE_SECONDS = 12 * SECONDS_PER_HOUR
# Advice may be more expensive than the fallback policy by this share, and by one surprise: what all replicas cost in so
# many hours, as one jump of the load may cost in late messages alone. With 0.2 h one such jump had 40 replicas stay for
# 20 hours.
SLACK_RATIO = 0.05
SURPRISE_HOURS_OF_ALL = 0.5
# Two minutes behind at one count: the best row among them shows what that count carries, beside what a move stops.
SATURATED_ROWS = 8


@dataclass(slots=True, kw_only=True)
class FallbackPolicy:
    """Running costs of the group as it is and of both simpler scalers, in currency."""

    profile: GroupProfile
    capacity: MessagesPerSecond
    prices: Prices
    max_lag_seconds: float
    learned: Learned
    actual: float = 0.0
    staying: float = 0.0
    replicas: int | None = None  # of the reacting scaler
    _reacting: float = 0.0
    _moves: float = 0.0
    _lag: float = 0.0
    _needs: deque[int] = field(default_factory=lambda: deque(maxlen=HOLD_ROWS))
    _share: float = 1.0  # of the capacity that is believed, as seen
    _behind: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=SATURATED_ROWS))

    def observe(self, row: GroupInterval) -> None:
        """Let one base row pass in all three."""
        rate = row.produce_messages_per_second
        if rate is None or row.members is None or row.lag_messages is None:
            return
        seconds = float(row.interval_seconds)
        fade = 0.5 ** (seconds / HALF_LIFE_SECONDS)
        waiting = max(0.0, row.lag_messages / rate - self.profile.commit_interval_seconds / 2.0) if rate > 0.0 else 0.0
        late = rate * seconds if waiting > self.max_lag_seconds else 0.0
        self.actual = self.actual * fade + self._cost(row.members, seconds, late)
        consumed = row.consume_messages_per_second or 0.0
        self._see_strength(row.members, consumed, late, fade)
        most = self._useful[-1]
        overrun = row.members >= most and 0.0 < consumed < rate
        self.staying = self.staying * fade + self._cost(most, seconds, late if overrun else 0.0)
        self._react(rate, seconds, fade)

    def _see_strength(self, members: int, consumed: float, late: float, fade: float) -> None:
        """Learn from a group that stays behind how much of its capacity it has; half of that is forgotten in 12 h.

        A capacity believed to be twice what it is makes the reacting scaler a dream, and following it expensive. Who
        does nothing at all, or is nobody, shows no strength.
        """
        self._share = 1.0 - (1.0 - self._share) * fade
        saturated = late > 0.0 and consumed > 0.0 and members > 0
        if not saturated or (self._behind and self._behind[-1][0] != members):
            self._behind.clear()
        if saturated:
            self._behind.append((members, consumed))
        if len(self._behind) == SATURATED_ROWS:
            (believed,) = carried_by_count(self.profile, (members,), capacity=self.capacity).tolist()
            self._share = min(self._share, max(seen for _, seen in self._behind) / believed)

    @property
    def _useful(self) -> tuple[int, ...]:
        profile = self.profile
        return useful_counts(profile, minimum=profile.min_replicas, maximum=profile.max_replicas)

    def _react(self, rate: float, seconds: float, fade: float) -> None:
        useful = self._useful
        before = self.replicas if self.replicas is not None else useful[-1]
        believed = carried_by_count(self.profile, (before, *useful), capacity=self.capacity)
        (carried, *levels) = (self._share * believed).tolist()
        self._lag = max(0.0, self._lag + (rate - carried) * seconds)
        late = rate * seconds if self._lag > self.max_lag_seconds * carried else 0.0
        self._reacting = self._reacting * fade + self._cost(before, seconds, late)
        wanted = HEADROOM_FACTOR * rate + self._lag / DRAIN_SECONDS
        need = next((count for count, level in zip(useful, levels, strict=True) if level >= wanted), useful[-1])
        self._needs.append(need)
        self.replicas = max(need, min(before, max(self._needs)))
        self._moves = self._moves * fade + (self.replicas != before)

    @property
    def reacting(self) -> float:
        """Cost of reacting, all its moves at the price learned from the group's own moves until now."""
        return self._reacting + self._moves * self.learned.usual_late_cost

    @property
    def wanted(self) -> int | None:
        """The present count of the cheaper scaler."""
        return self._useful[-1] if self.staying <= self.reacting else self.replicas

    @property
    def exhausted(self) -> bool:
        """True if the advice has cost more than the cheaper scaler and its allowance."""
        return self.actual > self.standing.limit

    @property
    def standing(self) -> FallbackStanding:
        """The books, as they are published."""
        least = min(self.reacting, self.staying)
        return FallbackStanding(
            policy="fixed" if self.staying <= self.reacting else "useful-counts",
            slack_ratio=SLACK_RATIO,
            used=self.actual,
            limit=(1.0 + SLACK_RATIO) * least
            + SURPRISE_HOURS_OF_ALL * self._useful[-1] * self.prices.price_per_replica_hour,
        )

    def _cost(self, replicas: int, seconds: float, late: float) -> float:
        return (
            self.prices.price_per_replica_hour * replicas * seconds / SECONDS_PER_HOUR
            + self.prices.price_per_late_message * late
        )
