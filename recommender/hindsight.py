"""The counts that would have been cheapest for a group in its last day, known afterwards. Pure."""

from datetime import datetime, timedelta

import numpy as np

from cost_model.physics.capacity import useful_replicas
from cost_model.physics.profile import GroupProfile
from cost_model.physics.skew import carried_by_count
from forecasting.cheapest_path import cheapest_path
from forecasting.history import MINUTE_SECONDS, History
from forecasting.units import SECONDS_PER_HOUR
from recommender.deciding.recommendation import Recommendation

# As many minutes as a page shows.
DAY_MINUTES = 1440


def hindsight(history: History, profile: GroupProfile, advice: Recommendation) -> dict[datetime, int]:
    """By the end of each minute of the last day: the replicas of the cheapest plan that carries all of its load.

    It sees the produce rate of every minute, uses the useful counts within the group's bounds, and pays for replicas
    and, at each change, the risk of a move; a replica consumes its capacity of today. Minutes above what all replicas
    carry take all of them; minutes of unknown rate are left out. The pauses of its moves are not counted, so that it is
    a bound that nobody reaches. Empty without a capacity or a price.
    """
    day = history.last(DAY_MINUTES)
    capacity, price = profile.capacity, 0.0 if advice.policy is None else advice.policy.price_per_replica_hour
    known = ~np.isnan(day.produce_messages_per_second)
    if capacity is None or advice.policy is None or price <= 0.0 or not known.any():
        return {}
    counts = useful_replicas(profile.partitions, minimum=profile.min_replicas, maximum=profile.max_replicas)
    carried = carried_by_count(profile, counts, capacity=capacity.p50)
    demand = np.minimum(np.where(known, day.produce_messages_per_second, 0.0), carried.max())
    hours = np.array(counts) * (MINUTE_SECONDS / SECONDS_PER_HOUR)
    # A rounding error in a product of rates must not change the useful count.
    prices = np.where(carried[None, :] >= demand[:, None] * (1.0 - 1e-12), hours[None, :], np.inf)
    risk = advice.policy.price_per_move if advice.learned is None else advice.learned.move_risk
    path = cheapest_path(prices, risk / price)
    first_end = day.end_at - timedelta(seconds=MINUTE_SECONDS * (day.minutes - 1))
    return {
        first_end + timedelta(seconds=MINUTE_SECONDS * int(minute)): counts[path[minute]]
        for minute in np.flatnonzero(known)
    }
