"""Timeouts of members on a real broker: of each protocol, after a deploy, and as a group's own setting."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # documented, not in __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from collector.kafka_admin import KafkaAdminCollector
from collector.timeouts import REFRESH
from tests.live.harness.clients import NOON, fresh_name, has_members, member, produce, read_until

pytestmark = pytest.mark.kafka

NEWER = {"group.protocol": "consumer"}
# A round reads for two seconds, on a machine where everything else runs too.
MOST_TRIES = 30


def older(session_seconds: float, poll_seconds: float) -> dict[str, str]:
    """Settings of a member of the classic protocol."""
    return {
        "session.timeout.ms": f"{1000 * session_seconds:.0f}",
        "max.poll.interval.ms": f"{1000 * poll_seconds:.0f}",
    }


def timeouts_of(collector: KafkaAdminCollector, group: str, *, minutes: float = 0.0) -> tuple[float | None, ...]:
    rows = collector.collect([group], now=NOON + REFRESH * minutes / 5.0).samples
    ((*figures,),) = {
        (row.session_timeout_seconds, row.rebalance_timeout_seconds, row.consumer_heartbeat_seconds) for row in rows
    }
    return tuple(figures)


def minutes_until_known(collector: KafkaAdminCollector, group: str) -> float:
    """The minutes after noon by which the members' record is read; a broker that was silent is asked 5 min later."""
    for tries in range(MOST_TRIES):
        if timeouts_of(collector, group, minutes=5.0 * tries)[1] is not None:
            return 5.0 * tries
    pytest.fail(f"the record is not read after {MOST_TRIES} rounds")


def known_timeouts(collector: KafkaAdminCollector, group: str) -> tuple[float | None, ...]:
    """The timeouts of the group, once the record of its members is read."""
    return timeouts_of(collector, group, minutes=minutes_until_known(collector, group))


def test_a_deploy_changes_the_timeouts_of_a_classic_group(
    bootstrap: str, collector: KafkaAdminCollector, topic: str
) -> None:
    """Both members have other settings afterwards; while both deploys run side by side the longest counts."""
    produce(bootstrap, topic, {0: 1})
    group = fresh_name("orders")
    with ExitStack() as before, ExitStack() as after:
        for _ in range(2):
            before.enter_context(member(bootstrap, group, topic, **older(30.0, 120.0)))
        read_until(collector, group, has_members(2))
        assert known_timeouts(collector, group) == (30.0, 120.0, None)
        after.enter_context(member(bootstrap, group, topic, **older(8.0, 240.0)))
        read_until(collector, group, has_members(3))
        assert known_timeouts(collector, group) == (30.0, 240.0, None)
        before.close()
        read_until(collector, group, has_members(1))
        assert known_timeouts(collector, group) == (8.0, 240.0, None)


def test_java_writes_its_timeouts_in_the_same_record(
    bootstrap: str,
    collector: KafkaAdminCollector,
    topic: str,
    java_client: Callable[..., AbstractContextManager[None]],
) -> None:
    """The defaults of its consumer."""
    group = fresh_name("java")
    with java_client("SlowMember", bootstrap, group, topic):
        read_until(collector, group, has_members(1))
        assert known_timeouts(collector, group) == (45.0, 300.0, None)


def test_a_group_of_the_newer_protocol_has_a_session_of_its_own(
    bootstrap: str, collector: KafkaAdminCollector, topic: str
) -> None:
    """The broker's defaults, then the group's setting: seen after five minutes without a change of members."""
    produce(bootstrap, topic, {0: 1})
    group = fresh_name("newer")
    settings = {**NEWER, "max.poll.interval.ms": "120000"}
    with member(bootstrap, group, topic, **settings), member(bootstrap, group, topic, **NEWER):
        read_until(collector, group, has_members(2))
        known_at = minutes_until_known(collector, group)
        assert timeouts_of(collector, group, minutes=known_at) == (45.0, 300.0, 5.0)
        set_of_group(bootstrap, group, "consumer.session.timeout.ms", "60000")
        assert timeouts_of(collector, group, minutes=known_at + 4.9)[0] == 45.0
        assert timeouts_of(collector, group, minutes=known_at + 5.0) == (60.0, 300.0, 5.0)


def set_of_group(bootstrap: str, group: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result()
