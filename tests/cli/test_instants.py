"""Instants as people type them."""

import pytest

from cli.errors import InputError
from cli.instants import parse_instant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-05-12T08:40:00Z", "2026-05-12T08:40:00+00:00"),
        ("2026-05-12 08:40:00+00:00", "2026-05-12T08:40:00+00:00"),
        ("2026-05-12", "2026-05-12T00:00:00+00:00"),
    ],
)
def test_instants_are_read_as_utc(text: str, meant: str) -> None:
    """RFC 3339 and plain dates are read, and the instant is in UTC."""
    assert parse_instant(text, option="--now").isoformat() == meant


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "2026-05-12T08:40:00"])
def test_an_invalid_instant_is_refused_with_the_form_to_use(text: str) -> None:
    """The error names option, value and form, also for an instant without a zone, which could be hours off."""
    with pytest.raises(InputError, match=r"^--now '.*' .*; write it as 2026-05-12T08:40:00Z$"):
        parse_instant(text, option="--now")
