"""Conversion of a decision or a graded move to one JSON document, as stores keep it, and back without loss."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import TypeAdapter, ValidationError

from forecasting.refusal import Refusal
from recommender.deciding.recommendation import Decision, GradedMove, Recommendation
from recommender.ports import MalformedError

_TYPES: dict[str, TypeAdapter[Recommendation] | TypeAdapter[Refusal]] = {
    "Recommendation": TypeAdapter(Recommendation),
    "Refusal": TypeAdapter(Refusal),
}
_MOVE = TypeAdapter(GradedMove)


def kind(decision: Decision) -> str:
    """`Recommendation` or `Refusal`: the tag under which a document is read back."""
    return type(decision).__name__


def to_document(decision: Decision) -> str:
    """The decision's fields as JSON, instants in RFC 3339, every float to its last bit.

    Errors: ValueError on NaN or infinity, which no decision may carry.
    """
    return _document(_TYPES[kind(decision)].dump_python(decision, mode="json"))  # type: ignore[arg-type]  # kind() pairs them


def from_document(kind_tag: str, document: str) -> Decision:
    """The decision that `to_document` wrote.

    Errors: MalformedError where the tag or the fields are not of this version.
    """
    if kind_tag not in _TYPES:
        known = ", ".join(_TYPES)
        message = f"a stored decision has kind {kind_tag!r}; known are {known}: was it written by a newer lagcast?"
        raise MalformedError(message)
    with _translated_errors(kind_tag):
        return _TYPES[kind_tag].validate_json(document)


def to_outcome_document(move: GradedMove) -> str:
    """The graded move's fields as JSON, as exact as a decision's. Errors: ValueError on NaN or infinity."""
    return _document(_MOVE.dump_python(move, mode="json"))


def from_outcome_document(document: str) -> GradedMove:
    """The graded move that `to_outcome_document` wrote. Errors: MalformedError where a field is not of this version."""
    with _translated_errors("GradedMove"):
        return _MOVE.validate_json(document)


def _document(fields: Any) -> str:  # noqa: ANN401  # whatever JSON can hold
    return json.dumps(fields, allow_nan=False, separators=(",", ":"))


@contextmanager
def _translated_errors(name: str) -> Iterator[None]:
    """Raise the port's error for a document that cannot be read, naming the first wrong field."""
    try:
        yield
    except ValidationError as cause:
        first = cause.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "document"
        message = f"a stored {name} cannot be read: field {field}: {first['msg']}"
        raise MalformedError(message) from cause
