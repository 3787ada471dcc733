"""Patterns besides hue: what two areas of a picture differ in where colours are not seen or not printed."""

from math import pi

from api.pictures.picture import Option, Theme

_DIAGONAL = {"symbol": "rect", "dashArrayX": [1, 0]}
# None is plain; lines, dots and crosses are of the page's own colour, so that they stand out of every other one.
_PATTERNS: dict[str, Option | None] = {
    "plain": None,
    "rising": _DIAGONAL | {"dashArrayY": [2, 5], "rotation": -pi / 4},
    "falling": _DIAGONAL | {"dashArrayY": [2, 5], "rotation": pi / 4},
    "level": _DIAGONAL | {"dashArrayY": [2, 5], "rotation": 0},
    "upright": _DIAGONAL | {"dashArrayY": [2, 5], "rotation": pi / 2},
    "dense": _DIAGONAL | {"dashArrayY": [1, 2], "rotation": -pi / 4},
    "dots": {"symbol": "circle", "dashArrayX": [[6, 6], [0, 6, 6, 0]], "dashArrayY": [6, 0], "symbolSize": 0.6},
    "squares": {"symbol": "rect", "dashArrayX": [[5, 5], [0, 5, 5, 0]], "dashArrayY": [5, 0], "symbolSize": 0.7},
}


def filled(theme: Theme, colour: str, pattern: str = "plain") -> Option:
    """The style of an area in this colour and pattern. Errors: KeyError on a pattern that there is not.

    >>> from api.pictures.picture import LIGHT
    >>> filled(LIGHT, LIGHT.bad)
    {'color': '#c23b22', 'decal': {'symbol': 'none'}}
    """
    decal = _PATTERNS[pattern]
    return {"color": colour, "decal": {"symbol": "none"} if decal is None else decal | {"color": theme.page}}


def mixed(first: str, second: str, share: float) -> str:
    """The colour between two, with so large a share of the second.

    >>> mixed("#ffffff", "#0072b2", 0.5)
    '#80b8d8'
    """
    pairs = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return "#" + bytes(round(one + (other - one) * share) for one, other in pairs).hex()
