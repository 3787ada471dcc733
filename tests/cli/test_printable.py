"""A group may be called anything: whatever a command prints, a terminal obeys none of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.instants import read_clock
from cli.printable import printable, printable_json
from cli.progress import Talk
from tests.feature_folder import steady_hour

Lagcast = Callable[..., tuple[int, str, str]]
# Clears the screen, sets the title, the same by the one-byte introducer, and turns the line around.
NAME = "a\x1b[2J\x1b]0;owned\x07\x9b31m\u202eb"
SHOWN = r"a\x1b[2J\x1b]0;owned\x07\x9b31m\u202eb"
HOLD = ("hold", "--group", NAME, "--reason", NAME)


def obeyed(text: str) -> list[str]:
    """Characters that are neither shown nor the end of a line."""
    return [each for each in text if not each.isprintable() and each not in "\r\n"]


@pytest.fixture
def kept(lagcast: Lagcast, tmp_path: Path) -> Path:
    """Settings with which advice on that group has been kept."""
    config = tmp_path / "lagcast.yaml"
    config.write_text('groups:\n  "*":\n    capacity_messages_per_second_per_replica: 1000\n')
    table = steady_hour(tmp_path / "features", (NAME,), end_at=read_clock())
    code, out, err = lagcast("recommend", "--features", table, "--config", config)
    assert (code, obeyed(out + err)) == (0, [])
    assert out.startswith(SHOWN)
    return config


@pytest.mark.parametrize(
    "words",
    [
        ("explain", NAME),
        ("explain", NAME, "-o", "json"),
        ("explain", NAME, "-o", "csv"),
        ("explain", "another"),
        ("explain", f"another {NAME}"),
        HOLD,
        ("hold", "--group", f"another {NAME}", "--reason", "none"),
        ("export", "hpa", NAME, "--cluster", "c"),
        ("export", "keda", NAME, "--cluster", "c", "--prometheus", "http://p"),
        (NAME,),
    ],
)
def test_no_command_prints_what_a_terminal_obeys(lagcast: Lagcast, kept: Path, words: tuple[str, ...]) -> None:
    """Answers, errors and suggestions alike have the escape in place of the character."""
    given_words = words if words == (NAME,) else (*words, "--config", str(kept))
    _, out, err = lagcast(*given_words)
    assert out + err
    assert obeyed(out + err) == []


def test_holds_are_listed_with_the_escapes(lagcast: Lagcast, kept: Path) -> None:
    """As a table and as CSV; JSON has the name itself, by its own escapes."""
    assert lagcast(*HOLD, "--config", str(kept))[0] == 0
    for output in ("table", "csv"):
        out = lagcast("holds", "--config", str(kept), "-o", output)[1]
        assert SHOWN in out
        assert obeyed(out) == []
    out = lagcast("holds", "--config", str(kept), "-o", "json")[1]
    assert obeyed(out) == []
    assert NAME in json.loads(out)[0].values()


def test_progress_has_the_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """What is said on stderr while a command runs stays on its own lines."""
    Talk().line(f"no offsets of {NAME}\nand none of others")
    assert capsys.readouterr().err == f"no offsets of {SHOWN}\nand none of others\n"


@given(st.text())
def test_a_name_is_one_line_and_json_keeps_it(name: str) -> None:
    """Any name is printable, a name that is so already is untouched, and JSON reads as before."""
    assert printable(name).isprintable()
    assert printable(name) == name or not name.isprintable()
    document = json.dumps({"name": name}, ensure_ascii=False)
    assert obeyed(printable_json(document)) == []
    assert json.loads(printable_json(document)) == {"name": name}
