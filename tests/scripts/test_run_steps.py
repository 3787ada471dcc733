"""A run of steps: which steps follow one that failed, which failures a second try excuses, and the summary."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "run_steps.py"
# Fails as often as its file states, over all its runs.
TESTS = """
from pathlib import Path
import pytest

def left(name):
    file = Path(__file__).with_name(name)
    count = int(file.read_text()) if file.exists() else 0
    file.write_text(str(count - 1))
    return count > 0

@pytest.fixture
def server():
    assert not left("server")

def test_steady():
    pass

@pytest.mark.parametrize("way", ["in the call"])
def test_flaky(way):
    assert not left("flaky")

def test_set_up(server):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three tests, which pass; a number in the file `flaky` or `server` is how often one of them fails."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_live.py").write_text(TESTS, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Exit code of a run in that folder, and the lines that it printed."""
    # Plugins are not loaded, as importing them all takes longer than these tests.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment)
    return done.returncode, done.stdout.splitlines()


def summary(lines: list[str]) -> list[tuple[str, str]]:
    """Name and verdict of each step, from the last lines that were printed."""
    last = max(number for number, line in enumerate(lines) if line.startswith(("==", "flaky:")) or " in " in line)
    return [(line[:16].rstrip(), line.split()[1]) for line in lines[last + 1 :]]


PYTEST = f"{sys.executable} -m pytest -q"


def test_a_step_that_failed_stops_none_after_it(folder: Path) -> None:
    """Each step runs, and the summary comes last, with the failures of each step."""
    code, lines = run(folder, "--step", "lint", "exit 3", "--step", "pure", "echo computed", "--live", "live", PYTEST)
    assert code == 1
    assert "computed" in lines
    assert any(line.startswith("3 passed in") for line in lines)
    assert summary(lines) == [("lint", "FAILED"), ("pure", "done"), ("live", "done"), ("all", "FAILED")]


@pytest.mark.parametrize(
    ("kind", "test"), [("flaky", "test_live.py::test_flaky[in the call]"), ("server", "test_live.py::test_set_up")]
)
def test_a_live_test_that_passes_the_second_time_is_flaky(folder: Path, kind: str, test: str) -> None:
    """The test is named and counted as flaky and the run passes, whether the test or its set-up failed."""
    (folder / kind).write_text("1", encoding="utf-8")
    code, lines = run(folder, "--step", "pure", "true", "--live", "live", PYTEST)
    assert code == 0
    assert [line for line in lines if line.startswith("flaky:")] == [f"flaky: {test}"]
    assert lines[-1].endswith("1 flaky")
    assert summary(lines) == [("pure", "done"), ("live", "done"), ("second-try", "done"), ("all", "done")]


@pytest.mark.slow
def test_a_live_test_under_xdist_has_a_second_try(folder: Path) -> None:
    """A test that failed in a process of its own is found like any other."""
    (folder / "flaky").write_text("1", encoding="utf-8")
    code, lines = run(folder, "--live", "live", f"{PYTEST} -p xdist -n 1")
    assert (code, lines[-1].split()[-2:]) == (0, ["1", "flaky"])


def test_two_flaky_tests_are_a_failure(folder: Path) -> None:
    """Both flaky tests are named, and the run fails although each of them passed in the end."""
    for kind in ("flaky", "server"):
        (folder / kind).write_text("1", encoding="utf-8")
    code, lines = run(folder, "--live", "live", PYTEST)
    assert code == 1
    assert sum(line.startswith("flaky:") for line in lines) == 2
    assert summary(lines) == [("live", "done"), ("second-try", "done"), ("all", "FAILED")]


def test_a_live_test_that_fails_twice_is_a_failure(folder: Path) -> None:
    """The step of a test that fails twice has failed, and the test beside it that passed is still flaky."""
    (folder / "flaky").write_text("2", encoding="utf-8")
    (folder / "server").write_text("1", encoding="utf-8")
    code, lines = run(folder, "--live", "live", PYTEST, "--live", "timed", "true")
    assert code == 1
    assert [line for line in lines if line.startswith("flaky:")] == ["flaky: test_live.py::test_set_up"]
    assert summary(lines) == [("live", "FAILED"), ("timed", "done"), ("second-try", "FAILED"), ("all", "FAILED")]


def test_a_pure_test_has_no_second_try(folder: Path) -> None:
    """A pure computation gives the same result each time, so that a second try would hide a fault."""
    (folder / "flaky").write_text("1", encoding="utf-8")
    code, lines = run(folder, "--step", "pure", PYTEST)
    assert (code, summary(lines)) == (1, [("pure", "FAILED"), ("all", "FAILED")])


@pytest.mark.parametrize("broken", ["raise OSError", ""], ids=["unreadable", "no-tests"])
def test_a_live_step_that_did_not_run_its_tests_has_no_second_try(folder: Path, broken: str) -> None:
    """A file that cannot be collected and a step without tests are failures of the step."""
    (folder / "test_live.py").write_text(broken, encoding="utf-8")
    code, lines = run(folder, "--live", "live", PYTEST)
    assert (code, summary(lines)) == (1, [("live", "FAILED"), ("all", "FAILED")])


def test_a_step_that_runs_along_delays_no_other(folder: Path) -> None:
    """It begins with the first step, and is printed with its verdict as soon as a step ends after it."""
    along = "echo typed; : > typed; exit 1"
    step = "until test -e typed; do sleep 0.01; done; sleep 0.2"
    code, lines = run(folder, "--along", "types", along, "--step", "first", step, "--step", "second", "echo 3 in all")
    assert code == 1
    assert lines.index("== first") < lines.index("typed") < lines.index("== second") < lines.index("3 in all")
    assert summary(lines) == [("first", "done"), ("types", "FAILED"), ("second", "done"), ("all", "FAILED")]


def test_live_steps_begin_after_the_steps_that_run_along(folder: Path) -> None:
    """Live steps, which have limits in seconds, wait for the steps that run along."""
    along = "until test -e begun; do sleep 0.01; done; sleep 0.2; echo typed"
    code, lines = run(folder, "--along", "types", along, "--step", "first", ": > begun", "--live", "live", PYTEST)
    assert code == 0
    assert lines.index("== types") < lines.index("typed") < lines.index("== live")
    assert summary(lines) == [("first", "done"), ("types", "done"), ("live", "done"), ("all", "done")]


def test_a_step_under_the_live_ones_starts_with_the_last_of_them(folder: Path) -> None:
    """The last live step does not wait for it; it has the lowest priority, is shown after that step, and may fail."""
    last = f"until test -e begun; do sleep 0.01; done; {PYTEST}"
    under = ": > begun; sleep 0.5; nice; echo 1 failed in 0.5s; exit 1"
    first = f"test ! -e begun && {PYTEST}"
    code, lines = run(
        folder, "--under", "slow", under, "--step", "first", "true", "--live", "live", first, "--live", "timed", last
    )
    assert code == 1
    assert lines.index("== live") < lines.index("== timed") < lines.index("== slow")
    assert lines[lines.index("== slow") + 1] == str(min(os.nice(0) + 19, 19))
    assert summary(lines) == [
        ("first", "done"),
        ("live", "done"),
        ("timed", "done"),
        ("slow", "FAILED"),
        ("all", "FAILED"),
    ]


def test_a_step_under_no_live_one_runs_after_the_steps(folder: Path) -> None:
    """Without a live step it is run, shown and judged as any step."""
    code, lines = run(folder, "--under", "slow", "echo 1 failed in 0.5s; exit 1", "--step", "first", "true")
    assert code == 1
    assert lines.index("== first") < lines.index("== slow") < lines.index("1 failed in 0.5s")
    assert summary(lines) == [("first", "done"), ("slow", "FAILED"), ("all", "FAILED")]


def test_a_program_that_runs_beside_ends_with_the_steps(folder: Path) -> None:
    """It is started before the first step, ends with the last one, and has no verdict."""
    beside = "echo begun > begun; sleep 600; echo over > over"
    step = "until test -s begun; do sleep 0.01; done"
    code, lines = run(folder, "--beside", "parts", beside, "--step", "pure", step)
    assert (code, summary(lines)) == (0, [("pure", "done"), ("all", "done")])
    assert not (folder / "over").exists()


def test_a_program_that_runs_beside_has_a_low_priority(folder: Path) -> None:
    """It has the lowest priority within its session, and where Linux weighs sessions its session has it too."""
    beside = "nice > own; cat /proc/self/autogroup > session; : > read; sleep 600"
    run(folder, "--beside", "parts", beside, "--step", "pure", "until test -e read; do sleep 0.01; done")
    assert (folder / "own").read_text(encoding="utf-8").strip() == str(min(os.nice(0) + 19, 19))
    weighed = Path("/proc/self/autogroup").exists()
    assert (folder / "session").read_text(encoding="utf-8").strip().endswith("nice 19" if weighed else "")
