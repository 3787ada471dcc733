"""Contest: one load in one simulated world, and one policy's run through it, charged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cost_model.pricing.price import Prices
from forecasting.history import GroupInterval
from recommender.deciding.decision import DecisionSettings
from replay.plant.arrivals import Arrivals
from replay.plant.plant import GRID_SECONDS, Plant
from replay.policies.catalogue import CATALOGUE
from replay.policies.fixed import count_for_peak
from replay.policies.lagcast import Lagcast, profile_of
from replay.policies.policy import Policy
from replay.sampling import Names
from replay.trace import Trace
from replay.world import World

# Where no capacity is given: four fifths of all replicas just carry the rate that is exceeded in one minute of 1,000.
SHARE_AT_PEAK = 0.8
PEAK_QUANTILE = 0.999
# The rivals of a user's league, by their names in the catalogue: lag targets are those most often copied, 10,000.
LEAGUE_POLICIES = {
    "fixed": "fixed",
    "hpa": "hpa-10000",
    "hpa-behavior": "hpa-behavior-10000",
    "keda": "keda-10000",
    "useful-counts": "useful-counts",
}
RIVALS: tuple[str, ...] = tuple(LEAGUE_POLICIES)
LAGCAST = "lagcast"
# The settings of leagues over loads that nobody pays for: a small pod on a shared node costs about 0.05 an hour.
PRICED = DecisionSettings(price_per_replica_hour=0.05, currency="USD")
POLICIES = (*RIVALS, LAGCAST)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contest:
    """The inputs shared by all policies: the same load, the same world, the same prices, the same first replica count.

    `settings` are lagcast's own and the source of the prices; `names` are those of its history rows. `start_replicas`
    None: enough for the peak. `arrivals`: those of this trace, world and seed, to be drawn only once.
    """

    trace: Trace
    world: World
    settings: DecisionSettings
    names: Names
    seed: int
    start_replicas: int | None = None
    arrivals: Arrivals | None = None

    @property
    def prices(self) -> Prices:
        """The prices by which every policy is charged."""
        capacity = profile_of(self.world, self.names).capacity
        if capacity is None:
            message = "a world's capacity is always known"
            raise ValueError(message)
        return self.settings.prices(capacity.p50)

    @property
    def first_replicas(self) -> int:
        """The replica count with which every policy starts."""
        return self.start_replicas if self.start_replicas is not None else count_for_peak(self.world, self.trace)

    def plant(self) -> Plant:
        """The group at the beginning."""
        return Plant(
            world=self.world,
            trace=self.trace,
            seed=self.seed,
            replicas=self.first_replicas,
            arrivals=self.arrivals,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """A cost by item, in the currency of the prices."""

    pods: float
    late: float
    duplicates: float

    @property
    def total(self) -> float:
        """The sum of the items.

        >>> RunCost(pods=1.0, late=0.5, duplicates=0.25).total
        1.75
        """
        return self.pods + self.late + self.duplicates


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One policy's run: its cost, and its effects on the messages and on the group.

    `daily` and `daily_late_share` have one cost, and one share of late messages, for each day of the judged span, the
    last perhaps of a part of a day. `mean_lag_messages` is the mean over time of end minus committed offsets, as a lag
    exporter would see it.
    """

    policy: str
    daily: tuple[RunCost, ...]
    daily_late_share: tuple[float, ...]
    pod_hours: float
    mean_replicas: float
    mean_lag_messages: float
    wait_p95_seconds: float
    wait_p99_seconds: float
    late_share: float
    moves: int
    rebalances: int
    rebalancing_minutes: float
    paused_partition_seconds: float
    duplicate_messages: int
    note: str = ""

    @property
    def cost(self) -> RunCost:
        """The cost of the whole span."""
        return RunCost(
            pods=sum(day.pods for day in self.daily),
            late=sum(day.late for day in self.daily),
            duplicates=sum(day.duplicates for day in self.daily),
        )


def capacity_for(trace: Trace, *, partitions: int) -> float:
    """A capacity per replica, to three digits, that suits a load whose consumers are not known.

    >>> from datetime import UTC, datetime
    >>> steady = Trace(name="t", start_at=datetime(2026, 1, 5, tzinfo=UTC), step_seconds=60,
    ...                messages_per_second=np.full(60, 9600.0))
    >>> capacity_for(steady, partitions=24)
    500.0
    """
    peak = float(np.quantile(trace.minute_rates(), PEAK_QUANTILE))
    return float(f"{max(peak, 1.0) / (SHARE_AT_PEAK * partitions):.3g}")


def require_policy(name: str) -> None:
    """Errors: ValueError on an unknown policy name."""
    if name not in POLICIES:
        message = f"there is no policy '{name}'; there are {', '.join(POLICIES)}"
        raise ValueError(message)


def play(
    policy_name: str,
    contest: Contest,
    history: Sequence[GroupInterval] = (),
    *,
    played: Callable[[int], object] = lambda _: None,
) -> Entry:
    """Run one policy of a league through the contest; only lagcast reads the history.

    `played` is told after each step how many minutes of the trace are over.
    Errors: ValueError on an unknown policy name.
    """
    require_policy(policy_name)
    policy: Policy
    if policy_name == LAGCAST:
        policy = Lagcast(contest.world, contest.settings, names=contest.names, history=history)
    else:
        policy = CATALOGUE[LEAGUE_POLICIES[policy_name]].make(contest.world, contest.first_replicas)
    return run_policy(policy_name, policy, contest, played=played)


def run_policy(
    name: str, policy: Policy, contest: Contest, *, played: Callable[[int], object] = lambda _: None
) -> Entry:
    """The entry, under this name, of a policy that decides every 15 s until the contest's trace ends.

    `played` is told after each step how many minutes of the trace are over.
    """
    plant = contest.plant()
    while plant.remaining_seconds > 0:
        plant.advance(GRID_SECONDS)
        played(int(plant.time_seconds // 60))
        seen = plant.observation()
        replicas = policy.decide(seen)
        if replicas != seen.replicas:
            plant.scale(replicas)
    return entry_of(name, plant, contest)


def entry_of(policy_name: str, plant: Plant, contest: Contest, *, note: str = "") -> Entry:
    """The entry of a plant that has reached the end of its trace."""
    days, prices = plant.day_totals(), contest.prices
    arrivals = sum(day.arrivals for day in days)
    pod_seconds = sum(day.pod_seconds for day in days)
    return Entry(
        policy=policy_name,
        daily=tuple(
            RunCost(
                pods=day.pod_seconds / 3600.0 * prices.price_per_replica_hour,
                late=day.late * prices.price_per_late_message,
                duplicates=day.duplicates * prices.price_per_duplicate_message,
            )
            for day in days
        ),
        daily_late_share=tuple(day.late / max(day.arrivals, 1) for day in days),
        pod_hours=pod_seconds / 3600.0,
        mean_replicas=pod_seconds / plant.time_seconds,
        mean_lag_messages=sum(day.lag_message_seconds for day in days) / plant.time_seconds,
        wait_p95_seconds=plant.wait_quantile(0.95),
        wait_p99_seconds=plant.wait_quantile(0.99),
        late_share=sum(day.late for day in days) / max(arrivals, 1),
        moves=sum(day.moves for day in days),
        rebalances=sum(day.rebalances for day in days),
        rebalancing_minutes=sum(day.rebalancing_seconds for day in days) / 60.0,
        paused_partition_seconds=sum(day.paused_partition_seconds for day in days),
        duplicate_messages=sum(day.duplicates for day in days),
        note=note,
    )
