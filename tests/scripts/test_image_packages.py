"""The Debian packages of an image: each with its source package, and the licences that its copyright file names."""

from typing import Any

from scripts.image_packages import Package, document_of, licences_of, packages_of

DEP_5 = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
BASH = (
    DEP_5
    + "\nFiles: *\nCopyright: FSF\nLicense: GPL-3+\n\nFiles: doc/*\nLicense: GFDL-1.3+ \n text\n\nLicense: GPL-3+\n"
)
LIBC = "The GNU C Library. License: see\n`/usr/share/common-licenses/LGPL-2.1', and /usr/share/common-licenses/GPL-2.\n"
ROWS = (
    "libc6\t2.41-12\tamd64\tglibc\t2.41-12\n"
    "bash\t5.2.37-2+b5\tamd64\tbash\t5.2.37-2\n"
    "libc-bin\t1:2.41-12\tamd64\tglibc\t2.41-12\n"
)


def shown(document: dict[str, Any], name: str) -> dict[str, Any]:
    (component,) = [each for each in document["components"] if each["name"] == name]
    return dict(component)


def licences(component: dict[str, Any]) -> list[str]:
    return [each["license"]["name"] for each in component["licenses"]]


def test_each_package_has_its_source_and_an_address_of_its_version() -> None:
    """A build of the same source again (`+b5`) has another version than its source."""
    document = document_of(packages_of(ROWS), {"bash": BASH, "libc6": LIBC, "libc-bin": ""}.__getitem__)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert [each["name"] for each in document["components"]] == ["bash", "libc-bin", "libc6"]
    bash = shown(document, "bash")
    assert (bash["version"], bash["purl"]) == ("5.2.37-2+b5", "pkg:deb/debian/bash@5.2.37-2+b5?arch=amd64")
    assert bash["properties"] == [{"name": "lagcast:source", "value": "bash 5.2.37-2"}]
    assert shown(document, "libc-bin")["purl"] == "pkg:deb/debian/libc-bin@1%3A2.41-12?arch=amd64"


def test_licences_are_those_of_the_copyright_file() -> None:
    """By its fields where it is machine-readable; else by the texts that it refers to; none is made up."""
    assert licences_of(BASH) == ["GFDL-1.3+", "GPL-3+"]
    assert licences_of(LIBC) == ["GPL-2", "LGPL-2.1"]
    assert licences_of("Public domain.") == []


def test_a_package_without_a_file_has_the_licences_of_its_source() -> None:
    """Slim images leave out folders of documents that are links."""
    document = document_of(packages_of(ROWS), {"bash": BASH, "libc6": LIBC, "libc-bin": ""}.__getitem__)
    assert licences(shown(document, "libc-bin")) == licences(shown(document, "libc6")) == ["GPL-2", "LGPL-2.1"]
    alone = document_of([Package("x", "1", "all", "x", "1")], lambda _: "")
    assert licences(shown(alone, "x")) == []
