"""What is delivered is named with its licence, and a list for machines has the versions of the lock."""

import json
import re
import subprocess
import sys
from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path
from unittest.mock import Mock

import pytest

from scripts.licences_page import licence_of, packages, page

ROOT = Path(__file__).parents[2]


def declared(**fields: str) -> Distribution:
    """A package that declares this of itself."""
    metadata = Message()
    for name, value in fields.items():
        metadata[name.replace("_", "-")] = value
    return Mock(metadata=metadata, version="1.0")


def test_every_package_that_is_needed_to_run_is_on_the_page_as_it_is_declared() -> None:
    """A package that is added, or changes its licence, changes the page: `make docs`."""
    text = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    assert [part for part in page(packages()) if part not in text] == []
    assert len(packages()) > 50


def test_a_package_under_copyleft_is_not_taken_in_by_chance() -> None:
    """Somebody has to say how it is kept apart."""
    with pytest.raises(LookupError, match=r"wanted is under GPL-3\.0-only: say in APART how it is kept apart"):
        list(page([declared(Name="wanted", License_Expression="GPL-3.0-only")]))


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License_Expression": "MIT OR Apache-2.0", "License": "see LICENSE"}, "MIT OR Apache-2.0"),
        ({"Classifier": "License :: OSI Approved :: BSD License", "License": "3-clause"}, "BSD License"),
        ({"License": "Apache License\n\nVersion 2.0"}, "Apache License"),
        ({}, "not declared"),
    ],
)
def test_a_licence_is_read_where_the_package_declares_it(fields: dict[str, str], licence: str) -> None:
    """The newest way first."""
    assert licence_of(declared(Name="any", **fields)) == licence


def has_a_notice(package: Distribution) -> bool:
    """True for a file NOTICE of its own, which the Apache License asks to pass on."""
    return any(re.fullmatch(r"NOTICE(\.\w+)?", file.name) for file in package.files or ())


def test_the_notice_names_every_package_that_has_one_of_its_own() -> None:
    """With its place; a package that is added, or begins to have one, is missing here."""
    text = (ROOT / "NOTICE").read_text(encoding="utf-8")
    (named,) = re.findall(r"have a NOTICE of their own[^:]+:\s+([^.]+)\.", text)
    found = {package.metadata["Name"] for package in packages() if has_a_notice(package)}
    assert {*re.split(r",\s+|\s+and\s+", named)} == found
    assert {"pyspark", "pyarrow"} <= found
    assert (ROOT / "api" / "static" / "echarts" / "NOTICE").exists()
    assert "api/static/echarts/echarts.min.js is Apache ECharts" in text


@pytest.mark.slow
def test_the_list_for_machines_has_the_versions_of_the_lock() -> None:
    """Every component is pinned, and has the hashes of its files."""
    subprocess.run([sys.executable, str(ROOT / "scripts" / "sbom.py")], check=True, capture_output=True)
    found = json.loads((ROOT / "build" / "sbom.json").read_text(encoding="utf-8"))
    lock = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    pinned = {(name.lower(), version) for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, re.MULTILINE)}
    components = {(each["name"].lower(), each["version"]) for each in found["components"]}
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    assert components <= pinned
    assert {"pyspark", "confluent-kafka", "kubernetes", "grpcio", "psycopg"} <= {name for name, _ in components}
    assert all(reference["hashes"] for each in found["components"] for reference in each["externalReferences"])
