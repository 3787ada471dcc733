"""The pages as a site: every link leads somewhere, every page is in the menu, and nothing is loaded from elsewhere."""

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")) + [ROOT / "deploy" / "README.md"]
BUILD = ("mkdocs", "build", "--strict")
ELSEWHERE = re.compile(r"(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built as `make check` does."""
    folder = tmp_path_factory.mktemp("site")
    words = (sys.executable, "-m", *BUILD, "--site-dir", str(folder))
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    ("link", "warning"),
    [
        ("#nowhere", "there is no such anchor on this page"),
        ("other.md#nowhere", "does not contain an anchor '#nowhere'"),
        ("nowhere.md", "is not found among documentation files"),
        ("folder", "unrecognized relative link"),
    ],
)
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, link: str, warning: str) -> None:
    """`make check` builds with the same words: `--quiet` would hide a warning from `--strict`."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n[broken]({link})\n")
    (tmp_path / "docs" / "other.md").write_text("# Other\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\nhooks: []\nnav: [index.md, other.md]\nsite_dir: site\n")
    words = (sys.executable, "-m", *BUILD, "--config-file", str(config))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, warning in done.stderr) == (1, True), done.stderr
    assert f"$(BIN)/{' '.join(BUILD)}'" in (ROOT / "Makefile").read_text(encoding="utf-8")


class _Loading(HTMLParser):
    """Collects what a browser loads of a page by itself: links that a reader follows are not among it."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "a":
            self.loaded += [value for name, value in attrs if name in {"src", "srcset", "href", "data"} and value]


def _loaded(site: Path) -> Iterator[tuple[str, str]]:
    for page in site.rglob("*.html"):
        parser = _Loading()
        parser.feed(page.read_text(encoding="utf-8"))
        yield from ((page.name, address) for address in parser.loaded)
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        yield from ((sheet.name, address) for address in re.findall(r"(?:url\(|@import )[\"']?([^)\"';]*)", text))


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    """No script, sheet, font or picture has an address of another host."""
    loaded = list(_loaded(site))
    assert len(loaded) > len(PAGES)
    assert [pair for pair in loaded if ELSEWHERE.match(pair[1])] == []


def test_the_theme_finds_no_reason_to_load_a_diagram_maker(site: Path) -> None:
    """The theme's script loads mermaid from elsewhere, and only for a diagram of it."""
    assert [page for page in site.rglob("*.html") if 'class="mermaid"' in page.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_page_is_on_the_site(site: Path, page: Path) -> None:
    """At its place in the repository, with its own title as the heading."""
    place = page.relative_to(ROOT).with_suffix("")
    at = site / place.parent / "index.html" if place.name == "README" else site / place / "index.html"
    title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    heading = re.search(r"<h1[^>]*>(.*?)<a ", at.read_text(encoding="utf-8"), re.DOTALL)
    assert heading is not None
    assert re.sub(r"<[^>]*>", "", heading.group(1)).replace("&amp;", "&") == title.replace("`", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_within_a_list_is_indented_by_four(page: Path) -> None:
    """The site's Markdown takes a list or a table that is indented by two for a paragraph's text."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^ {1,3}(?:[-*|]|\d+\.) .*", text, re.MULTILINE) == []
