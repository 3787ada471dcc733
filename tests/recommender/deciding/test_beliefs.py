"""Beliefs about a group and the effects of its moves, in sentences that carry their figures."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from cost_model.physics.profile import Capacity
from forecasting.units import MessagesPerSecond, Seconds
from recommender.deciding.beliefs import beliefs, outcome_sentence
from recommender.deciding.recommendation import GradedMove, LearnedMoves, Recommendation

MakeAdvice = Callable[..., Recommendation]
MakeMove = Callable[..., GradedMove]
ASSUMED = LearnedMoves(
    rebalance_pause_scale_out_seconds=12.0,
    rebalance_pause_scale_in_seconds=12.0,
    move_risk=0.1,
    moves=0,
    source="assumed",
    target_utilization=0.95,
    target_utilization_set=0.95,
    start_up_seconds=30.0,
)


def test_on_the_first_day_everything_is_assumed_and_says_so(advice: MakeAdvice) -> None:
    """Each quantity has its figure and its source; nothing is called measured."""
    assert beliefs(advice(learned=ASSUMED)) == (
        "A move stops what it moves 12.0 s going up and 12.0 s going down (assumed, 0 moves seen; measured from 3 on).",
        "Added replicas are expected 30 s after the command, as set (none was seen yet).",
        "The risk of a move is priced at 0.100 USD (assumed, 0 moves seen; measured from 3 on).",
        "Plans fill replicas to 95% of their capacity (assumed, as set; no quiet minute contradicts it).",
        "One replica consumes 4,100/s (p20 3,900, p90 4,350; as set).",
    )


def test_what_was_measured_says_from_how_many_moves_and_how_old_it_is(advice: MakeAdvice) -> None:
    """After four moves, and with a capacity that was seen 90 minutes ago, all five quantities are measured."""
    learned = replace(
        ASSUMED,
        rebalance_pause_scale_out_seconds=3.4,
        rebalance_pause_scale_in_seconds=5.1,
        moves=4,
        source="measured",
        target_utilization=0.84,
        start_up_seen_seconds=45.2,
    )
    seen = Capacity(
        p20=MessagesPerSecond(3_900.0),
        p50=MessagesPerSecond(4_100.0),
        p90=MessagesPerSecond(4_350.0),
        source="saturated_windows",
        age_seconds=Seconds(5_400.0),
    )
    assert beliefs(advice(learned=learned, capacity=seen)) == (
        "A move stops what it moves 3.4 s going up and 5.1 s going down (measured, 4 moves).",
        "Added replicas are expected 30 s after the command, as set (45 s measured).",
        "The risk of a move is priced at 0.100 USD (measured, 4 moves).",
        "Plans fill replicas to 84% of their capacity (measured: at 95%, as set, a backlog grew in quiet minutes).",
        "One replica consumes 4,100/s (p20 3,900, p90 4,350; measured at the group's limit, 90 min old).",
    )


def test_a_capacity_that_was_never_reached_is_told_as_a_step_beyond_what_was_shown(advice: MakeAdvice) -> None:
    """Nobody takes it for a measurement."""
    beyond = Capacity(
        p20=MessagesPerSecond(1_060.0),
        p50=MessagesPerSecond(1_150.0),
        p90=MessagesPerSecond(1_322.5),
        source="unsaturated_windows",
        age_seconds=Seconds(0.0),
    )
    (told,) = beliefs(advice(capacity=beyond))
    assert told == (
        "One replica consumes 1,150/s "
        "(p20 1,060, p90 1,322; never seen at its limit: assumed a step above its highest rate, 0 min old)."
    )


def test_advice_from_before_it_said_so_claims_nothing(advice: MakeAdvice) -> None:
    """Facts that earlier advice did not record are left out instead of being guessed."""
    assert len(beliefs(advice())) == 1
    first = replace(ASSUMED, target_utilization_set=None, start_up_seconds=None)
    assert "Plans fill replicas to 95% of their capacity." in beliefs(advice(learned=first))
    assert len(beliefs(advice(learned=first))) == 4


def test_a_move_is_told_beside_what_was_expected_of_it(graded_move: MakeMove) -> None:
    """Stop, late messages and start-up as they were, and what the advice had said."""
    assert outcome_sentence(graded_move()) == (
        "6 -> 8 as advised: stopped 3.4 s (expected 12.0), 0 messages late (expected 18,400), ready after 45 s; "
        "it was to save 0.890 USD."
    )


@pytest.mark.parametrize(
    ("ungraceful", "how"), [(None, ""), (True, ", left ungracefully"), (False, ", left gracefully")]
)
def test_a_move_by_somebody_else_is_not_measured_against_a_promise(
    graded_move: MakeMove, how: str, *, ungraceful: bool | None
) -> None:
    """Nothing was expected of it, so only what it did is told, and how its leavers went where that was seen."""
    own = replace(graded_move().outcome, from_replicas=8, to_replicas=6, advised_as=None, start_up_seconds=None)
    move = graded_move(outcome=replace(own, ungraceful=ungraceful), promised=None)
    assert outcome_sentence(move) == f"8 -> 6, not by our advice: stopped 3.4 s, 0 messages late{how}."


def test_what_a_jump_of_the_load_hides_is_said_to_be_unknown(graded_move: MakeMove) -> None:
    """No figure stands for what nobody could tell; what was expected is still told."""
    move = graded_move(outcome=replace(graded_move().outcome, late_messages=None))
    assert "late messages unknown because the produce rate jumped (expected 18,400)" in outcome_sentence(move)
