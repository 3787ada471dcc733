"""Settings in force, each with where its value comes from: the environment, the file, or the default."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel
from sqlalchemy.engine import make_url

from recommender.configuring.settings import document_of, from_environment, is_set, load_settings
from recommender.configuring.settings_group import ANY_GROUP, GroupSettings

DEFAULT = "default"
_OF_GROUPS = "groups"


class Effective(NamedTuple):
    """A setting by its key in the file, with dots; None: it has no value. `origin`: a file, a variable or `default`."""

    key: str
    value: object
    origin: str


def effective_settings(path: Path | None, env: Mapping[str, str]) -> tuple[Effective, ...]:
    """All settings of a process with this file and environment; a password of the store is left out.

    Groups that are named have the settings that they do not share; those of all others stand under `*`. Errors:
    SettingsError.
    """
    settings = load_settings(path, env)
    document, variables = ({} if path is None else document_of(path)), from_environment(env)

    def origin(place: tuple[str, ...]) -> str:
        if is_set(variables, place):
            return "LAGCAST_" + "__".join(place).upper()
        return str(path) if is_set(document, place) else DEFAULT

    def told() -> Iterator[tuple[tuple[str, ...], object]]:
        for name in type(settings).model_fields:
            if name == "store_url":
                yield (name,), make_url(settings.store_url).render_as_string(hide_password=True)
            elif name != _OF_GROUPS:
                yield from _leaves((name,), getattr(settings, name))
        yield from _leaves((_OF_GROUPS, ANY_GROUP), settings.groups.get(ANY_GROUP, GroupSettings()))
        for group in sorted(settings.groups.keys() - {ANY_GROUP}):
            yield from _leaves((_OF_GROUPS, group), settings.groups[group], set_alone=True)

    return tuple(Effective(".".join(place), value, origin(place)) for place, value in told())


def _leaves(
    place: tuple[str, ...], value: object, *, set_alone: bool = False
) -> Iterator[tuple[tuple[str, ...], object]]:
    """The values below a place; of a model those that are set alone, or all of them."""
    if isinstance(value, BaseModel):
        names = [name for name in type(value).model_fields if not set_alone or name in value.model_fields_set]
        for name in names:
            yield from _leaves((*place, name), getattr(value, name), set_alone=set_alone)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _leaves((*place, field.name), getattr(value, field.name))
    else:
        yield place, _plain(value)


def _plain(value: object) -> object:
    """The value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
