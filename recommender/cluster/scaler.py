"""A ConsumerGroupScaler: the settings of one consumer group in the cluster, laid over the common ones.

The words of its `spec` are those of the settings in camelCase, letter by letter; nothing here contacts a cluster.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from recommender.configuring.settings import GroupSettings, Settings, TargetSettings
from recommender.configuring.settings_check import invalid_decision
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.windows import Window
from recommender.ports import Group

Document = Mapping[str, Any]

API_GROUP, API_VERSION = "lagcast.io", "v1alpha1"
KIND, PLURAL = "ConsumerGroupScaler", "consumergroupscalers"

# In which block of the spec a setting stands; "" is the spec itself. What is under `group` is all that is known of the
# group and not named here, but for holidays, which only the daily job reads. The target and scaleToZero are blocks that
# are read on their own.
DECISION_BLOCKS: dict[str, tuple[str, ...]] = {
    "": ("policy", "windows"),
    "objective": ("max_lag_seconds",),
    "prices": (
        "currency",
        "price_per_replica_hour",
        "price_per_late_message",
        "price_per_duplicate_message",
        "price_per_move",
        "price_per_restored_gigabyte",
    ),
    "limits": ("scale_in_cooldown_seconds", "max_moves_per_hour"),
}
GROUP_BLOCKS: dict[str, tuple[str, ...]] = {
    "": ("min_replicas", "max_replicas", "mode"),
    "group": tuple(
        name
        for name in GroupSettings.model_fields
        if name not in {"min_replicas", "max_replicas", "mode", "target", "scale_to_zero", "holidays"}
    ),
}
InvalidReason = Literal["ConfigInvalid", "Conflicted", "NotGranted"]

_DECISION = TypeAdapter(DecisionSettings)
# Settings that are one word of several: Kubernetes begins such words with a capital.
_WORDS = {
    name
    for settings in (GroupSettings, DecisionSettings)
    for name, kind in get_type_hints(settings).items()
    if get_origin(kind) is Literal
}


class ScalerError(ValueError):
    """An object that cannot be followed; the sentence names field, value and expectation."""

    def __init__(self, sentence: str, *, reason: InvalidReason = "ConfigInvalid") -> None:
        super().__init__(sentence)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """No advice before `until` (None: until it is removed): the group is to keep `replicas`."""

    replicas: int
    until: datetime | None

    def holds(self, now: datetime) -> bool:
        """True if it is in force."""
        return self.until is None or now < self.until

    @property
    def sentence(self) -> str:
        """The request of the object, as one sentence."""
        end = "until hold is removed" if self.until is None else f"until {self.until:%Y-%m-%dT%H:%M:%SZ}"
        return f"Held at {self.replicas} replicas {end}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """One object as it was read: the settings that it names for its group, and for decisions on it."""

    namespace: str
    name: str
    cluster: str
    group: str
    group_keys: Mapping[str, Any]
    decision_keys: Mapping[str, Any]
    hold: Hold | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRequest:
    """Settings in force for the group of an object, and those of decisions on it.

    `overruled` is the reason why its target is not the one of the object.
    """

    scaler: Scaler
    group: GroupSettings
    decision: DecisionSettings
    overruled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidScaler:
    """The reason why an object is not followed. `group` is the one that waits for it; None: it goes on without it."""

    reason: InvalidReason
    sentence: str
    group: Group | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerRequests:
    """The requests of all objects, and the objects that cannot be followed, by namespace and name."""

    requests: Mapping[Group, GroupRequest]
    invalid: Mapping[tuple[str, str], InvalidScaler]


def camel_case(name: str) -> str:
    """A setting's name as the resource has it.

    >>> camel_case("processing_p99_seconds")
    'processingP99Seconds'
    """
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def snake_case(name: str) -> str:
    """The setting that a word of the resource stands for.

    >>> snake_case("processingP99Seconds")
    'processing_p99_seconds'
    """
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def place_of(document: Document) -> tuple[str, str]:
    """Namespace and name of an object."""
    return document["metadata"]["namespace"], document["metadata"]["name"]


def read_scaler(document: Document) -> Scaler:
    """The object behind `document`. Errors: ScalerError for what it may not contain, or not in this form."""
    try:
        return _read(document)
    except ScalerError:
        raise
    except Exception as error:
        # Kept from before its definition was as it is now; the API server checks what is written, not what lies there.
        message = (
            f"spec cannot be read ({type(error).__name__}: {error}); apply the object again, and see what is refused"
        )
        raise ScalerError(message) from error


def request_of(settings: Settings, scaler: Scaler) -> GroupRequest:
    """Settings of the scaler's group: its own fields, and the settings for those it leaves out; their target wins.

    Errors: ScalerError where the two do not go together.
    """
    below = settings.group(scaler.group)
    keys = {name: getattr(below, name) for name in below.model_fields_set} | dict(scaler.group_keys)
    if isinstance(own := scaler.group_keys.get("scale_to_zero"), Mapping):
        keys["scale_to_zero"] = below.scale_to_zero.model_dump() | dict(own)
    overruled = None
    decision = asdict(settings.decision) | dict(scaler.decision_keys)
    try:
        group = GroupSettings.model_validate(keys)
        if below.target is not None and group.target != below.target:
            group = group.model_copy(update={"target": below.target})
            overruled = _overruled(scaler.group, below.target)
        request = GroupRequest(
            scaler=scaler, group=group, decision=_DECISION.validate_python(decision), overruled=overruled
        )
    except ValidationError as error:
        raise ScalerError(_sentence(error)) from error
    if invalid := invalid_decision(request.decision):
        raise ScalerError(_in_camel_case(invalid))
    return request


def _overruled(group: str, target: TargetSettings) -> str:
    return (
        f"groups.{group}.target of the settings is {target.kind} {target.namespace}/{target.name}, which wins over the "
        "target here; remove one of the two"
    )


def standing(
    settings: Settings, documents: Iterable[Document], objection_to: Callable[[Settings, str, Group], str | None]
) -> ScalerRequests:
    """The requests of a cluster's objects together; a group, and a target, is the oldest object's that names it.

    `objection_to` has the reason why a namespace may not claim a group: such an object is as if it were not there. A
    group whose target is another object's has to wait: advice on both would have one workload scaled by two.
    """
    requests: dict[Group, GroupRequest] = {}
    invalid: dict[tuple[str, str], InvalidScaler] = {}
    owners: dict[Group, tuple[str, str]] = {}
    eldest_first: list[Document] = []
    for document in sorted(documents, key=lambda each: (each["metadata"]["creationTimestamp"], place_of(each))):
        group = group_of(document)
        objection = None if group is None else objection_to(settings, place_of(document)[0], group)
        if objection is None:
            eldest_first.append(document)
        else:
            invalid[place_of(document)] = InvalidScaler(reason="NotGranted", sentence=objection, group=None)
    targets = _targets_of_settings(settings, {group[1] for group in map(group_of, eldest_first) if group is not None})
    for document in eldest_first:
        place, group = place_of(document), group_of(document)
        owner = place if group is None else owners.setdefault(group, place)
        try:
            if owner != place:
                raise _taken(group, owner)
            known = request_of(settings, read_scaler(document))
            target = known.group.target
            if target is not None and known.group.mode != "off":
                holder = targets.setdefault(target, "/".join(place))
                if holder != "/".join(place):
                    raise _target_taken(target, holder)
            requests[known.scaler.cluster, known.scaler.group] = known
        except ScalerError as error:
            waits = group if owner == place else None
            invalid[place] = InvalidScaler(reason=error.reason, sentence=str(error), group=waits)
    return ScalerRequests(requests=requests, invalid=invalid)


def _taken(group: Group | None, owner: tuple[str, str]) -> ScalerError:
    cluster, name = group or ("", "")
    sentence = (
        f"{owner[0]}/{owner[1]} names group {name!r} of cluster {cluster!r} already; "
        "only the older one is followed: remove one of them"
    )
    return ScalerError(sentence, reason="Conflicted")


def _targets_of_settings(settings: Settings, asked_for: Collection[str]) -> dict[TargetSettings, str]:
    """The workloads that the settings alone hand over, and where; `asked_for` are groups that objects name."""
    named = {name: settings.group(name) for name in settings.groups if name not in asked_for}
    return {
        group.target: f"groups.{name} of the settings"
        for name, group in named.items()
        if group.target is not None and group.mode == "apply"
    }


def _target_taken(target: TargetSettings, holder: str) -> ScalerError:
    sentence = (
        f"{holder} has the target {target.kind} {target.name} already, and a workload is scaled for one "
        "group; remove target or the object, or give the group a workload of its own"
    )
    return ScalerError(sentence, reason="Conflicted")


def _read(document: Document) -> Scaler:
    spec, group = document["spec"], group_of(document)
    namespace, name = place_of(document)
    if group is None:
        message = "spec names no group; give cluster and groupId"
        raise ScalerError(message)
    group_keys = _named(spec, GROUP_BLOCKS)
    if "scaleToZero" in spec:
        group_keys["scale_to_zero"] = _snake(spec["scaleToZero"])
    if group_keys.get("min_replicas") == 0:
        if not group_keys.get("scale_to_zero", {}).get("enabled"):
            message = "minReplicas is 0 and scaleToZero.enabled is not true; set 1 or more"
            raise ScalerError(message)
        group_keys["min_replicas"] = 1  # while it is active
    if "target" in spec:
        # The object's own namespace: a writer of it can have nothing scaled elsewhere.
        group_keys["target"] = {"namespace": namespace, **_snake(spec["target"])}
    return Scaler(
        namespace=namespace,
        name=name,
        cluster=group[0],
        group=group[1],
        group_keys=group_keys,
        decision_keys=_decision_keys(spec),
        hold=_hold(spec.get("hold")),
    )


def group_of(document: Document) -> Group | None:
    """The group that an object names, whatever else it contains; None where it names none."""
    spec = document.get("spec")
    named = (spec.get("cluster"), spec.get("groupId")) if isinstance(spec, Mapping) else (None, None)
    return (named[0], named[1]) if isinstance(named[0], str) and isinstance(named[1], str) else None


def _named(spec: Document, blocks: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The settings that stand in their blocks of `spec`, by their own names."""
    named: dict[str, Any] = {}
    for block, names in blocks.items():
        words = _snake(spec.get(block, {}) if block else spec)
        named |= {name: words[name].lower() if name in _WORDS else words[name] for name in names if name in words}
    return named


