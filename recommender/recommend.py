"""The decision: one group's history and forecast in, a priced recommendation or a refusal out.

Pure: the live loop, a notebook and the replay call the same `recommend`, so what is judged is what runs.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from cost_model.backlog import backlog_from_visible_lag
from cost_model.calibrate import quiet_seconds
from cost_model.evaluation import evaluate_plans
from cost_model.learned import Learned
from cost_model.plan import PlannedMove
from cost_model.profile import Capacity, GroupProfile, ScaleToZero
from cost_model.skew import carried_by_count
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.refusal import Refusal
from forecasting.units import Messages, MessagesPerSecond, Replicas
from recommender.compose import Case, compose, named, observed
from recommender.decision import DecisionSettings
from recommender.facts import Facts, read_facts
from recommender.findings import finding_of
from recommender.guards import (
    GUARDS,
    Proposal,
    Scene,
    follow_fallback,
    keep_the_minimum,
    keep_the_pace,
    keep_to_windows,
    pass_guards,
)
from recommender.limits import Finding, busiest_seen
from recommender.pace import last_move_at, moves_of_the_hour
from recommender.question import STEP_SECONDS, highest_believed, situation_of, uncertainty_of
from recommender.recommendation import Decision, Recommendation, TrackRecord
from recommender.zero import Grounds, compose_zero, scaled_to_zero, to_zero, wanted_at_zero


def recommend(
    history: History,
    forecast: Forecast | Refusal,
    profile: GroupProfile,
    settings: DecisionSettings,
    *,
    previous: Recommendation | None,
    now: datetime,
    learned: Learned | None = None,
    fallback_replicas: int | None = None,
    track_record: TrackRecord | None = None,
    with_sensitivity: bool = False,
) -> Decision:
    """How many replicas, and when, at the least expected price; or why nothing can be said.

    `previous` is the recommendation in force until now: it tells whether a move is still under way. `learned` is what
    the group's own moves have taught (None: the settings' priors). `fallback_replicas` is what the fallback policy
    wants, given when the advice has been more expensive than it for too long: it is followed then. `track_record` is
    published with the advice; `with_sensitivity` adds what would reverse it, for about 25 ms. `now` is timezone-aware.
    Bad states of the world come back as a `Refusal`; a `ValueError` is the caller's bug.
    """
    rule = scaled_to_zero(history, profile, previous, patience_seconds=_patience_seconds(profile))
    if rule is not None and profile.capacity is None and previous is not None:
        profile = replace(profile, capacity=previous.capacity)  # known a month ago is better than left waiting
    facts = read_facts(history, profile, settings, now=now, at_zero=rule is not None)
    if isinstance(facts, Refusal):
        return facts
    record = track_record or TrackRecord()
    if rule is not None:
        scene = _scene(history, facts, previous, profile, settings, now=now)
        grounds = Grounds(
            history=history, forecast=forecast, facts=facts, scene=scene, previous=previous, record=record
        )
        return _at_zero(grounds, rule)
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
    grounds = Grounds(history=history, forecast=forecast, facts=facts, scene=scene, previous=previous, record=record)
    if learned is None:
        learned = day_one(settings, facts.capacity)
    resting = _to_zero(grounds) if fallback_replicas is None else None
    return resting or _planned(
        _evaluated(grounds, forecast, finding, learned=learned, with_sensitivity=with_sensitivity), fallback_replicas
    )


def _planned(case: Case, fallback_replicas: int | None) -> Recommendation:
    """The best plan, or what the fallback policy wants in its place, as far as guards and owner let it pass."""
    proposal = pass_guards(_proposed(case.best, case.scene), case.scene)
    if fallback_replicas is not None:
        proposal = follow_fallback(proposal, case.scene, fallback_replicas)
    return compose(pass_guards(proposal, case.scene, OWNERS_WORD), case)


def _evaluated(
    grounds: Grounds, forecast: Forecast, finding: Finding | None, *, learned: Learned, with_sensitivity: bool
) -> Case:
    """What every plan costs in the scene, and which is the best."""
    history, facts, scene = grounds.history, grounds.facts, grounds.scene
    prices = replace(scene.settings.prices(facts.capacity.p50), price_per_move=learned.risk)
    situation = replace(situation_of(scene, forecast, prices, learned), quiet_seconds=quiet_seconds(history))
    found = evaluate_plans(situation, uncertainty_of(scene, forecast, ceiling=highest_believed(history)))
    return Case(
        history=history,
        forecast=forecast,
        facts=facts,
        scene=scene,
        situation=situation,
        learned=learned,
        found=found,
        best=found.best(),
        previous=grounds.previous,
        finding=finding,
        track_record=grounds.record,
        with_sensitivity=with_sensitivity,
    )


# Whoever wants the move, the plan or the fallback policy; the minimum is that of a group that is not at 0.
OWNERS_TIMES = (keep_the_pace, keep_to_windows)
OWNERS_WORD = (*OWNERS_TIMES, keep_the_minimum)


def _at_zero(grounds: Grounds, rule: ScaleToZero) -> Recommendation:
    """What is advised to a group without members: to stay so, or how many replicas to start."""
    scene, previous = grounds.scene, grounds.previous
    if previous is not None and _under_way(previous, grounds.facts, scene.profile, now=scene.now):
        return _still_under_way(previous, grounds.facts, scene.settings, now=scene.now)
    return compose_zero(pass_guards(wanted_at_zero(grounds, rule), scene, (*GUARDS, *OWNERS_TIMES)), grounds)


def _to_zero(grounds: Grounds) -> Recommendation | None:
    """The move to 0, where the owner allows it, nothing comes and no guard holds it back."""
    wanted = to_zero(grounds)
    if wanted is None:
        return None
    proposal = pass_guards(wanted, grounds.scene, (*GUARDS, *OWNERS_TIMES))
    return compose_zero(proposal, grounds) if proposal.target == 0 else None


def _bounded(profile: GroupProfile, finding: Finding) -> GroupProfile:
    """Plans go no further up than helps; the configured minimum stays."""
    most = min(profile.replica_ceiling, finding.most_replicas)
    return replace(profile, max_replicas=Replicas(max(most, profile.min_replicas)))


def day_one(settings: DecisionSettings, capacity: Capacity) -> Learned:
    """What is believed of a group's moves before any was seen."""
    return Learned.assumed(
        rebalance_pause_seconds=settings.rebalance_pause_prior_seconds,
        risk=settings.prices(capacity.p50).price_per_move,
    )


