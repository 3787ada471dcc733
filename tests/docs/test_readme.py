"""The pages are correct: commands exist, links lead to files, and exit codes are those of the code."""

import re
import shlex
import subprocess
from itertools import takewhile
from pathlib import Path

import pytest

from cli.errors import ExitCode
from cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Commands such as `lagcast export hpa ...`, each of which has options of its own.
COMMANDS_OF_SEVERAL = ("export",)


def _commands(page: Path) -> list[list[str]]:
    """Every `lagcast ...` that a page shows at a prompt, without comments and without the commands it is piped into."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    prompts = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    commands = [list(takewhile("|".__ne__, shlex.split(prompt, comments=True))) for prompt in prompts]
    return [[Path(first).name, *rest] for first, *rest in commands if Path(first).name == "lagcast"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_on_a_page_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each option that a page shows is in the help of its command."""
    for _, command, *arguments in _commands(page):
        whole = [command, arguments[0]] if command in COMMANDS_OF_SEVERAL else [command]
        assert main([*whole, "--help"]) == ExitCode.OK
        known = capsys.readouterr().out
        assert [argument for argument in arguments if argument.startswith("-") and argument not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file or a folder of this repository."""
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_mark_of_an_unfinished_merge(page: Path) -> None:
    """Git's marks of a conflict are text to Markdown, and would be published."""
    assert re.findall(r"^(?:<{7}|={7}|>{7})(?: .*)?$", page.read_text(), re.MULTILINE) == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_targets_named_on_a_page_exist(page: str) -> None:
    """Each `make ...` is a target that `make` prints."""
    printed = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    targets = set(re.findall(r"^ +make ([a-z-]+) ", printed.stdout, re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)`|\$ make ([a-z-]+)", (ROOT / page).read_text()))
    assert {first or second for first, second in named} <= targets


def test_the_table_of_exit_codes_is_that_of_the_code() -> None:
    """docs/operations.md has a row for every exit code and for no other."""
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    assert [int(row) for row in rows] == [code.value for code in ExitCode]
