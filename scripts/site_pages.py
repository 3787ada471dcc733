# ruff: noqa: INP001 - mkdocs loads it by its path
"""The hook of mkdocs.yml: the site has the layout of the repository, and pages from outside docs/.

Links between pages are then the same on the site as in the repository, and mkdocs checks all of them, anchors included.
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
# Pages outside docs/, and files that pages link to.
OUTSIDE_DOCS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "api/static/echarts/version.json",
    "deploy/README.md",
    "deploy/chart/values.yaml",
    "tests/live/harness/hpa_series.yaml",
    "tests/live/harness/keda_series.yaml",
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put each page of a folder that `nav` names into its place, under the page's own title."""
    for section in config.nav or ():
        (pages,) = section.values()
        for page in pages:
            ((title, path),) = page.items()
            if (ROOT / path).is_dir():
                page[title] = sorted(str(found.relative_to(ROOT)) for found in (ROOT / path).glob("*.md"))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Move what is in docs/ to `docs/`, and add what is outside of it."""
    docs = Path(config.docs_dir)
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
            files.append(_at(docs / file.src_uri, config))
    for path in OUTSIDE_DOCS:
        files.append(_at(ROOT / path, config))
    return files


def _at(path: Path, config: MkDocsConfig) -> File:
    return File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
