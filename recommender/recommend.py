"""The decision: one group's history and forecast in, a priced recommendation or a refusal out.

Pure: the live loop, a notebook and the replay call the same `recommend`, so what is judged is what runs.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

from cost_model.backlog import backlog_from_visible_lag
from cost_model.optimise import PlannedMove, Situation, search
from cost_model.price import Prices
from cost_model.profile import Capacity, GroupProfile
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.refusal import Refusal
from forecasting.units import FloatArray, Messages, MessagesPerSecond, Seconds
from recommender.compose import Case, compose, named, observed
from recommender.decision import DecisionSettings
from recommender.facts import Facts, read_facts
from recommender.guards import Proposal, Scene, pass_guards, rest_seconds
from recommender.recommendation import Decision, Recommendation

STEP_SECONDS = 60


def recommend(
    history: History,
    forecast: Forecast | Refusal,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    previous: Recommendation | None,
    now: datetime,
) -> Decision:
    """How many replicas, and when, at the least expected price; or why nothing can be said.

    `previous` is the recommendation in force until now: it tells whether a move is still under way. `now` is
    timezone-aware. Bad states of the world come back as a `Refusal`; a `ValueError` is the caller's bug.
    """
    facts = read_facts(history, profile, settings, now=now)
    if isinstance(facts, Refusal):
        return facts
    if isinstance(forecast, Refusal):
        return replace(forecast, hold_replicas=facts.replicas)
    if previous is not None and _under_way(previous, facts, profile, now=now):
        return _still_under_way(previous, facts, settings, now=now)
    scene = _scene(history, facts, previous, profile, settings, now=now)
    prices = prices_for(settings, facts.capacity)
    found = search(_situation(scene, forecast, prices))
    best = found.best()
    case = Case(
        history=history,
        forecast=forecast,
        facts=facts,
        scene=scene,
        prices=prices,
        found=found,
        best=best,
        previous=previous,
    )
    return compose(pass_guards(_proposed(best, scene), scene), case)


def prices_for(settings: DecisionSettings, capacity: Capacity) -> Prices:
    """The settings' prices, the missing ones scaled by what one replica of this group consumes."""
    return Prices.from_replica_hour(
        settings.replica_hour,
        capacity=capacity.p50,
        currency=settings.currency,
        late_message=settings.late_message,
        duplicate_message=settings.duplicate_message,
        move=settings.move,
    )


def _under_way(previous: Recommendation, facts: Facts, profile: GroupProfile, *, now: datetime) -> bool:
    """Whether the previous move was due, has not shown in the members yet, and may still be starting."""
    if previous.action == "hold" or previous.execute_at > now or facts.replicas == previous.desired_replicas:
        return False
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
        produce_messages_per_second=rate,
        latest=facts.row,
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


def _situation(scene: Scene, forecast: Forecast, prices: Prices) -> Situation:
    settings, profile = scene.settings, scene.profile
    earliest = 0.0
    if scene.last_move_at is not None:
        rested_at = scene.last_move_at + timedelta(seconds=rest_seconds(profile, settings, removing=False))
        earliest = max(0.0, (rested_at - scene.now).total_seconds())
    return Situation(
        profile=profile,
        prices=prices,
        demand_messages_per_second=_demand(forecast, settings, now=scene.now),
        step_seconds=Seconds(STEP_SECONDS),
        replicas=scene.replicas,
        lag_messages=Messages(scene.backlog_messages),
        max_lag_seconds=Seconds(settings.max_lag_seconds),
        head_room=settings.head_room,
        pause_prior_seconds=Seconds(settings.pause_prior_seconds),
        earliest_move_step=int(np.ceil(earliest / STEP_SECONDS)),
    )


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
