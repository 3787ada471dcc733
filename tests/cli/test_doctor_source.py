"""What the doctor says of a Prometheus: exporter, names, scrapes, past and clock; and of the rights on a Kafka."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cli import doctor_source
from cli.doctor_source import prometheus_findings
from collector.errors import RejectedError, UnavailableError
from collector.kafka_requests import Answers
from recommender.cluster.doctor import Diagnosis
from tests.collector.memory_prometheus import MemoryPrometheus, exposition, offsets_text, serving

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryPrometheus]:
    """A server without series, whose answers come at noon by its clock and by ours."""
    monkeypatch.setattr(doctor_source, "read_clock", lambda: NOW)
    with serving(MemoryPrometheus()) as server:
        monkeypatch.setattr(
            "http.server.BaseHTTPRequestHandler.date_time_string", lambda *_: "Mon, 04 May 2026 12:00:00 GMT"
        )
        yield server


def found(server: MemoryPrometheus, *, groups: tuple[str, ...] | None = None) -> dict[tuple[str, str], Diagnosis]:
    """The findings by check and state."""
    findings = list(prometheus_findings(server.url, cluster="prod", groups=groups, days=14, settings={}))
    assert all(each.remedy for each in findings if each.state != "ok")
    assert all(each.where == server.url for each in findings)
    return {(each.check, each.state): each for each in findings}


def scraped(server: MemoryPrometheus, *, hours: float, every_seconds: int, members: int | None = 2) -> None:
    """Scrapes of kafka_exporter over so many hours until noon."""
    last = int(NOW.timestamp())
    for at in range(last - int(3600 * hours), last + 1, every_seconds):
        server.scrape(offsets_text([at - 1000, 70], [at - 2000, 70], members=members), at=at)


def test_a_server_with_all_names_is_ok(server: MemoryPrometheus) -> None:
    """klag-exporter has every name that advice uses; the past is short, which is a note."""
    last = int(NOW.timestamp())
    for ago in range(1800, -1, -15):
        server.scrape(exposition("kafka-lag-exporter"), at=last - ago)
    seen = found(server)
    assert seen.keys() == {
        ("source", "ok"),
        ("metric names", "ok"),
        ("scrapes", "ok"),
        ("past", "note"),
        ("clock", "ok"),
    }
    assert "The exporter is kafka-lag-exporter: " in seen["source", "ok"].sentence
    assert seen["scrapes", "ok"].sentence == "Offsets are scraped at least each 15 s; the newest are 0 s old."
    assert seen["past", "note"].sentence == (
        "Offsets reach back less than 1 h: the time of day can be used after two days."
    )


def test_names_that_are_missing_are_named(server: MemoryPrometheus) -> None:
    """Without members there is no advice, which is a problem; what makes it less good is a note."""
    scraped(server, hours=0.5, every_seconds=15, members=None)
    seen = found(server)
    assert ("metric names", "ok") not in seen
    assert "no metric of the number of members" in seen["metric names", "problem"].sentence
    assert "of the state of groups" in seen["metric names", "note"].sentence
    assert "of the oldest offsets" in seen["metric names", "note"].sentence


def test_a_server_without_an_exporter_gets_the_step(server: MemoryPrometheus) -> None:
    """The one finding has the names that were looked for; nothing else is said of its data."""
    server.scrape("up 1\n", at=NOW.timestamp())
    seen = found(server)
    assert seen.keys() == {("source", "problem")}
    assert "kafka_topic_partition_current_offset (kafka_exporter)" in seen["source", "problem"].sentence
    assert seen["source", "problem"].remedy == (
        "let Prometheus scrape an exporter of Kafka's offsets, or read from Kafka itself with --bootstrap"
    )


def test_slow_scrapes_have_no_rates(server: MemoryPrometheus) -> None:
    """More than 70 s between two scrapes is a problem."""
    scraped(server, hours=1, every_seconds=120)
    seen = found(server)
    assert seen["scrapes", "problem"].sentence == "Offsets are scraped each 150 s: rates need 70 s or less."


def test_an_exporter_that_is_gone_is_a_problem(server: MemoryPrometheus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its past is there, and nothing new."""
    scraped(server, hours=0.5, every_seconds=15)
    monkeypatch.setattr(doctor_source, "read_clock", lambda: NOW + timedelta(minutes=20))
    assert found(server)["scrapes", "problem"].sentence == "No offset came in the last 5 minutes."


