"""Prices: the only place where messages, seconds and replica-seconds turn into money."""

from dataclasses import dataclass, fields

from cost_model.pricing.presets import PRESETS, Policy
from forecasting.units import MessagesPerSecond

# A duplicate is work done twice, not a broken promise: a fifth of a late message.
DUPLICATE_TO_LATE_RATIO = 0.2
BYTES_PER_GIGABYTE = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices, in `currency`; the planner never sees a price anywhere else.

    `price_per_held_message_second` prices backlog before it is late, so that a plan does not use the objective as a
    buffer. A message that a move loses costs as much as a late one. `price_per_restored_gigabyte` is the traffic of
    state read again.
    """

    currency: str
    price_per_replica_hour: float
    price_per_late_message: float
    price_per_duplicate_message: float
    price_per_held_message_second: float
    price_per_move: float
    price_per_restored_gigabyte: float = 0.0

    @classmethod
    def from_replica_hour(
        cls,
        price_per_replica_hour: float,
        *,
        capacity: MessagesPerSecond,
        currency: str = "USD",
        price_per_late_message: float | None = None,
        price_per_duplicate_message: float | None = None,
        price_per_move: float | None = None,
        price_per_restored_gigabyte: float = 0.0,
        policy: Policy = "balanced",
    ) -> "Prices":
        """All prices from that of a replica-hour, scaled by one replica's consume rate; given prices take precedence.

        The policy's preset sets how many seconds of one replica's work being late are worth a replica-hour, and how
        many replica-hours the risk of a move: balanced, 0.05 an hour and 1,000 messages/s give 0.05 / (100 x 1,000) =
        5e-7 per late message, and 0.1 per move until outcomes change it.

        >>> prices = Prices.from_replica_hour(0.05, capacity=MessagesPerSecond(1000.0))
        >>> prices.price_per_late_message, prices.price_per_duplicate_message, prices.price_per_move
        (5e-07, 1e-07, 0.1)
        """
        preset = PRESETS[policy]
        late = (
            price_per_late_message
            if price_per_late_message is not None
            else price_per_replica_hour / (preset.late_seconds_per_replica_hour * capacity)
        )
        return cls(
            currency=currency,
            price_per_replica_hour=price_per_replica_hour,
            price_per_late_message=late,
            price_per_duplicate_message=price_per_duplicate_message
            if price_per_duplicate_message is not None
            else late * DUPLICATE_TO_LATE_RATIO,
            price_per_held_message_second=late / 3600.0,
            price_per_move=price_per_move
            if price_per_move is not None
            else price_per_replica_hour * preset.move_replica_hours,
            price_per_restored_gigabyte=price_per_restored_gigabyte,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An itemised price over one horizon. The items add up to `total` exactly, because it is their sum.

    `late` and `pause_late` share no message: a message that is late because of a rebalance pause counts in
    `pause_late`.
    """

    replicas: float
    late: float
    pause_late: float
    backlog: float
    duplicates: float
    start_up: float
    restore: float
    risk: float

    @property
    def total(self) -> float:
        """The sum of the items, in their order.

        >>> Cost(replicas=1.0, late=0.5, pause_late=0, backlog=0, duplicates=0, start_up=0, restore=0, risk=0.1).total
        1.6
        """
        return sum(float(getattr(self, item.name)) for item in fields(self))
