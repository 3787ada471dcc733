# ruff: noqa: INP001, T201 - a script is run, never imported, and prints
"""Runs every step, also after a failed step, runs failed live tests a second time, and prints a summary at the end.

    run_steps.py [--beside NAME COMMAND]... [--along NAME COMMAND]... [--step NAME COMMAND]... [--under NAME COMMAND]...
        [--live NAME COMMAND]...

A step is a shell command, which fails with any exit code but 0. Steps run one after the other in the order given, the
live steps last. A step of `--along` starts with the first step, and its output is kept: it is shown after the first
step that ends later, and before the live steps. It is for steps that compute in one process only.

A step of `--under` starts with the last live step, at low priority: it takes the computing time that this one leaves,
and is shown after it.

A command of `--beside` runs at low priority beside all steps and is ended with them: it prepares parts that tests would
otherwise wait for, and has no effect on the result.

A live step is a call of pytest with tests of real brokers, clusters and servers only. Its failed tests run once more,
alone, after all steps. A test that passes then is flaky: it is printed and counted, and is no failure. Two flaky tests
in one run are a failure.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

_TESTS_FAILED = 1  # pytest's exit code after a complete run with failed tests
_FLAKY_LIMIT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one step: its exit code, its duration, and the failed tests of a live step."""

    name: str
    code: int
    seconds: float
    failed: tuple[str, ...] = ()

    @property
    def may_be_flaky(self) -> bool:
        """True if tests failed and nothing else did: a file that cannot be imported is not run again."""
        return self.code == _TESTS_FAILED and bool(self.failed) and all("::" in test for test in self.failed)


def main(words: Sequence[str]) -> int:
    """Run the steps of the command line; 0 if nothing failed."""
    parser = argparse.ArgumentParser(description="Runs every step, and sums up last.")
    for option in ("--beside", "--along", "--step", "--under", "--live"):
        parser.add_argument(option, nargs=2, action="append", default=[], metavar=("NAME", "COMMAND"))
    given = parser.parse_args(words)
    began = time.monotonic()
    with running_beside(given.beside), running_along(given.along) as along:
        outcomes = []
        for name, command in given.step:
            outcomes += [run(name, command), *along.ended()]
        outcomes += along.ended(wait=True)
        outcomes += [run_live(name, command) for name, command in given.live[:-1]]
        with running_along([(name, at_low_priority(command)) for name, command in given.under]) as under:
            outcomes += [run_live(name, command) for name, command in given.live[-1:]]
            outcomes += under.ended(wait=True)
        outcomes, flaky = run_again(outcomes)
    return sum_up(outcomes, flaky, seconds=time.monotonic() - began)


def at_low_priority(command: str) -> str:
    """The command at the lowest priority, among the processes of its session and among sessions.

    Linux may weigh sessions against each other: a low priority counts within the session alone then.
    """
    return f"(echo 19 > /proc/self/autogroup) 2>/dev/null; exec nice -n 19 sh -c {shlex.quote(command)}"


def run(name: str, command: str, *, environment: dict[str, str] | None = None) -> Outcome:
    """Run one step in a shell, its output on this terminal."""
    print(f"== {name}", flush=True)
    began = time.monotonic()
    code = subprocess.run(command, shell=True, check=False, env=environment).returncode  # noqa: S602  # of the Makefile
    return Outcome(name=name, code=code, seconds=time.monotonic() - began)


class Along:
    """Steps that were started together; each is reported once, when it has ended."""

    def __init__(self, commands: Sequence[tuple[str, str]]) -> None:
        self._began = time.monotonic()
        self._running = [(name, *self._start(command)) for name, command in commands]

    @staticmethod
    def _start(command: str) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        printed = tempfile.TemporaryFile()  # noqa: SIM115  # open until it is shown
        # A separate process group, so that its child processes end with it.
        process = subprocess.Popen(  # noqa: S602  # of the Makefile
            command, shell=True, start_new_session=True, stdout=printed, stderr=subprocess.STDOUT
        )
        return process, printed

    def ended(self, *, wait: bool = False) -> list[Outcome]:
        """Show and return the steps that ended since the last call; with `wait`, wait for all that still run."""
        outcomes, running = [], []
        for name, process, printed in self._running:
            if process.poll() is None and not wait:
                running.append((name, process, printed))
                continue
            code = process.wait()
            seconds = time.monotonic() - self._began
            printed.seek(0)
            print(f"== {name}\n{printed.read().decode(errors='replace')}", end="", flush=True)
            printed.close()
            outcomes.append(Outcome(name=name, code=code, seconds=seconds))
        self._running = running
        return outcomes

    def end(self) -> None:
        """End the steps that still run, after an interrupt."""
        for _, process, _ in self._running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def run_live(name: str, command: str) -> Outcome:
    """Run one call of pytest, and record which of its tests failed."""
    with tempfile.TemporaryDirectory(prefix="lagcast-steps-") as cache:
        # pytest itself keeps the list of the failed tests, including failures in setup and teardown.
        options = f"{os.environ.get('PYTEST_ADDOPTS', '')} -o cache_dir={shlex.quote(cache)}"
        outcome = run(name, command, environment=os.environ | {"PYTEST_ADDOPTS": options})
        kept = Path(cache) / "v" / "cache" / "lastfailed"
        failed = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    return replace(outcome, failed=tuple(sorted(failed)))


def run_again(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], tuple[str, ...]]:
    """Run the failed tests a second time; returns the outcomes after it, and the flaky tests."""
    tests = [test for outcome in outcomes if outcome.may_be_flaky for test in outcome.failed]
    if not tests:
        return list(outcomes), ()
    words = [sys.executable, "-m", "pytest", "-q", "--durations=15", *tests]
    again = run_live("second-try", shlex.join(words))
    twice = set(again.failed if again.code in (0, _TESTS_FAILED) else tests)
    flaky = tuple(test for test in tests if test not in twice)
    settled = [
        replace(outcome, code=0) if outcome.may_be_flaky and twice.isdisjoint(outcome.failed) else outcome
        for outcome in outcomes
    ]
    return [*settled, again], flaky


def sum_up(outcomes: Sequence[Outcome], flaky: Sequence[str], *, seconds: float) -> int:
    """Print the result of each step, and the flaky tests; returns 0 if nothing failed."""
    for test in flaky:
        print(f"flaky: {test}")
    for outcome in outcomes:
        verdict = "done" if outcome.code == 0 else "FAILED"
        print(f"{outcome.name:<16} {verdict:<6} {outcome.seconds:4.0f} s")
    is_well = all(outcome.code == 0 for outcome in outcomes) and len(flaky) <= _FLAKY_LIMIT
    print(f"{'all':<16} {'done' if is_well else 'FAILED':<6} {seconds:4.0f} s, {len(flaky)} flaky", flush=True)
    return 0 if is_well else 1


@contextmanager
def running_along(commands: Sequence[tuple[str, str]]) -> Iterator[Along]:
    """Start these steps; all of them end with the block."""
    along = Along(commands)
    try:
        yield along
    finally:
        along.end()


@contextmanager
def running_beside(commands: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Run these commands at low priority while the block runs; they and their child processes are ended with it."""
    processes = []
    try:
        for _, command in commands:
            low = at_low_priority(command)
            processes.append(subprocess.Popen(low, shell=True, start_new_session=True))  # noqa: S602  # of the Makefile
        yield
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
