"""Every error of the API as `application/problem+json` (RFC 9457): one sentence, with the next step.

None names a path or a URL: callers are not told where things are.
"""

from collections.abc import Mapping
from http import HTTPStatus
from uuid import uuid4

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from api.convert import CursorError
from api.keys import GroupKeyError
from api.schemas import Problem
from api.wording import without_addresses
from recommender.ports import AdapterError

MEDIA_TYPE = "application/problem+json"
_log = structlog.get_logger()


class NotFoundError(LookupError):
    """The requested object does not exist; the sentence names the place to look."""


class NoAdviceError(LookupError):
    """There is no valid advice now; the sentence names the reason."""


class UndecidedError(LookupError):
    """There is no decision in force here to ask about; the sentence names the reason and the next step."""


class UnfitError(ValueError):
    """The request is valid but cannot be answered as it is; the sentence names limit and next step."""


_STATUSES = {
    CursorError: HTTPStatus.BAD_REQUEST,
    GroupKeyError: HTTPStatus.NOT_FOUND,
    NotFoundError: HTTPStatus.NOT_FOUND,
    UnfitError: HTTPStatus.UNPROCESSABLE_ENTITY,
}


def answer_with_problems(app: FastAPI) -> None:
    """Make `app` return each of its errors as a problem, those of the framework included."""
    for error in (
        HTTPException,
        RequestValidationError,
        GroupKeyError,
        CursorError,
        NotFoundError,
        UnfitError,
        NoAdviceError,
        UndecidedError,
        AdapterError,
        Exception,
    ):
        app.add_exception_handler(error, _answer)


def problem(status: HTTPStatus, detail: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as an answer, its `instance` a new name; URLs and paths in `detail` are left out."""
    body = Problem(title=status.phrase, status=status, detail=without_addresses(detail), instance=uuid4().urn)
    return Response(body.model_dump_json(), status_code=status, media_type=MEDIA_TYPE, headers=headers)


async def _answer(request: Request, error: Exception) -> Response:
    del request
    if isinstance(error, AdapterError):
        _log.warning("request_failed", error=str(error))
    status, detail = meaning(error)
    return problem(status, detail, headers=error.headers if isinstance(error, HTTPException) else None)


def meaning(error: Exception) -> tuple[HTTPStatus, str]:
    """The status of an error, and the sentence that callers are told."""
    match error:
        case RequestValidationError():
            return HTTPStatus.UNPROCESSABLE_ENTITY, _sentence(error)
        case CursorError() | GroupKeyError() | NotFoundError() | UnfitError():
            return _STATUSES[type(error)], str(error.args[0])
        case NoAdviceError() | UndecidedError() | AdapterError():
            return HTTPStatus.SERVICE_UNAVAILABLE, _with_next_step(error)
        # The framework's own answer to a body whose bytes are no text; other bodies that are not JSON are a 422 too.
        case HTTPException(status_code=HTTPStatus.BAD_REQUEST):
            return HTTPStatus.UNPROCESSABLE_ENTITY, "the body is not JSON: its bytes are not UTF-8"
        case HTTPException():
            missing = error.status_code == HTTPStatus.NOT_FOUND
            named = "there is nothing here" if missing else error.detail
            return HTTPStatus(error.status_code), f"{named}; the root lists what there is"
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR, "lagcast failed to answer this request; its log has the reason"


def _with_next_step(error: NoAdviceError | UndecidedError | AdapterError) -> str:
    match error:
        case UndecidedError():
            return str(error)
        case NoAdviceError():
            return f"{str(error).removesuffix('.')}; keep the replicas that run, and ask again"
        case _:
            return "the store of decisions does not answer; retry later"


def _sentence(error: RequestValidationError) -> str:
    first = error.errors()[0]
    name = first["loc"][-1]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first['ctx']['error']} at character {name}"
    if first["type"] == "extra_forbidden":
        return f"'{name}' is not known here; the description of the API lists what may be given"
    return f"'{name}' is {first.get('input')!r}; {first['msg'][0].lower()}{first['msg'][1:]}"
