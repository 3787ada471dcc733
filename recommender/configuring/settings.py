"""Settings: one YAML file and the environment in, checked values out; nothing else reads either.

The environment wins over the file (`LAGCAST_PORT=9000`, `LAGCAST_DECISION__MAX_LAG_SECONDS=5`), the file over the
defaults. Settings that do not validate stop the process before its first decision, in one sentence.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any, Protocol

import yaml
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from recommender.configuring.holidays import HolidayCalendar, HolidaySettings
from recommender.configuring.settings_check import SettingsError, invalid_decision, sentence
from recommender.configuring.settings_group import (
    ANY_GROUP,
    GroupSettings,
    ScaleToZeroSettings,
    StreamsSettings,
    TargetSettings,
)
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.windows import Window

__all__ = ["GroupSettings", "InForce", "Settings", "SettingsError", "TargetSettings", "load_settings"]


class InForce(Protocol):
    """Settings in force for a group: those of the file, alone or with the requests of the group's owner elsewhere."""

    @property
    def decision(self) -> DecisionSettings:
        """Settings of decisions unless a group has its own."""
        ...

    def of(self, cluster: str, group: str, /) -> GroupSettings:
        """Settings of a group."""
        ...

    def decision_of(self, cluster: str, group: str, /) -> DecisionSettings:
        """Settings of decisions on a group."""
        ...

    def namespace_of(self, cluster: str, group: str, /) -> str | None:
        """The Kubernetes namespace that a group belongs to; None where nothing says so."""
        ...


class Settings(BaseSettings):
    """Everything that may be set, each with its unit, its default and the reason for the default."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        env_prefix="LAGCAST_",
        env_nested_delimiter="__",
    )

    decision: DecisionSettings = DecisionSettings()
    """Settings of decisions, for every group."""

    groups: dict[str, GroupSettings] = Field(default_factory=dict)
    """Settings of single groups, by group name; `*` holds for the rest. Default: none, all is measured."""

    namespaces: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Groups that ConsumerGroupScalers of a Kubernetes namespace may claim, by namespace: names, or patterns with `*`,
    `?` and `[...]`. Whatever is granted here may be claimed from nowhere else, and a namespace that is named here
    may claim nothing else. Default: none; a claim is then honoured from the namespace of the group's target in the
    settings, else from the only one that is followed, else from the one in which the group's members run."""

    state_dir: Path
    """Folder for the store and the logs. Default: `$XDG_STATE_HOME/lagcast`, else `~/.local/state/lagcast`, where
    state that outlives a restart belongs."""

    store_url: str = ""
    """SQLAlchemy URL of the decision store. Default: `decisions.sqlite` in `state_dir`, because one process needs no
    database server. A password belongs into the variable LAGCAST_STORE_URL, not into the file."""

    host: str = "127.0.0.1"
    """Address to serve on. Default: this machine only, where nobody has to be asked who they are."""

    port: int = Field(default=8686, ge=1, le=65535)
    """TCP port to serve on. Default: 8686, assigned to no common service."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  # the library's signature
        init_settings: PydanticBaseSettingsSource,
        *_others: PydanticBaseSettingsSource,
        **_named: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_settings` hands over: constructing settings reads nothing by itself."""
        return (init_settings,)

    @field_validator("decision")
    @classmethod
    def _decision_in_limits(cls, decision: DecisionSettings) -> DecisionSettings:
        if failure := invalid_decision(decision):
            raise ValueError(failure)
        return decision

    @field_validator("groups")
    @classmethod
    def _no_shared_target(cls, groups: dict[str, GroupSettings]) -> dict[str, GroupSettings]:
        if ANY_GROUP in groups and groups[ANY_GROUP].target is not None:
            message = (
                f"groups.{ANY_GROUP}.target would have every group scale the same workload; name it under each group"
            )
            raise ValueError(message)
        shared = groups.get(ANY_GROUP, GroupSettings()).mode
        acting: dict[TargetSettings, str] = {}
        for name, group in groups.items():
            if group.target is None or (group.mode if "mode" in group.model_fields_set else shared) != "apply":
                continue
            other = acting.setdefault(group.target, name)
            if other != name:
                message = (
                    f"groups.{name}.target is that of group '{other}' too, and both have the mode apply; a workload is "
                    "scaled for one group: set the mode of one to recommend"
                )
                raise ValueError(message)
        return groups

    def group(self, group: str) -> GroupSettings:
        """Settings of `group`: its own keys, then those of `*`, then the defaults."""
        shared, own = self.groups.get(ANY_GROUP), self.groups.get(group)
        if shared is None or own is None:
            return own or shared or GroupSettings()
        keys = {name: getattr(own, name) for name in own.model_fields_set}
        return GroupSettings.model_validate(shared.model_copy(update=keys).model_dump(exclude_unset=True))

    def of(self, _cluster: str, group: str) -> GroupSettings:
        """The same, of a group of any cluster: the file names groups without their cluster."""
        return self.group(group)

    def decision_of(self, _cluster: str, _group: str) -> DecisionSettings:
        """Settings of decisions on a group: the same as on every other."""
        return self.decision

    def namespace_of(self, cluster: str, group: str) -> str | None:
        """The namespace of the workload that runs a group."""
        target = self.of(cluster, group).target
        return None if target is None else target.namespace

    def holidays(self, first: date, last: date) -> HolidayCalendar:
        """Days from `first` to `last`, both included, that run like holidays, for every group."""
        return HolidayCalendar(
            shared=self.group(ANY_GROUP).holidays.between(first, last),
            own={name: self.group(name).holidays.between(first, last) for name in self.groups},
        )


