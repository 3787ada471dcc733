"""The description of the API (OpenAPI 3.1), adapted to the real answers of the service."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.access.guard import OPEN
from api.problems import MEDIA_TYPE
from api.schemas import Problem

_FRAMEWORK_ERRORS = ("HTTPValidationError", "ValidationError")

_REFUSALS = {
    "401": "No bearer token, or none that is known",
    "403": "The user of the token may not read this",
    "421": "Called by a name that is not the service's",
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The description of `app`: errors are problems, and unknown fields are absent instead of null."""
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    components: dict[str, Any] = document["components"]["schemas"]
    for name in _FRAMEWORK_ERRORS:
        components.pop(name, None)
    components["Problem"] = Problem.model_json_schema()
    _add_access(document)
    for component in components.values():
        for name, described in component.get("properties", {}).items():
            component["properties"][name] = _without_null(described)
    return document


def _add_access(document: dict[str, Any]) -> None:
    """What a service that asks its callers wants and answers; one that does not is described by the same contract."""
    document["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    document["components"]["responses"] = {
        status: {"description": meaning, "content": content} for status, meaning in _REFUSALS.items()
    }
    document["security"] = [{"bearer": []}, {}]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path in OPEN:
                operation["security"] = []
            else:
                operation["responses"] |= {status: {"$ref": f"#/components/responses/{status}"} for status in _REFUSALS}


def _without_null(described: dict[str, Any]) -> dict[str, Any]:
    options = described.get("anyOf", [])
    if {"type": "null"} not in options:
        return described
    known = [option for option in options if option != {"type": "null"}]
    rest = {key: value for key, value in described.items() if key not in ("anyOf", "default")}
    return {**known[0], **rest} if len(known) == 1 else {"anyOf": known, **rest}
