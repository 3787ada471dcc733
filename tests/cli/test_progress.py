"""The progress that commands print to stderr."""

import os
import pty
import subprocess
import sys

import pytest

from cli.progress import Talk

PROGRAM = """
import time
from cli.progress import Talk
talk = Talk()
with talk.running():
    with talk.stage("Spark", "starting the JVM") as stage:
        time.sleep(0.3)
        stage.note = "4.3.0 local[2]"
    talk.line("[done] in full, however long a line may be " * 5)
"""


def test_off_a_terminal_there_are_whole_lines_only(capsys: pytest.CaptureFixture[str]) -> None:
    """A stage prints its name when it starts, and its note and seconds when it ends, without cursor movement."""
    talk = Talk()
    with talk.running(), talk.stage("Spark", "starting the JVM") as stage:
        stage.note = "4.3.0 local[2]"
    out, err = capsys.readouterr()
    assert out == ""
    waiting, done = err.splitlines()
    assert waiting.split() == ["..", "Spark", "starting", "the", "JVM"]
    assert done.split()[1:4] == ["Spark", "4.3.0", "local[2]"]
    assert done.endswith(" s")
    assert "\x1b" not in err


def test_a_stage_that_fails_is_not_printed_as_done(capsys: pytest.CaptureFixture[str]) -> None:
    """A failed stage has no line with a tick, and its error is raised."""

    def fail() -> None:
        with Talk().stage("Spark"):
            message = "boom"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="boom"):
        fail()
    assert capsys.readouterr().err == ""


def test_on_a_terminal_a_spinner_turns_and_leaves_only_lines() -> None:
    """While a stage runs its name is on screen, and afterwards the same lines as without a terminal are left, uncut."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the child has ended
            break
    os.close(ours)
    assert child.wait(timeout=10) == 0
    text = shown.decode()
    assert "starting the JVM" in text
    assert "4.3.0 local[2]" in text
    assert "[done] in full" in text
