"""The lab of ten groups in short: real members of each client are seen as they are set, and the lab judges lagcast."""

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.discovery.__main__ import group_of
from benchmarks.discovery.groups import GROUPS, Figure
from benchmarks.discovery.judge import SHOWN_BY_KAFKA, Told, verdict_of
from benchmarks.discovery.stage import Members, Seen, played
from collector.kafka_admin import KafkaAdminCollector
from collector.sample import OffsetSample
from cost_model.physics.detected import observed_in
from cost_model.physics.profile import GroupProfile
from recommender.configuring.settings_group import GroupSettings
from tests.live.harness.broker import compiled
from tests.live.harness.clients import NOON, create_topic
from tests.live.harness.watched import interval_of

pytestmark = pytest.mark.kafka

SETTLE_SECONDS = 120.0
# Of the groups that run on, and the minutes within which lagcast has to say something of them.
SHORT, MOST_MINUTES = ("mail", "routes"), 10.0


def told_of(profile: GroupProfile) -> Mapping[str, Told]:
    """The figures of a profile that Kafka shows, each with its source."""
    figures = {name: Told(value=getattr(profile, name), source=profile.source_of(name)) for name in PLAIN}
    streams = profile.streams
    if streams is not None:
        for name in ("tasks", "stateful", "standbys"):
            value = getattr(streams, name)
            value = value if isinstance(value, bool) else float(value)
            figures[name] = Told(value=value, source=streams.source_of(name))
    return figures


PLAIN = ("protocol", "assignor", "client", "static_membership", "session_timeout_seconds", "consumer_heartbeat_seconds")


@pytest.mark.usefixtures("client_libraries")
def test_members_of_every_client_are_seen_as_they_are_set(bootstrap: str, jars: Path, tmp_path: Path) -> None:
    """Of ten groups nothing is configured, and nothing that Kafka shows is wrong; one chose its own client ids.

    The same judgement finds a truth wrong that is not the group's.
    """
    classes = tmp_path / "classes"
    classes.mkdir()
    compiled(jars, classes)
    for group in GROUPS.values():
        for topic in group.topic_names:
            create_topic(bootstrap, topic, partitions=group.partitions)
    collector = KafkaAdminCollector(bootstrap, cluster="live")
    with ExitStack() as ends:
        members = Members(list(GROUPS.values()), bootstrap, tmp_path, ends)
        for group in GROUPS.values():
            members.start(group)
        profiles = settled(collector)
        for group in GROUPS.values():
            members.close(group)
    verdicts = {
        (name, figure): verdict_of(figure, told, GROUPS[name].truth[figure])
        for name, profile in profiles.items()
        for figure, told in told_of(profile).items()
        if figure in GROUPS[name].truth
    }
    assert {place: verdict for place, verdict in verdicts.items() if verdict != "found"} == {
        ("search", "client"): "off"
    }
    others = {"members", "work_units", "restore_bytes", "commit_interval_seconds"}  # nobody sends them messages here
    assert {figure for _, figure in verdicts} == SHOWN_BY_KAFKA - others
    false: Figure = "kip848"
    assert verdict_of("protocol", told_of(profiles["mail"])["protocol"], false) == "wrong"


def settled(collector: KafkaAdminCollector) -> dict[str, GroupProfile]:
    """The profile of each group once all of its members are there and Kafka shows them; fails after two minutes."""
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        samples = collector.collect(list(GROUPS), now=NOON).samples
        rows = {name: [row for row in samples if row.group == name] for name in GROUPS}
        if all(_is_whole(name, rows[name]) for name in GROUPS):
            return {
                name: GroupSettings().profile("live", name, observed_in([interval_of(rows[name])])) for name in GROUPS
            }
        assert time.monotonic() < until, {name: each[:1] for name, each in rows.items()}
        time.sleep(0.5)


def _is_whole(name: str, rows: list[OffsetSample]) -> bool:
    group = GROUPS[name]
    if not rows or rows[0].members != group.replicas or rows[0].group_state != "STABLE":
        return False
    # The standbys of an application are known once no copy is warming up.
    if rows[0].session_timeout_seconds is None:
        return False
    return group.client != "streams" or json.loads(rows[0].streams or "{}").get("standbys") is not None


@pytest.mark.spark
@pytest.mark.usefixtures("jars")
def test_lagcast_with_nothing_but_an_address_is_held_against_the_truth(tmp_path: Path) -> None:
    """What it says first of two groups is that their capacity is not known: nothing is told, and nothing is wrong."""
    groups = [GROUPS[name] for name in SHORT]

    def both_told(seen: Mapping[str, Seen]) -> bool:
        return all(each.readings and each.looks[-1].committed > each.looks[0].committed for each in seen.values())

    seen = played(groups, tmp_path, minutes=MOST_MINUTES, day_minutes=30.0, loads=[], enough=both_told)
    for group in groups:
        found = group_of(group, seen[group.name])["found"]
        assert {reason for reason, _, _ in found["refusals"]} == {"CapacityUnknown"}
        assert found["first_advice_minute"] is None
        assert {figure["verdict"] for figure in found["figures"]} == {"silent"}
        looks = seen[group.name].looks
        assert {look.members for look in looks} == {group.replicas}
        assert looks[-1].committed > looks[0].committed
