"""`--fail-if`: a bound on a figure of an answer, which a job of CI misses or keeps."""

import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from cli.errors import ExitCode, InputError
from cli.progress import Talk

FailIf = Annotated[
    str | None,
    typer.Option(
        "--fail-if",
        metavar="EXPR",
        help="Exit with 3 if this holds, such as 'saving < 0'; a figure's name, one of < <= > >= == !=, and a number.",
    ),
]
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_BOUND = re.compile(r"\s*(\w+)\s*(<=|>=|==|!=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What may not hold of the figure `name`."""

    name: str
    operator: str
    limit: float

    def code(self, figures: Mapping[str, float | None], *, talk: Talk) -> ExitCode:
        """STRICT, with a line, if it holds, or if the figure is unknown: what nobody knows keeps no bound."""
        value = figures[self.name]
        if value is None:
            talk.line(f"--fail-if: {self.name} is unknown")
            return ExitCode.STRICT
        if _OPERATORS[self.operator](value, self.limit):
            talk.line(f"--fail-if: {self.name} is {value:g}, which is {self.operator} {self.limit:g}")
            return ExitCode.STRICT
        return ExitCode.OK


def parse_bound(text: str | None, names: Collection[str]) -> Bound | None:
    """The bound of `--fail-if`; None without one. Errors: InputError with the names that there are.

    >>> parse_bound("saving<-1.5", ("saving", "moves"))
    Bound(name='saving', operator='<', limit=-1.5)
    """
    if text is None:
        return None
    found = _BOUND.fullmatch(text)
    if found is None or found[1] not in names:
        known = ", ".join(names)
        message = f"--fail-if {text!r}: write one as 'NAME < NUMBER', with <, <=, >, >=, == or !=, of {known}"
        raise InputError(message)
    return Bound(name=found[1], operator=found[2], limit=float(found[3]))
