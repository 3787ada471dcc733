"""The soak while it runs: Kafka, PostgreSQL, `lagcast up` and `lagcast land` under a faster clock, readers, looks.

`land` writes the samples of the fleet into the folder of samples of `up`, which reads the real groups itself.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import psutil  # type: ignore[import-untyped]  # ships no types
import sqlalchemy as sa

from api.keys import group_key
from benchmarks.soak.clock import Clock, read_clock
from benchmarks.soak.groups import (
    FLEET,
    REAL,
    SAMPLES_TOPIC,
    Fleet,
    RealGroups,
    fleet_names,
)
from tests.live.harness.broker import Broker, fetched_jars, running_brokers
from tests.live.harness.clients import create_topic
from tests.live.harness.postgres import Postgres, running_postgres

PUBLISHED = "soak"
# What dashboards, scrapers, probes and executors ask for all day; browsers are another process's.
ROUTES = (
    "/",
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/api/v1/groups",
    "/api/v1/groups?limit=500",
    "/api/v1/ledger",
    "/api/v1/holds",
    "/api/v1/groups/{key}",
    "/api/v1/groups/{key}/recommendation",
    "/api/v1/groups/{key}/due-replicas",
    "/api/v1/groups/{key}/recommendations",
    "/api/v1/groups/{key}/outcomes",
    "/api/v1/groups/{key}/forecast",
    "/api/v1/groups/{key}/ledger",
)
# The simulated clock shows the past, so that it never passes the real one, whose future brokers do not accept.
_SHOWN_BEFORE = timedelta(days=3)
# Both in real seconds. Ages are told in simulated ones: the limit of lagcast's default, ten minutes, would be passed by
# each restart of Spark, which takes its real seconds, if it was not as many times as long.
CYCLE_SECONDS, FRESHNESS_SECONDS = 5, 600
_LOOK_SECONDS = 5.0
_START_SECONDS, _TO_END_SECONDS = 900.0, 60.0
_READERS = 2
_SHOWN_LINES = 20
_ALIVE = "alive"
_PAUSE_SECONDS = 0.25
_ANSWERS = frozenset({"200", "404", "503", _ALIVE})


class Look(NamedTuple):
    """The memory of the processes of a role at a simulated hour; `process` is the number of the first of them."""

    hour: float
    mebibytes: float
    process: int


@dataclass(slots=True)
class Seen:
    """What was seen from outside while it ran."""

    resident: dict[str, list[Look]] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    answered: dict[str, datetime] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)

    @property
    def unexpected_answers(self) -> dict[str, int]:
        """The answers that no reader should get, and the errors of those who got none."""
        return {status: count for status, count in self.statuses.items() if status not in _ANSWERS}


@dataclass(slots=True, kw_only=True)
class Stage:
    """All that runs, for the faults and the judge; `clock` is the simulated one."""

    clock: Clock
    broker: Broker
    server: Postgres
    fleet: Fleet
    real: RealGroups
    folder: Path
    up: "subprocess.Popen[bytes]"
    land: "subprocess.Popen[bytes]"
    url: str
    engine: sa.Engine
    seen: Seen = field(default_factory=Seen)

    @property
    def data(self) -> Path:
        """The folder with samples and features."""
        return self.folder / "data"

    @property
    def features(self) -> Path:
        """The feature table."""
        return self.data / "features"

    @property
    def groups(self) -> int:
        """How many groups there are, dead ones included."""
        return len(self.fleet.names) + len(self.real.names)

    def logged(self, name: str = "up") -> str:
        """The log of a process so far."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def version(self) -> int:
        """The version of the feature table; 0 where it cannot be read."""
        with suppress(OSError, ValueError, KeyError):
            return int(json.loads((self.features / "manifest.json").read_text())["feature_table_version"])
        return 0

    def advised(self, since: datetime | None = None) -> frozenset[str]:
        """The groups of the fleet whose newest decision is advice, issued since then; none while nothing answers."""
        at = since or self.clock.shown_at
        words = (
            "SELECT \"group\" FROM decisions WHERE newest AND kind = 'Recommendation' AND cluster = :cluster"
            " AND issued_at > :at"
        )
        try:
            with self.engine.connect() as connection:
                return frozenset(connection.scalars(sa.text(words), {"cluster": FLEET, "at": at.replace(tzinfo=None)}))
        except sa.exc.SQLAlchemyError:
            return frozenset()

    def end(self) -> dict[str, int]:
        """End the processes as an operator does; the codes of those that had ended before, or had to be killed."""
        started = {"up": self.up, "land": self.land}
        ended = {name: code for name, process in started.items() if (code := process.poll()) is not None}
        for process in started.values():
            process.terminate()
        for name, process in started.items():
            try:
                process.wait(_TO_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                ended[name] = process.wait()
        return ended

    def roles(self) -> dict[str, list[psutil.Process]]:
        """The processes of lagcast by what they do, as long as they live."""
        found: dict[str, list[psutil.Process]] = {"service": [psutil.Process(self.up.pid)]}
        found["land"] = [psutil.Process(self.land.pid)]
        for child in psutil.Process(self.up.pid).children():
            with suppress(psutil.Error):
                below = child.children(recursive=True)
                # What a JVM starts is a copy of it for a moment, and shares half of its memory with it.
                started = [[each, *each.children(recursive=True)] for each in below if each.name() == "java"]
                machines = list(dict.fromkeys(chain.from_iterable(started)))
                if machines:
                    found.setdefault("Spark's JVM", []).extend(machines)
                    found.setdefault("Spark's Python", []).extend(
                        [child, *(each for each in below if each not in machines)]
                    )
                elif "spawn_main" in " ".join(child.cmdline()):
                    found.setdefault("collectors", []).append(child)
        return found


@contextmanager
def staged(folder: Path, *, groups: int, rate: float, past: timedelta) -> Iterator[Stage]:
    """Everything, once each group of the fleet, which has existed for `past`, has had advice.

    Errors: TimeoutError, RuntimeError.
    """
    shown_at = (read_clock() - _SHOWN_BEFORE).replace(second=0, microsecond=0)
    real_count = max(2, groups // 30)
    with ExitStack() as ends:
        server = ends.enter_context(running_postgres())
        (broker,) = ends.enter_context(running_brokers(fetched_jars(), folder / "kafka"))
        create_topic(broker.address, SAMPLES_TOPIC, partitions=1)
        real = RealGroups(broker.address, [f"real-{number:02d}" for number in range(real_count)])
        ends.enter_context(real.at_work())
        fleet = Fleet(broker.address, fleet_names(groups - real_count), since=shown_at - past)
        fleet.write_past(folder / "data" / "samples", until=shown_at)
        clock = Clock(began_at=read_clock(), shown_at=shown_at, rate=rate)
        ends.enter_context(fleet.sending(clock))
        words = {
            "land": ["land", "--topic", SAMPLES_TOPIC, "--out", str(folder / "data" / "samples")],
            "up": ["up", "--cluster", REAL, "--publish", PUBLISHED, "--port", "0", "--days", "1"],
        }
        words["up"] += ["--state-dir", str(folder / "state"), "--data-dir", str(folder / "data")]
        words["up"] += ["--config", str(_config(folder, rate=rate))]
        started = {}
        for name, command in words.items():
            command += ["--bootstrap", broker.address]
            started[name] = ends.enter_context(_running(command, folder / f"{name}.log", clock, server.url()))
        engine = sa.create_engine(server.url(), pool_pre_ping=True, connect_args={"connect_timeout": 2})
        ends.callback(engine.dispose)
        _until(lambda: _address_in(folder / "up.log"), started, folder)
        stage = Stage(
            clock=clock,
            broker=broker,
            server=server,
            fleet=fleet,
            real=real,
            folder=folder,
            up=started["up"],
            land=started["land"],
            url=_address_in(folder / "up.log"),
            engine=engine,
        )
        _until(lambda: len(stage.advised()) == len(fleet.names), started, folder)
        yield stage


@contextmanager
def watched(stage: Stage) -> Iterator[None]:
    """Readers, and looks at the memory of each process, until the block ends."""
    stop = threading.Event()
    working = [threading.Thread(target=_read, args=(stage, number, stop)) for number in range(_READERS)]
    working += [threading.Thread(target=_look, args=(stage, stop)), threading.Thread(target=_probe, args=(stage, stop))]
    for thread in working:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in working:
            thread.join()


def _read(stage: Stage, number: int, stop: threading.Event) -> None:
    """One reader: each route in turn, of one group after the other."""
    names = [(FLEET, name) for name in stage.fleet.names] + [(REAL, name) for name in stage.real.names]
    asked = number * 7
    with httpx2.Client(base_url=stage.url, timeout=60) as client:
        while not stop.wait(_PAUSE_SECONDS):
            path = ROUTES[asked % len(ROUTES)].format(key=group_key(*names[asked * 7919 % len(names)]))
            asked += 1
            body = _asked(stage, client, path)
            # In place of a document that cannot be read there is a refusal, which is in no store.
            if body.get("kind") == "Recommendation":
                stage.seen.answered[body["recommendation_id"]] = datetime.fromisoformat(body["issued_at"])


def _asked(stage: Stage, client: httpx2.Client, path: str) -> dict[str, Any]:
    """The body of an answer, whose status is counted."""
    try:
        answer = client.get(path)
    except httpx2.HTTPError as error:
        stage.seen.statuses[type(error).__name__] += 1
        return {}
    stage.seen.statuses[str(answer.status_code)] += 1
    return answer.json() if answer.status_code == httpx2.codes.OK and path.endswith("/recommendation") else {}


def _probe(stage: Stage, stop: threading.Event) -> None:
    """What Kubernetes asks: /livez, which has to answer 200 at all times."""
    with httpx2.Client(base_url=stage.url, timeout=30) as client:
        while not stop.wait(1.0):
            try:
                status = str(client.get("/livez").status_code)
            except httpx2.HTTPError as error:
                status = type(error).__name__
            stage.seen.statuses[_ALIVE if status == "200" else f"livez {status}"] += 1


def _look(stage: Stage, stop: threading.Event) -> None:
    """Proportional set sizes, which count what processes share once."""
    while not stop.wait(_LOOK_SECONDS):
        hours = hours_of(stage)
        stage.seen.loads.append(os.getloadavg()[0])
        for role, processes in stage.roles().items():
            mebibytes = 0.0
            for process in processes:
                with suppress(psutil.Error):
                    mebibytes += process.memory_full_info().pss / 2**20
            stage.seen.resident.setdefault(role, []).append(Look(hours, mebibytes, processes[0].pid))


def hours_of(stage: Stage) -> float:
    """The simulated hours since the clock began."""
    return (stage.clock.now() - stage.clock.shown_at).total_seconds() / 3600.0


def _address_in(log: Path) -> str:
    """Where REST is served; empty until it is."""
    found = re.search(r"serves (http://[^\s;]+)", log.read_text(encoding="utf-8"))
    return "" if found is None else found[1]


def _config(folder: Path, *, rate: float) -> Path:
    """The settings that a faster clock needs, and no other."""
    path = folder / "lagcast.yaml"
    decision = {"cycle_seconds": CYCLE_SECONDS, "freshness_limit_seconds": FRESHNESS_SECONDS * rate}
    path.write_text(json.dumps({"decision": decision}), encoding="utf-8")
    return path


@contextmanager
def _running(words: Sequence[str], log: Path, clock: Clock, store_url: str) -> "Iterator[subprocess.Popen[bytes]]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAGCAST_")}
    environment["LAGCAST_STORE_URL"] = store_url
    command = [sys.executable, "-m", "benchmarks.soak.clock", clock.word, *words]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)  # noqa: S603  # our own
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_TO_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until(holds: Callable[[], object], started: "dict[str, subprocess.Popen[bytes]]", logs: Path) -> None:
    """Check repeatedly, while all processes live. Errors: TimeoutError, RuntimeError."""
    until = time.monotonic() + _START_SECONDS
    while not holds():
        ended = [name for name, process in started.items() if process.poll() is not None]
        if ended:
            last = "\n".join((logs / f"{ended[0]}.log").read_text(errors="replace").splitlines()[-_SHOWN_LINES:])
            message = f"lagcast {ended[0]} ended before the soak began; the end of its log:\n{last}"
            raise RuntimeError(message)
        if time.monotonic() > until:
            message = f"not each group had advice within {_START_SECONDS:.0f} s"
            raise TimeoutError(message)
        time.sleep(0.2)
