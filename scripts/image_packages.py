# ruff: noqa: INP001 - a script, which the Python of an image runs and its test imports
"""Prints the Debian packages of the system that runs it as CycloneDX, each with its source and its licences.

docker run --rm --interactive --entrypoint python3 lagcast - <scripts/image_packages.py >build/sbom-image.json

An image has no more than Python and dpkg, so nothing else is used. Licences are those that a package's copyright file
names, machine-readable (DEP 5) where it is; elsewhere those of /usr/share/common-licenses that it refers to. A file in
prose alone, such as that of python3, has to be read: nothing is told of its licence.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

FIELDS = ("Package", "Version", "Architecture", "source:Package", "source:Version")
_DEP_5 = re.compile(r"^Format:.*copyright-format", re.MULTILINE)
_LICENCE = re.compile(r"^License:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_REFERENCE = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9]+(?:-\d+(?:\.\d+)*)?)")


class Package(NamedTuple):
    """A package that is installed, and the source package that it was built from."""

    name: str
    version: str
    architecture: str
    source: str
    source_version: str


def packages_of(rows: str) -> list[Package]:
    r"""The packages of the lines of dpkg-query, whose fields are tabs apart.

    >>> packages_of("libc6\t2.41-12\tamd64\tglibc\t2.41-12\n")[0].source
    'glibc'
    """
    return [Package(*row.split("\t")) for row in rows.splitlines()]


def licences_of(text: str) -> list[str]:
    r"""What a copyright file names, sorted.

    >>> licences_of("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nLicense: GPL-3+\n")
    ['GPL-3+']
    >>> licences_of("The complete text is in /usr/share/common-licenses/LGPL-2.1.")
    ['LGPL-2.1']
    """
    return sorted(set((_LICENCE if _DEP_5.search(text) else _REFERENCE).findall(text)))


def document_of(packages: Iterable[Package], copyright_of: Callable[[str], str]) -> dict[str, Any]:
    """The packages as CycloneDX.

    Slim images leave out a folder of documents that is a link to that of a package of the same source: its licences are
    those of the others then.
    """
    found = sorted(packages)
    licences = {each.name: licences_of(copyright_of(each.name)) for each in found}
    of_source: dict[str, set[str]] = defaultdict(set)
    for each in found:
        of_source[each.source] |= set(licences[each.name])
    components = [_component(each, licences[each.name] or sorted(of_source[each.source])) for each in found]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}


def _component(package: Package, licences: Iterable[str]) -> dict[str, Any]:
    return {
        "type": "library",
        "name": package.name,
        "version": package.version,
        "purl": f"pkg:deb/debian/{package.name}@{package.version.replace(':', '%3A')}?arch={package.architecture}",
        # Debian's names of licences are not those of SPDX.
        "licenses": [{"license": {"name": licence}} for licence in licences],
        "properties": [{"name": "lagcast:source", "value": f"{package.source} {package.source_version}"}],
    }


def _copyright_of(name: str) -> str:
    path = Path("/usr/share/doc") / name / "copyright"
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def main() -> None:
    """Ask dpkg, and print."""
    form = "\\t".join(f"${{{name}}}" for name in FIELDS) + "\\n"
    rows = subprocess.run(["dpkg-query", "--show", "--showformat", form], check=True, capture_output=True, text=True)  # noqa: S603, S607  # Debian's own, with words of this file
    json.dump(document_of(packages_of(rows.stdout), _copyright_of), sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
