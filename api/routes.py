"""The routes: requests over HTTP, and their answers."""

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel

from api import schemas as wire
from api.pages.routes import ASKED, Pages, wants_page
from api.parts import Instant
from api.problems import MEDIA_TYPE
from api.reading import Reader
from api.series import fleet_ledger_csv, ledger_csv, partitions_csv, to_csv
from api.turns import Turns
from recommender.adapters.metrics import CONTENT_TYPE

PAGE_DEFAULT, PAGE_LIMIT = 50, 500
_CSV = "text/csv"

_Message = TypeVar("_Message", bound=BaseModel)
_Problems = dict[int | str, dict[str, Any]]


def _problems(meanings: Mapping[int, str]) -> _Problems:
    # The model's own route entry would be listed as application/json.
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": meaning, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status, meaning in meanings.items()
    }


_UNKNOWN = _problems({404: "Not known here", 422: "A parameter is out of its limits", 503: "The store does not answer"})
_PAGED = {**_problems({400: "The cursor is that of no page"}), **_UNKNOWN}


def v1(reader: Reader, turns: Turns) -> APIRouter:
    """Version 1: groups, and what was decided for them."""
    routes = APIRouter(prefix="/api/v1", tags=["v1"])
    _add_decisions(routes, reader, turns)
    _add_what_ifs(routes, reader, turns)
    _add_holds(routes, reader, turns)
    _add_accounts(routes, reader, turns)
    return routes


def _add_what_ifs(routes: APIRouter, reader: Reader, turns: Turns) -> None:
    """Decisions made again with other figures: each takes what a group's decision takes in the loop."""

    @routes.post(
        "/groups/{group_key}/what-if",
        response_model=wire.WhatIf,
        response_model_exclude_none=True,
        responses={
            **_UNKNOWN,
            **_problems({503: "There is no advice in force, or this process has not made it"}),
        },
    )
    async def what_if(group_key: str, changes: wire.WhatIfChanges) -> wire.WhatIf:
        """What would be recommended now with other prices, bounds or beliefs, beside what is; nothing of it is kept."""
        return await turns.run(partial(reader.what_if, group_key, changes))


