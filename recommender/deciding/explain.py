"""The sentences of a recommendation, written from the same figures that it publishes."""

from dataclasses import dataclass, replace

from cost_model.physics.profile import GroupProfile
from cost_model.physics.rebalance import MoveEffect, move_effect
from cost_model.search.remedies import remedies
from forecasting.units import Replicas
from recommender.deciding.context import NO_FORECAST
from recommender.deciding.recommendation import LearnedMoves, Recommendation

# The newer protocols wait for one batch in each of their steps. From 1 s on an eager stop becomes the shorter one.
LONG_BATCH_SECONDS = 1.0
# An eager assignor is mentioned where it would lose at most this share of the group's work.
WORTH_SAYING_SHARE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Saving of going down to `replicas` in a valley that is too short for it; prices in currency."""

    replicas: int
    saving_per_hour: float
    rebalance: float
    duplicates: float
    pays_after_seconds: float
    valley_seconds: float


def explain(advice: Recommendation, profile: GroupProfile, *, leaving: Leaving | None = None) -> tuple[str, ...]:
    """The produce rate, the group's capacity, the effects of moves on it, and the costs of staying and moving.

    One sentence each, then the changes that would make moves cheaper. `leaving` is given for a hold in a valley.
    """
    verdict = _verdict(advice) if leaving is None else _not_worth_leaving(advice, leaving)
    sentences = (_arrivals(advice), _carrying(advice), _stopping(advice, profile), verdict)
    return (*(sentence for sentence in sentences if sentence), *_cheaper_moves(advice, profile))


def _arrivals(advice: Recommendation) -> str:
    path = advice.forecast.p50
    if advice.forecast.model == NO_FORECAST:
        return (
            f"Produce rate: {advice.observed.produce_messages_per_second:,.0f}/s now, taken to stay as it is: there is "
            "no forecast of it."
        )
    peak = max(range(len(path)), key=path.__getitem__)
    minutes = (peak + 1) * advice.forecast.step_seconds // 60
    return (
        f"Produce rate: {advice.observed.produce_messages_per_second:,.0f}/s now, at most {path[peak]:,.0f}/s "
        f"expected, in {minutes} min (90 % band {advice.forecast.p05[peak]:,.0f}-{advice.forecast.p95[peak]:,.0f}/s; "
        f"{advice.forecast.history_tier} history tier)."
    )


def _carrying(advice: Recommendation) -> str:
    capacity = advice.capacity
    return (
        f"One replica consumes {capacity.p50:,.0f}/s (p20 {capacity.p20:,.0f}, {capacity.source}); "
        f"useful replica counts: {', '.join(str(count) for count in advice.useful_replicas)}."
    )


def _stopping(advice: Recommendation, profile: GroupProfile) -> str | None:
    learned = advice.learned
    if learned is None:
        return None
    up, down = f"{learned.rebalance_pause_scale_out_seconds:.1f}", f"{learned.rebalance_pause_scale_in_seconds:.1f}"
    if advice.action == "hold":
        seconds = f"{up} s" if up == down else f"{up} s going up and {down} s going down"
    elif learned.source != "measured":
        seconds = f"{advice.rebalance_impact.rebalance_pause_seconds:.1f} s"
    else:
        seconds = f"{up if advice.action == 'scale_out' else down} s"
    what = "the group" if profile.rebalances_as == "eager" else "the partitions that change owner"
    return f"A move stops {what} about {seconds} here ({_known_from(learned)})."


def _known_from(learned: LearnedMoves) -> str:
    if learned.source == "measured":
        return f"{learned.moves} seen"
    known_from = "assumed" if learned.source == "assumed" else f"as in {learned.similar_groups} similar groups"
    return f"{known_from}, {learned.moves} seen" if learned.moves else known_from


def _verdict(advice: Recommendation) -> str:
    money = advice.currency
    if advice.action == "hold":
        moves = [plan for plan in advice.alternatives if plan.execute_at is not None]
        if not moves:
            others = set(advice.useful_replicas) - {advice.current_replicas}
            why = "no plan with another count pays for a move" if others else "there is no other useful replica count"
            return f"Stay at {advice.current_replicas}: {why}."
        rival = moves[0]
        return (
            f"Stay at {advice.current_replicas}: {advice.stay.total:.3f} {money} over the horizon; "
            f"the best move, to {rival.desired_replicas}, costs {rival.cost.total:.3f}."
        )
    impact = advice.rebalance_impact
    instead = "" if advice.act_now is None else f", {advice.act_now.total:.3f} for moving at once"
    verdict = (
        f"Move to {advice.desired_replicas} at {advice.execute_at:%H:%M:%S}: {advice.chosen.total:.3f} {money} over "
        f"the horizon against {advice.stay.total:.3f} for staying{instead} "
        f"({impact.protocol_profile}; {impact.moved_partition_fraction:.0%} of the partitions change owner)."
    )
    if advice.break_even_seconds is None:
        return verdict
    return f"{verdict} It pays off after {advice.break_even_seconds / 60:.0f} min."


def _not_worth_leaving(advice: Recommendation, leaving: Leaving) -> str:
    return (
        f"Stay at {advice.current_replicas}: leaving {leaving.replicas} saves {leaving.saving_per_hour:.3f} "
        f"{advice.currency}/h, but the rebalance costs {leaving.rebalance:.3f} + {leaving.duplicates:.3f} duplicates; "
        f"pays off after {leaving.pays_after_seconds / 60:.0f} min, the valley lasts "
        f"{leaving.valley_seconds / 60:.0f} min."
    )


def _cheaper_moves(advice: Recommendation, profile: GroupProfile) -> tuple[str, ...]:
    """Settings that the owner could change: how members leave, and a protocol that waits for long batches."""
    found: tuple[str, ...] = ()
    if advice.action == "scale_in" and (profile.static_membership or profile.streams is not None):
        found = tuple(f"To make moves cheaper: {remedy.sentence}." for remedy in remedies(profile))
    return (*found, *_eager_instead(advice, profile))


def _eager_instead(advice: Recommendation, profile: GroupProfile) -> tuple[str, ...]:
    """A sentence on an eager assignor: one stop of all members, where at long batches newer protocols stop longer.

    Measured on Kafka 4.3 at batches of 2 s, 8 to 4 replicas, per partition of all: eager 2.4 s, cooperative 7.3 s.
    """
    asks_its_client = profile.rebalances_as != "eager" and profile.client != "librdkafka" and profile.streams is None
    if advice.action == "hold" or not asks_its_client or profile.poll_batch_seconds < LONG_BATCH_SECONDS:
        return ()
    now, then = (
        _effect(advice, shape).lost_partition_seconds / profile.partitions
        for shape in (profile, replace(profile, protocol="eager"))
    )
    if then > WORTH_SAYING_SHARE * now:
        return ()
    sentence = (
        f"With batches of {profile.poll_batch_seconds:.0f} s an eager assignor would stop less in this move: "
        f"{then:.1f} s for each partition of the group instead of {now:.1f} s, since each {profile.rebalances_as} "
        "step waits for a batch."
    )
    return (sentence,)


def _effect(advice: Recommendation, profile: GroupProfile) -> MoveEffect:
    before, after = Replicas(advice.current_replicas), Replicas(advice.desired_replicas)
    return move_effect(profile, from_replicas=before, to_replicas=after)
