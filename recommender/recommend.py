"""The decision: one group's history and forecast in, a priced recommendation or a refusal out.

Pure: the live loop, a notebook and the replay call the same `recommend`, so what is judged is what runs.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

from cost_model.backlog import backlog_from_visible_lag
from cost_model.calibrate import quiet_seconds
from cost_model.learned import Learned
from cost_model.plan import PlannedMove
from cost_model.presets import PRESETS
from cost_model.price import Prices
from cost_model.profile import Capacity, GroupProfile
from cost_model.situation import Situation, Uncertainty
from cost_model.skew import carried_by_count
from cost_model.weigh import weigh
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.ladder import MINUTES_PER_DAY, MINUTES_PER_WEEK
from forecasting.refusal import Refusal
from forecasting.scenarios import scenarios_of
from forecasting.units import FloatArray, Fraction, Messages, MessagesPerSecond, Replicas, Seconds
from recommender.compose import Case, compose, named, observed
from recommender.decision import DecisionSettings
from recommender.facts import Facts, read_facts
from recommender.findings import Finding, busiest_seen, finding_of
from recommender.guards import Proposal, Scene, follow_reference, keep_the_minimum, pass_guards, rest_seconds
from recommender.recommendation import Decision, Recommendation, TrackRecord

STEP_SECONDS = 60
# A burst that nobody foresaw has lost two thirds of itself after this many minutes.
SURPRISE_STEPS = 8.0
# The busiest minute of a week is exceeded by a fiftieth, that of a day by a seventh.
CEILING_DAYS = 0.15


def recommend(
    history: History,
    forecast: Forecast | Refusal,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    previous: Recommendation | None,
    now: datetime,
    learned: Learned | None = None,
    reference_replicas: int | None = None,
    track_record: TrackRecord | None = None,
    with_flips: bool = False,
) -> Decision:
    """How many replicas, and when, at the least expected price; or why nothing can be said.

    `previous` is the recommendation in force until now: it tells whether a move is still under way. `learned` is what
    the group's own moves have taught (None: the settings' priors). `reference_replicas` is what the reference policy
    wants, given when the advice has been dearer than it for too long: it is followed then. `track_record` is published
    with the advice; `with_flips` adds what would reverse it, for about 25 ms. `now` is timezone-aware. Bad states of
    the world come back as a `Refusal`; a `ValueError` is the caller's bug.
    """
    facts = read_facts(history, profile, settings, now=now)
    if isinstance(facts, Refusal):
        return facts
    finding = finding_of(history, profile, previous=previous, now=now)
    if isinstance(finding, Refusal):
        return finding
    if isinstance(forecast, Refusal):
        return replace(forecast, hold_replicas=facts.replicas)
    if finding is not None:
        profile = _bounded(profile, finding)
    _, profile = busiest_seen(history, profile)
    if previous is not None and _under_way(previous, facts, profile, now=now):
        return _still_under_way(previous, facts, settings, now=now)
    scene = _scene(history, facts, previous, profile, settings, now=now)
    if learned is None:
        learned = day_one(settings, facts.capacity)
    prices = replace(prices_for(settings, facts.capacity), move=learned.risk)
    situation = replace(_situation(scene, forecast, prices, learned), quiet_seconds=quiet_seconds(history))
    found = weigh(situation, _uncertainty(scene, forecast, ceiling=_ceiling(history)))
    best = found.best()
    case = Case(
        history=history,
        forecast=forecast,
        facts=facts,
        scene=scene,
        situation=situation,
        learned=learned,
        found=found,
        best=best,
        previous=previous,
        finding=finding,
        track_record=track_record or TrackRecord(),
        with_flips=with_flips,
    )
    proposal = pass_guards(_proposed(best, scene), scene)
    if reference_replicas is not None:
        proposal = follow_reference(proposal, scene, reference_replicas)
    return compose(keep_the_minimum(proposal, scene), case)


def _bounded(profile: GroupProfile, finding: Finding) -> GroupProfile:
    """Plans go no further up than helps; the configured minimum stays."""
    most = min(profile.replica_ceiling, finding.most_replicas)
    return replace(profile, max_replicas=Replicas(max(most, profile.min_replicas)))


def day_one(settings: DecisionSettings, capacity: Capacity) -> Learned:
    """What is believed of a group's moves before any was seen."""
    return Learned.assumed(stop_seconds=settings.pause_prior_seconds, risk=prices_for(settings, capacity).move)


