"""A real Spark cluster on loopback: the standalone master and workers of the pip package, a core and a JVM each."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # ships no types
import pyspark

from spark_features.java import find_java
from tests.live.harness.broker import free_ports
from tests.live.harness.clients import wait_until

_CLASSES = "org.apache.spark.deploy"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """The address of the master for `--master`, and the workers' processes; `add_worker` starts another one."""

    master: str
    folder: Path
    workers: list[int]
    add_worker: Callable[[], None]

    def executors(self) -> list[psutil.Process]:
        """The executors of running applications, the oldest first."""
        children = [child for worker in self.workers for child in psutil.Process(worker).children()]
        found = [child for child in children if child.is_running() and _EXECUTOR in _command_of(child)]
        return sorted(found, key=lambda each: float(each.create_time()))

    def lose_a_machine(self) -> None:
        """End the worker of the oldest executor by SIGKILL, with all that runs below it: executor and Python."""
        worker = self.executors()[0].parent()
        lost = [worker, *worker.children(recursive=True)]
        self.workers.remove(worker.pid)
        for process in lost:
            with suppress(psutil.NoSuchProcess):  # ended with the one above it
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(lost, timeout=60)


def _command_of(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


@contextmanager
def spark_cluster(folder: Path, *, workers: int, memory: str = "1g") -> Iterator[SparkCluster]:
    """A master and that many workers of one core, ended with the block; their logs and files are in `folder`."""
    home, java = Path(pyspark.__file__).parent, find_java(os.environ)
    port, page = free_ports(2)
    # Workers find the code under test where a real one has lagcast installed.
    environment = os.environ | {"SPARK_HOME": str(home), "JAVA_HOME": str(java.home), "PYTHONPATH": str(_ROOT)}
    environment |= same_options()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as running:

        def start(name: str, *words: str) -> int:
            log = running.enter_context((folder / f"{name}.log").open("wb"))
            command = [str(home / "bin" / "spark-class"), *words]
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
            running.callback(_ended, process)
            return process.pid

        folder.mkdir(parents=True, exist_ok=True)
        start(
            "master",
            f"{_CLASSES}.master.Master",
            *("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)),
        )
        wait_until(lambda: _state(page) is not None)
        numbers, pids = count(), list[int]()

        def add_worker() -> None:
            name = f"worker-{next(numbers)}"
            words = ("--host", "127.0.0.1", "-c", "1", "-m", memory, "-d", str(folder / name), master)
            pids.append(start(name, f"{_CLASSES}.worker.Worker", *words))
            wait_until(lambda: (_state(page) or {}).get("aliveworkers") == len(pids))

        for _ in range(workers):
            add_worker()
        yield SparkCluster(master, folder, pids, add_worker)


def _state(page: int) -> dict[str, Any] | None:
    """What the master tells of itself; None before it answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
            # The pages of a starting master are added one after the other: until /json is, the answer is that of /.
            return dict(json.load(answer)) if answer.headers.get_content_subtype() == "json" else None
    except OSError:
        return None


def _ended(process: "subprocess.Popen[bytes]") -> None:
    """End the process and those that it has started."""
    started = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.terminate()
    process.wait()
    for child in started:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue


def same_options() -> dict[str, str]:
    """The variable that gives JVMs of executors the options of the driver's."""
    options = os.environ.get("SPARK_SUBMIT_OPTS")
    return {} if options is None else {"JAVA_TOOL_OPTIONS": options}


def submit(cluster: SparkCluster, program: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    """Run a program of Python by spark-submit on the cluster."""
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", cluster.master, str(program)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java(os.environ).home)}
    environment |= {"PYTHONPATH": str(_ROOT)}
    return subprocess.run([*command, *map(str, words)], capture_output=True, text=True, check=False, env=environment)
