"""What the rows of a group tell of its profile."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cost_model.physics.detected import ObservedGroup, observed_in
from forecasting.history import GroupInterval
from forecasting.units import Partitions

BEGAN_AT = datetime(2026, 1, 5, tzinfo=UTC)


def a_row(*, minute: int = 0, **told: object) -> GroupInterval:
    """A row of a group of six partitions and two members."""
    known: dict[str, object] = {"members": 2, "partitions": 6} | told
    return GroupInterval(
        cluster="c",
        group="g",
        topics="t",
        interval_end_at=BEGAN_AT + timedelta(minutes=minute),
        interval_seconds=15,
        produce_messages_per_second=1.0,
        consume_messages_per_second=1.0,
        lag_messages=0.0,
        lag_seconds=0.0,
        sampled_partitions=6,
        **known,  # type: ignore[arg-type]  # each value has its field's type
    )


@pytest.mark.parametrize(
    ("told", "protocol", "assignor"),
    [
        ({"group_protocol": "classic", "group_assignor": "range"}, "eager", "range"),
        ({"group_protocol": "classic", "group_assignor": "roundrobin"}, "eager", "roundrobin"),
        ({"group_protocol": "classic", "group_assignor": "sticky"}, "eager", "sticky"),
        ({"group_protocol": "classic", "group_assignor": "cooperative-sticky"}, "cooperative", None),
        ({"group_protocol": "consumer", "group_assignor": "uniform"}, "kip848", None),
        ({"group_protocol": "consumer", "group_assignor": "range"}, "kip848", "range"),
        ({"group_protocol": "classic", "group_assignor": "stream"}, "cooperative", None),
        ({"group_protocol": "classic", "group_assignor": "our-own"}, None, None),
        ({}, None, None),
    ],
)
def test_the_protocol_is_that_of_kafkas_own_words(
    told: dict[str, Any], protocol: str | None, assignor: str | None
) -> None:
    """An assignor of one's own may be eager or not: it tells nothing."""
    seen = observed_in([a_row(**told)])
    assert (seen.protocol, seen.assignor) == (protocol, assignor)


@pytest.mark.parametrize(
    ("client_id", "client"),
    [
        ("consumer-orders-1", "java"),
        ("orders-3f0c9d1e-StreamThread-1-consumer", "java"),
        ("rdkafka", "librdkafka"),
        ("kafka-python-2.2.3", None),
        ("orders-5f7d", None),
        (None, None),
    ],
)
def test_the_client_is_that_of_a_default_client_id(client_id: str | None, client: str | None) -> None:
    """Where an application has chosen the id, the library is unknown."""
    assert observed_in([a_row(client_id=client_id)]).client == client


def test_membership_is_static_where_one_member_is() -> None:
    """None of two, one of two, and a table from before the column."""
    assert [observed_in([a_row(static_members=known)]).static_membership for known in (0, 1, None)] == [
        False,
        True,
        None,
    ]


def test_an_empty_group_and_an_unread_one_tell_nothing() -> None:
    """Without members, or without the group's state, what was known stays."""
    known = a_row(group_protocol="classic", group_assignor="cooperative-sticky", static_members=1)
    silent = [a_row(minute=1, members=0, static_members=0), a_row(minute=2, members=None)]
    assert observed_in([known, *silent]) == observed_in([known])


def test_the_newest_row_wins_and_rows_go_on_from_what_is_known() -> None:
    """A group that was upgraded is cooperative from then on, in one reading and in two."""
    eager = a_row(group_protocol="classic", group_assignor="range", static_members=0, client_id="rdkafka")
    upgraded = replace(eager, group_assignor="cooperative-sticky", partitions=12)
    whole = observed_in([eager, upgraded])
    assert whole == observed_in([upgraded], before=observed_in([eager]))
    assert whole == ObservedGroup(
        partitions=Partitions(12),
        protocol="cooperative",
        assignor="range",
        static_membership=False,
        client="librdkafka",
    )
