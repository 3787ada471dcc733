"""The app as a whole: help, version, unknown arguments, and the time until it answers."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

Lagcast = Callable[..., tuple[int, str, str]]
COMMANDS = (
    "demo",
    "scan",
    "replay",
    "up",
    "collect",
    "land",
    "history",
    "features",
    "forecast",
    "recommend",
    "serve",
    "explain",
    "import",
    "export",
    "discover",
    "config",
    "doctor",
    "hold",
    "release",
    "holds",
)
# Modules that make a command slow to start; `--help` needs none of them.
HEAVY = {"pyspark", "numpy", "pandas", "pyarrow", "sqlalchemy", "fastapi", "uvicorn", "confluent_kafka", "sklearn"}


def test_help_names_every_command(lagcast: Lagcast) -> None:
    """`lagcast --help` lists all commands on stdout and exits with 0."""
    code, out, err = lagcast("--help")
    assert (code, err) == (0, "")
    assert all(f" {name} " in out for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, lagcast: Lagcast) -> None:
    """`lagcast COMMAND --help` exits with 0 and prints what the command does."""
    code, out, _ = lagcast(command, "--help")
    assert code == 0
    assert f"lagcast {command}" in out


@pytest.mark.parametrize(
    ("words", "found"),
    [("lagcast exp", "explain\nexport"), ("lagcast config show --chan", "--changed"), ("lagcast zz", "")],
)
def test_a_shell_completes_commands_and_options(words: str, found: str) -> None:
    """As bash asks, by variables, after `lagcast --install-completion`."""
    asked = {"_LAGCAST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [str(Path(sys.executable).with_name("lagcast"))]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == found


def test_version_is_the_installed_one(lagcast: Lagcast) -> None:
    """`lagcast --version` prints name and version, nothing else."""
    assert lagcast("--version") == (0, f"lagcast {version('lagcast')}\n", "")


@pytest.mark.parametrize("arguments", [("reply",), ("replay", "--nope"), ("replay",), ("demo", "--days", "many")])
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...], lagcast: Lagcast) -> None:
    """An unknown or missing command or option, or a text where a number is due, is code 2 with a reason on stderr."""
    code, out, err = lagcast(*arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def packages_after(module: str) -> set[str]:
    """The packages that a process has loaded once it has imported the module."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_packages_of_statistics_are_loaded_by_the_first_fit() -> None:
    """`import recommender.run` takes 1.0 s of processor time and 131 MB; with them it took 2.3 s and 273 MB."""
    assert {"pandas", "sklearn", "statsmodels"}.isdisjoint(packages_after("recommender.run"))


def test_a_process_that_lasts_loads_them_after_its_first_cycle() -> None:
    """No later cycle is delayed by that, and none adds 140 MB to a process that has run for days."""
    program = (
        "import sys; from cli.service import _ready_for_fits; instants = _ready_for_fits(iter('abc'));"
        "print(*[(instant, 'sklearn' in sys.modules and 'statsmodels' in sys.modules) for instant in instants]);"
        "import numpy as np; from datetime import UTC, datetime; from forecasting.backtest import history_of;"
        "from forecasting.blend import BlendForecaster; import recommender.run; before = set(sys.modules);"
        "rates = 100.0 + np.arange(4320.0) % 1440; rates[2000] = np.nan;"
        "BlendForecaster().fit(history_of(rates, end_at=datetime(2026, 1, 5, tzinfo=UTC)));"
        "print(sorted(name for name in set(sys.modules) - before if name.split('.')[0] in ('sklearn', 'statsmodels')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "('a', False) ('b', True) ('c', True)\n[]\n"


def test_help_imports_nothing_heavy() -> None:
    """`--help` loads no Spark, no numpy and no web framework, which keeps it under 0.3 s."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert HEAVY.isdisjoint(packages_after("cli.main"))
    # Ten times the processor time that it takes, so that a busy machine does not fail it.
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime < 3.0
