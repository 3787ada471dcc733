"""The policies of the lab, and their common setting: the load, the hour before it, and the group's known settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from benchmarks.rebalances.members import SESSION_SECONDS
from cost_model.physics.profile import GroupProtocol
from forecasting.columns import BASE_INTERVAL_SECONDS
from forecasting.history import GroupInterval
from recommender.deciding.decision import DecisionSettings
from replay.contest import PRICED
from replay.plant import Observation
from replay.policies.fixed import Fixed, count_for_peak
from replay.policies.hpa import LegacyRules
from replay.policies.keda import Keda
from replay.policies.lagcast import Lagcast
from replay.policies.policy import Policy
from replay.sampling import Names, Rows
from replay.trace import Trace
from replay.workload import orders_workload
from replay.world import World

PARTITIONS = 12
MOST_REPLICAS = 6
CAPACITY = 60.0
# The peak takes this share of the capacity of all replicas.
PEAK_SHARE = 0.9
# A minute of the workload passes in a second: from five in the morning of the fourth day on its rate grows fivefold.
FIRST_MINUTE = (3 * 24 + 5) * 60
HISTORY_SECONDS = 3600
LAG_OF_A_REPLICA_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The setting that all policies share: the load, the hour before it, and the group's known settings."""

    trace: Trace
    before: Trace
    world: World
    settings: DecisionSettings

    @property
    def first_replicas(self) -> int:
        """The number of replicas that carries the load at its beginning."""
        return self.world.smallest_carrying(self.trace.rate_at(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPolicy:
    """A way of scaling: the number of replicas at its beginning, and the function that makes its policy."""

    replicas: Callable[[Setting], int]
    policy: Callable[[Setting, Sequence[GroupInterval], Names], Policy]


LAB_POLICIES: dict[str, LabPolicy] = {
    "fixed": LabPolicy(
        replicas=lambda setting: count_for_peak(setting.world, setting.trace),
        policy=lambda setting, _, __: Fixed(replicas=count_for_peak(setting.world, setting.trace)),
    ),
    "keda": LabPolicy(
        replicas=lambda setting: setting.first_replicas,
        policy=lambda setting, _, __: Keda(
            threshold_messages=round(LAG_OF_A_REPLICA_SECONDS * CAPACITY),
            rules=LegacyRules(least=1, most=setting.world.replica_ceiling),
        ),
    ),
    "lagcast": LabPolicy(
        replicas=lambda setting: setting.first_replicas,
        policy=lambda setting, history, names: Lagcast(setting.world, setting.settings, names=names, history=history),
    ),
}


def setting_of(protocol: GroupProtocol, *, seconds: int, most_replicas: int = MOST_REPLICAS) -> Setting:
    """The setting of a run of so many seconds for each policy, with a load that takes nearly `most_replicas`."""
    days = orders_workload()
    quick = replace(days, step_seconds=1)
    rates = quick.messages_per_second[FIRST_MINUTE : FIRST_MINUTE + seconds]
    quick = quick.scaled(PEAK_SHARE * CAPACITY * most_replicas / float(rates.max()))
    return Setting(
        trace=replace(quick, messages_per_second=quick.messages_per_second[FIRST_MINUTE : FIRST_MINUTE + seconds]),
        before=replace(
            quick, messages_per_second=quick.messages_per_second[FIRST_MINUTE - HISTORY_SECONDS : FIRST_MINUTE]
        ),
        world=World(
            partitions=PARTITIONS,
            capacity_messages_per_second_per_replica=CAPACITY,
            protocol=protocol,
            client="librdkafka",
            max_replicas=most_replicas,
            start_up_seconds=5.0,
            start_up_spread_seconds=2.0,
            session_timeout_seconds=SESSION_SECONDS,
        ),
        settings=PRICED,
    )


def rows_before(before: Trace, names: Names, *, until: datetime, members: int) -> list[GroupInterval]:
    """The rows of the hour that ends at `until`, in which the group kept up."""
    ends = np.concatenate([[0.0], np.cumsum(before.messages_per_second)])
    rows = Rows(names)
    found = []
    for second in range(0, before.duration_seconds + 1, BASE_INTERVAL_SECONDS):
        offsets = np.full(PARTITIONS, int(ends[second] / PARTITIONS))
        found.append(
            rows.row(
                Observation(
                    at=until - timedelta(seconds=before.duration_seconds + BASE_INTERVAL_SECONDS - second),
                    time_seconds=second,
                    replicas=members,
                    ready_members=members,
                    group_state="STABLE",
                    end_offsets=offsets,
                    committed_offsets=offsets,
                )
            )
        )
    return found
