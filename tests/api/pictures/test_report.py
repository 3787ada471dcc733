"""A report is one file: it loads nothing, runs its own scripts alone, and says all that its pictures show."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from api.pictures.html import module
from api.pictures.picture import FUNCTIONS, LIGHT, MOST_POINTS, Column, Option, Picture, Table, Theme, base, value_axis
from api.pictures.report import MOST_BYTES, report

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def points(table: Table, theme: Theme) -> Option:
    """The figures of the second column as points."""
    data: list[Any] = [[number, value] for number, value in enumerate(table.column("lag_seconds"))]
    axes = {"xAxis": value_axis(theme, "row"), "yAxis": value_axis(theme, "lag, s")}
    return base(theme) | axes | {"series": [{"name": "Lag", "type": "line", "data": data}]}


def picture_of(*rows: tuple[str, float | None, datetime | None], title: str = "Lag") -> Picture:
    """A picture of these rows."""
    columns = (
        Column(name="group_id", title="Group"),
        Column(name="lag_seconds", title="Lag, s"),
        Column(name="at", title="At"),
    )
    return Picture(
        name="lag", title=title, sentence="Lag is low.", table=Table(columns=columns, rows=rows), draw=points
    )


class File(HTMLParser):
    """What a file of HTML says, loads, runs and shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.addresses: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        named = dict(attributes)
        self.addresses += [value or "" for name, value in attributes if name in {"src", "href", "srcset", "action"}]
        if tag == "script":
            self.scripts.append(named)
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"] or ""

    def handle_data(self, data: str) -> None:
        """Note the words between elements."""
        self.words.append(data)

    @property
    def text(self) -> str:
        """All words, one space apart."""
        return " ".join(" ".join(self.words).split())


def test_the_script_has_each_function_that_an_option_may_name() -> None:
    """And no other, by the same names."""
    functions = module().text.partition("const FUNCTIONS = {")[2].partition("\n};")[0]
    assert set(re.findall(r"^  (\w+)[:(]", functions, re.MULTILINE)) == FUNCTIONS


def test_a_report_says_what_its_pictures_show() -> None:
    """Title, sentences, and each picture's title, sentence and table, in which what is not known is that word."""
    text = report(
        "orders", [picture_of(("orders", 1.5, NOON), ("new", None, None))], sentences=["All is well."], notes=["Ask."]
    )
    shown = File(text).text
    assert "orders All is well. Lag Lag is low." in shown
    assert "Group Lag, s At orders 1.50 2026-01-05 12:00:00 UTC new unknown unknown" in shown
    assert shown.index("unknown unknown") < shown.index("Ask.")
    assert text.startswith("<!doctype html>\n")


def test_a_report_loads_nothing_and_its_policy_lets_nothing_be_loaded() -> None:
    """No address in any element; scripts are those whose sums are in the policy, each of which stands in the file."""
    text = report("orders", [picture_of(("orders", 1.5, NOON))])
    found = File(text)
    assert found.addresses == []
    assert found.policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "'unsafe-inline'" not in found.policy.partition("style-src")[0]
    assert "http" not in found.policy
    run = [script for script in found.scripts if script.get("type") != "application/json"]
    assert len(run) == len(re.findall("'sha256-", found.policy)) == 2
    assert not re.search(r"@import|url\(", text.partition("</style>")[0])


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", '" onload="x'])
def test_a_name_cannot_become_a_part_of_the_page(name: str) -> None:
    """Neither in a table, nor in an option, nor in a title: as many elements as with a tame name."""

    def named(table: Table, theme: Theme) -> Option:
        return points(table, theme) | {"title": {"text": name}}

    tame = File(report("t", [picture_of(("orders", 1.0, NOON))]))
    wild = File(report(name, [replace(picture_of((name, 1.0, NOON), title=name), draw=named)], sentences=[name]))
    assert (len(wild.scripts), wild.addresses) == (len(tame.scripts), [])
    assert name in wild.text


def test_a_report_of_many_full_pictures_stays_small() -> None:
    """The engine is in it once: a dozen pictures with as many points as one series may have."""
    rows = [("a group of a usual name", number + 1 / 3, NOON) for number in range(MOST_POINTS)]
    text = report("all", [picture_of(*rows)] * 12)
    assert len(text.encode()) <= MOST_BYTES


def test_pictures_are_those_of_a_light_page() -> None:
    """Whoever prints it prints no dark page, and a dark browser does not make it one."""
    seen: list[str] = []

    def drawing(table: Table, theme: Theme) -> Option:
        seen.append(theme.name)
        return points(table, theme)

    text = report("orders", [replace(picture_of(("orders", 1.0, NOON)), draw=drawing)])
    assert seen == ["light"]
    styles = text.partition("</style>")[0]
    assert styles.rindex(f"--page: {LIGHT.page}") > styles.rindex("prefers-color-scheme: dark")
