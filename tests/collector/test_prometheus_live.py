"""Live samples from Prometheus: one for each scrape, stamped with its time, and an error where scrapes stop."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from collector.errors import RejectedError, UnavailableError
from collector.kafka_admin import Collected
from collector.prometheus_live import PrometheusCollector
from collector.run import collect_forever
from collector.sample import OffsetSample
from tests.collector.memory_prometheus import MemoryPrometheus, exposition, offsets_text, serving

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOON_SECONDS = int(NOON.timestamp())
OFFSETS = [(0, 1200, 1150), (1, 800, 800)]
Rounds = Callable[..., list[Collected]]


@pytest.fixture
def memory() -> Iterator[MemoryPrometheus]:
    with serving(MemoryPrometheus()) as server:
        yield server


@pytest.fixture
def collector(memory: MemoryPrometheus) -> Iterator[PrometheusCollector]:
    with PrometheusCollector(memory.url, cluster="prod", settings={}) as ours:
        yield ours


def scraped(memory: MemoryPrometheus, name: str) -> MemoryPrometheus:
    """The same text every 15 s for five minutes, the last time 7 s before noon."""
    for ago in range(307, 0, -15):
        memory.scrape(exposition(name), at=NOON_SECONDS - ago)
    return memory


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def round_at(collector: PrometheusCollector, seconds: float, *groups: str) -> Collected:
    return collector.collect(groups or None, now=at(seconds))


def is_empty(collected: Collected) -> bool:
    return collected.samples == () and collected.errors == ()


def seconds_of(samples: tuple[OffsetSample, ...]) -> list[float]:
    return sorted({(sample.sampled_at - NOON).total_seconds() for sample in samples})


@pytest.mark.parametrize(
    ("dialect", "starts", "members", "state"),
    [
        ("kafka_exporter", [20, 10], 2, "UNKNOWN"),
        ("kminion", [20, 10], 2, "STABLE"),
        ("kafka-lag-exporter", [20, 10], 2, "STABLE"),
        ("opentelemetry", [20, 10], 2, "UNKNOWN"),
        ("redpanda", [None, None], 2, "UNKNOWN"),
        ("burrow", [None, None], None, "UNKNOWN"),
        ("msk", [20, 10], None, "UNKNOWN"),
        ("jmx", [None, None], 2, "UNKNOWN"),
    ],
)
def test_every_dialect_gives_the_same_samples_at_the_time_of_the_scrape(  # noqa: PLR0917  # a row of the table
    memory: MemoryPrometheus,
    collector: PrometheusCollector,
    dialect: str,
    starts: list[int | None],
    members: int | None,
    state: str,
) -> None:
    """Each exporter gives both partitions of the scrape 7 s ago, in the query of one round, once."""
    scraped(memory, dialect)
    collected = round_at(collector, 0, "orders")
    assert collected.errors == ()
    samples = collected.samples
    assert [(row.partition, row.end_offset, row.committed_offset) for row in samples] == OFFSETS
    assert [row.log_start_offset for row in samples] == starts
    assert {(row.cluster, row.group, row.topic) for row in samples} == {("prod", "orders", "orders-in")}
    assert {(row.members, row.group_state) for row in samples} == {(members, state)}
    assert seconds_of(samples) == [-7]
    assert is_empty(round_at(collector, 5, "orders"))


def test_messages_of_minutes_become_offsets_after_the_minutes_of_the_process_before(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """A source of 600 messages a minute gives 150 each 15 s; the first two minutes are not written.

    Otherwise a rate could span the sums of two processes.
    """
    samples: list[OffsetSample] = []
    for second in range(0, 315, 15):
        if second % 60 == 0:
            memory.scrape(exposition("confluent-cloud"), at=NOON_SECONDS + second)
        samples += round_at(collector, second + 1).samples
    assert seconds_of(tuple(samples)) == list(range(120, 315, 15))[: len(samples)]
    ends = [row.end_offset for row in samples]
    assert {after - before for before, after in pairwise(ends)} == {150}
    assert {(row.partition, row.end_offset - (row.committed_offset or 0)) for row in samples} == {(0, 50)}


def played(
    memory: MemoryPrometheus, collector: PrometheusCollector, *, every: int, until: int = 240, rate: int = 4
) -> list[OffsetSample]:
    """The samples of rounds each 15 s, of an exporter that is scraped at second 5 and each `every` seconds after it."""
    samples: list[OffsetSample] = []
    scrape = 5
    for second in range(14, until, 15):
        while scrape <= second:
            memory.scrape(
                offsets_text([1000 + rate * scrape], [990 + rate * scrape], members=2), at=NOON_SECONDS + scrape
            )
            scrape += every
        samples += round_at(collector, second).samples
    return samples


@pytest.mark.parametrize("every", [5, 15, 30, 45, 60])
def test_rows_are_15_s_apart_and_rates_are_right_for_any_scrape_interval_of_a_minute_at_most(
    memory: MemoryPrometheus, collector: PrometheusCollector, every: int
) -> None:
    """At 4 messages/s each 15 s has 60 messages more: what lies between two scrapes is on the line between them."""
    samples = played(memory, collector, every=every)
    instants = [(row.sampled_at - NOON).total_seconds() for row in samples]
    assert len(instants) >= 9
    assert {later - earlier for earlier, later in pairwise(instants)} <= {10, 15, 20}
    assert [row.end_offset for row in samples] == [1000 + 4 * second for second in instants]
    assert [row.end_offset - (row.committed_offset or 0) for row in samples] == [10] * len(samples)


def test_no_two_samples_of_a_partition_are_in_one_interval(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Of scrapes each 5 s, or 0.1 s before and after the end of an interval, one in each interval is written."""
    for second in (14.9, 29.95, 30.05, 44.9, 60.0, 60.2):
        memory.scrape(offsets_text([round(second)], [0]), at=NOON_SECONDS + second)
        round_at(collector, second + 0.01)
    for second in (15, 30, 45, 60, 75):
        memory.scrape(offsets_text([100 + second], [0]), at=NOON_SECONDS + 100 + second)
    written = [round_at(collector, 100 + second + 0.5).samples for second in (15, 30, 45, 60, 75)]
    ends = [-(-row.sampled_at.timestamp() // 15) for samples in written for row in samples]
    assert len(ends) == len(set(ends)) > 0


class Scraping:
    """Rounds of the loop on a server that scrapes every `every` seconds from `first` on, each stored `stored` later.

    Only waiting moves the clock. `ages` has for each round with samples how old the newest of them was.
    """

    def __init__(self, memory: MemoryPrometheus, *, first: float, every: float, stored: float) -> None:
        self.now = NOON
        self.ages: list[float] = []
        self._memory, self._next, self._every, self._stored = memory, first, every, stored

    def rounds(self, collector: PrometheusCollector, *, until: float) -> list[float]:
        """The ages of the rounds until that second."""

        def wait(seconds: float) -> bool:
            self.now += timedelta(seconds=seconds)
            while at(self._next + self._stored) <= self.now:
                text = offsets_text([1000 + round(4 * self._next)], [990 + round(4 * self._next)], members=2)
                self._memory.scrape(text, at=NOON_SECONDS + self._next)
                self._next += self._every
            return self.now >= at(until)

        def note(collected: Collected) -> None:
            if collected.samples:
                self.ages.append((self.now - collected.samples[-1].sampled_at).total_seconds())

        collect_forever(collector, lambda _: None, silence=None, clock=lambda: self.now, wait=wait, on_collected=note)
        return self.ages


@pytest.mark.parametrize("every", [15.0, 30.0, 60.0])
@pytest.mark.parametrize("first", [0.0, 3.0, 8.25, 13.5, 14.25])
def test_rounds_come_just_after_the_scrapes_whatever_their_phase(
    memory: MemoryPrometheus, collector: PrometheusCollector, first: float, every: float
) -> None:
    """Once their interval is known, each is read a second after it began, or one and a half, and none is left out."""
    memory.scrape(offsets_text([0], [0], members=2), at=NOON_SECONDS - every + first)
    ages = Scraping(memory, first=first, every=every, stored=0.5).rounds(collector, until=1200)
    assert len(ages) >= 1200 / every - 2
    assert max(ages[2:]) <= 1.5


def test_scrapes_that_take_seconds_to_be_stored_are_waited_for(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Stored 3.2 s after they began, scrapes are soon read within 5 s; one in twenty is tried for too early."""
    memory.scrape(offsets_text([0], [0], members=2), at=NOON_SECONDS - 9)
    ages = Scraping(memory, first=6.0, every=15.0, stored=3.2).rounds(collector, until=3600)[6:]
    assert sum(age <= 5.0 for age in ages) >= 0.8 * len(ages)
    assert sum(age > 7.0 for age in ages) <= 0.05 * len(ages)


def test_a_group_scraped_away_from_the_others_does_not_delay_them(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Of three groups two are scraped at second 4 and one at second 11: the round comes for the two."""
    for second in (4, 19):
        for name in ("a", "b"):
            text = offsets_text([second], [second], members=1, group=name).replace("orders-in", name)
            memory.scrape(text, at=NOON_SECONDS + second, instance=f"{name}:9308")
        text = offsets_text([second], [second], members=1, group="c").replace("orders-in", "c")
        memory.scrape(text, at=NOON_SECONDS + second + 7, instance="c:9308")
        due_at = round_at(collector, second + 10).due_at
    assert due_at is not None
    assert due_at.timestamp() % 15 == 5


def test_a_group_that_is_gone_has_no_say_in_when_rounds_come(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Two groups of three were scraped at second 4 until noon; ten minutes later the third one's phase alone counts."""

    def scrape(name: str, second: int) -> None:
        text = offsets_text([1000 + second], [1000 + second], members=1, group=name).replace("orders-in", name)
        memory.scrape(text, at=NOON_SECONDS + second, instance=f"{name}:9308")

    for second in (4, 19):
        scrape("a", second)
        scrape("b", second)
        scrape("c", second + 7)
        round_at(collector, second + 10)
    for second in range(41, 902, 15):
        scrape("c", second)
        due_at = round_at(collector, second + 2).due_at
    assert due_at is not None
    assert due_at.timestamp() % 15 == 12


def test_the_same_scrape_is_not_two_samples(memory: MemoryPrometheus, collector: PrometheusCollector) -> None:
    """With a scrape each minute, three of four rounds have neither samples nor errors."""
    for second in (0, 60):
        memory.scrape(offsets_text([100 + second], [90 + second], members=2), at=NOON_SECONDS + second)
    rounds = [round_at(collector, second) for second in (1, 15, 30, 45, 61)]
    # The memory has the later scrape from the beginning; a query sees what was scraped by its time.
    assert [len(each.samples) for each in rounds] == [1, 0, 0, 0, 4]
    assert not any(each.errors for each in rounds)


def test_an_exporter_that_reads_kafka_each_30_s_and_is_scraped_each_15_makes_no_rate_of_zero(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Values that repeat wait for the next ones: 8 messages/s are 120 in each 15 s, never 0 and then 240."""
    samples: list[OffsetSample] = []
    for second in range(0, 300, 15):
        read = second // 30 * 30
        memory.scrape(offsets_text([8 * read], [8 * read], members=1), at=NOON_SECONDS + second)
        samples += round_at(collector, second + 1).samples
    ends = [row.end_offset for row in samples]
    assert len(ends) >= 18
    assert {after - before for before, after in pairwise(ends)} == {120}


def test_an_idle_topic_has_a_rate_of_zero_within_a_minute(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """If nothing changes for a minute it is no repetition: four samples of the same offsets."""
    written: dict[int, list[float]] = {}
    for second in range(0, 75, 15):
        memory.scrape(offsets_text([70], [70], members=1), at=NOON_SECONDS + second)
        written[second] = seconds_of(round_at(collector, second + 1).samples)
    assert written == {0: [0], 15: [], 30: [], 45: [], 60: [15, 30, 45, 60]}


def test_a_group_whose_scrapes_stop_is_an_error_and_not_a_zero(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """One failed scrape is passed over; 45 s after the last one each round has an error until there is one again."""
    for second in range(0, 61, 15):
        memory.scrape(offsets_text([10 * second], [10 * second], members=1), at=NOON_SECONDS + second)
        round_at(collector, second + 1)
    memory.scrape("", at=NOON_SECONDS + 75)
    assert is_empty(round_at(collector, 76))
    assert is_empty(round_at(collector, 91))
    for second in (106, 121, 1000):
        collected = round_at(collector, second)
        assert collected.samples == ()
        (error,) = collected.errors
        assert isinstance(error, UnavailableError)
        assert collected.unread == {"orders": error}
        assert "has no whole scrape of group 'orders' since 12:01:00 UTC; look at the exporter" in str(error)
    memory.scrape(offsets_text([12_000], [12_000], members=1), at=NOON_SECONDS + 1010)
    back = round_at(collector, 1011)
    # What came meanwhile is not spread over the time without scrapes.
    assert (seconds_of(back.samples), back.errors) == ([1010], ())


def test_a_partition_whose_commit_is_not_exported_any_more_is_missing_and_not_uncommitted(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """The second partition has a commit, then none: its sample is left out. The third never had one."""
    memory.scrape(offsets_text([10, 20, 30], [10, 20, None], members=1), at=NOON_SECONDS)
    memory.scrape(offsets_text([11, 21, 31], [11, None, None], members=1), at=NOON_SECONDS + 15)
    first, second = (round_at(collector, seconds).samples for seconds in (1, 16))
    assert [(row.partition, row.committed_offset) for row in first] == [(0, 10), (1, 20), (2, None)]
    assert [(row.partition, row.committed_offset) for row in second] == [(0, 11), (2, None)]


def test_targets_that_are_scraped_one_after_the_other_make_one_sample_of_the_group(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Of brokers scraped at second 40 and 5 of each minute, a sample has a new scrape of both, and the earlier time.

    60 messages each 60 s in each partition are 15 in each 15 s, although no interval has scrapes of both.
    """
    parts = exposition("msk").splitlines(keepends=True)
    samples: list[OffsetSample] = []
    for second in range(0, 360, 5):
        for offset, number in ((5, 0), (40, 1)):
            if second % 60 == offset:
                lines = [line for line in parts if f'partition="{number}"' in line]
                text = "".join(
                    f"{line.rpartition(' ')[0]} {float(line.rpartition(' ')[2]) + second * ('EndOffset' in line):.0f}\n"
                    for line in lines
                    if not line.startswith("#")
                )
                memory.scrape(text, at=NOON_SECONDS + second, instance=f"broker-{number}")
        if second > 60 and second % 15 == 10:
            samples += round_at(collector, second + 0.5, "orders").samples
    for number in (0, 1):
        ends = [row.end_offset for row in samples if row.partition == number]
        assert len(ends) > 12
        assert {after - before for before, after in pairwise(ends)} == {15}
    assert {(row.sampled_at - NOON).total_seconds() % 15 for row in samples} == {10}


def test_of_two_clients_that_report_a_partition_the_newer_one_counts(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """The first client goes on reporting a lag of 50 in a partition that the second has taken over, with a lag of 7."""
    text = exposition("jmx")
    later = text + (
        'kafka_consumer_consumer_fetch_manager_metrics_records_lag{client_id="a-2",partition="0",topic="orders-in"} 7\n'
    )
    memory.scrape(text, at=NOON_SECONDS)
    memory.scrape(later, at=NOON_SECONDS + 15)
    memory.scrape(later.replace("} 1200", "} 1201"), at=NOON_SECONDS + 30)
    rounds = [round_at(collector, second, "orders").samples for second in (1, 16, 31)]
    lags = [rows[0].end_offset - (rows[0].committed_offset or 0) for rows in rounds]
    assert lags == [50, 7, 7]
    assert [rows[0].members for rows in rounds] == [2, 1, 1]


def test_a_rebalance_is_seen_where_the_exporter_tells_the_state(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """The state of the scrape in a rebalance is in its samples; between two states it is unknown."""
    text = exposition("kafka-lag-exporter")
    state = 'kafka_consumergroup_group_state{cluster_name="prod",group="orders"}'
    for second, code in ((0, 3), (30, 1), (60, 3)):
        changed = text.replace(f"{state} 3", f"{state} {code}").replace("} 1200", f"}} {1200 + second}")
        memory.scrape(changed, at=NOON_SECONDS + second)
    samples = [row for second in (1, 31, 61) for row in round_at(collector, second).samples if row.partition == 0]
    assert [row.group_state for row in samples] == [
        "STABLE",
        "UNKNOWN",
        "PREPARING_REBALANCING",
        "UNKNOWN",
        "STABLE",
    ]


def idle_text(**shares: float) -> str:
    """What Java's clients report beside an exporter's offsets: the share of its time that each waits, by its id."""
    metric = "kafka_consumer_consumer_metrics_poll_idle_ratio_avg"
    return "".join(f'{metric}{{client_id="{client}"}} {share}\n' for client, share in shares.items())


@pytest.mark.parametrize(
    ("clients", "busy"),
    [
        ({"consumer-orders-1": 0.4, "consumer-orders-2": 0.2}, 0.7),
        ({"consumer-orders-host-7": 1.0, "consumer-orders-2": 0.0}, 0.5),
        ({"orders-5f-StreamThread-1-consumer": 0.9, "orders-5f-StreamThread-2-consumer": 0.9}, 0.1),
        ({"consumer-orders-1": 0.4}, None),  # the other member reports nothing
        ({"consumer-orders-1": 0.4, "billing-1": 0.2}, None),
        ({"consumer-orders-1": 0.4, "consumer-orders-2": float("nan")}, None),
        ({}, None),
    ],
)
def test_the_time_in_which_members_work_is_that_of_all_of_them(
    memory: MemoryPrometheus, collector: PrometheusCollector, clients: dict[str, float], busy: float | None
) -> None:
    """One minus the share of their time in which they wait for messages, by the ids that Java gives by default."""
    memory.scrape(offsets_text([10], [10], members=2) + idle_text(**clients), at=NOON_SECONDS)
    (row,) = round_at(collector, 1).samples
    assert row.busy_ratio == (None if busy is None else pytest.approx(busy))


def restore_text(*threads: tuple[str, int, int], application: str = "orders-5f") -> str:
    """What threads of Kafka Streams report: process and number, bytes that they have read from changelogs, and tasks.

    A consumer has its bytes once in all, and once for each topic.
    """
    lines = []
    for thread, read, tasks in threads:
        process, number = thread.split("/")
        name = f"{application}{process}-StateUpdater-{number}"
        consumed = f'kafka_consumer_consumer_fetch_manager_metrics_bytes_consumed{{client_id="{name}-restore-consumer"'
        lines += [f"{consumed}}} {read}", f'{consumed},topic="orders-last-changelog"}} {read}']
        lines += [f'kafka_streams_stream_state_updater_metrics_active_restoring_tasks{{thread_id="{name}"}} {tasks}']
    return "".join(f"{line}\n" for line in lines)


MEGABYTE = 1_000_000
A, B, C = "a/1", "a/2", "b/1"


@pytest.mark.parametrize(
    ("scrapes", "rate"),
    [
        ([[(A, 0, 2)], [(A, 150, 2)], [(A, 300, 2)], [(A, 450, 1)]], 10.0),
        ([[(A, 0, 2)], [(A, 150, 2)], [(A, 300, 0)], [(A, 300, 0)]], None),  # over before the minute is
        ([[(A, 0, 0)], [(A, 15, 0)], [(A, 30, 0)], [(A, 45, 0)]], None),  # a standby that follows
        ([[(A, 0, 1), (C, 0, 1)], [(A, 75, 1), (C, 150, 1)], [(A, 150, 1), (C, 300, 1)]], 10.0),  # the faster process
        ([[(A, 0, 1), (B, 0, 1)], [(A, 75, 1), (B, 150, 1)], [(A, 150, 1), (B, 300, 1)]], 15.0),  # two threads of one
        ([[(A, 0, 1), (B, 0, 0)], [(A, 75, 1), (B, 150, 0)], [(A, 150, 1), (B, 300, 0)]], 5.0),  # one has a standby
        ([[(A, 0, 1)]], None),
    ],
)
def test_the_restore_rate_is_that_of_the_process_that_restores_most(
    memory: MemoryPrometheus,
    collector: PrometheusCollector,
    scrapes: list[list[tuple[str, int, int]]],
    rate: float | None,
) -> None:
    """Of those whose tasks were restored in each scrape of a minute, 15 s apart; in MB, and MB/s."""
    for number, threads in enumerate(scrapes):
        text = restore_text(*((thread, read * MEGABYTE, tasks) for thread, read, tasks in threads))
        memory.scrape(offsets_text([10 + number], [10], members=1) + text, at=NOON_SECONDS + 15 * number)
    (row,) = round_at(collector, 15 * len(scrapes) - 14).samples
    told = None if rate is None else {"restore_bytes_per_second": rate * MEGABYTE, "stateful": True}
    assert json.loads(row.streams or "null") == told


def test_before_kafka_4_a_client_that_restores_has_the_name_of_the_thread_that_processes(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Its bytes belong to the tasks that the thread beside that one restores."""
    for number in range(3):
        text = restore_text((A, 15 * number * MEGABYTE, 1)).replace("StateUpdater-1-restore", "StreamThread-1-restore")
        memory.scrape(offsets_text([10], [10], members=1) + text, at=NOON_SECONDS + 15 * number)
    (row,) = round_at(collector, 31).samples
    assert json.loads(row.streams or "{}")["restore_bytes_per_second"] == MEGABYTE


def test_what_two_jobs_scrape_from_one_process_counts_once(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Its Service and its pod are both scraped, as operators often have it."""
    for number in range(3):
        at = NOON_SECONDS + 15 * number
        memory.scrape(offsets_text([10], [10], members=1), at=at)
        for job in ("service", "pod"):
            memory.scrape(restore_text((A, 15 * number * MEGABYTE, 1)), at=at, instance="10.0.0.7:9404", job=job)
    (row,) = round_at(collector, 31).samples
    assert json.loads(row.streams or "{}")["restore_bytes_per_second"] == MEGABYTE


def test_a_restore_belongs_to_the_group_with_the_longer_name(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """`orders-eu-5f-StateUpdater-1` is a thread of orders-eu, not of orders."""
    both = offsets_text([10], [10], members=1) + offsets_text([], [10], group="orders-eu", members=1)
    for number in range(3):
        threads = restore_text((A, number * MEGABYTE, 1), application="orders-eu-5f")
        memory.scrape(both + threads, at=NOON_SECONDS + 15 * number)
    rows = {row.group: row.streams for row in round_at(collector, 31).samples}
    assert rows["orders"] is None
    assert rows["orders-eu"] is not None


def test_of_two_groups_whose_names_begin_alike_each_has_its_own_clients(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """`consumer-orders-eu-1` is a client of orders-eu, not of orders."""
    ends = offsets_text([10], [10], members=1)
    longer = offsets_text([], [10], group="orders-eu", members=1)
    memory.scrape(ends + longer + idle_text(**{"consumer-orders-1": 0.9, "consumer-orders-eu-1": 0.3}), at=NOON_SECONDS)
    found = {row.group: row.busy_ratio for row in round_at(collector, 1).samples}
    assert found == {"orders": pytest.approx(0.1), "orders-eu": pytest.approx(0.7)}


def test_an_unknown_group_is_an_error_beside_the_samples_of_the_others(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """The misspelt group has its sentence in every round, and the other one its samples."""
    memory.scrape(offsets_text([10], [10], members=1), at=NOON_SECONDS)
    collected = round_at(collector, 1, "orders", "odrers")
    assert [row.group for row in collected.samples] == ["orders"]
    assert list(collected.unread) == ["odrers"]
    assert isinstance(collected.unread["odrers"], RejectedError)
    assert list(round_at(collector, 5, "orders", "odrers").unread) == ["odrers"]
    with pytest.raises(RejectedError, match="has no group 'odrers' in that time, but has orders"):
        round_at(PrometheusCollector(memory.url, cluster="prod", settings={}), 1, "odrers")


def test_a_new_group_is_found_within_a_minute(memory: MemoryPrometheus, collector: PrometheusCollector) -> None:
    """Groups are looked for once a minute: between that, a round is one request."""
    found = []
    for second in (0, 15, 61):
        late = offsets_text([], [second], group="late", members=1) if second else ""
        memory.scrape(offsets_text([second], [second], members=1) + late, at=NOON_SECONDS + second)
        memory.requests.clear()
        found.append({row.group for row in round_at(collector, second + 1).samples})
        assert (len(memory.requests) == 1) == (second == 15)
    assert found == [{"orders"}, {"orders"}, {"orders", "late"}]


def test_scrapes_more_than_a_minute_apart_are_named_once(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Two minutes between scrapes give no rate: no sample is made between them, and one line says so."""
    with capture_logs() as logs:
        samples = played(memory, collector, every=120, until=600)
    assert [(row.sampled_at - NOON).total_seconds() for row in samples] == [5, 125, 245, 365, 485]
    (line,) = [log for log in logs if log["event"] == "scraped_slowly"]
    assert (line["group"], line["seconds"]) == ("orders", 120)
    assert "set scrape_interval to 60s or less" in line["next_step"]


def test_what_an_exporter_does_not_tell_is_logged_once(
    memory: MemoryPrometheus, collector: PrometheusCollector
) -> None:
    """Burrow tells neither members nor states."""
    scraped(memory, "burrow")
    with capture_logs() as logs:
        for second in (0, 61):
            round_at(collector, second)
    assert [log["event"] for log in logs] == ["exporter_found", "group_states_unknown", "members_unknown"]


def test_a_server_that_does_not_answer_fails_the_round() -> None:
    """Without an answer there is no round: the loop logs it, and rows grow old until advice is refused as stale."""
    with (
        PrometheusCollector("http://127.0.0.1:1", cluster="prod", settings={}) as nowhere,
        pytest.raises(UnavailableError, match="check the address, and that the server runs"),
    ):
        round_at(nowhere, 1)


def test_groups_of_another_shard_are_not_read(memory: MemoryPrometheus) -> None:
    """They have neither samples nor errors, and the own one has both partitions."""
    text = exposition("kminion")
    scrapes = "\n".join(
        (text, *(line.replace('"orders"', '"theirs"') for line in text.splitlines() if '"orders"' in line))
    )
    for ago in range(307, 0, -15):
        memory.scrape(scrapes, at=NOON_SECONDS - ago)
    with PrometheusCollector(memory.url, cluster="prod", settings={}, owns=lambda _, name: name == "orders") as ours:
        collected = ours.collect(None, now=NOON)
    assert [(row.group, row.partition) for row in collected.samples] == [("orders", 0), ("orders", 1)]
    assert collected.errors == ()
    with PrometheusCollector(memory.url, cluster="prod", settings={}) as whole:
        assert {row.group for row in whole.collect(None, now=NOON).samples} == {"orders", "theirs"}