def prices_for(settings: DecisionSettings, capacity: Capacity) -> Prices:
    """The settings' prices, the missing ones scaled by what one replica of this group consumes."""
    return Prices.from_replica_hour(
        settings.replica_hour,
        capacity=capacity.p50,
        currency=settings.currency,
        late_message=settings.late_message,
        duplicate_message=settings.duplicate_message,
        move=settings.move,
        restored_gigabyte=settings.restored_gigabyte,
        policy=settings.policy,
    )


def _under_way(previous: Recommendation, facts: Facts, profile: GroupProfile, *, now: datetime) -> bool:
    """Whether the previous move was due, has not shown in the members yet, and may still be starting."""
    if previous.action == "hold" or previous.execute_at > now or facts.replicas == previous.desired_replicas:
        return False
    (carried,) = carried_by_count(profile, (previous.desired_replicas,), capacity=facts.capacity.p50)
    if facts.produce_messages_per_second > carried:
        return False  # even what is on its way will not do
    # Start-up times differ between pods: the last of several is ready about twice the mean after the command.
    patience = 2 * profile.start_up_seconds + profile.termination_grace_seconds
    return now < previous.execute_at + timedelta(seconds=patience)


def _still_under_way(
    previous: Recommendation, facts: Facts, settings: DecisionSettings, *, now: datetime
) -> Recommendation:
    sentence = (
        f"The move to {previous.desired_replicas} was due at {previous.execute_at:%H:%M:%S}; "
        f"{facts.replicas} members have joined so far. One move at a time."
    )
    waiting = replace(
        previous,
        supersedes=previous.recommendation_id,
        issued_at=now,
        valid_until=now + timedelta(seconds=settings.valid_for_seconds),
        current_replicas=facts.replicas,
        observed=observed(facts),
        reason="warming_up",
        sentences=(sentence,),
    )
    return named(waiting)


def _scene(
    history: History,
    facts: Facts,
    previous: Recommendation | None,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    now: datetime,
) -> Scene:
    rate = MessagesPerSecond(facts.produce_messages_per_second)
    backlog = backlog_from_visible_lag(
        Messages(facts.lag_messages), consume=rate, commit_interval=profile.commit_interval_seconds
    )
    return Scene(
        now=now,
        replicas=facts.replicas,
        backlog_messages=backlog,
        behind_seconds=facts.behind_seconds,
        produce_messages_per_second=rate,
        latest=history.recent[-1],
        last_move_at=_last_move_at(history, previous, now=now),
        profile=profile,
        settings=settings,
    )


def _last_move_at(history: History, previous: Recommendation | None, *, now: datetime) -> datetime | None:
    """When the group last changed size, as its own member counts tell, or was last asked to."""
    members = [(row.interval_end_at, row.members) for row in history.recent if row.members is not None]
    changes = [at for (_, before), (at, after) in pairwise(members) if before != after]
    if previous is not None and previous.action != "hold" and previous.execute_at <= now:
        changes.append(previous.execute_at)
    return max(changes, default=None)


def _silent_share(profile: GroupProfile, learned: Learned) -> Fraction | None:
    """What was seen of leavers, or else what is configured.

    Nothing is learned of static members: they never say goodbye, however soon their pods are gone from view.
    """
    if profile.static_membership or learned.silent_share is None:
        return profile.silent_share
    return Fraction(learned.silent_share)