def load_settings(path: Path | None, env: Mapping[str, str]) -> Settings:
    """The settings of the YAML file at `path` (None: no file), overridden by `env`, checked.

    Errors: SettingsError, one sentence naming the file, the key, its value and what is expected.
    """
    document = document_of(path) if path is not None else {}
    variables = from_environment(env)

    def source(place: tuple[str, ...]) -> str:
        return "the environment" if path is None or is_set(variables, place) else str(path)

    merged = _merged(document, variables)
    merged.setdefault("state_dir", _state_dir(env))
    below: tuple[str, ...] = ()
    try:
        settings = Settings(**merged)
        # A group's own keys have to hold together with those of `*`: its minimum may lie above their maximum.
        for group in settings.groups:
            below = ("groups", group)
            settings.group(group)
    except ValidationError as error:
        raise SettingsError(sentence(error, source=source, known_keys=_known_keys, below=below)) from error
    if settings.store_url:
        return settings
    return settings.model_copy(update={"store_url": f"sqlite:///{settings.state_dir.absolute() / 'decisions.sqlite'}"})


def document_of(path: Path) -> dict[str, Any]:
    """The keys and values of a settings file, unchecked but for a password in it. Errors: SettingsError."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror}); give the path of a YAML file"
        raise SettingsError(message) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8, or a date such as 2026-02-30
        message = f"{path}: is not YAML: {' '.join(str(error).split())}"
        raise SettingsError(message) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        message = f"{path}: holds a {type(document).__name__}; settings are `key: value` lines"
        raise SettingsError(message)
    _refuse_password(document.get("store_url"), path)
    return {str(key): value for key, value in document.items()}


def _refuse_password(store_url: object, path: Path) -> None:
    try:
        has_password = isinstance(store_url, str) and make_url(store_url).password is not None
    except ArgumentError as error:
        message = f"{path}: 'store_url' is no database URL; one is sqlite:////var/lib/lagcast/decisions.sqlite"
        raise SettingsError(message) from error
    if has_password:
        message = f"{path}: 'store_url' holds a password; give the whole URL in the variable LAGCAST_STORE_URL instead"
        raise SettingsError(message)


def from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    """The keys and values of the environment, as of a file, unchecked. Errors: SettingsError."""
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): value for name, value in env.items()}
    try:
        return source()
    except ValueError as error:
        message = f"the environment: {error}"
        raise SettingsError(message) from error


def _merged(lower: dict[str, Any], higher: dict[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in higher.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def is_set(values: dict[str, Any], place: tuple[str, ...]) -> bool:
    """True where the place, or something below it, is set in these values."""
    found: Any = values
    for key in place:
        if not isinstance(found, dict) or key not in found:
            return False
        found = found[key]
    return True


def _state_dir(env: Mapping[str, str]) -> Path:
    base = env.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "lagcast"


def _known_keys(place: tuple[str, ...]) -> list[str]:
    keys: Iterable[str]
    match place:
        case ("decision",):
            keys = (field.name for field in fields(DecisionSettings))
        case ("decision", "windows", _):
            keys = (field.name for field in fields(Window))
        case ("groups", _):
            keys = GroupSettings.model_fields
        case ("groups", _, "holidays"):
            keys = HolidaySettings.model_fields
        case ("groups", _, "target"):
            keys = TargetSettings.model_fields
        case ("groups", _, "streams"):
            keys = StreamsSettings.model_fields
        case ("groups", _, "scale_to_zero"):
            keys = ScaleToZeroSettings.model_fields
        case _:
            keys = Settings.model_fields
    return list(keys)
