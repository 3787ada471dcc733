"""What the owner of a group allows, as its ConsumerGroupScaler in the cluster has it. Pure.

The wire says how many replicas, and when; which workload, in which mode and within which bounds stands here alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from api.schemas import Mode, Target
from executor.errors import ScaleError

KIND = "ConsumerGroupScaler"

Group = tuple[str, str]
Document = Mapping[str, Any]

_MODES: Mapping[str, Mode] = {"Off": "off", "Recommend": "recommend", "Apply": "apply"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One object as its owner wrote it; uid and generation name this state of it, and no other.

    `lowest` and `highest` bound the counts above 0; `highest` None: the owner has set none. `held_until` is None while
    the owner holds nothing; a hold without an end is held until the last instant there is.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    group: Group
    mode: Mode
    target: Target | None
    lowest: int
    highest: int | None
    through_zero: bool
    held_until: datetime | None

    @property
    def place(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTaken:
    """An object whose target an older one has already: a workload is scaled for one group."""

    place: str
    holder: str


Claims = Mapping[Group, Claim | TargetTaken | ScaleError]


def claims_of(documents: Iterable[Document]) -> Claims:
    """The claims of a namespace's objects by cluster and group; a group, and a target, is the oldest object's.

    The claim of an object that cannot be read is its error.
    """
    claims: dict[Group, Claim | TargetTaken | ScaleError] = {}
    holders: dict[Target, str] = {}
    for document in eldest_first(documents):
        group = group_of(document)
        if group is None or group in claims:
            continue
        claim = read_claim(document)
        claims[group] = claim
        if isinstance(claim, Claim) and claim.target is not None and claim.mode != "off":
            holder = holders.setdefault(claim.target, claim.place)
            if holder != claim.place:
                claims[group] = TargetTaken(place=claim.place, holder=holder)
    return claims


def eldest_first(documents: Iterable[Document]) -> list[Document]:
    """The objects in the order in which they were created."""
    return sorted(documents, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))


def group_of(document: Document) -> Group | None:
    """The cluster and the group that an object names; None where it names none."""
    spec = document.get("spec")
    named = (spec.get("cluster"), spec.get("groupId")) if isinstance(spec, Mapping) else (None, None)
    return (named[0], named[1]) if isinstance(named[0], str) and isinstance(named[1], str) else None


def read_claim(document: Document) -> Claim | ScaleError:
    """The claim of an object, or its error where it does not have the form that its definition asks for."""
    try:
        return _read(document)
    except Exception as error:  # noqa: BLE001  # one object must not end the looks at all others
        metadata = document["metadata"]
        return ScaleError(
            f"the spec of {KIND} {metadata['namespace']}/{metadata['name']} cannot be read ({type(error).__name__}: "
            f"{error}); apply the object again, and see what is refused"
        )


def _read(document: Document) -> Claim:
    metadata, spec = document["metadata"], document["spec"]
    zero, target = spec.get("scaleToZero", {}), spec.get("target")
    lowest, highest = _count(spec, "minReplicas", 0), _count(spec, "maxReplicas", 1)
    return Claim(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=int(metadata["generation"]),
        group=(spec["cluster"], spec["groupId"]),
        mode=_MODES[spec.get("mode", "Recommend")],
        target=None
        if target is None
        else Target(
            api_version=target.get("apiVersion", "apps/v1"), kind=target.get("kind", "Deployment"), name=target["name"]
        ),
        # A minimum of 0 goes with scaleToZero; while the group is active one replica is the least.
        lowest=max(lowest or 0, 1),
        highest=highest,
        through_zero=zero.get("enabled", False) is True,
        held_until=_held_until(spec.get("hold")),
    )


def _count(spec: Document, word: Literal["minReplicas", "maxReplicas"], least: int) -> int | None:
    count = spec.get(word)
    if count is None:
        return None
    if not isinstance(count, int) or isinstance(count, bool) or count < least:
        message = f"{word} is {count!r}, no count from {least} on"
        raise ValueError(message)
    return count


def _held_until(hold: Document | None) -> datetime | None:
    if not hold:
        return None
    until = datetime.fromisoformat(hold.get("until", "9999-12-31T23:59:59Z"))
    if until.tzinfo is None:
        message = f"hold.until is {until.isoformat()}, without a time zone"
        raise ValueError(message)
    return until