def _add_decisions(routes: APIRouter, reader: Reader, turns: Turns) -> None:
    """Groups, their last decision, and earlier ones."""

    @routes.get("/groups", response_model=wire.GroupPage, response_model_exclude_none=True, responses=_PAGED)
    async def groups(
        cluster: Annotated[str | None, Query(description="Only groups of this cluster.")] = None,
        group_id: Annotated[str | None, Query(description="Only the group of this name.")] = None,
        cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
        limit: Annotated[int, Query(ge=1, le=PAGE_LIMIT, description="Groups on a page.")] = PAGE_DEFAULT,
        order: Annotated[
            Literal["name", "worst"],
            Query(
                description="By cluster and name; or those without advice, then those that miss their promise, by lag "
                "over promise, then those whose advice would save, by the saving in an hour, then the others."
            ),
        ] = "name",
    ) -> Response:
        """A page of groups, sorted by cluster and name or the worst first, each with its last decision in short."""
        asked = {"cluster": cluster, "group": group_id, "cursor": cursor}

        def make() -> bytes:
            return _json_of(reader.page(**asked, limit=limit, worst_first=order == "worst"))

        body = await turns.page(("groups", cluster, group_id, cursor, limit, order), make)
        return Response(body, media_type="application/json")

    @routes.get("/fleet", response_model=wire.Fleet, response_model_exclude_none=True, responses=_UNKNOWN)
    async def fleet(
        cluster: Annotated[str | None, Query(description="Only groups of this cluster.")] = None,
    ) -> wire.Fleet:
        """All groups together: how many need somebody's eyes, their replicas, and what they cost and would save."""
        return await turns.page(("totals", cluster), partial(reader.fleet, cluster=cluster))

    @routes.get("/groups/{group_key}", response_model=wire.Group, response_model_exclude_none=True, responses=_UNKNOWN)
    async def group(group_key: str) -> wire.Group:
        """One group and its last decision."""
        return await turns.run(partial(reader.group, group_key))

    @routes.get("/groups/{group_key}/recommendation", response_model=wire.DecisionV1, responses=_UNKNOWN)
    async def recommendation(group_key: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
        """The latest decision for the group: a Recommendation or a Refusal, distinguished by `kind`."""
        return _tagged(await turns.run(partial(reader.recommendation, group_key)), if_none_match)

    @routes.get(
        "/groups/{group_key}/due-replicas",
        response_model=wire.DueReplicas,
        responses={**_UNKNOWN, **_problems({503: "There is no valid advice, or the store does not answer"})},
    )
    async def due_replicas(group_key: str) -> wire.DueReplicas:
        """The replicas that the group should have now, and nothing else; 503 while there is no valid advice."""
        return await turns.run(partial(reader.due_replicas, group_key))

    @routes.get(
        "/groups/{group_key}/recommendations",
        response_model=wire.DecisionPage,
        response_model_exclude_none=True,
        responses=_PAGED,
    )
    async def recommendations(
        group_key: str,
        since: Annotated[
            Instant | None,
            Query(alias="from", description="Issued from then on; a day before `to` unless given."),
        ] = None,
        until: Annotated[Instant | None, Query(alias="to", description="Issued by then; now unless given.")] = None,
        cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
        limit: Annotated[int, Query(ge=1, le=PAGE_LIMIT, description="Decisions on a page.")] = PAGE_DEFAULT,
    ) -> wire.DecisionPage:
        """A page of what was decided for the group, newest first, each in short; its id leads to all of it."""
        return await turns.run(
            partial(reader.recommendations, group_key, since=since, until=until, cursor=cursor, limit=limit)
        )

    @routes.get("/recommendations/{recommendation_id}", response_model=wire.DecisionV1, responses=_UNKNOWN)
    async def by_id(recommendation_id: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
        """One decision by its id, however old."""
        return _tagged(await turns.run(partial(reader.by_id, recommendation_id)), if_none_match)

    @routes.get(
        "/recommendations/{recommendation_id}/explanation",
        response_model=wire.Explanation,
        response_model_exclude_none=True,
        responses=_UNKNOWN,
    )
    async def explanation(recommendation_id: str) -> wire.Explanation:
        """One decision in sentences: its reasons, what is known of the group, and what would reverse it."""
        return await turns.run(partial(reader.explanation, recommendation_id))


def _add_holds(routes: APIRouter, reader: Reader, turns: Turns) -> None:
    """Holds, which `lagcast hold` places."""

    @routes.get("/holds", response_model=wire.Holds, response_model_exclude_none=True, responses=_UNKNOWN)
    async def holds() -> wire.Holds:
        """The holds in force; those of ConsumerGroupScalers are in their objects."""
        return await turns.run(reader.holds)


def _add_accounts(routes: APIRouter, reader: Reader, turns: Turns) -> None:
    """A group's moves, its forecast and its ledger."""

    @routes.get(
        "/groups/{group_key}/outcomes",
        response_model=wire.OutcomePage,
        response_model_exclude_none=True,
        responses=_PAGED,
    )
    async def outcomes(
        group_key: str,
        cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
        limit: Annotated[int, Query(ge=1, le=PAGE_LIMIT, description="Moves on a page.")] = PAGE_DEFAULT,
    ) -> wire.OutcomePage:
        """A page of the group's moves, newest first: what was expected of each, what it did, and what that taught."""
        return await turns.run(partial(reader.outcomes, group_key, cursor=cursor, limit=limit))

    @routes.get(
        "/groups/{group_key}/forecast",
        response_model=wire.ForecastSeries,
        responses={200: {"content": {_CSV: {"schema": {"type": "string"}}}}, **_UNKNOWN},
    )
    async def forecast(
        group_key: str,
        since: Annotated[
            Instant | None, Query(alias="from", description="Only steps that end after it; now unless given.")
        ] = None,
        until: Annotated[Instant | None, Query(alias="to", description="Only steps that end by then.")] = None,
        step: Annotated[
            int | None, Query(ge=60, le=604_800, description="No step shorter than so many seconds.")
        ] = None,
        accept: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Forecast of the produce rate: the next hour by the minute, then the week; at most 2,000 points."""
        series = await turns.run(partial(reader.forecast, group_key, since=since, until=until, step_seconds=step))
        return _in_either_form(series, to_csv, accept)

    @routes.get(
        "/groups/{group_key}/day",
        response_model=wire.GroupDay,
        response_model_exclude_none=True,
        responses=_UNKNOWN,
    )
    async def day(group_key: str) -> Response:
        """The last 24 hours of the group: observed minutes, changes of what was decided, the ledger by the quarter."""
        made = await turns.run(partial(reader.day, group_key))
        return Response(_json_of(made), media_type="application/json")

    @routes.get(
        "/groups/{group_key}/partitions",
        response_model=wire.GroupPartitions,
        responses={200: {"content": {_CSV: {"schema": {"type": "string"}}}}, **_UNKNOWN},
    )
    async def partitions(group_key: str, accept: Annotated[str | None, Header()] = None) -> Response:
        """What is produced into each partition of the group, and how many messages wait in it; the busiest first."""
        found = await turns.run(partial(reader.partitions, group_key))
        return _in_either_form(found, partitions_csv, accept)

    @routes.get(
        "/groups/{group_key}/ledger",
        response_model=wire.GroupLedger,
        responses={200: {"content": {_CSV: {"schema": {"type": "string"}}}}, **_UNKNOWN},
    )
    async def ledger(group_key: str, accept: Annotated[str | None, Header()] = None) -> Response:
        """What the group has cost in the last 24 hours, and what each of several autoscalers would have."""
        counted = await turns.run(partial(reader.ledger, group_key))
        return _in_either_form(counted, ledger_csv, accept)

    @routes.get(
        "/ledger",
        response_model=wire.FleetLedger,
        responses={200: {"content": {_CSV: {"schema": {"type": "string"}}}}, **_UNKNOWN},
    )
    async def fleet_ledger(
        cluster: Annotated[str | None, Query(description="Only groups of this cluster.")] = None,
        namespace: Annotated[
            str | None, Query(description="Only groups of this Kubernetes namespace: of their objects or targets.")
        ] = None,
        accept: Annotated[str | None, Header()] = None,
    ) -> Response:
        """What all groups have cost in the last 24 hours, and what each of several autoscalers would have."""
        make = partial(reader.fleet_ledger, cluster=cluster, namespace=namespace)
        counted = await turns.page(("ledger", cluster, namespace), make)
        return _in_either_form(counted, fleet_ledger_csv, accept)


def service(reader: Reader, turns: Turns, pages: Pages, *, hangs: Callable[[], bool]) -> APIRouter:
    """Routes for operators: liveness, readiness, metrics, and an index."""
    routes = APIRouter(tags=["service"])

    @routes.get("/", response_class=JSONResponse)
    async def index(request: Request) -> Response:
        """Links to all routes, relative to this address; for a browser, the page of the groups."""
        if wants_page(request):
            asked = request.query_params
            return await pages.fleet(**{name: asked.get(name, "") for name in ASKED})
        links = {
            "groups": "api/v1/groups",
            "openapi": "openapi.json",
            "metrics": "metrics",
            "alive": "livez",
            "ready": "readyz?verbose",
        }
        return JSONResponse(links, headers={"Vary": "Accept"})

    @routes.get("/livez", response_class=PlainTextResponse, responses={503: {"description": "The loop hangs"}})
    async def livez(response: Response) -> str:
        """The process answers, and its loop goes on; no other system is checked."""
        if hangs():
            response.status_code = 503
            return "the loop has looked for rows last 15 min ago\n"
        return "ok\n"

    @routes.get("/readyz", response_class=PlainTextResponse, responses={503: {"description": "Not ready"}})
    async def readyz(
        verbose: Annotated[str | None, Query(description="Present: one line for each check.")] = None,
    ) -> PlainTextResponse:
        """The store answers and a decision cycle has completed."""
        checks = await run_in_threadpool(reader.readiness)
        failing = [name for name, failure in checks if failure is not None]
        lines = [f"not ready: {', '.join(failing)}" if failing else "ok"]
        if verbose is not None:
            lines = [*(f"{name}: {failure or 'ok'}" for name, failure in checks), *lines]
        return PlainTextResponse("\n".join(lines) + "\n", status_code=503 if failing else 200)

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """The advice in force and the counters, for Prometheus."""
        return Response(await turns.page("metrics", reader.metrics.page), media_type=CONTENT_TYPE)

    return routes


def _in_either_form(message: _Message, csv_of: Callable[[_Message], str], accept: str | None) -> Response:
    """The message as CSV if the caller accepts it, else as JSON."""
    headers = {"Vary": "Accept"}
    if _CSV in (accept or ""):
        return Response(csv_of(message), media_type=_CSV, headers=headers)
    return Response(_json_of(message), media_type="application/json", headers=headers)


def _json_of(message: BaseModel) -> bytes:
    return message.model_dump_json(exclude_none=True).encode()


def _tagged(decision: wire.RecommendationV1 | wire.RefusalV1, if_none_match: str | None) -> Response:
    """The decision with a tag of its content, or 304 if the caller has that content already."""
    body = _json_of(decision)
    tag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    held = {candidate.strip().removeprefix("W/") for candidate in (if_none_match or "").split(",")}
    if tag in held or "*" in held:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)
