"""A decision as one JSON document, and back without loss: what stores keep and channels may carry."""

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from forecasting.refusal import Refusal
from recommender.ports import MalformedError
from recommender.recommendation import Decision, Recommendation

_TYPES: dict[str, TypeAdapter[Recommendation] | TypeAdapter[Refusal]] = {
    "Recommendation": TypeAdapter(Recommendation),
    "Refusal": TypeAdapter(Refusal),
}


def kind(decision: Decision) -> str:
    """`Recommendation` or `Refusal`: the tag under which a document is read back."""
    return type(decision).__name__


def to_document(decision: Decision) -> str:
    """The decision's fields as JSON, instants in RFC 3339, every float to its last bit.

    Errors: ValueError on NaN or infinity, which no decision may carry.
    """
    fields: Any = _TYPES[kind(decision)].dump_python(decision, mode="json")  # type: ignore[arg-type]  # kind() pairs them
    return json.dumps(fields, allow_nan=False, separators=(",", ":"))


def from_document(kind_tag: str, document: str) -> Decision:
    """The decision that `to_document` wrote.

    Errors: MalformedError where the tag or the fields are not of this version.
    """
    if kind_tag not in _TYPES:
        known = ", ".join(_TYPES)
        message = f"a stored decision has kind {kind_tag!r}; known are {known}: was it written by a newer lagcast?"
        raise MalformedError(message)
    try:
        return _TYPES[kind_tag].validate_json(document)
    except ValidationError as cause:
        first = cause.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "document"
        message = f"a stored {kind_tag} does not read: field {field}: {first['msg']}"
        raise MalformedError(message) from cause
