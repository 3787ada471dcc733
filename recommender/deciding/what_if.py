"""What-if: the same decision once more, with other prices, bounds or beliefs. Pure; nothing is learned or kept."""

from dataclasses import dataclass, fields, replace

from cost_model.physics.learned import Learned, LogBelief
from cost_model.physics.profile import Capacity, GroupProfile
from cost_model.pricing.presets import Policy
from forecasting.units import MessagesPerSecond, Replicas
from recommender.deciding.context import day_one
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.inputs import DecisionInputs
from recommender.deciding.recommendation import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is to be different, by the names and in the units of the settings; None: as it is.

    `rebalance_pause_seconds` is believed of moves in both directions, in place of what was learned; like that, it is
    not less than what the group's protocol and polls take.
    """

    policy: Policy | None = None
    price_per_replica_hour: float | None = None
    price_per_late_message: float | None = None
    price_per_duplicate_message: float | None = None
    price_per_move: float | None = None
    price_per_restored_gigabyte: float | None = None
    risk_weight: float | None = None
    max_lag_seconds: float | None = None
    target_utilization: float | None = None
    capacity_messages_per_second_per_replica: float | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    rebalance_pause_seconds: float | None = None


_OF_DECISIONS = {field.name for field in fields(DecisionSettings)} & {field.name for field in fields(Changes)}


def changed(inputs: DecisionInputs, changes: Changes) -> DecisionInputs:
    """The inputs with these changes, the priors of beliefs included, which follow from prices and capacity.

    What has happened stays as it is: the previous advice, the fallback policy in force, the moves that were graded.
    """
    asked = {field.name: getattr(changes, field.name) for field in fields(Changes)}
    settings = replace(inputs.settings, **{name: asked[name] for name in _OF_DECISIONS if asked[name] is not None})
    profile = _profile(inputs.profile, changes)
    learned = inputs.learned
    if learned is not None and inputs.profile.capacity is not None and profile.capacity is not None:
        before, after = (inputs.settings, inputs.profile.capacity), (settings, profile.capacity)
        learned = _priced(_utilized(learned, inputs.settings, settings), before=before, after=after)
    if learned is not None and changes.rebalance_pause_seconds is not None:
        pause = LogBelief.around(changes.rebalance_pause_seconds)
        learned = replace(learned, pause_scale_out=pause, pause_scale_in=pause)
    return replace(inputs, settings=settings, profile=profile, learned=learned)


def what_if(inputs: DecisionInputs) -> Decision:
    """The decision from these inputs, without what would reverse it: that is kept with the decision in force."""
    return inputs.decide()


def _profile(profile: GroupProfile, changes: Changes) -> GroupProfile:
    rate = changes.capacity_messages_per_second_per_replica
    if rate is not None:
        each = MessagesPerSecond(rate)
        profile = replace(profile, capacity=Capacity(p20=each, p50=each, p90=each, source="configured"))
    if changes.min_replicas is not None:
        profile = replace(profile, min_replicas=Replicas(changes.min_replicas))
    if changes.max_replicas is not None:
        profile = replace(profile, max_replicas=Replicas(changes.max_replicas))
    return profile


def _utilized(learned: Learned, before: DecisionSettings, after: DecisionSettings) -> Learned:
    """Quiet minutes bound the target utilization where they have lowered it; else the setting alone does."""
    known = learned.target_utilization
    if known is None:
        return learned
    lowered = known if known < before.target_utilization else after.target_utilization
    return replace(learned, target_utilization=min(lowered, after.target_utilization))


def _priced(
    learned: Learned, *, before: tuple[DecisionSettings, Capacity], after: tuple[DecisionSettings, Capacity]
) -> Learned:
    """The risk of a move at other prices: the prior is theirs, and the lateness of graded moves is priced by them."""
    late_before, late_after = (
        settings.prices(capacity.p50).price_per_late_message for settings, capacity in (before, after)
    )
    # Lateness that had no price was not recorded.
    factor = late_after / late_before if late_before > 0.0 else 1.0
    return replace(
        learned,
        risk_prior=day_one(*after).risk_prior,
        risk_excess=factor * learned.risk_excess,
    )
