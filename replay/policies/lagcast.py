"""lagcast as a policy: the same session as in production, and an executor that carries out its advice."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial

from cost_model.physics.detected import observed_in
from cost_model.physics.profile import Capacity, GroupProfile, ScaleToZero, StreamsProfile
from forecasting.forecaster import Forecaster
from forecasting.history import GroupInterval
from forecasting.units import MessagesPerSecond, Partitions, Replicas, Seconds
from recommender.configuring.settings_group import GroupSettings
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.following.session import Session
from replay.plant.plant import Observation
from replay.sampling import Names, Rows
from replay.world import World


class Lagcast:
    """Observes a row each 15 s, decides once a cycle, and requests `desired_replicas` when `execute_at` has come.

    A newer answer takes the place of a recommendation that has not been carried out; a refusal keeps the present count.
    Not `capacity_known`: it has to be learned. With `only_bounds_set` everything else is as well, from the rows alone.
    """

    def __init__(
        self,
        world: World,
        settings: DecisionSettings,
        *,
        names: Names,
        history: Iterable[GroupInterval] = (),
        forecaster: Forecaster | None = None,
        capacity_known: bool = True,
        only_bounds_set: bool = False,
    ) -> None:
        self._rows = Rows(names)
        self._bounds = GroupSettings(min_replicas=world.min_replicas, max_replicas=world.max_replicas)
        # Without a limit in real seconds, because a busy machine would change the result.
        self._begin = partial(Session, settings=settings, history=history, forecaster=forecaster)
        self._session: Session | None = None
        if not only_bounds_set:
            profile = profile_of(world, names)
            self._session = self._begin(profile if capacity_known else replace(profile, capacity=None))
        self._pending: tuple[datetime, int] | None = None

    def decide(self, seen: Observation) -> int:
        """The replicas of the advice in force now."""
        return self.decide_on([seen], seen)

    def decide_on(self, sampled: Iterable[Observation], now: Observation) -> int:
        """The same where the group is seen through samples: those that came since the last time, oldest first."""
        for seen in sampled:
            self._observe(self._rows.row(seen))
        if self._session is not None and self._session.due(now.at):
            advice = self._session.recommend(now.at)
            self._pending = None
            if isinstance(advice, Recommendation) and advice.action != "hold":
                self._pending = (advice.execute_at, advice.desired_replicas)
        if self._pending is not None and self._pending[0] <= now.at:
            (_, replicas), self._pending = self._pending, None
            return replicas
        return now.replicas

    def _observe(self, row: GroupInterval) -> None:
        """Take a row; where only bounds are set, the first one shows what else the group is."""
        if self._session is None:
            self._session = self._begin(self._bounds.profile(row.cluster, row.group, observed_in([row])))
        self._session.observe(row)


def profile_of(world: World, names: Names) -> GroupProfile:
    """The user's settings of the group: its sizes, times and capacity, without the world's noise."""
    rate = MessagesPerSecond(world.capacity_messages_per_second_per_replica)
    return GroupProfile(
        cluster=names.cluster,
        group=names.group,
        partitions=Partitions(world.partitions),
        capacity=Capacity(p20=rate, p50=rate, p90=rate, source="configured"),
        protocol=world.protocol,
        client=world.client,
        static_membership=world.static_membership,
        session_timeout_seconds=Seconds(world.session_timeout_seconds),
        min_replicas=Replicas(world.min_replicas),
        scale_to_zero=ScaleToZero() if world.to_zero else None,
        max_replicas=None if world.max_replicas is None else Replicas(world.max_replicas),
        start_up_seconds=Seconds(world.start_up_seconds),
        heartbeat_interval_seconds=Seconds(world.heartbeat_interval_seconds),
        commit_interval_seconds=Seconds(float(world.commit_interval_seconds)),
        termination_grace_seconds=Seconds(world.termination_grace_seconds),
        streams=_streams_of(world) if world.restore_seconds > 0.0 else None,
    )


def _streams_of(world: World) -> StreamsProfile:
    """Without bytes to restore: tasks that have lost their owner continue at once, as with a standby."""
    return StreamsProfile(
        stateful=True,
        tasks=world.partitions,
        max_warmup_replicas=world.warmup_slots,
        probing_seconds=Seconds(world.probing_seconds),
        commit_interval_seconds=Seconds(float(world.commit_interval_seconds)),
    )
