"""What holds for every picture, checked on one."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from api.pictures.picture import FUNCTIONS, MOST_POINTS, THEMES, Option, Picture


def drawn(picture: Picture) -> Option:
    """The option in the light theme, after the laws were checked in both themes, with rows and without."""
    assert picture.sentence.endswith(".")
    assert picture.title
    for theme in THEMES.values():
        for table in (picture.table, replace(picture.table, rows=())):
            option = picture.draw(table, theme)
            assert json.loads(json.dumps(option, allow_nan=False)) == option
            assert set(_functions(option)) <= FUNCTIONS
            for series in option["series"]:
                assert len(series["data"]) <= MOST_POINTS
        assert all(series["data"] == [] for series in option["series"])  # of the table without rows
    first, second = (picture.option(theme) for theme in THEMES.values())
    assert first != second  # its colours are those of the theme
    return picture.option()


def titles(option: Option) -> list[str]:
    """The names of the axes of figures."""
    axes = [option[name] for name in ("xAxis", "yAxis") if name in option]
    return [axis["name"] for axis in axes if axis["type"] in {"value", "log"}]


def series(option: Option, name: str) -> Option:
    """The one series of this name."""
    (found,) = [each for each in option["series"] if each["name"] == name]
    return dict(found)


def _functions(value: Any) -> Iterator[str]:  # noqa: ANN401  # whatever JSON holds
    if isinstance(value, dict):
        if "$fn" in value:
            yield value["$fn"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _functions(each)