def _situation(scene: Scene, forecast: Forecast, prices: Prices, learned: Learned) -> Situation:
    settings, profile = scene.settings, scene.profile
    earliest = 0.0
    if scene.last_move_at is not None:
        rested_at = scene.last_move_at + timedelta(seconds=rest_seconds(profile, settings, removing=False))
        earliest = max(0.0, (rested_at - scene.now).total_seconds())
    return Situation(
        profile=replace(profile, silent_share=_silent_share(profile, learned)),
        prices=prices,
        demand_messages_per_second=_demand(forecast, settings, now=scene.now),
        step_seconds=Seconds(STEP_SECONDS),
        replicas=scene.replicas,
        lag_messages=Messages(scene.backlog_messages),
        behind_seconds=scene.behind_seconds,
        max_lag_seconds=Seconds(settings.max_lag_seconds),
        head_room=settings.head_room if learned.head_room is None else learned.head_room,
        # To a tenth of a second, so that what was computed of the group's moves can be used again.
        pause_prior_seconds=round(learned.stop_up.value, 1),
        pause_prior_down_seconds=round(learned.stop_down.value, 1),
        earliest_move_step=int(np.ceil(earliest / STEP_SECONDS)),
    )


def _uncertainty(scene: Scene, forecast: Forecast, *, ceiling: float) -> Uncertainty:
    settings = scene.settings
    passed = max(0, int((scene.now - forecast.origin_at).total_seconds() // STEP_SECONDS))
    steps = settings.horizon_seconds // STEP_SECONDS

    def rest(*, removing: bool) -> int:
        return int(np.ceil(rest_seconds(scene.profile, settings, removing=removing) / STEP_SECONDS))

    paths = scenarios_of(forecast, count=settings.scenarios, steps=steps, skip=passed, ceiling=ceiling)
    highest = float(forecast.path(0.95)[min(passed, forecast.steps - 1)])
    return Uncertainty(
        demand_messages_per_second=paths + _surprise(scene.produce_messages_per_second, highest, steps=steps),
        rate_now_messages_per_second=scene.produce_messages_per_second,
        risk_weight=PRESETS[settings.policy].risk_weight if settings.risk_weight is None else settings.risk_weight,
        rest_up_steps=rest(removing=False),
        rest_down_steps=rest(removing=True),
    )


def _ceiling(history: History) -> float:
    """Arrivals that nothing in the last week comes near; tails of bands reach further than loads do."""
    week = history.produce_messages_per_second[-MINUTES_PER_WEEK:]
    known = week[np.isfinite(week)]
    return (1.0 + CEILING_DAYS * MINUTES_PER_DAY / known.size) * float(known.max()) if known.size else np.inf


def _surprise(rate: float, highest: float, *, steps: int) -> FloatArray:
    """What arrives now beyond what was thought possible, fading from step to step."""
    beyond: FloatArray = max(rate - highest, 0.0) * np.exp(-np.arange(steps) / SURPRISE_STEPS)
    return beyond


def _demand(forecast: Forecast, settings: DecisionSettings, *, now: datetime) -> FloatArray:
    """The quantile path that plans must carry, from `now` on; its last value stands for what lies beyond it."""
    path = forecast.path(settings.planning_quantile)
    passed = max(0, int((now - forecast.origin_at).total_seconds() // STEP_SECONDS))
    steps = settings.horizon_seconds // STEP_SECONDS
    ahead = path[min(passed, len(path) - 1) :][:steps]
    return np.concatenate([ahead, np.full(steps - len(ahead), ahead[-1])])


def _proposed(best: PlannedMove | None, scene: Scene) -> Proposal:
    if best is None:
        return Proposal(target=scene.replicas, command_at=scene.now)
    command_at = scene.now + timedelta(seconds=best.command_step * STEP_SECONDS)
    return Proposal(target=best.target, command_at=command_at)
