"""Kafka Streams applications with state that grow, shrink, restart and come back on a real broker.

Each has six tasks and two processes, which write down each record with its task: what the cost model says of a change
is compared with that. What is restored comes slowly, by a quota of the broker's, so that no restore can be overlooked.
lagcast is told that quota, as the rate at which a replica restores, and what Kafka does not show: how often members
send heartbeats and probe, and that a volume is kept.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest

from benchmarks.rebalances.measure import ProcessedBatch
from benchmarks.rebalances.page import is_near
from collector.kafka_admin import KafkaAdminCollector
from collector.sample import OffsetSample
from collector.streams import REFRESH
from cost_model.physics.detected import observed_in
from cost_model.physics.profile import GroupProfile
from cost_model.physics.rebalance import move_effect
from cost_model.physics.streams import capacity_lead_seconds, restore_seconds, restored_bytes
from forecasting.units import Replicas, Seconds
from recommender.configuring.settings_group import GroupSettings, StreamsSettings
from tests.live.harness.broker import compiled, limit_reads, running_brokers
from tests.live.harness.clients import (
    NOON,
    create_topic,
    fresh_name,
    has_members,
    produced_steadily,
    read_until,
    wait_until,
)
from tests.live.harness.executors import read_clock
from tests.live.harness.streams import (
    KEY_BYTES,
    BatchLog,
    StreamsOrder,
    StreamsProcess,
    produce_keyed,
    restorer_of,
)
from tests.live.harness.watched import interval_of

pytestmark = pytest.mark.kafka

TASKS = 6
RECORDS, VALUE_BYTES = 12_000, 1_000
STATE_BYTES = RECORDS * (KEY_BYTES + VALUE_BYTES)
ONE, TWO = Replicas(1), Replicas(2)
WARM_UPS = 2
# Kafka Streams accepts no less.
PROBING_SECONDS = 60.0
# Brokers accept no less.
SESSION_SECONDS = 6.0
HEARTBEAT_SECONDS = 1.0
# A JVM starts within it, on a machine that is busy.
LONG_SESSION_SECONDS = 30.0
# Two warm-ups of 2 MB each take 8 s, and the three tasks of a process that was killed take 12 s.
RESTORE_BYTES_PER_SECOND = 500_000
# At this rate the state of three tasks takes an hour and a half.
HARDLY_ANY_BYTES_PER_SECOND = 1_000
# With larger pieces, the first one would use up the quota of many seconds.
PIECE_BYTES = 50_000
# The start of a JVM, and a rebalance, on a machine that is busy.
NEAR_SECONDS = 20.0
NEAR_STOP_SECONDS = 3.0
CHANGE_LIMIT_SECONDS = 300.0
SETTINGS = {
    "max.warmup.replicas": str(WARM_UPS),
    "probing.rebalance.interval.ms": f"{1e3 * PROBING_SECONDS:.0f}",
    "heartbeat.interval.ms": f"{1e3 * HEARTBEAT_SECONDS:.0f}",
    # An application is told of once it has committed.
    "commit.interval.ms": "1000",
    # Messages without a key change no state: a copy is up to date only once it has all of it.
    "acceptable.recovery.lag": "100",
    "restore.consumer.max.partition.fetch.bytes": str(PIECE_BYTES),
}
GROWING, STATIC, KEPT = (fresh_name(kind) for kind in ("growing", "static", "kept"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """An application at the beginning of a change: the process that works on each task, and what lagcast knows."""

    application: str
    at: float
    owners: Mapping[int, str]
    profile: GroupProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of an application: when it was over, the process of each task after it, and the records meanwhile."""

    before: Before
    over_at: float
    owners: Mapping[int, str]
    batches: Sequence[ProcessedBatch]

    @property
    def profile(self) -> GroupProfile:
        """What lagcast knew of the application before."""
        return self.before.profile

    @property
    def moved_at(self) -> dict[int, float]:
        """When another process than before began to work on a task, by task; half of all are to move."""
        found: dict[int, float] = {}
        for batch in self.batches:
            if batch.begin_at >= self.before.at and batch.member != self.before.owners[batch.partition]:
                found.setdefault(batch.partition, batch.begin_at)
        return found

    def stops(self, *, until: float | None = None) -> dict[int, float]:
        """The longest time that each task stood still, from one record to the next one."""
        over_at = self.over_at if until is None else until
        instants = [[each.begin_at for each in self.batches if each.partition == task] for task in range(TASKS)]
        return {
            task: max(after - before for before, after in pairwise(sorted(own)) if after <= over_at)
            for task, own in enumerate(instants)
        }

    @property
    def stops_of_moved(self) -> list[float]:
        """Those of the tasks that moved."""
        stops = self.stops()
        return [stops[task] for task in self.moved_at]


