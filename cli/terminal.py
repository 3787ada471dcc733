"""What a stream can show."""

import os
from typing import TextIO


def is_drawn_on(stream: TextIO) -> bool:
    """True if colours and a moving cursor are wanted there: a terminal, and none of a CI job, `NO_COLOR` or `dumb`.

    >>> import io
    >>> is_drawn_on(io.StringIO())
    False
    """
    asked_not_to = any(os.environ.get(name) for name in ("CI", "NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not asked_not_to
