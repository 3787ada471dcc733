"""What the rows of a group tell of its profile."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cost_model.physics.detected import ObservedGroup, ObservedStreams, observed_in
from forecasting.history import GroupInterval
from forecasting.units import Partitions, Seconds

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
    ("clients", "client"),
    [
        ("java", "java"),
        ("librdkafka", "librdkafka"),
        ("kafka-python", "kafka-python"),
        ("unknown", None),
        ("librdkafka,unknown", None),
        ("java,librdkafka", "other"),
        (None, None),
    ],
)
def test_the_client_is_the_library_that_client_ids_name(clients: str | None, client: str | None) -> None:
    """Where an application has chosen the ids the library is unknown, and several libraries are none of them."""
    assert observed_in([a_row(clients=clients, group_assignor="range")]).client == client


def test_ids_that_no_longer_name_a_library_leave_it_unknown() -> None:
    """Another library may have taken their place; while a rebalance lasts, what was known stays."""
    named = a_row(clients="librdkafka", group_assignor="range")
    rebalancing, renamed = a_row(clients="unknown"), a_row(clients="unknown", group_assignor="range")
    assert observed_in([named, rebalancing]).client == "librdkafka"
    assert observed_in([named, rebalancing, renamed]).client is None


def _streams(**told: object) -> GroupInterval:
    return a_row(group_protocol="classic", group_assignor="stream", clients="java", streams=json.dumps(told))


def test_a_streams_application_is_seen_by_its_assignor() -> None:
    """Figures that are not told stay unknown, and a group with another assignor is none any longer."""
    silent = a_row(group_protocol="classic", group_assignor="stream")
    told = _streams(tasks=10, stateful=True, standbys=1, restore_bytes=5_000)
    assert observed_in([silent]).streams == ObservedStreams()
    assert observed_in([silent, told]).streams == ObservedStreams(
        tasks=10, stateful=True, standbys=1, restore_bytes=5_000
    )
    assert observed_in([told, silent]) == observed_in([told])
    assert observed_in([told, a_row(clients="java")]) == observed_in([told])
    assert observed_in([told, a_row(group_assignor="range", clients="java")]).streams is None


def test_state_that_grows_by_less_than_a_tenth_is_the_same() -> None:
    """Each other figure would begin the session of the group anew, and a changelog grows all the time."""
    rows = [_streams(restore_bytes=size) for size in (1_000, 1_090, 1_110, 1_150, 900)]
    seen = [observed_in(rows[: count + 1]).streams for count in range(len(rows))]
    assert [streams.restore_bytes for streams in seen if streams] == [1_000, 1_000, 1_110, 1_110, 900]


def test_the_fastest_restore_that_was_seen_is_what_a_replica_can_do() -> None:
    """A slower one waited for something else, and a little faster is as fast; Prometheus tells of no assignor."""
    rates = (None, 40e6, 10e6, 43e6, None, 45e6)
    rows = [
        a_row() if rate is None else a_row(streams=json.dumps({"restore_bytes_per_second": rate})) for rate in rates
    ]
    seen = [observed_in(rows[: count + 1]).streams for count in range(len(rows))]
    assert seen[0] is None
    assert [streams.restore_bytes_per_second for streams in seen if streams] == [40e6, 40e6, 40e6, 40e6, 45e6]


def test_a_commit_interval_that_differs_by_less_than_a_third_is_the_same() -> None:
    """Kafka Streams has it among its own figures, beside those of its consumers."""
    rows = [a_row(commit_interval_seconds=seconds) for seconds in (None, 5.0, 6.0, None, 30.0)]
    seen = [observed_in(rows[: count + 1]).commit_interval_seconds for count in range(len(rows))]
    assert seen == [None, 5.0, 5.0, 5.0, 30.0]
    application = replace(_streams(tasks=8), commit_interval_seconds=30.0)
    assert observed_in([application]).streams == ObservedStreams(tasks=8, commit_interval_seconds=Seconds(30.0))


def test_timeouts_of_members_are_those_that_kafka_told_last() -> None:
    """A deploy changes them; while a rebalance lasts, or the right is gone, the last ones stay."""
    rows = [
        a_row(minute=minute, clients="java", group_protocol="consumer", **told)
        for minute, told in enumerate(
            (
                {"session_timeout_seconds": 45.0, "rebalance_timeout_seconds": 300.0},
                {},
                {"session_timeout_seconds": 6.0, "consumer_heartbeat_seconds": 5.0},
            )
        )
    ]
    seen = [observed_in(rows[: count + 1]) for count in range(len(rows))]
    assert [each.session_timeout_seconds for each in seen] == [45.0, 45.0, 6.0]
    assert [each.max_poll_interval_seconds for each in seen] == [300.0, 300.0, 300.0]
    assert [each.consumer_heartbeat_seconds for each in seen] == [None, None, 5.0]


@pytest.mark.parametrize(
    ("clients", "interval"),
    [
        ("java", 60.0),
        ("librdkafka", 60.0),
        ("kafka-python", 60.0),
        ("sarama", None),
        ("franz-go", None),
        ("java,sarama", None),
    ],
)
def test_a_rebalance_timeout_is_the_poll_interval_of_those_that_tell_it(clients: str, interval: float | None) -> None:
    """Sarama and franz-go have one for rebalances alone: a slow batch of theirs throws nobody out."""
    row = a_row(clients=clients, group_assignor="range", group_protocol="classic", rebalance_timeout_seconds=60.0)
    assert observed_in([row]).max_poll_interval_seconds == interval


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
    eager = a_row(group_protocol="classic", group_assignor="range", static_members=0, clients="librdkafka")
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