def _under_way(previous: Recommendation, facts: Facts, profile: GroupProfile, *, now: datetime) -> bool:
    """Whether the previous move was due, has not shown in the members yet, and may still be starting."""
    if previous.action == "hold" or previous.execute_at > now or facts.replicas == previous.desired_replicas:
        return False
    (carried,) = carried_by_count(profile, (previous.desired_replicas,), capacity=facts.capacity.p50)
    if facts.produce_messages_per_second > carried:
        return False  # even what is on its way will not do
    return now < previous.execute_at + timedelta(seconds=_patience_seconds(profile))


def _patience_seconds(profile: GroupProfile) -> float:
    """Start-up times differ between pods: the last of several is ready about twice the mean after the command."""
    return 2 * profile.start_up_seconds + profile.termination_grace_seconds


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
        last_move_at=last_move_at(history, previous, now=now),
        moved_at=moves_of_the_hour(history, patience_seconds=_patience_seconds(profile)),
        profile=profile,
        settings=settings,
    )


def _proposed(best: PlannedMove | None, scene: Scene) -> Proposal:
    if best is None:
        return Proposal(target=scene.replicas, command_at=scene.now)
    command_at = scene.now + timedelta(seconds=best.command_step * STEP_SECONDS)
    return Proposal(target=best.target, command_at=command_at)