def _decision_keys(spec: Document) -> dict[str, Any]:
    named = _named(spec, DECISION_BLOCKS)
    for window in named.get("windows", ()):
        if "effect" in window:
            window["effect"] = snake_case(window["effect"]).lstrip("_")
    return named


def _snake(value: Any) -> Any:  # noqa: ANN401  # whatever an object may hold
    if isinstance(value, Mapping):
        return {snake_case(key): _snake(inner) for key, inner in value.items()}
    return [_snake(inner) for inner in value] if isinstance(value, list) else value


def _hold(block: Document | None) -> Hold | None:
    if not block:
        return None
    try:
        until = datetime.fromisoformat(block["until"]).astimezone(UTC) if "until" in block else None
    except OverflowError as error:
        message = f"hold.until is {block['until']}, beyond the years 1 to 9999 in UTC; leave it out to hold for good"
        raise ScalerError(message) from error
    return Hold(replicas=block["replicas"], until=until)


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    expected = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":  # ours: the sentence names value and limit itself
        return _in_camel_case(expected)
    key = ".".join(camel_case(str(part)) for part in first["loc"])
    return f"{key} is {first['input']!r}; {expected[0].lower()}{expected[1:]}"


def _in_camel_case(sentence: str) -> str:
    """The sentence about settings in the words of the resource."""
    decision = (field.name for settings in (DecisionSettings, Window) for field in fields(settings))
    known = {*GroupSettings.model_fields, *decision}
    words = sorted((name for name in known if "_" in name), key=len, reverse=True)
    return re.sub("|".join(words), lambda name: camel_case(name[0]), sentence)
