"""Pictures in HTML: the scripts that draw them, and templates in which each has its sentence and its table."""

import json
from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api import words
from api.pictures.picture import LIGHT, Cell, Picture

_STATIC = Path(__file__).parents[1] / "static"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script that stands in a page."""

    text: str
    is_module: bool

    @property
    def source(self) -> str:
        """The one that a content security policy allows: this text and no other."""
        return f"'sha256-{b64encode(sha256(self.text.encode()).digest()).decode()}'"


def engine() -> Script:
    """The engine, which defines `echarts`, even on a page where a loader of modules waits for scripts."""
    text = (_STATIC / "echarts" / "echarts.min.js").read_text()
    return Script(text=f"(function (define, exports, module) {{{text}\n}}).call(window);", is_module=False)


def module(before: str = "") -> Script:
    """The project's own module, which draws the figures of a page from their options; `before` comes first."""
    return Script(text=before + (_STATIC / "lagcast.js").read_text(), is_module=True)


def styles() -> str:
    """The styles of the page."""
    return (_STATIC / "lagcast.css").read_text()


@cache
def templates() -> Environment:
    """The templates of pictures."""
    environment = templates_in(Path(__file__).with_name("templates"))
    environment.filters |= {"in_words": in_words, "option_text": option_text}
    return environment


def templates_in(folder: Path) -> Environment:
    """The templates of a folder, which escape whatever names hold, and know no name that they are not given."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def in_words(cell: Cell) -> str:
    """A cell of a table as people read it.

    >>> in_words(None), in_words(True), in_words(1234.5), in_words("orders")
    ('unknown', 'yes', '1,230', 'orders')
    """
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, datetime):
        return words.instant(cell)
    return cell if isinstance(cell, str) else words.number(cell)


def option_text(picture: Picture) -> str:
    """The option in the light theme as JSON that no name in it can end."""
    text = json.dumps(picture.option(LIGHT), allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c")
