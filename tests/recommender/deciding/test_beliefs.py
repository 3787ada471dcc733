"""Beliefs about a group and the effects of its moves, in sentences that carry their figures."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from cost_model.physics.pods import PodStartUp
from cost_model.physics.profile import Capacity
from forecasting.units import MessagesPerSecond, Seconds
from recommender.deciding.beliefs import beliefs, ledger_sentence, outcome_sentence, reversals
from recommender.deciding.recommendation import (
    ForecastValue,
    GradedMove,
    LearnedMoves,
    LedgerStanding,
    ProfileFigure,
    Recommendation,
    TurningPoint,
)

MakeAdvice = Callable[..., Recommendation]
MakeMove = Callable[..., GradedMove]
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
PODS = PodStartUp(
    start_up_seconds=Seconds(150.0),
    pods=7,
    newest_at=NOON,
    node_wait_seconds=Seconds(2.0),
    container_start_seconds=Seconds(95.0),
    joining_seconds=Seconds(53.0),
)
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


def test_on_the_first_day_every_quantity_is_marked_as_assumed(advice: MakeAdvice) -> None:
    """Each quantity has its figure and its source; none is called measured."""
    assert beliefs(advice(learned=ASSUMED)) == (
        "A move stops what it moves 12.0 s going up and 12.0 s going down (assumed, 0 moves seen; measured from 3 on).",
        "Added replicas are expected 30 s after the command (as set; none was measured yet).",
        "The risk of a move is priced at 0.100 USD (assumed, 0 moves seen; measured from 3 on).",
        "Plans fill replicas to 95% of their capacity (assumed, as set; no quiet minute contradicts it).",
        "One replica consumes 4,100/s (p20 3,900, p90 4,350; as set).",
    )


def test_a_measured_quantity_has_its_number_of_moves_and_its_age(advice: MakeAdvice) -> None:
    """After four moves, and with a capacity that was measured 90 minutes ago, all five quantities are measured."""
    learned = replace(
        ASSUMED,
        rebalance_pause_scale_out_seconds=3.4,
        rebalance_pause_scale_in_seconds=5.1,
        moves=4,
        source="measured",
        target_utilization=0.84,
        start_up_seconds=45.0,
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
        "Added replicas are expected 45 s after the command (measured).",
        "The risk of a move is priced at 0.100 USD (measured, 4 moves).",
        "Plans fill replicas to 84% of their capacity (measured: at 95%, as set, a backlog grew in quiet minutes).",
        "One replica consumes 4,100/s (p20 3,900, p90 4,350; measured at the group's limit, 90 min old).",
    )


def test_a_capacity_that_was_never_reached_is_stated_as_a_step_beyond_the_highest_measured_rate(
    advice: MakeAdvice,
) -> None:
    """The sentence does not call it measured."""
    beyond = Capacity(
        p20=MessagesPerSecond(1_060.0),
        p50=MessagesPerSecond(1_150.0),
        p90=MessagesPerSecond(1_322.5),
        source="unsaturated_windows",
        age_seconds=Seconds(0.0),
    )
    (sentence,) = beliefs(advice(capacity=beyond))
    assert sentence == (
        "One replica consumes 1,150/s "
        "(p20 1,060, p90 1,322; never seen at its limit: assumed a step above its highest rate, 0 min old)."
    )


COSTS = "with the forecast they have cost 1.250 USD, without it 1.500 (hours count half with each six hours from now)"


@pytest.mark.parametrize(
    ("proven", "used", "sentence"),
    [
        (True, True, f"Plans use the forecast: {COSTS}."),
        (True, False, f"Plans take the produce rate to stay as it is: {COSTS}."),
        (False, False, "Plans take the produce rate to stay as it is: no forecast has beaten that out of sample yet."),
    ],
)
def test_c17_what_a_forecast_is_worth_is_stated(
    advice: MakeAdvice,
    proven: bool,  # noqa: FBT001  # a case of the table
    used: bool,  # noqa: FBT001  # the same
    sentence: str,
) -> None:
    """What plans have cost with it and without, and which of them are used; costs are no reason before it is proven."""
    value = ForecastValue(
        cost_with_forecast=1.25, cost_without_forecast=1.5, forecast_proven=proven, forecast_used=used
    )
    assert beliefs(advice(forecast=replace(advice().forecast, value=value)))[-1] == sentence


def test_each_figure_of_the_profile_is_stated_with_its_source(advice: MakeAdvice) -> None:
    """What is set, what Kafka tells, what was measured and what is assumed are a sentence each."""
    figures = (
        ProfileFigure(name="protocol", value="cooperative", source="detected"),
        ProfileFigure(name="client", value="java", source="assumed"),
        ProfileFigure(name="static_membership", value=False, source="detected"),
        ProfileFigure(name="session_timeout_seconds", value=45.0, source="configured"),
        ProfileFigure(name="start_up_seconds", value=90.0, source="measured"),
        ProfileFigure(name="restore_bytes_per_second", value=6e7, source="measured"),
    )
    assert beliefs(advice(profile=figures))[1:] == (
        "As set: session_timeout_seconds 45.",
        "Seen in Kafka: protocol cooperative, static_membership false.",
        "Measured while it restored: restore_bytes_per_second 6e+07.",
        "Assumed: client java.",
    )


def test_without_a_price_it_is_stated_that_costs_are_no_money(advice: MakeAdvice) -> None:
    """Where a price is set nothing needs to be said."""
    sentence = "No price of a replica-hour is known: costs are in pod-hours, not in money."
    assert sentence in beliefs(advice(currency="pod-hours"))
    assert sentence in beliefs(advice(currency="pod-hours", learned=ASSUMED))
    assert sentence not in beliefs(advice(learned=ASSUMED))


def test_what_the_cluster_shows_is_stated_with_its_instant(advice: MakeAdvice) -> None:
    """Bounds and grace period are a sentence of their own; the start-up time of pods has its parts, count and age."""
    figures = (
        ProfileFigure(name="protocol", value="eager", source="detected"),
        ProfileFigure(name="start_up_seconds", value=150.0, source="detected", seen_at=NOON),
        ProfileFigure(name="termination_grace_seconds", value=90.0, source="detected", seen_at=NOON),
        ProfileFigure(name="max_replicas", value=20.0, source="detected", seen_at=NOON),
    )
    learned = replace(ASSUMED, start_up_seconds=150.0, start_up_source="detected", pod_start_up=PODS)
    known = beliefs(advice(profile=figures, learned=learned))
    assert known[1] == (
        "Added replicas are expected 150 s after the command (four of five of 7 pods took up to 150 s: 2 s for a node, "
        "95 s for image and containers, 53 s to be ready and join; the newest at 2026-01-05 12:00Z)."
    )
    assert known[-2:] == (
        "Seen in Kafka: protocol eager.",
        "Seen in the cluster at 12:00:00Z: termination_grace_seconds 90, max_replicas 20.",
    )


def test_a_start_up_time_that_is_set_stands_beside_what_was_seen(advice: MakeAdvice) -> None:
    """The owner sees that moves and pods have shown another one."""
    learned = replace(
        ASSUMED, start_up_seen_seconds=95.0, start_up_source="assumed", pod_start_up=replace(PODS, pods=1)
    )
    assert beliefs(advice(learned=learned))[1] == (
        "Added replicas are expected 30 s after the command (as set; 95 s in graded moves). Its pods show: 1 pod took "
        "up to 150 s: 2 s for a node, 95 s for image and containers, 53 s to be ready and join; the newest at "
        "2026-01-05 12:00Z."
    )


@pytest.mark.parametrize(
    ("client", "source", "sentence"),
    [
        ("java", "detected", None),
        ("librdkafka", "configured", None),
        ("franz-go", "detected", "How fast franz-go answers a rebalance has not been measured"),
        ("other", "assumed", "The client library is not known, because client ids and assignor name none"),
        ("other", "detected", "The members use several client libraries, or one that is not known here"),
    ],
)
def test_b24_a_client_that_was_not_measured_is_said_to_be_assumed(
    advice: MakeAdvice, client: str, source: Literal["configured", "detected", "assumed"], sentence: str | None
) -> None:
    """It is priced as one that answers at its next poll; of the two that were measured nothing needs to be said."""
    said = beliefs(advice(profile=(ProfileFigure(name="client", value=client, source=source),)))[2:]
    assumed = f"{sentence}: it is assumed to answer at its next poll, as Java does."
    assert said == (() if sentence is None else (assumed,))


def test_what_would_reverse_a_decision_is_a_sentence_a_quantity(advice: MakeAdvice) -> None:
    """Each has its figure now and the one from which on the decision is another; none is made up."""
    point = TurningPoint(quantity="rebalance_pause_seconds", present=12.0, turning=30.25)
    assert reversals(advice(sensitivity=(point,))) == (
        "Another decision from a rebalance pause of 30.2 s on, in place of 12.",
    )
    assert reversals(advice()) == ()


def test_advice_without_recorded_facts_states_none(advice: MakeAdvice) -> None:
    """Facts that earlier advice did not record are left out, not guessed."""
    assert len(beliefs(advice())) == 1
    first = replace(ASSUMED, target_utilization_set=None, start_up_seconds=None)
    assert "Plans fill replicas to 95% of their capacity." in beliefs(advice(learned=first))
    assert len(beliefs(advice(learned=first))) == 4


def test_a_move_is_reported_beside_its_expectation(graded_move: MakeMove) -> None:
    """The sentence has stop, late messages and start-up as they happened, and as the advice expected them."""
    assert outcome_sentence(graded_move()) == (
        "6 -> 8 as advised: stopped 3.4 s (expected 12.0), 0 messages late (expected 18,400), ready after 45 s; "
        "it was to save 0.890 USD."
    )


@pytest.mark.parametrize(
    ("ungraceful", "how"), [(None, ""), (True, ", left ungracefully"), (False, ", left gracefully")]
)
def test_a_move_by_another_actor_is_reported_without_an_expectation(
    graded_move: MakeMove, how: str, *, ungraceful: bool | None
) -> None:
    """Only its effects are reported, and how members left if that was observed."""
    own = replace(graded_move().outcome, from_replicas=8, to_replicas=6, advised_as=None, start_up_seconds=None)
    move = graded_move(outcome=replace(own, ungraceful=ungraceful), promised=None)
    assert outcome_sentence(move) == f"8 -> 6, not by our advice: stopped 3.4 s, 0 messages late{how}."


def test_a_quantity_that_a_jump_of_the_load_hides_is_reported_as_unknown(graded_move: MakeMove) -> None:
    """An unknown quantity has no figure; its expected value is still reported."""
    move = graded_move(outcome=replace(graded_move().outcome, late_messages=None))
    assert "late messages unknown because replicas were too few (expected 18,400)" in outcome_sentence(move)


def test_the_ledger_says_what_was_paid_and_what_others_would_have_cost(ledger: LedgerStanding) -> None:
    """Of KEDA and HPA the cheapest; one that the error hides is marked."""
    now = ledger.since_at + timedelta(hours=24)
    assert ledger_sentence(ledger, now=now) == (
        "In the last 24 h the group cost 7.50 USD; by simulation KEDA at 2,000 messages would have cost 9.25, "
        "HPA at 10,000 messages would have cost 31.00, all replicas would have cost 7.75 (too near to tell); "
        "the simulation of the group itself is off by 3%."
    )


def test_a_ledger_of_which_nothing_was_paid_has_no_error(ledger: LedgerStanding) -> None:
    """A group without replicas, of an hour."""
    unpaid = replace(ledger, error_ratio=None)
    assert "is off by" not in ledger_sentence(unpaid, now=ledger.since_at + timedelta(hours=1))


def test_a_price_from_nodes_has_a_sentence_with_its_age(advice: MakeAdvice) -> None:
    """It is no figure among those of the pods; one that was set needs no sentence."""
    figures = (
        ProfileFigure(name="price_per_replica_hour", value=0.028, source="detected", seen_at=NOON),
        ProfileFigure(name="termination_grace_seconds", value=90.0, source="detected", seen_at=NOON),
    )
    assert beliefs(advice(profile=figures))[1:] == (
        "A replica-hour costs 0.028 USD: what its pods request at the prices of their nodes, read 2026-01-05 12:00Z.",
        "Seen in the cluster at 12:00:00Z: termination_grace_seconds 90.",
    )
    as_set = ProfileFigure(name="price_per_replica_hour", value=0.04, source="configured")
    assert beliefs(advice(profile=(as_set,)))[1:] == ()
