"""Borders: where the error of one unit of work ends, so that all others go on.

A unit is a group, an object, a file, a stored document, a step of the cycle, or a part of the process such as the
collector. An error that reaches the border of its unit is counted each time, and logged when it begins, when it changes
and when it is over: a line in each cycle would be 5,760 a day.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import structlog

Unit = Literal["group", "object", "file", "document", "step", "part"]

# A name that never passes again, such as that of a file, is forgotten when so many others have failed after it.
MOST_REMEMBERED = 10_000

_log = structlog.get_logger(__name__)


class Borders:
    """The failures of units, of which each is known by its kind and name; `count` is called with the kind of each."""

    def __init__(self, count: Callable[[Unit], object] = lambda _: None) -> None:
        self._count = count
        self._failing: dict[tuple[Unit, str], str] = {}

    def failed(self, unit: Unit, name: str, error: Exception, *, is_expected: bool = False) -> None:
        """Count the error, and log it where it is another one than the unit's last.

        An error that is not `is_expected` is logged with its traceback: it is a bug, or nobody has foreseen it.
        """
        self._count(unit)
        sentence = f"{type(error).__name__}: {error}"
        before = self._failing.pop((unit, name), None)
        self._failing[unit, name] = sentence
        while len(self._failing) > MOST_REMEMBERED:
            del self._failing[next(iter(self._failing))]
        if sentence != before:
            _log.warning(f"{unit}_failed", name=name, error=sentence, exc_info=None if is_expected else error)

    def passed(self, unit: Unit, name: str) -> None:
        """Note that the unit has done its work; the first time after a failure, log that this is over."""
        if self._failing.pop((unit, name), None) is not None:
            _log.info(f"{unit}_works_again", name=name)

    @contextmanager
    def around(
        self,
        unit: Unit,
        name: str,
        *,
        expected: tuple[type[Exception], ...] = (),
        passing: tuple[type[Exception], ...] = (),
    ) -> Iterator[None]:
        """The border around a block: its errors end here, but for those that are `passing`."""
        try:
            yield
        except passing:
            raise
        except Exception as error:  # noqa: BLE001  # that is what a border is for
            self.failed(unit, name, error, is_expected=isinstance(error, expected))
        else:
            self.passed(unit, name)
