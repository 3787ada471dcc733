"""Kafka Streams applications among the groups of a round."""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import KafkaError

from collector.errors import RejectedError
from collector.kafka_admin import KafkaAdminCollector
from collector.log_dirs import LogDirs
from collector.streams import REFRESH
from tests.collector.memory_cluster import COMMITS, ENDS, NOON, MemoryCluster, failure, group
from tests.collector.streams_members import MEMBERS

THREADS = ("shop-c4c3dc51-StreamThread-1-consumer", "shop-c4c3dc51-StreamThread-2-consumer")
SIZES = {("shop-last-changelog", 0): 600, ("shop-last-changelog", 1): 400}


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, int], int]:
    """The bytes that the only broker tells; without any, its user may not see them."""
    told = dict(SIZES)

    def bytes_of(_: LogDirs, partitions: Iterable[tuple[str, int]], host: str, port: int) -> dict[tuple[str, int], int]:
        assert (host, port) == ("broker-1", 9092)
        if not told:
            message = "grant this user Describe on Cluster"
            raise RejectedError(message)
        return {partition: told[partition] for partition in partitions if partition in told}

    monkeypatch.setattr(LogDirs, "bytes_of", bytes_of)
    return told


@pytest.fixture
def shop(cluster: MemoryCluster) -> MemoryCluster:
    """An application beside the plain group `orders`."""
    cluster.groups["shop"] = group(assignor="stream", client_ids=THREADS)
    cluster.commits["shop"] = COMMITS
    cluster.member_data["shop"] = MEMBERS
    cluster.every_topic = {"orders-in": 3, "shop-last-changelog": 2, "shop-again-repartition": 6, "other-changelog": 1}
    return cluster


def told(collector: KafkaAdminCollector, *, minutes: float = 0.0, name: str = "shop") -> dict[str, Any] | None:
    samples = collector.collect(["orders", "shop"], now=NOON + timedelta(minutes=minutes)).samples
    (words,) = {row.streams for row in samples if row.group == name}
    return None if words is None else json.loads(words)


def test_an_application_is_described_on_its_samples(
    collector: KafkaAdminCollector, shop: MemoryCluster, sizes: dict[tuple[str, int], int]
) -> None:
    """Tasks and standbys of its members, the bytes of its changelogs and of no other's; a plain group has none."""
    assert shop.ends == ENDS
    assert sizes == SIZES
    assert told(collector) == {"tasks": 10, "stateful": True, "standbys": 1, "restore_bytes": 1_000}
    assert told(collector, name="orders") is None


def test_what_changes_slowly_is_asked_for_every_few_minutes(
    collector: KafkaAdminCollector, shop: MemoryCluster, sizes: dict[tuple[str, int], int]
) -> None:
    """One request for members and one for topics, then none until they are due or the assignment has changed."""
    told(collector)
    shop.requests.clear()
    sizes["shop-last-changelog", 0] = 900
    assert (told(collector, minutes=1) or {})["restore_bytes"] == 1_000
    assert not {"member data", "every topic"} & set(shop.requests)
    shop.groups["shop"].members.pop()
    told(collector, minutes=2)
    assert (shop.requests.count("member data"), shop.requests.count("every topic")) == (1, 0)
    assert (told(collector, minutes=REFRESH.total_seconds() / 60) or {})["restore_bytes"] == 1_300
    assert shop.requests.count("every topic") == 1


def test_a_task_that_is_handed_over_still_counts(
    collector: KafkaAdminCollector, shop: MemoryCluster, sizes: dict[tuple[str, int], int]
) -> None:
    """It is in nobody's assignment while the next rebalance is due; once none is due, what is assigned is all."""
    assert sizes
    told(collector)
    first, *_ = MEMBERS
    due = first._replace(assignment=first.assignment[:-8] + bytes(8))
    shop.member_data["shop"] = [due, MEMBERS[1]]
    assert (told(collector, minutes=10) or {})["tasks"] == 10
    shop.member_data["shop"] = MEMBERS[:2]
    assert (told(collector, minutes=20) or {})["tasks"] == 6


def test_members_are_asked_again_in_the_next_round_while_copies_warm_up(
    collector: KafkaAdminCollector, shop: MemoryCluster, sizes: dict[tuple[str, int], int]
) -> None:
    """A copy that has become a standby changes no assignment of partitions, which would show that something is new."""
    assert sizes
    first, *others = MEMBERS
    shop.member_data["shop"] = [first._replace(assignment=first.assignment[:-8] + bytes(8)), *others]
    assert "standbys" not in (told(collector) or {})
    shop.member_data["shop"] = MEMBERS
    assert (told(collector, minutes=0.25) or {})["standbys"] == 1


def test_a_user_who_may_not_see_sizes_has_the_rest(
    collector: KafkaAdminCollector, shop: MemoryCluster, sizes: dict[tuple[str, int], int]
) -> None:
    """Bytes stay unknown, and are never 0; a part of them would look like a smaller state."""
    assert "shop" in shop.groups
    del sizes["shop-last-changelog", 1]
    assert told(collector) == {"tasks": 10, "stateful": True, "standbys": 1}
    sizes.clear()
    assert told(collector, minutes=10) == {"tasks": 10, "stateful": True, "standbys": 1}


def test_a_failure_leaves_what_was_known_and_the_group_sampled(
    collector: KafkaAdminCollector, shop: MemoryCluster, sizes: dict[tuple[str, int], int]
) -> None:
    """Neither request of an application may cost the samples of its group."""
    assert sizes
    shop.every_topic = failure(KafkaError._TIMED_OUT)
    assert told(collector) == {"tasks": 10, "stateful": True, "standbys": 1}
    shop.member_data["shop"] = failure(KafkaError._TIMED_OUT)
    assert told(collector, minutes=10) == {"tasks": 10, "stateful": True, "standbys": 1}


def test_an_application_without_changelogs_has_no_state(
    collector: KafkaAdminCollector, shop: MemoryCluster, sizes: dict[tuple[str, int], int]
) -> None:
    """Its members have told of none, and no topic is its changelog; the bytes of none are 0."""
    assert sizes
    del shop.every_topic["shop-last-changelog"]
    # As of an application that has just begun: the subscription of a plain consumer, and the last member's own tasks.
    plain = (b"\0\0" + bytes(4) + b"\0\0\0\4" + b"\0\0\0\1", _without_copies(MEMBERS[1].assignment))
    shop.member_data["shop"] = [plain]
    assert told(collector) == {"tasks": 3, "stateful": False, "standbys": 0, "restore_bytes": 0}


def _without_copies(assignment: bytes) -> bytes:
    """The assignment of three tasks, without the copy that follows them."""
    begin = assignment.index(bytes.fromhex("0000000b0000000b00000003"))
    end = begin + 12 + 3 * 12
    userdata = assignment[begin:end] + bytes(4) + assignment[-8:]
    return assignment[: begin - 4] + len(userdata).to_bytes(4, "big") + userdata
