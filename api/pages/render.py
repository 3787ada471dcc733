"""Templates into answers: escaped, with headers that let nothing be loaded from elsewhere."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment
from markupsafe import Markup

from api import words
from api.pictures.html import in_words, templates_in
from api.pictures.picture import Cell, Table

# Styles and pictures come from this service alone, nothing is run that stands in the page itself, and no other site
# shows the page in a frame.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
}


# A day of minutes is shown each half hour; its CSV has all.
MOST_ROWS = 48


def rendered(template: str, *, status: HTTPStatus = HTTPStatus.OK, **values: Any) -> HTMLResponse:  # noqa: ANN401  # what a template shows
    """The template with these values."""
    text = _environment().get_template(template).render(**values)
    return HTMLResponse(text, status_code=status, headers=_HEADERS)


@cache
def _environment() -> Environment:
    environment = templates_in(Path(__file__).with_name("templates"))
    for words_of in (words.number, words.amount, words.duration, words.code_in_words, _cell, _thinned):
        environment.filters[words_of.__name__.strip("_")] = words_of
    for written in (words.instant, words.minute, words.clock):
        environment.filters[written.__name__] = partial(_time, written)
    return environment


def _time(written: Callable[[datetime], str], at: datetime | None) -> str:
    """An instant that the script can show in another zone."""
    if at is None:
        return words.UNKNOWN
    return Markup('<time datetime="{}" data-as="{}">{}</time>').format(at.isoformat(), written.__name__, written(at))


def _cell(value: Cell) -> str:
    """A value of a table in words."""
    return _time(words.instant, value) if isinstance(value, datetime) else in_words(value)


def _thinned(table: Table) -> Sequence[tuple[Cell, ...]]:
    """So many rows of a table that a person can read them, evenly over all of it, the last one among them."""
    every = -(-len(table.rows) // MOST_ROWS) if table.rows else 1
    return table.rows[::-1][::every][::-1]
