"""The routes of the page: the fleet at `/`, a group, a decision; each is made of what REST answers, and links to it."""

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from urllib.parse import urlencode

import structlog
from fastapi import APIRouter, Request
from fastapi.responses import Response

from api import schemas as wire
from api.pages.render import rendered
from api.pages.views import DecisionView, GroupView
from api.problems import NotFoundError, meaning
from api.reading import Reader
from api.turns import Turns
from api.wording import without_addresses
from recommender.ports import AdapterError

_log = structlog.get_logger()

ROWS = 50
DECISIONS, MOVES = 20, 10


def wants_page(request: Request) -> bool:
    """True if the caller is a browser: programs that do not ask for HTML by name get JSON."""
    return "text/html" in request.headers.get("accept", "")


def pages(reader: Reader, turns: Turns) -> APIRouter:
    """Pages for browsers below the root; none of them is part of the described API."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/groups/{group_key}")
    async def group(group_key: str) -> Response:
        async def made() -> Response:
            view = await turns.run(partial(_group, reader, group_key))
            return rendered("group.html", root="../", view=view, title=view.latest.group_id)

        return await _or_problem("../", made)

    @routes.get("/recommendations/{recommendation_id}")
    async def decision(recommendation_id: str) -> Response:
        async def made() -> Response:
            view = await turns.run(partial(_decision, reader, recommendation_id))
            return rendered("decision.html", root="../", view=view, title=view.decision.group_id)

        return await _or_problem("../", made)

    return routes


async def fleet(reader: Reader, turns: Turns, *, cluster: str, group_id: str, cursor: str) -> Response:
    """A page of groups with what each has and should have, from `cursor` on; an empty name stands for any."""

    async def made() -> Response:
        read = partial(reader.page, cluster=cluster or None, group=group_id or None, cursor=cursor or None, limit=ROWS)
        page: wire.GroupPage = await turns.run(read)
        checks = () if page.groups else await turns.run(reader.readiness)
        named = {"cluster": cluster, "group_id": group_id, "cursor": page.next or ""}
        following = "?" + urlencode({name: value for name, value in named.items() if value}) if page.next else ""
        return rendered(
            "fleet.html",
            root="",
            title="Groups",
            groups=page.groups,
            asked={"cluster": cluster, "group_id": group_id},
            is_first=not cursor,
            following=following,
            checks=checks,
        )

    return await _or_problem("", made)


async def _or_problem(root: str, made: Callable[[], Awaitable[Response]]) -> Response:
    """The page, or one that says in a sentence why there is none and what to do next."""
    try:
        return await made()
    except Exception as error:  # noqa: BLE001  # as REST answers each of them
        status, sentence = meaning(error)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.warning("page_failed", error=str(error), exc_info=None if isinstance(error, AdapterError) else error)
        return rendered(
            "problem.html", status=status, root=root, title=status.phrase, sentence=without_addresses(sentence)
        )


def _group(reader: Reader, key: str) -> GroupView:
    latest = reader.group(key).latest
    try:
        ledger = reader.ledger(key)
    except NotFoundError:  # nothing is counted yet
        ledger = None
    return GroupView(
        key=key,
        latest=latest,
        explanation=reader.explanation(latest.recommendation_id),
        decisions=reader.recommendations(key, since=None, until=None, cursor=None, limit=DECISIONS).decisions,
        moves=reader.outcomes(key, cursor=None, limit=MOVES).outcomes,
        ledger=ledger,
    )


def _decision(reader: Reader, decision_id: str) -> DecisionView:
    return DecisionView(decision=reader.by_id(decision_id), explanation=reader.explanation(decision_id))