@pytest.mark.parametrize(("hours", "words"), [(60, "back 2 days: the time of"), (400, "back 17 days: the day of the")])
def test_a_long_past_is_ok_with_what_it_is_enough_for(
    server: MemoryPrometheus, monkeypatch: pytest.MonkeyPatch, hours: int, words: str
) -> None:
    """Two days for the time of day, two weeks for the day of the week."""
    scraped(server, hours=0.5, every_seconds=15)
    every_hour = {int(NOW.timestamp()) - 3600 * ago: 60.0 for ago in range(hours)}
    monkeypatch.setattr("collector.prometheus_found._every_hour", lambda *_: every_hour)
    assert words in found(server)["past", "ok"].sentence


def test_clocks_that_differ_are_a_problem(server: MemoryPrometheus, monkeypatch: pytest.MonkeyPatch) -> None:
    """By more than a few seconds, and it says which one is ahead."""
    scraped(server, hours=0.5, every_seconds=15)
    ours = iter((NOW, NOW + timedelta(seconds=90)))
    monkeypatch.setattr(doctor_source, "read_clock", lambda: next(ours))
    assert "The server's clock is 90 s behind this machine's" in found(server)["clock", "problem"].sentence


def test_a_group_that_the_server_does_not_know_is_named(server: MemoryPrometheus) -> None:
    """The others are looked at."""
    scraped(server, hours=0.5, every_seconds=15)
    seen = found(server, groups=("orders", "ordres"))
    assert "has no group 'ordres'" in seen["source", "problem"].sentence
    assert seen["source", "problem"].remedy == "check its name"
    assert "1 groups, 2 partitions" in seen["source", "ok"].sentence


@pytest.mark.parametrize("newer", [("newer",), ("it's", "newer", "third")])
def test_settings_of_newer_groups_take_a_right_of_their_own(newer: tuple[str, ...]) -> None:
    """One line for all groups without it, with the grant; another failure is not told as a missing right."""
    denied = {name: RejectedError(f"no; grant this user DescribeConfigs on Group {name!r}") for name in newer}
    away = {"away": UnavailableError("the settings of group 'away' were not answered; is the broker up?")}
    rights: Answers[str, frozenset[str]] = Answers(got={"__consumer_offsets": frozenset({"READ"})}, failed={})
    kafka: Any = SimpleNamespace(
        cluster_rights=lambda: frozenset({"DESCRIBE"}),
        topic_rights=lambda _: rights,
        topic_leaders=lambda: SimpleNamespace(leaders={}),
        group_settings=lambda names: Answers(got={}, failed={name: (denied | away)[name] for name in names}),
    )
    found = list(doctor_source._rights(kafka, "kafka:9092", newer=[*newer, "away"], publish=""))
    acl = "kafka-acls.sh --bootstrap-server kafka:9092 --add --allow-principal User:NAME --operation DescribeConfigs"
    more = " and 2 more" if len(newer) > 1 else ""
    first = "Group 'newer'" if len(newer) == 1 else 'Group "it\'s"'
    assert [(each.state, each.sentence) for each in found] == [
        ("note", f"No DescribeConfigs on {first}{more}: sessions and heartbeats of their members are assumed."),
        ("note", "The settings of Group 'away' are not known: sessions and heartbeats are assumed."),
    ]
    assert found[0].remedy == f"{acl} --group {'newer' if len(newer) == 1 else chr(39) + '*' + chr(39)}"
    assert [each.state for each in doctor_source._rights(kafka, "kafka:9092", newer=[], publish="")] == ["ok"]
