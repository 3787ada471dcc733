"""DecisionContext: the inputs of one decision, read once from the group's rows, profile and settings."""

from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from cost_model.physics.learned import Learned
from cost_model.physics.profile import Capacity, GroupProfile
from cost_model.physics.skew import useful_counts
from forecasting.forecast import QUANTILES, Forecast
from forecasting.history import MINUTE_SECONDS, GroupInterval, History
from forecasting.history_tier import FIRST_MINUTES, known_minutes, refuse_short
from forecasting.refusal import Refusal
from forecasting.units import Replicas
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.facts import (
    backlog_of,
    behind_seconds,
    priceable,
    produce_rate_of,
    rests_at_zero,
    rows_of_now,
    usable_rows,
)
from recommender.deciding.findings import finding_of
from recommender.deciding.hold import Hold
from recommender.deciding.limits import Finding, busiest_seen
from recommender.deciding.pace import last_move_at, moves_of_the_hour, patience_seconds
from recommender.deciding.recommendation import Recommendation, TrackRecord

# The model of a forecast that predicts nothing.
NO_FORECAST = "none"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecisionContext:
    """Everything that one decision about one group rests on, passed whole to the code that decides, prices or explains.

    `profile` is the group as plans may use it: no more replicas than `finding` shows to help, with the weights in the
    rows. `row` is the newest settled row, `replicas` its members, `capacity` that of the profile, which is known.
    `produce_messages_per_second` is the present produce rate, `backlog_messages` the least backlog in the newest rows,
    uncommitted work left out. `behind_seconds` is how far the partition that is most behind has fallen, beyond a commit
    interval; 0 where it was not measured. The group last changed size at `last_move_at`, and within the last hour at
    each of `moved_at`. `at_zero`: it has no members, and is meant to have none; its forecast may have no steps.
    `hold` is in force on the group. `previous` is the recommendation in force until now. `fallback_replicas` is the
    fallback policy's count, None while it is not followed.
    """

    now: datetime
    history: History
    forecast: Forecast
    profile: GroupProfile
    settings: DecisionSettings
    learned: Learned
    row: GroupInterval
    replicas: int
    capacity: Capacity
    produce_messages_per_second: float
    backlog_messages: float
    behind_seconds: float
    last_move_at: datetime | None = None
    moved_at: tuple[datetime, ...] = ()
    at_zero: bool = False
    finding: Finding | None = None
    previous: Recommendation | None = None
    hold: Hold | None = None
    fallback_replicas: int | None = None
    track_record: TrackRecord = field(default_factory=TrackRecord)

    @property
    def useful_replicas(self) -> tuple[int, ...]:
        """The useful replica counts within the bounds of the profile."""
        floor, ceiling = self.profile.replica_floor, self.profile.replica_ceiling
        return useful_counts(self.profile, minimum=Replicas(floor), maximum=Replicas(ceiling))

    @property
    def passed_minutes(self) -> int:
        """Minutes of the forecast that have passed by now."""
        return max(0, int((self.now - self.forecast.origin_at).total_seconds() // MINUTE_SECONDS))


def read_context(
    history: History,
    forecast: Forecast | Refusal,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    previous: Recommendation | None,
    now: datetime,
    learned: Learned | None = None,
    hold: Hold | None = None,
    fallback_replicas: int | None = None,
    track_record: TrackRecord | None = None,
) -> DecisionContext | Refusal:
    """The context of a decision at `now`, or the first refusal: of the rows, the capacity, a finding or the forecast.

    A group at 0 is started when messages wait, despite findings and forecast: neither refuses it.
    """
    patience = patience_seconds(profile)
    at_zero = rests_at_zero(history, profile, previous, patience_seconds=patience)
    if at_zero and profile.capacity is None and previous is not None:
        profile = replace(profile, capacity=previous.capacity)  # a capacity of a month ago is better than no decision
    rows = usable_rows(history, settings, now=now, at_zero=at_zero)
    if isinstance(rows, Refusal):
        return rows
    row = rows[-1]
    capacity = priceable(history, profile, now, hold=row.members)
    if isinstance(capacity, Refusal):
        return capacity
    finding = None if at_zero else finding_of(history, profile, previous=previous, now=now)
    if isinstance(finding, Refusal):
        return finding
    rows_now = rows_of_now(rows)
    rate = produce_rate_of(rows_now)
    if isinstance(forecast, Refusal):
        if at_zero:
            forecast = _no_forecast(history, now)
        elif forecast.reason != "not_enough_history":
            return replace(forecast, hold_replicas=row.members or 0)
        elif known_minutes(history) < FIRST_MINUTES:
            return replace(refuse_short(history, needed_minutes=FIRST_MINUTES), hold_replicas=row.members or 0)
        else:
            forecast = _no_forecast(history, now, rate)
    return DecisionContext(
        now=now,
        history=history,
        forecast=forecast,
        profile=profile if at_zero else _as_found(profile, history, finding),
        settings=settings,
        learned=day_one(settings, capacity) if learned is None else learned,
        row=row,
        replicas=row.members or 0,
        capacity=capacity,
        produce_messages_per_second=rate,
        backlog_messages=backlog_of(rows_now, produce_rate=rate, commit_interval=profile.commits_every_seconds),
        behind_seconds=behind_seconds(rows, profile.commits_every_seconds),
        last_move_at=last_move_at(history, previous, now=now),
        moved_at=moves_of_the_hour(history, patience_seconds=patience),
        at_zero=at_zero,
        finding=finding,
        previous=previous,
        hold=hold,
        # The fallback policies do not scale to 0 replicas.
        fallback_replicas=None if at_zero else fallback_replicas,
        track_record=track_record or TrackRecord(),
    )


def day_one(settings: DecisionSettings, capacity: Capacity) -> Learned:
    """Beliefs about a group's moves before any was seen."""
    return Learned.assumed(
        rebalance_pause_seconds=settings.rebalance_pause_prior_seconds,
        risk=settings.prices(capacity.p50).price_per_move,
    )


def _as_found(profile: GroupProfile, history: History, finding: Finding | None) -> GroupProfile:
    """The profile that plans may use: no more replicas than help, but at least the configured minimum.

    The busiest partition in the rows gets its share.
    """
    if finding is not None:
        most = min(profile.replica_ceiling, finding.most_replicas)
        profile = replace(profile, max_replicas=Replicas(max(most, profile.min_replicas)))
    _, profile = busiest_seen(history, profile)
    return profile


def _no_forecast(history: History, now: datetime, *rates: float) -> Forecast:
    """A forecast of these rates, without any band; of no steps where no rate can be predicted."""
    return Forecast(
        cluster=history.cluster,
        group=history.group,
        model=NO_FORECAST,
        history_tier="reactive",
        origin_at=now,
        step_seconds=MINUTE_SECONDS,
        paths=np.repeat([rates], len(QUANTILES), axis=0),
    )
