"""Small groups at random, for laws of pricing and search: what differs from test to test is given by name."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from cost_model.physics.profile import Capacity, GroupProfile
from cost_model.pricing.price import Prices
from cost_model.pricing.situation import Situation
from forecasting.units import FloatArray, MessagesPerSecond, Partitions, Seconds

PRICES = (
    "price_per_replica_hour",
    "price_per_late_message",
    "price_per_duplicate_message",
    "price_per_held_message_second",
    "price_per_move",
)
PROTOCOLS = ("eager", "cooperative")


def small_group(
    draw: st.DrawFn, partitions: int, *, protocols: Sequence[str] = PROTOCOLS, **fields: object
) -> GroupProfile:
    """A group with 100 messages/s per replica and a start-up of 0 to 150 s."""
    rate = MessagesPerSecond(100.0)
    return GroupProfile(
        cluster="east",
        group="orders",
        partitions=Partitions(partitions),
        capacity=Capacity(p20=rate, p50=rate, p90=rate, source="configured"),
        protocol=draw(st.sampled_from(protocols)),
        start_up_seconds=Seconds(draw(st.sampled_from([0.0, 30.0, 150.0]))),
        **fields,  # type: ignore[arg-type]  # each value has its field's type
    )


def small_situation(
    draw: st.DrawFn,
    profile: GroupProfile,
    demand: FloatArray,
    *,
    late_prices: Sequence[float] = (0.0, 5e-6, 1e-4),
    move_prices: Sequence[float] = (0.0, 1e-3, 0.1),
    **fields: object,
) -> Situation:
    """That group in minutes of this demand, from idle to overloaded; messages that are held cost little or nothing."""
    return Situation(
        profile=profile,
        prices=Prices(
            currency="EUR",
            price_per_replica_hour=0.05,
            price_per_late_message=draw(st.sampled_from(late_prices)),
            price_per_duplicate_message=1e-6,
            price_per_held_message_second=draw(st.sampled_from([0.0, 1e-9])),
            price_per_move=draw(st.sampled_from(move_prices)),
        ),
        demand_messages_per_second=demand,
        step_seconds=60.0,
        replicas=draw(st.integers(1, profile.partitions + 3)),
        lag_messages=draw(st.sampled_from([0.0, 500.0, 1e5])),
        max_lag_seconds=draw(st.sampled_from([1.0, 10.0, 60.0])),
        rebalance_pause_prior_seconds=draw(st.sampled_from([None, 12.0])),
        **fields,  # type: ignore[arg-type]  # each value has its field's type
    )


def priced(situation: Situation, **prices: float) -> Situation:
    """The situation under other prices."""
    return replace(situation, prices=replace(situation.prices, **prices))  # type: ignore[arg-type]  # all are floats
