"""DecisionSettings: the settings of decisions that the owner of a group may change."""

from dataclasses import dataclass, fields
from datetime import datetime

from cost_model.physics.detected import DetectedPrice
from cost_model.pricing.presets import Policy
from cost_model.pricing.price import Prices
from forecasting.units import MessagesPerSecond
from recommender.deciding.windows import Window

# The unit of cost where a replica-hour has no price; the currency of one that has, where none is named.
POD_HOURS, USD = "pod-hours", "USD"
# The prices beside that of a replica-hour; without it they are in pod-hours.
BESIDE_REPLICAS = (
    "price_per_late_message",
    "price_per_duplicate_message",
    "price_per_move",
    "price_per_restored_gigabyte",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionSettings:
    """The settings of the pure decision, each with its unit, its default and the reason for the default."""

    policy: Policy = "balanced"
    """Preset for prices that are not set: `stable` moves less and pays more for replicas, `compact` the other way
    round. It sets `price_per_late_message`, `price_per_move` and `risk_weight`, nothing else."""

    price_per_replica_hour: float | None = None
    """Price of one replica for one hour, in `currency`. Default: what the pods of the group request at the prices of
    their nodes, where both are known (`--kubernetes` and `--node-prices`); else none; all prices and costs are then in
    pod-hours, of which one replica costs one an hour, because a price that nobody has named would be invented."""

    currency: str | None = None
    """Name of the money that every price is in, those of nodes included. Default: USD where the price of a replica-hour
    is set or known from nodes; without that price there is no money to name."""

    price_per_late_message: float | None = None
    """Price of one message that waits longer than `max_lag_seconds`. None: the policy's; balanced, 100 s of one
    replica's full work being late is worth one replica-hour, whatever the topic's scale."""

    price_per_duplicate_message: float | None = None
    """Price of one message processed twice. None: a fifth of a late message."""

    price_per_move: float | None = None
    """Risk price of one change of replicas until graded moves replace it. None: the policy's; balanced, two
    replica-hours."""

    price_per_restored_gigabyte: float = 0.0
    """Price of reading one gigabyte of a Streams application's state again. Default: 0, traffic within a zone."""

    max_lag_seconds: float = 10.0
    """Longest wait of a message in seconds; one that waits longer is late."""

    target_utilization: float = 0.97
    """Share of a replica's capacity that plans may use, as Flink's `utilization.target`. Bursts and slow replicas are
    priced by themselves; what is left is noise within a minute. Below 0.97 replicas cost more than the lateness that
    they save, above it the other way."""

    planning_quantile: float = 0.9
    """Quantile path that plans have to carry. Must be one of `forecasting.forecast.QUANTILES`."""

    scenarios: int = 64
    """Number of produce rate paths that each plan is priced on. 64 put the mean price right to about 2 %."""

    risk_weight: float | None = None
    """Weight of the worst tenth of scenarios beyond the mean: 0 ignores it, 1 counts nothing else. None: the
    policy's."""

    fallback_policy: bool = True
    """True where the cheapest of several simple scalers, simulated beside the group, is followed while plans have cost
    more than it."""

    rebalance_pause_prior_seconds: float = 12.0
    """Stop of the group that one move is expected to cause until its own moves were graded: three of them
    have the same weight as this figure. The fluid formula gives 2-3 s for one rebalance; a prior that is too high costs
    less than one that is too low."""

    horizon_seconds: int = 3600
    """Seconds that plans look ahead. An hour outlasts start-up plus the break-even time of ordinary moves."""

    cycle_seconds: int = 60
    """Seconds between two decisions for one group."""

    scale_in_cooldown_seconds: float = 300.0
    """Least time between a move and a removal by plans after it; the `move_interval` where that is longer, which alone
    holds additions: two heartbeats and two batches, or five p99 processing times (livelock). The fallback policy waits
    as long as was cheapest, 30 s at least; `max_moves_per_hour` binds it too."""

    max_moves_per_hour: int | None = None
    """Most changes of size within an hour, by any scaler, those of a rolling restart too; the next one waits, even
    where more are needed. Plans do not take it into account. Default: none, a move is made where it pays off."""

    windows: tuple[Window, ...] = ()
    """Hours in which nothing is removed, or nothing is moved. Plans do not take them into account: a move inside one
    waits until it has closed. Default: none, every hour is as good as another."""

    valid_for_seconds: float = 300.0
    """Seconds that a recommendation is valid for."""

    freshness_limit_seconds: float = 600.0
    """Greatest age of the newest sample, in seconds; with older samples advice is refused as stale."""

    @property
    def unit_of_cost(self) -> str:
        """What every price and cost is in: the currency, or pod-hours where a replica-hour has no price.

        >>> DecisionSettings().unit_of_cost, DecisionSettings(price_per_replica_hour=0.04).unit_of_cost
        ('pod-hours', 'USD')
        """
        return POD_HOURS if self.price_per_replica_hour is None else self.currency or USD

    def prices(self, capacity: MessagesPerSecond) -> Prices:
        """These prices, the missing ones scaled by what one replica of the group consumes."""
        return Prices.from_replica_hour(
            1.0 if self.price_per_replica_hour is None else self.price_per_replica_hour,
            capacity=capacity,
            currency=self.unit_of_cost,
            price_per_late_message=self.price_per_late_message,
            price_per_duplicate_message=self.price_per_duplicate_message,
            price_per_move=self.price_per_move,
            price_per_restored_gigabyte=self.price_per_restored_gigabyte,
            policy=self.policy,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedSettings(DecisionSettings):
    """Settings with the price of a replica-hour that was `detected`, as none is set."""

    detected: DetectedPrice

    @property
    def price_seen_at(self) -> datetime | None:
        """When the price in use was read; None where another one has replaced it."""
        return self.detected.seen_at if self.price_per_replica_hour == self.detected.price_per_replica_hour else None


def priced(settings: DecisionSettings, detected: DetectedPrice | None) -> DecisionSettings:
    """The settings with the price that was detected, unless one is set.

    The prices that are set without it are in pod-hours, and become money by it: every cost changes by one factor, and
    no decision changes.
    """
    if detected is None or settings.price_per_replica_hour is not None:
        return settings
    price = detected.price_per_replica_hour
    figures = {field.name: getattr(settings, field.name) for field in fields(settings)}
    in_money = {name: figures[name] * price for name in BESIDE_REPLICAS if figures[name] is not None}
    return PricedSettings(**figures | in_money | {"price_per_replica_hour": price}, detected=detected)
