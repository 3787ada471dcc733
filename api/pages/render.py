"""Templates into answers: escaped, with headers that let nothing be loaded from elsewhere."""

from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api import words

# Styles and pictures come from this service alone, nothing is run that stands in the page itself, and no other site
# shows the page in a frame.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
}


def rendered(template: str, *, status: HTTPStatus = HTTPStatus.OK, **values: Any) -> HTMLResponse:  # noqa: ANN401  # what a template shows
    """The template with these values."""
    text = _environment().get_template(template).render(**values)
    return HTMLResponse(text, status_code=status, headers=_HEADERS)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for each in (
        words.number,
        words.amount,
        words.duration,
        words.instant,
        words.minute,
        words.clock,
        words.code_in_words,
    ):
        environment.filters[each.__name__] = each
    return environment