class Stage:
    """A broker with a topic for each application, processes beside it, what they wrote down, and what lagcast sees."""

    def __init__(self, bootstrap: str, folder: Path, *, jars: Path, classes: Path, ends: ExitStack) -> None:
        self.processes: dict[str, StreamsProcess] = {}
        self.collector = KafkaAdminCollector(bootstrap, cluster="live")
        self._bootstrap, self._folder, self._jars, self._classes, self._ends = bootstrap, folder, jars, classes, ends
        self._log, self._looks = BatchLog(folder), 0

    def start(self, name: str) -> None:
        """Start a process by its name, APPLICATION-NUMBER; those of `STATIC` are static, with a longer session."""
        application = name.rpartition("-")[0]
        is_static = application == STATIC
        session = LONG_SESSION_SECONDS if is_static else SESSION_SECONDS
        settings = {**SETTINGS, "client.id": name, "session.timeout.ms": f"{1e3 * session:.0f}"}
        if is_static:
            settings["group.instance.id"] = name
        order = StreamsOrder(name=name, application=application, topic=application, settings=settings)
        process = StreamsProcess(
            order, bootstrap=self._bootstrap, folder=self._folder, jars=self._jars, classes=self._classes
        )
        self._ends.callback(process.kill)
        self.processes[name] = process

    def fill(self, application: str) -> None:
        """Write the records that an application keeps, and wait until it has all of them."""
        produce_keyed(self._bootstrap, application, RECORDS, partitions=TASKS, value_bytes=VALUE_BYTES)
        ends = {row.partition: row.end_offset for row in self.rows(application)}

        def kept() -> bool:
            reached = {batch.partition: batch.last + 1 for batch in self._log.of(application)}
            return all(reached.get(task, 0) >= end for task, end in ends.items())

        wait_until(kept)

    def owners(self, application: str, *, since: float) -> Mapping[int, str]:
        """The process that worked on each task last, of those that were worked on since then."""
        return {each.partition: each.member for each in self._log.of(application) if each.begin_at >= since}

    def is_shared(self, application: str, *, by: int, since: float = 0.0) -> bool:
        """True if so many processes work on all tasks, each on as many."""
        owners = list(self.owners(application, since=max(since, now() - 2.0)).values())
        return len(owners) == TASKS and sorted(map(owners.count, set(owners))) == by * [TASKS // by]

    def rows(self, application: str) -> tuple[OffsetSample, ...]:
        """What the collector tells of it now; sizes are read again, as if a while had passed."""
        self._looks += 1
        at, found = NOON + self._looks * REFRESH, list[OffsetSample]()

        def told() -> bool:
            found[:] = self.collector.collect([application], now=at).samples
            return len(found) == TASKS

        wait_until(told)
        return tuple(found)

    def profile(self, application: str) -> GroupProfile:
        """What lagcast knows of an application with nothing set but its probes, its quota, or a volume that is kept."""
        streams = StreamsSettings(probing_seconds=PROBING_SECONDS, volume_kept=application == KEPT)
        if application == GROWING:
            streams = StreamsSettings(
                probing_seconds=PROBING_SECONDS, restore_bytes_per_second=RESTORE_BYTES_PER_SECOND
            )
        settings = GroupSettings(streams=streams, heartbeat_interval_seconds=HEARTBEAT_SECONDS)
        return settings.profile("live", application, observed_in([interval_of(self.rows(application))]))

    def begin(self, application: str, act: Callable[[], None]) -> Before:
        """Begin a change: `act` returns at once, or when a process has ended."""
        profile, at = self.profile(application), now()
        owners = self.owners(application, since=at - 2.0)
        act()
        return Before(application=application, at=at, owners=owners, profile=profile)

    def end(self, before: Before, *, left: int) -> Change:
        """Wait until so many processes share all tasks of the application that a change was begun of."""
        since = now()
        wait_until(lambda: self.is_shared(before.application, by=left, since=since), seconds=CHANGE_LIMIT_SECONDS)
        # Two seconds before are the records that stops begin with.
        batches = [each for each in self._log.of(before.application) if each.begin_at >= before.at - 2.0]
        owners = self.owners(before.application, since=now() - 2.0)
        return Change(before=before, over_at=now(), owners=owners, batches=batches)


def now() -> float:
    """The clock that processes write down."""
    return read_clock().timestamp()


@pytest.fixture(scope="module")
def stage(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A broker that gives restores of one process little, and those of another one hardly anything."""
    folder = tmp_path_factory.mktemp("streams")
    classes = compiled(jars, folder / "classes")
    with ExitStack() as ends:
        # Rates are taken over a second, not over eleven.
        (broker,) = ends.enter_context(running_brokers(jars, folder / "kafka", properties={"quota.window.num": "2"}))
        limits = {f"{GROWING}-1": RESTORE_BYTES_PER_SECOND, f"{KEPT}-1": HARDLY_ANY_BYTES_PER_SECOND}
        limit_reads(jars, broker.address, {restorer_of(name): rate for name, rate in limits.items()})
        for topic in (GROWING, STATIC, KEPT):
            create_topic(broker.address, topic, partitions=TASKS)
        ends.enter_context(produced_steadily(broker.address, (GROWING, STATIC, KEPT), partitions=TASKS))
        yield Stage(broker.address, folder, jars=jars, classes=classes, ends=ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that happened to the applications, and what lagcast read meanwhile."""

    added: Change
    copied_at: Sequence[float]
    while_warming: Sequence[OffsetSample]
    killed: Change
    restarted: Change
    while_restarting: Sequence[Sequence[OffsetSample]]
    closed: Change
    left: Change
    came_back: Change


@pytest.fixture(scope="module")
def scene(stage: Stage) -> Scene:
    """One application grows, which takes two minutes; the other ones stop, come back and restart meanwhile."""
    stage.start(f"{GROWING}-0")
    stage.fill(GROWING)
    added = stage.begin(GROWING, partial(stage.start, f"{GROWING}-1"))
    while_warming = read_until(stage.collector, GROWING, has_members(2))[-1]
    for application in (STATIC, KEPT):
        stage.start(f"{application}-0")
        stage.start(f"{application}-1")
    for application in (STATIC, KEPT):
        wait_until(partial(stage.is_shared, application, by=2))
        stage.fill(application)
    kept = stage.processes[f"{KEPT}-1"]
    left = stage.end(stage.begin(KEPT, kept.stop), left=1)
    came_back = stage.begin(KEPT, partial(stage.start, f"{KEPT}-1"))

    def restart() -> None:
        static.stop()
        static.wait()
        stage.start(f"{STATIC}-1")

    static = stage.processes[f"{STATIC}-1"]
    restarted = stage.begin(STATIC, restart)
    while_restarting = read_until(
        stage.collector, STATIC, lambda _: stage.is_shared(STATIC, by=2, since=restarted.at + 2.0)
    )
    return Scene(
        restarted=stage.end(restarted, left=2),
        while_restarting=while_restarting,
        closed=stage.end(stage.begin(STATIC, stage.processes[f"{STATIC}-1"].stop), left=1),
        left=left,
        came_back=stage.end(came_back, left=2),
        added=stage.end(added, left=2),
        copied_at=stage.processes[f"{GROWING}-1"].stores_created_at(),
        while_warming=while_warming,
        killed=stage.end(stage.begin(GROWING, stage.processes[f"{GROWING}-0"].kill), left=1),
    )


def test_lagcast_is_told_of_the_application_and_not_of_copies_that_warm_up(scene: Scene) -> None:
    """Java's members, six tasks, the bytes of their changelog, and no standbys."""
    row = scene.while_warming[0]
    assert (row.group_protocol, row.group_assignor, row.clients, row.static_members) == ("classic", "stream", "java", 0)
    told = json.loads(row.streams or "{}")
    assert told.pop("restore_bytes") == pytest.approx(STATE_BYTES, rel=0.1)
    assert told == {"tasks": TASKS, "stateful": True, "standbys": 0}


def test_tasks_move_to_a_process_that_was_added_at_probes(scene: Scene) -> None:
    """None before the first one, and all of its share after as many as the formula expects."""
    moved_at = sorted(scene.added.moved_at.values())
    assert len(moved_at) == TASKS // 2
    lead_seconds = capacity_lead_seconds(scene.added.profile, from_replicas=ONE, to_replicas=TWO)
    assert lead_seconds == 2.0 * PROBING_SECONDS
    after = [at - scene.added.before.at for at in moved_at]
    assert PROBING_SECONDS < after[0] <= after[-1] < lead_seconds + NEAR_SECONDS


def test_at_most_two_copies_warm_up_at_a_time(scene: Scene) -> None:
    """Two stores appear on the disk of the new process when it joins, and the third once a probe found those warm."""
    after = [at - scene.added.before.at for at in scene.copied_at]
    assert len(after) == TASKS // 2
    assert after[WARM_UPS - 1] < NEAR_SECONDS
    assert after[WARM_UPS] > PROBING_SECONDS


def test_no_task_stands_still_while_copies_of_it_warm_up(scene: Scene) -> None:
    """Copies take as long as their bytes at the rate of a replica; their old owner works on all that time."""
    warming = WARM_UPS * STATE_BYTES / TASKS / RESTORE_BYTES_PER_SECOND
    assert max(scene.added.stops(until=min(scene.added.moved_at.values())).values()) < warming / 2.0


def test_tasks_of_a_process_that_was_killed_resume_once_their_state_is_restored(scene: Scene) -> None:
    """They stand still for the session, a rebalance and the restore of the bytes that Kafka shows, as expected."""
    profile = replace(scene.killed.profile, termination_grace_seconds=Seconds(0.0))
    assert (profile.static_membership, profile.session_timeout_seconds) == (False, SESSION_SECONDS)
    stops = scene.killed.stops_of_moved
    assert len(stops) == TASKS // 2
    effect = move_effect(profile, from_replicas=TWO, to_replicas=ONE)
    assert is_near(fmean(stops), effect.rebalance_pause_seconds, NEAR_STOP_SECONDS)
    restore = restore_seconds(profile, from_replicas=TWO, to_replicas=ONE)
    assert not is_near(fmean(stops), effect.rebalance_pause_seconds - restore, NEAR_STOP_SECONDS)


def test_a_static_member_that_restarts_within_its_session_causes_no_rebalance(scene: Scene) -> None:
    """The group is stable with two members all the time, and each task waits for its own process."""
    described = {(row.group_state, row.members, row.static_members) for rows in scene.while_restarting for row in rows}
    assert described == {("STABLE", 2, 2)}
    assert scene.restarted.moved_at == {}
    assert max(scene.restarted.stops().values()) < LONG_SESSION_SECONDS


def test_a_static_member_that_is_stopped_is_missed_after_its_session(scene: Scene) -> None:
    """It sends no LeaveGroup: its tasks stand still for the session and a rebalance, as by the formula."""
    profile = scene.closed.profile
    assert (profile.static_membership, profile.session_timeout_seconds) == (True, LONG_SESSION_SECONDS)
    stops = scene.closed.stops_of_moved
    assert len(stops) == TASKS // 2
    # The last heartbeat came up to its interval before the stop.
    assert min(stops) > LONG_SESSION_SECONDS - HEARTBEAT_SECONDS
    effect = move_effect(profile, from_replicas=TWO, to_replicas=ONE)
    assert is_near(fmean(stops), effect.rebalance_pause_seconds, NEAR_STOP_SECONDS)


def test_a_process_that_closes_in_order_is_missed_after_its_session_too(scene: Scene) -> None:
    """Kafka Streams sends no LeaveGroup, whether its members are static or not."""
    assert (scene.left.profile.static_membership, scene.left.profile.session_timeout_seconds) == (
        False,
        SESSION_SECONDS,
    )
    assert len(scene.left.stops_of_moved) == TASKS // 2
    assert min(scene.left.stops_of_moved) > SESSION_SECONDS - HEARTBEAT_SECONDS


def test_a_process_whose_state_directory_was_kept_has_its_tasks_back_without_a_restore(scene: Scene) -> None:
    """Where it restores an hour would not do; it waits for one probe at most, and no longer than by the formula."""
    profile, change = scene.came_back.profile, scene.came_back
    assert restored_bytes(profile, from_replicas=ONE, to_replicas=TWO) == 0.0
    lead_seconds = capacity_lead_seconds(profile, from_replicas=ONE, to_replicas=TWO)
    assert max(change.moved_at.values()) - change.before.at < PROBING_SECONDS + NEAR_SECONDS < lead_seconds
    assert change.owners == scene.left.before.owners
