"""Every error of the API as `application/problem+json` (RFC 9457): one sentence, with the next step."""

from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from api.convert import CursorError, GroupKeyError
from api.schemas import Problem
from recommender.ports import AdapterError

MEDIA_TYPE = "application/problem+json"


class NotFoundError(LookupError):
    """The requested object does not exist; the sentence names the place to look."""


class NoAdviceError(LookupError):
    """There is no valid advice now; the sentence names the reason."""


class UndecidedError(LookupError):
    """There is no decision in force here to ask about; the sentence names the reason and the next step."""


class UnfitError(ValueError):
    """The request is valid but cannot be answered as it is; the sentence names limit and next step."""


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


async def _answer(request: Request, error: Exception) -> Response:
    status, detail = _meaning(request, error)
    headers = error.headers if isinstance(error, HTTPException) else None
    problem = Problem(title=status.phrase, status=status, detail=detail, instance=request.url.path)
    return Response(problem.model_dump_json(), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def _meaning(request: Request, error: Exception) -> tuple[HTTPStatus, str]:
    match error:
        case RequestValidationError():
            return HTTPStatus.UNPROCESSABLE_ENTITY, _sentence(error)
        case GroupKeyError() | CursorError() | NotFoundError() | UnfitError():
            unfit = isinstance(error, UnfitError)
            return HTTPStatus.UNPROCESSABLE_ENTITY if unfit else HTTPStatus.NOT_FOUND, str(error.args[0])
        case NoAdviceError() | UndecidedError() | AdapterError():
            return HTTPStatus.SERVICE_UNAVAILABLE, _with_next_step(error)
        case HTTPException(status_code=404):
            return HTTPStatus.NOT_FOUND, f"there is nothing at {request.url.path}; GET / lists what there is"
        case HTTPException():
            return HTTPStatus(error.status_code), f"{request.method} {request.url.path}: {error.detail}"
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR, "lagcast failed to answer this request; its log has the reason"


def _with_next_step(error: NoAdviceError | UndecidedError | AdapterError) -> str:
    if isinstance(error, UndecidedError):
        return str(error)
    next_step = "keep the replicas that run, and ask again" if isinstance(error, NoAdviceError) else "retry later"
    return f"{str(error).removesuffix('.')}; {next_step}"


def _sentence(error: RequestValidationError) -> str:
    first = error.errors()[0]
    name = first["loc"][-1]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first['ctx']['error']} at character {name}"
    if first["type"] == "extra_forbidden":
        return f"'{name}' is not known here; GET /openapi.json lists what may be given"
    return f"'{name}' is {first.get('input')!r}; {first['msg'][0].lower()}{first['msg'][1:]}"
