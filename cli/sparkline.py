"""The course of a figure in a cell of a table."""

from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
# The same eight heights where a terminal has no blocks, by how much of the cell their ink fills.
_ASCII = "_.,-=+*#"


def sparkline(values: Sequence[float | None], *, ascii_only: bool = False) -> str:
    """One sign a value, from nothing to the greatest of them; None is a gap, never a low value.

    >>> sparkline([0, 1, None, 4, 8, 7])
    '▁▂ ▅█▇'
    >>> sparkline([0, 1, None, 4, 8, 7], ascii_only=True)
    '_. =#*'
    >>> sparkline([0, 0]), sparkline([None, None]), sparkline([])
    ('▁▁', '  ', '')
    """
    signs = _ASCII if ascii_only else _BLOCKS
    most = max((value for value in values if value is not None), default=0.0)
    steps = len(signs) - 1
    return "".join(
        " " if value is None else signs[round(steps * max(value, 0.0) / most) if most > 0 else 0] for value in values
    )
