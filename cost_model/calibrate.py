"""What a group's own past says about the quantities that its profile would otherwise have to assume."""

import numpy as np

from cost_model.capacity import CapacityBelief
from cost_model.profile import Capacity, GroupProfile
from forecasting.history import MINUTE_SECONDS, History
from forecasting.units import MessagesPerSecond, Seconds

# Lag worth less than this much of the group's own rate may be nothing but uncommitted work.
SATURATED_LAG_SECONDS = 2.0
# Four hours of minutes: older evidence has faded from the belief anyway.
LOOK_BACK_MINUTES = 1440


def capacity_seen(history: History, profile: GroupProfile) -> Capacity | None:
    """One replica's capacity from windows in which the group worked at its limit, or None while none was seen.

    A minute counts as saturated when the backlog at both its ends exceeds two seconds of its rate plus what a commit
    interval leaves uncommitted, its members did not change and no rebalance lay in it. The rate is shared among members
    that hold partitions; where the deal is uneven that understates capacity, which is the safe side.
    """
    tail = slice(-LOOK_BACK_MINUTES, None)
    consumed = history.consume_messages_per_second[tail]
    lag, members, rebalance = history.lag_messages[tail], history.members[tail], history.in_rebalance[tail]
    if len(consumed) < 2:
        return None
    working = np.clip(members, None, profile.partitions)
    steady = (members[1:] == members[:-1]) & (members[1:] > 0) & (rebalance[1:] == 0.0) & (rebalance[:-1] == 0.0)
    floor = (SATURATED_LAG_SECONDS + profile.commit_interval_seconds) * consumed[1:]
    saturated = steady & (lag[1:] > floor) & (lag[:-1] > floor) & (consumed[1:] > 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.where(steady, consumed[1:] / working[1:], np.nan)
    known = rates[np.isfinite(rates) & (rates > 0.0)]
    if not saturated.any() or known.size == 0:
        return None
    minutes_since = len(saturated) - 1 - int(np.flatnonzero(saturated)[-1])
    belief = CapacityBelief.around(MessagesPerSecond(float(known.max()))).observed(rates, saturated)
    return belief.capacity(Seconds(float(minutes_since * MINUTE_SECONDS)))
