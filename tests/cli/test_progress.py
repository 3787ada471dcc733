"""The progress that commands print to stderr."""

import os
import pty
import re
import subprocess
import sys
import time

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


FAR = """
import time
from cli import progress
progress.UNSEEN_SECONDS = 0.1
talk = progress.Talk()
with talk.running():
    with talk.stage("features", "the Spark job") as stage:
        stage.show(41, 1064, "tasks")
        time.sleep(0.3)
        stage.note = "rows"
    with talk.bar("decisions") as stage:
        stage.show(1, 90, "groups")
        time.sleep(0.2)
        stage.show(2, 90, "groups")
        time.sleep(0.3)
"""


LEFT = """
import time
from cli import progress
talk = progress.Talk()
with talk.running(), talk.stage("hindsight", "looking for the best plan of those that see everything"):
    with talk.stage("lagcast", "its own replay, a decision a minute") as stage:
        stage.show(1, 10_080, "minutes of load")
        time.sleep(0.3)
        stage.show(10_000, 10_080, "minutes of load")
        time.sleep(0.3)
        stage.show(10_080, 10_080, "minutes of load")
        time.sleep(0.3)
"""


def on_a_terminal(program: str, *, columns: int = 120) -> str:
    """What the program shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    known = {name: value for name, value in os.environ.items() if name not in {"CI", "NO_COLOR"}}
    environment = {**known, "TERM": "xterm", "COLUMNS": f"{columns}"}
    child = subprocess.Popen([sys.executable, "-c", program], stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the child has ended
            break
    os.close(ours)
    assert child.wait(timeout=10) == 0
    return shown.decode()


def test_on_a_terminal_a_stage_has_a_bar_as_soon_as_it_is_known_how_far_it_is() -> None:
    """And one without a line of its own is seen from the moment on from which people wonder."""
    text = on_a_terminal(FAR)
    assert "━" in text
    assert "41 of 1,064 tasks" in text
    assert "1 of 90 groups" not in text
    assert "2 of 90 groups" in text
    assert "━" not in on_a_terminal(PROGRAM)


def test_the_time_that_is_left_is_told_once_a_speed_was_seen() -> None:
    """Whole seconds: 80 minutes of load at 9,999 in 0.3 s are one. It stands beside the time that the stage took.

    Nothing is told before a speed was seen, nor at the end. 80 columns suffice beside a stage whose text is cut.
    """
    control = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
    drawn = [control.sub("", line).rstrip() for line in re.split(r"[\r\n]+", on_a_terminal(LEFT, columns=80))]
    known = [line for line in drawn if "minutes of load" in line]
    assert max(map(len, known)) <= 80
    assert "everything" not in "".join(line for line in drawn if "looking for" not in line)
    assert {"1 of 10,080" in line for line in known if "eta" not in line} == {True, False}
    told = [line.partition("minutes of load")[2] for line in known if "eta" in line]
    assert told
    assert all(re.fullmatch(r" +0:00:0\d eta 1 s", line) for line in told)
    assert all("10,000 of 10,080" in line for line in known if "eta" in line)
    assert "eta" not in on_a_terminal(FAR.partition("    with talk.bar")[0]) + on_a_terminal(PROGRAM)


def test_off_a_terminal_nobody_is_told_how_far_a_stage_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A log has one line for each stage; a page is told once a second."""
    told: list[tuple[str, str, float | None]] = []
    talk = Talk(lambda *words: told.append(words))
    with talk.running(), talk.stage("features", "the Spark job") as stage:
        stage.show(1, 64, "tasks")
        time.sleep(1.1)
        stage.show(41, 64, "tasks")
        stage.show(42, 64, "tasks")
        stage.note = "rows"
    with talk.running(), talk.bar("decisions") as stage:
        stage.show(1, 90, "groups")
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert [words[:2] for words in told] == [
        ("features", "the Spark job"),
        ("features", "the Spark job: 41 of 64 tasks"),
        ("features", "rows"),
    ]


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
    text = on_a_terminal(PROGRAM)
    assert "starting the JVM" in text
    assert "4.3.0 local[2]" in text
    assert "[done] in full" in text
