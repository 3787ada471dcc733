"""What the Makefile tells pytest."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_live_tests_stand_where_the_live_steps_look_for_them() -> None:
    """A test elsewhere that needs a broker or a JVM would be run by no step."""
    (folders,) = re.findall(r"^LIVE_FOLDERS := (.*)$", MAKEFILE, flags=re.MULTILINE)
    (marks,) = re.findall(r"^LIVE := (.*)$", MAKEFILE, flags=re.MULTILINE)
    marked = re.compile(rf"mark\.({'|'.join(marks.split(' or '))})\b")
    sources = [path for path in (ROOT / "tests").rglob("*.py") if marked.search(path.read_text(encoding="utf-8"))]
    assert len(sources) > 50
    elsewhere = [path for path in sources if not any((ROOT / each) in path.parents for each in folders.split())]
    assert elsewhere == []


def test_steps_without_doctests_run_with_all_other_options_of_pytest() -> None:
    """The options stand in two files."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (options,) = re.findall(r"^addopts = \[(.*)\]$", project, flags=re.MULTILINE)
    (given,) = re.findall(r'^WITHOUT_DOCTESTS := -o addopts="(.*)"$', MAKEFILE, flags=re.MULTILINE)
    assert ["--doctest-modules", *given.split()] == re.findall(r'"([^"]+)"', options)
