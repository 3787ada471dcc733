"""The sentences on the assumed and measured figures that advice rests on, and on the group's graded moves."""

from cost_model.physics.learned import PRIOR_MOVES, MoveOutcome
from cost_model.physics.profile import Capacity
from forecasting.forecast import HistoryTier
from recommender.deciding.recommendation import GateStanding, GradedMove, LearnedMoves, Recommendation


def beliefs(advice: Recommendation) -> tuple[str, ...]:
    """The figures assumed or measured of the group, one sentence a quantity with its value and its source."""
    learned = advice.learned
    forecast = _forecast(advice.forecast.gate)
    if learned is None:
        return tuple(sentence for sentence in (_capacity(advice.capacity), forecast) if sentence)
    known = _known_from(learned)
    up, down = learned.rebalance_pause_scale_out_seconds, learned.rebalance_pause_scale_in_seconds
    sentences = (
        f"A move stops what it moves {up:.1f} s going up and {down:.1f} s going down ({known}).",
        _start_up(learned),
        f"The risk of a move is priced at {learned.move_risk:.3f} {advice.currency} ({known}).",
        _target_utilization(learned),
        _capacity(advice.capacity),
        forecast,
    )
    return tuple(sentence for sentence in sentences if sentence)


def _forecast(standing: GateStanding | None) -> str:
    """The cost of decisions with each forecast, and the history tier that is used as a result."""
    if standing is None:
        return ""
    used = (
        "The produce rate is assumed to stay constant"
        if standing.history_tier == "reactive"
        else f"The {standing.history_tier} forecast is used"
    )
    costs = ", ".join(f"{cost:.3f} {_from(history_tier)}" for history_tier, cost in standing.costs)
    return (
        f"{used}: in {standing.currency} each, {standing.decisions} decisions of the days before "
        f"{standing.reviewed_at:%Y-%m-%d %H:%M} would have cost {costs}."
    )


def _from(history_tier: HistoryTier) -> str:
    return "without a forecast" if history_tier == "reactive" else f"with the {history_tier} one"


def outcome_sentence(move: GradedMove) -> str:
    """One graded move: its measured effects, beside those that the advice expected."""
    outcome = move.outcome
    counts = f"{outcome.from_replicas} -> {outcome.to_replicas}"
    if outcome.advised_as is None:
        return f"{counts}, not by our advice: {_stopped(outcome)}, {_late(outcome)}{_how(move)}."
    did = (
        f"{_stopped(outcome)} (expected {outcome.expected_rebalance_pause_seconds:.1f}), "
        f"{_late(outcome)} (expected {outcome.expected_late_messages:,.0f})"
    )
    promised = move.promised
    to_save = f"; it was to save {promised.saving:.3f} {promised.currency}" if promised is not None else ""
    return f"{counts} as advised: {did}{_how(move)}{to_save}."


def _stopped(outcome: MoveOutcome) -> str:
    if outcome.rebalance_pause_seconds is None:
        return "stop unknown because replicas were too few"
    return f"stopped {outcome.rebalance_pause_seconds:.1f} s"


def _late(outcome: MoveOutcome) -> str:
    if outcome.late_messages is None:
        return "late messages unknown because replicas were too few"
    return f"{outcome.late_messages:,.0f} messages late"


def _how(move: GradedMove) -> str:
    seconds, ungraceful = move.outcome.start_up_seconds, move.outcome.ungraceful
    added = f", ready after {seconds:.0f} s" if seconds is not None else ""
    if ungraceful is None:
        return added
    return f"{added}, left {'ungracefully' if ungraceful else 'gracefully'}"


def _known_from(learned: LearnedMoves) -> str:
    moves = f"{learned.moves} move{'' if learned.moves == 1 else 's'}"
    if learned.source == "measured":
        return f"measured, {moves}"
    if learned.source == "similar_groups":
        return f"as in {learned.similar_groups} similar groups, {moves} seen; measured from {PRIOR_MOVES:.0f} on"
    return f"assumed, {moves} seen; measured from {PRIOR_MOVES:.0f} on"


def _start_up(learned: LearnedMoves) -> str | None:
    if learned.start_up_seconds is None:
        return None
    if learned.start_up_source == "similar_groups":
        known_from = f"as in {learned.similar_groups} similar groups; none was measured here yet"
    else:
        known_from = "as set; none was measured yet" if learned.start_up_seen_seconds is None else "measured"
    return f"Added replicas are expected {learned.start_up_seconds:.0f} s after the command ({known_from})."


def _target_utilization(learned: LearnedMoves) -> str:
    full = f"Plans fill replicas to {learned.target_utilization:.0%} of their capacity"
    if learned.target_utilization_set is None:
        return f"{full}."
    if learned.target_utilization < learned.target_utilization_set:
        return f"{full} (measured: at {learned.target_utilization_set:.0%}, as set, a backlog grew in quiet minutes)."
    return f"{full} (assumed, as set; no quiet minute contradicts it)."


def _capacity(capacity: Capacity) -> str:
    known = {
        "configured": "as set",
        "saturated_windows": "measured at the group's limit",
        "unsaturated_windows": "never seen at its limit: assumed a step above its highest rate",
    }[capacity.source]
    age = f", {capacity.age_seconds / 60:.0f} min old" if capacity.age_seconds is not None else ""
    band = f"p20 {capacity.p20:,.0f}, p90 {capacity.p90:,.0f}"
    return f"One replica consumes {capacity.p50:,.0f}/s ({band}; {known}{age})."
