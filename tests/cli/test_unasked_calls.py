"""P21: nothing is called that is not configured: commands run with a trap for every connection they begin."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

# Python imports a module of this name first. Of every connection that the process begins it writes down where to, and
# every name that it asks for; Python calls the hook before the call is made, whichever library makes it.
TRAP = """
import os, sys

def heard(event, details):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        where = details[1]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        where = details[0]
    else:
        return
    with open(os.environ["TRAPPED"], "a") as file:
        file.write(f"{event} {where}\\n")

sys.addaudithook(heard)
"""


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """The file that is written at the first call."""
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "sitecustomize.py").write_text(TRAP)
    return tmp_path / "trapped"


@pytest.fixture
def environment(trapped: Path, tmp_path: Path) -> dict[str, str]:
    """The variables of a process that is in the trap; none of lagcast's own is set but the state folder."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAGCAST_", "KUBE"))}
    path = os.pathsep.join([str(tmp_path / "trap"), *filter(None, [os.environ.get("PYTHONPATH"), str(Path.cwd())])])
    return own | {"PYTHONPATH": path, "TRAPPED": str(trapped), "LAGCAST_STATE_DIR": str(tmp_path / "state")}


def calls(trapped: Path) -> list[str]:
    """The calls that were made."""
    return trapped.read_text().splitlines() if trapped.exists() else []


@pytest.mark.parametrize(
    "call",
    [
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.1', 9))",
        "import socket; socket.getaddrinfo('localhost', 80)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('127.0.0.1', 9))",
    ],
    ids=["a connection", "a name", "a datagram"],
)
def test_the_trap_catches(trapped: Path, environment: dict[str, str], call: str) -> None:
    """Each way of calling out is written down, so that an empty file means that there was no call."""
    subprocess.run([sys.executable, "-c", call], env=environment, check=True)
    assert len(calls(trapped)) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["recommend", "--features", "FEATURES", "--now", "latest"],
        ["recommend", "--features", "FEATURES", "-o", "json"],
        ["--version"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_p21_commands_on_a_folder_call_nobody(
    feature_table: Path, trapped: Path, environment: dict[str, str], arguments: list[str]
) -> None:
    """Advice from a folder begins no connection and asks for no name: no telemetry, no update check, no licence."""
    given = [str(feature_table) if argument == "FEATURES" else argument for argument in arguments]
    command = [sys.executable, "-m", "cli.main", *given]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert calls(trapped) == []


@pytest.fixture
def address(feature_table: Path, environment: dict[str, str]) -> Iterator[str]:
    """A running `lagcast serve` over a folder, on a port of its own; on its end it has stopped as on Ctrl-C."""
    command = [sys.executable, "-m", "cli.main", "serve", "--features", str(feature_table), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found is not None
        for _ in range(2):  # a line for each of the two groups ends the first cycle
            process.stderr.readline()
        yield found[0]
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


@pytest.mark.slow
@pytest.mark.alone
def test_p21_the_service_answers_and_calls_nobody(address: str, trapped: Path) -> None:
    """A cycle, every page of the root, and the end: the service accepts connections and begins none."""
    for page in httpx2.get(address, timeout=10).json().values():
        assert httpx2.get(f"{address}/{page}", timeout=10).status_code == 200
    # The address that it listens on is looked up, without asking anybody: it is a number.
    assert [call for call in calls(trapped) if not call.startswith("socket.getaddrinfo 127.0.0.1")] == []
