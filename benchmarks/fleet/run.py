"""One run: Kafka, `lagcast land` and `lagcast up` as users start them, the fleet's samples, and looks from outside."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]  # ships no types
from confluent_kafka import Consumer, TopicPartition

from benchmarks.command import commit
from benchmarks.fleet.load import CAPACITY, NOISE, SAMPLES_TOPIC, Load, read_clock, sending
from benchmarks.fleet.past import add_weeks
from benchmarks.soak.groups import RealGroups
from benchmarks.speed.live_latency import PREFIX, published, waits_of
from forecasting.columns import BASE_INTERVAL_SECONDS
from recommender.following.forecast_source import REFIT_AFTER
from tests.live.harness.broker import fetched_jars, running_brokers
from tests.live.harness.clients import create_topic

PAST = timedelta(minutes=30)
_START_SECONDS = 3600.0
# The weeks of a thousand groups are read beside their decisions.
_READING_SECONDS = 4.0 * 3600.0
# The loops are compiled, the past is read, and each model has been fitted once.
_SETTLING_SECONDS = 120.0
# With weeks of rows fits take most of what is not decided: those that were read first are then due again.
_REFITTING_SECONDS = REFIT_AFTER.total_seconds() + 120.0
_LOOK_SECONDS = 5.0
_SURGE_LIMIT_SECONDS = 120.0
_MEBIBYTE = 2**20


def measured(*, groups: int, partitions: int, minutes: float, weeks: int) -> dict[str, Any]:
    """The document of a run: costs of each process in the steady minutes, ages of advice, and the surge."""
    names = [f"fleet-{number:05d}" for number in range(groups)]
    load = Load(names, partitions=partitions)
    begun_at = commit()
    with tempfile.TemporaryDirectory(prefix="lagcast-fleet-") as name, ExitStack() as ends:
        folder = Path(name)
        (broker,) = ends.enter_context(running_brokers(fetched_jars(), folder / "kafka"))
        create_topic(broker.address, SAMPLES_TOPIC, partitions=1)
        # `up` waits for the first reading of a group of its own.
        ends.enter_context(RealGroups(broker.address, ["real-00"]).at_work())
        begins_at = ends.enter_context(sending(load, broker.address, past=PAST))
        ends.enter_context(_landing(broker.address, folder))
        advised, reactive = ends.enter_context(_following(load, broker.address))
        deciding = ends.enter_context(ExitStack())
        up = deciding.enter_context(_deciding(broker.address, folder))
        first_advice, restart, past_read = _seconds_until_all_advised(advised, names, up), None, None
        if weeks:
            # An account is kept with the decision on the first rows after the first ones.
            for _ in range(3):
                _seconds_until_all_advised(advised, names, up)
            deciding.close()
            add_weeks(folder / "data" / "features", load, weeks=weeks, until=begins_at)
            up = deciding.enter_context(_deciding(broker.address, folder))
            restart = _seconds_until_all_advised(advised, names, up)
            past_read = restart + _seconds_until_none_is(reactive, up)
        time.sleep(max(_SETTLING_SECONDS, _REFITTING_SECONDS - past_read if past_read is not None else 0.0))
        began = read_clock()
        costs = _costs(up.pid, seconds=60.0 * minutes)
        ended = read_clock()
        load.surge_at = _last_reading(ended)
        surge = _surge_seconds(broker.address, names, after=load.surge_at)
        found = [each for each in published(broker.address, since=began) if each[0] in load.members]
    waits = waits_of([each for each in found if began <= each[2] <= ended], names)
    seconds = sorted(wait for of_group in waits.values() for wait in of_group)
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "processors": os.cpu_count(),
        "groups": groups,
        "partitions": partitions,
        "minutes": minutes,
        "weeks": weeks,
        "noise": NOISE,
        "first_advice_seconds": first_advice,
        "restart_seconds": restart,
        "past_read_seconds": past_read,
        "samples": len(seconds),
        "age_seconds": {"median": median(seconds), "p95": quantiles(seconds, n=20)[-1], "longest": seconds[-1]},
        "age_seconds_by_percent": {
            "readings": by_percent(seconds),
            "groups": by_percent([max(of_group) for of_group in waits.values() if of_group]),
        },
        "surge_seconds": surge,
        **costs,
    }


def _landing(address: str, folder: Path) -> "AbstractContextManager[subprocess.Popen[bytes]]":
    """`land`, which puts the samples into files, until the block ends."""
    words = ["land", "--topic", SAMPLES_TOPIC, "--out", str(folder / "data" / "samples"), "--bootstrap", address]
    return _started(words)


def _deciding(address: str, folder: Path) -> "AbstractContextManager[subprocess.Popen[bytes]]":
    """`up` over these files, with a capacity that is known, until the block ends."""
    config = folder / "lagcast.yaml"
    config.write_text(f'groups: {{"*": {{capacity_messages_per_second_per_replica: {CAPACITY}}}}}\n')
    words = ["up", "--cluster", "real", "--publish", PREFIX, "--port", "0", "--days", "1", "--config", str(config)]
    words += ["--state-dir", str(folder / "state"), "--data-dir", str(folder / "data"), "--bootstrap", address]
    return _started(words)


@contextmanager
def _following(load: Load, address: str) -> Iterator[tuple[dict[str, float], set[str]]]:
    """Let each group do what it is advised, when it is, until the block ends.

    Gives when each was advised last, and the groups whose last advice knew less than two days of them.
    """
    stop, advised, reactive = threading.Event(), dict[str, float](), set[str]()

    def follow() -> None:
        reader = Consumer({"bootstrap.servers": address, "group.id": "follower"})
        reader.assign([TopicPartition(PREFIX, 0, 0)])
        due: dict[str, tuple[float, int]] = {}
        while not stop.is_set():
            for message in reader.consume(1000, timeout=0.5):
                body = json.loads(message.value() or b"{}") if message.error() is None else {}
                if body.get("kind") == "Recommendation" and body["group_id"] in load.members:
                    execute_at = datetime.fromisoformat(body["execute_at"])
                    due[body["group_id"]] = execute_at.timestamp(), body["desired_replicas"]
                    advised[body["group_id"]] = message.timestamp()[1] / 1000.0
                    (reactive.add if body["data"]["history_tier"] == "reactive" else reactive.discard)(body["group_id"])
            for name in [name for name, (at, _) in due.items() if at <= read_clock()]:
                load.members[name] = due.pop(name)[1]
        reader.close()

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield advised, reactive
    finally:
        stop.set()
        thread.join()


@contextmanager
def _started(words: Sequence[str]) -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen([sys.executable, "-m", "cli.main", *words]) as process:  # noqa: S603  # our own
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=120)


def _seconds_until_all_advised(
    advised: Mapping[str, float], names: Sequence[str], process: "subprocess.Popen[bytes]"
) -> float:
    """Wait until each group has advice of the process that is newer than this call. Errors: TimeoutError."""
    started = read_clock()
    return _seconds_until(
        lambda: all(advised.get(name, 0.0) >= started for name in names),
        process,
        limit_seconds=_START_SECONDS,
        otherwise="not each group had advice",
    )


def _seconds_until_none_is(reactive: Collection[str], process: "subprocess.Popen[bytes]") -> float:
    """Wait until the process has read the past of each group. Errors: TimeoutError."""
    return _seconds_until(
        lambda: not reactive,
        process,
        limit_seconds=_READING_SECONDS,
        otherwise="the past of each group was not read",
    )


def _seconds_until(
    is_so: Callable[[], bool], process: "subprocess.Popen[bytes]", *, limit_seconds: float, otherwise: str
) -> float:
    began = time.monotonic()
    while not is_so():
        if process.poll() is not None:
            message = f"lagcast up ended with {process.returncode}"
            raise RuntimeError(message)
        if time.monotonic() > began + limit_seconds:
            message = f"{otherwise} within {limit_seconds:.0f} s"
            raise TimeoutError(message)
        time.sleep(1.0)
    return time.monotonic() - began


def by_percent(values: Sequence[float]) -> list[float]:
    """The value that 0, 1, ... 100 percent of them do not exceed."""
    return [float(each) for each in np.percentile(values, range(101))]


def _costs(pid: int, *, seconds: float) -> dict[str, Any]:
    """Processor time of the recommender and of Spark below it as shares of one core, their memory, and the load.

    Beside the means and the most: what each look has found of the recommender.
    """
    service = psutil.Process(pid)
    before, began = _busy_seconds(service), time.monotonic()
    latest, looked, loads = dict(before), began, []
    looks: list[dict[str, float]] = []
    while time.monotonic() - began < seconds:
        time.sleep(_LOOK_SECONDS)
        # Of one that has ended, what came after the last look is not known.
        found, now = latest | _busy_seconds(service), time.monotonic()
        looks.append(
            {
                "seconds": now - began,
                "cores": (found[pid] - latest[pid]) / (now - looked),
                "resident_mebibytes": service.memory_info().rss / _MEBIBYTE,
            }
        )
        latest, looked = found, now
        loads.append(os.getloadavg()[0])
    passed = time.monotonic() - began
    cores = {number: (busy - before.get(number, 0.0)) / passed for number, busy in latest.items()}
    return {
        "recommender_cores": cores.pop(pid),
        "recommender_resident_mebibytes": max(look["resident_mebibytes"] for look in looks),
        "recommender_looks": looks,
        "below_cores": sum(cores.values()),
        "mean_load": sum(loads) / len(loads),
    }


def _busy_seconds(service: psutil.Process) -> dict[int, float]:
    """Seconds of processor of the service and of each process below it, by their numbers."""
    busy = {}
    for each in (service, *service.children(recursive=True)):
        with suppress(psutil.Error):
            times = each.cpu_times()
            busy[each.pid] = float(times.user + times.system)
    return busy


def _last_reading(at: float) -> float:
    return at // BASE_INTERVAL_SECONDS * BASE_INTERVAL_SECONDS


def _surge_seconds(address: str, names: Sequence[str], *, after: float) -> float:
    """Seconds from the first reading of the higher load to the last group's advice that uses it.

    Infinite where the last one has none within two minutes: what was measured before is not lost by it.
    """
    until = time.monotonic() + _SURGE_LIMIT_SECONDS
    while time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        came: dict[str, tuple[float, float]] = {}
        for group, read_at, at in published(address, since=after):
            if read_at > after and group not in came:
                came[group] = read_at, at
        if came.keys() >= set(names):
            return max(at for _, at in came.values()) - min(read_at for read_at, _ in came.values())
    return inf
