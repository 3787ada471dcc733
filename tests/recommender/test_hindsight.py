"""The cheapest counts of a day, known afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.history import GroupInterval, History, HistoryBuffer
from forecasting.units import MessagesPerSecond, Partitions, Replicas
from recommender.deciding.recommendation import PolicyFigures, Recommendation
from recommender.hindsight import hindsight

MakeAdvice = Callable[..., Recommendation]
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HUNDRED = MessagesPerSecond(100.0)
PROFILE = GroupProfile(
    cluster="c",
    group="orders",
    partitions=Partitions(12),
    capacity=Capacity(p20=HUNDRED, p50=HUNDRED, p90=HUNDRED, source="configured"),
)


def prices(*, replica_hour: float = 1.0, move: float = 0.0) -> PolicyFigures:
    """The prices that count here."""
    return PolicyFigures(
        name="balanced",
        price_per_replica_hour=replica_hour,
        price_per_late_message=0.0,
        price_per_duplicate_message=0.0,
        price_per_move=move,
        risk_weight=0.0,
    )


def history_of(rates: Sequence[float | None]) -> History:
    """A minute of each rate from noon on."""
    buffer = HistoryBuffer("c", "orders")
    for minute, rate in enumerate(rates):
        buffer.append(
            GroupInterval(
                cluster="c",
                group="orders",
                topics="orders",
                interval_end_at=NOON + timedelta(minutes=minute + 1),
                interval_seconds=60,
                produce_messages_per_second=rate,
                consume_messages_per_second=rate,
                lag_messages=0.0,
                lag_seconds=None,
                partitions=12,
                sampled_partitions=12,
                members=8,
            )
        )
    history = buffer.history()
    assert history is not None
    return history


def counts(rates: Sequence[float | None], advice: Recommendation, profile: GroupProfile = PROFILE) -> list[int | None]:
    """The count of each minute from noon on, None where there is none."""
    found = hindsight(history_of(rates), profile, advice)
    assert len(found) <= len(rates)
    return [found.get(NOON + timedelta(minutes=minute + 1)) for minute in range(len(rates))]


def test_each_minute_has_the_fewest_useful_replicas_that_carry_it(advice: MakeAdvice) -> None:
    """Of 12 partitions 6 replicas have 2 each and carry 600/s: more than that takes 12, and 7 to 11 are no help.

    More than all carry takes all of them.
    """
    given = advice(policy=prices())
    assert counts([600.0, 601.0, 100.0, 0.0, 9000.0], given) == [6, 12, 1, 1, 12]
    bounded = replace(PROFILE, min_replicas=Replicas(2), max_replicas=Replicas(6))
    assert counts([600.0, 601.0, 100.0], given, bounded) == [6, 6, 2]
    # One partition has half of the load: two replicas with six partitions each carry 137/s, three with four 157.
    hot = replace(PROFILE, partition_weights=(11.0, *[1.0] * 11))
    assert counts([100.0, 150.0, 9000.0], given, hot) == [1, 3, 12]


def test_a_change_has_to_be_worth_its_price(advice: MakeAdvice) -> None:
    """Ten minutes of 6 replicas fewer save a replica-hour: dearer moves are not made, cheaper ones are."""
    rates = [1200.0, *[600.0] * 10, 1200.0]
    assert counts(rates, advice(policy=prices(move=0.49))) == [12, *[6] * 10, 12]
    assert counts(rates, advice(policy=prices(move=0.51))) == [12] * 12
    assert counts(rates, advice(policy=prices(replica_hour=2.0, move=0.98))) == [12, *[6] * 10, 12]


def test_what_is_not_known_is_left_out(advice: MakeAdvice) -> None:
    """A minute of unknown rate has no count; without capacity or price there is none at all."""
    given = advice(policy=prices())
    assert counts([600.0, None, 600.0], given) == [6, None, 6]
    assert counts([None], given) == [None]
    assert counts([600.0], advice(policy=None)) == [None]
    assert counts([600.0], advice(policy=prices(replica_hour=0.0))) == [None]
    assert counts([600.0], given, replace(PROFILE, capacity=None)) == [None]


@pytest.mark.parametrize("minutes", [1440, 3000])
def test_a_day_has_1440_minutes_at_most(advice: MakeAdvice, minutes: int) -> None:
    """As the page that shows it."""
    assert len(hindsight(history_of([600.0] * minutes), PROFILE, advice(policy=prices()))) == 1440
