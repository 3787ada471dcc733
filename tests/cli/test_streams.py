"""What commands write, and where: into a pipe, on a terminal, and on the terminal of a CI job.

The pipe's is kept below golden/, a file for each command; `REWRITE=1 pytest tests/cli/test_streams.py` writes them.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.main import main

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).with_name("golden")
# Wider than every table, so that no cell is folded.
COLUMNS = 250
# What a bar has drawn and taken away again, on a machine that is slow enough for one.
ERASED = re.compile(r"[^\r\n]*(?:\r?\n)?\r?(?:\x1b\[1A)?\x1b\[2K")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# The commands that can be run without a demo, a broker and a cluster; `doctor` says in a sentence what it lacks.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "help": ("--help",),
    "config": ("config", "show", "--config", "lagcast.yaml", "--changed"),
    "scan": ("scan", "--features", "features", "--now", "latest", "--config", "lagcast.yaml"),
    "explain": ("explain", "orders", "--config", "lagcast.yaml"),
    "holds": ("holds", "--config", "lagcast.yaml"),
    "doctor": ("doctor", "--kubernetes", "shop", "--kubeconfig", "nowhere"),
}
WITH_FILES = ("config", "scan", "explain", "holds")


class Written(NamedTuple):
    """What a command has written, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(feature_table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with settings, a feature table, and a store with a decision and a hold."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("LAGCAST_STATE_DIR", "LAGCAST_STORE_URL"):
        monkeypatch.delenv(name, raising=False)
    Path("lagcast.yaml").write_text(
        "decision: {price_per_replica_hour: 0.05}\ngroups:\n  '*': {capacity_messages_per_second_per_replica: 1000}\n"
    )
    table = feature_table.name
    assert main(["recommend", "--features", table, "--now", "latest", "--config", "lagcast.yaml"]) == 0
    assert main(["hold", "--group", "orders", "--reason", "a sale", "--config", "lagcast.yaml"]) == 0
    return tmp_path


Run = Callable[..., Written]


@pytest.fixture
def run(folder: Path) -> Run:
    """`run(words, terminal=False, **variables)`: the command as a process, in the folder."""

    def running(words: tuple[str, ...], *, terminal: bool = False, **variables: str) -> Written:
        known = {name: value for name, value in os.environ.items() if name not in {"CI", "NO_COLOR", "COLUMNS"}}
        known |= {"TERM": "xterm-256color", "PYTHONUTF8": "1", **variables}
        command = [sys.executable, "-m", "cli.main", *words]
        if terminal:
            return _on_a_terminal(command, known, folder)
        done = subprocess.run(command, env=known, cwd=folder, capture_output=True, check=False)
        return Written(done.returncode, done.stdout.decode(), done.stderr.decode())

    return running


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_gets_data_and_stderr_the_talk(run: Run, name: str) -> None:
    """Both are what they were, without colour and without a moving cursor."""
    written = run(COMMANDS[name])
    assert "\x1b" not in written.out + written.err
    assert "\r" not in written.out + written.err
    text = f"exit code {written.code}\n--- stdout\n{written.out}--- stderr\n{written.err}"
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())  # help fills its lines with blanks
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "INSTANT", text)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("REWRITE"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        *((name, {"CI": "true"}) for name in WITH_FILES),
        ("holds", {"NO_COLOR": "1"}),
        ("holds", {"TERM": "dumb"}),
    ],
    ids=str,
)
def test_a_terminal_that_wants_nothing_drawn_gets_what_a_pipe_gets(
    run: Run, name: str, variables: Mapping[str, str]
) -> None:
    """Byte for byte: a log of CI is read as a file."""
    assert run(COMMANDS[name], terminal=True, **variables) == run(COMMANDS[name])


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_terminal_gets_the_same_words(run: Run, name: str) -> None:
    """Drawn, and on the same streams."""
    drawn, piped = run(COMMANDS[name], terminal=True), run(COMMANDS[name])
    assert drawn.code == piped.code
    assert "\x1b[1m" in drawn.out  # headings are bold
    for on_terminal, in_pipe in ((drawn.out, piped.out), (drawn.err, piped.err)):
        assert ESCAPE.sub("", ERASED.sub("", on_terminal)).split() == in_pipe.split()


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_file_has_what_a_pipe_gets(run: Run, folder: Path, name: str) -> None:
    """On a terminal too; stderr is the same, and stdout has nothing."""
    piped = run(COMMANDS[name])
    written = run((*COMMANDS[name], "--output-file", "answer"), terminal=True)
    assert (folder / "answer").read_bytes() == piped.out.encode()
    stays = ESCAPE.sub("", ERASED.sub("", written.err)).replace("\r", "")
    assert (written.code, written.out, stays) == (piped.code, "", piped.err)


def _on_a_terminal(command: list[str], variables: Mapping[str, str], folder: Path) -> Written:
    """The command with a terminal as its stdout and another one as its stderr."""
    read: dict[str, bytes] = {}
    ours, theirs = zip(*(pty.openpty() for _ in range(2)), strict=True)
    for end in theirs:
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    with subprocess.Popen(command, env=dict(variables), cwd=folder, stdout=theirs[0], stderr=theirs[1]) as process:
        for end in theirs:
            os.close(end)

        def read_all(name: str, end: int) -> None:
            found = b""
            while True:
                try:
                    part = os.read(end, 65536)
                except OSError:  # Linux's word for the end of a terminal
                    break
                if not part:
                    break
                found += part
            read[name] = found

        readers = [threading.Thread(target=read_all, args=each) for each in zip(("out", "err"), ours, strict=True)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    for end in ours:
        os.close(end)
    out, err = (read[name].decode().replace("\r\n", "\n") for name in ("out", "err"))
    return Written(process.returncode, out, err)
