"""The routes of the page: the fleet at `/`, a group, a decision, their pictures, and the events that renew them."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, TypeVar
from urllib.parse import urlencode

import structlog
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from api import schemas as wire
from api.events import Events
from api.keys import group_of_key
from api.pages.pictures import Pictures, of_decision, of_fleet, of_group
from api.pages.render import rendered
from api.pages.replays import KeptReplay, Replays
from api.pages.views import DecisionView, FleetSums, GroupView, QualityView, fleet_sums, quality_row
from api.pages.work import Replayed, Work
from api.pictures.picture import LIGHT, THEMES
from api.problems import NotFoundError, meaning
from api.reading import READY, Reader
from api.turns import Turns
from api.wording import without_addresses
from recommender.configuring.effective import DEFAULT, Effective
from recommender.ports import AdapterError, Group

_log = structlog.get_logger()
Found = TypeVar("Found")

ROWS = 50
DECISIONS, MOVES = 20, 10

# What a page of groups may be asked for.
ASKED = ("cluster", "group_id", "cursor")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fleet:
    """A page of groups, and all groups together; `checks` are those of the service where there is none."""

    page: wire.GroupPage
    totals: FleetSums
    ledgers: Mapping[str, wire.GroupLedger]
    checks: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The service itself: its version, its beginning, its settings and its work, and replays that are kept."""

    version: str
    started_at: datetime
    settings: tuple[Effective, ...] = ()
    work: Work = field(default_factory=Work)
    replays: Replays = field(default_factory=Replays)


class Pages:
    """What is shown is made once for a page and its pictures, and again when something new was decided."""

    def __init__(self, reader: Reader, turns: Turns, events: Events, about: About) -> None:
        self._reader = reader
        self._turns = turns
        self._events = events
        self._about = about

    async def fleet(self, *, cluster: str, group_id: str, cursor: str) -> Response:
        """A page of groups with what each has and should have, from `cursor` on; an empty name stands for any."""

        async def made() -> Response:
            view, pictures = await self.groups(cluster, group_id, cursor)
            named = {"cluster": cluster, "group_id": group_id, "cursor": view.page.next or ""}
            following = "?" + urlencode({name: value for name, value in named.items() if value})
            return rendered(
                "fleet.html",
                root="",
                title="Groups",
                groups=view.page.groups,
                totals=view.totals,
                has_namespaces=any(each.namespace for each in view.page.groups),
                asked={"cluster": cluster, "group_id": group_id},
                is_first=not cursor,
                following=following if view.page.next else "",
                checks=view.checks,
                stages=self._about.work.stages,
                decided=self._events.fleet_now,
                pictures=pictures,
                here="?" + urlencode({"cluster": cluster, "group_id": group_id, "cursor": cursor}),
            )

        return await _or_problem("", made)

    async def quality(self, cursor: str) -> Response:
        """The data that the last decisions rest on, from `cursor` on."""

        def read() -> QualityView:
            decisions, following = self._reader.decisions(cursor=cursor or None, limit=ROWS)
            checks = READY if decisions else self._reader.readiness()
            return QualityView(rows=tuple(map(quality_row, decisions)), checks=checks, next=following)

        async def made() -> Response:
            view = await self._turns.run(read)
            return rendered(
                "quality.html",
                root="",
                title="Data",
                rows=view.rows,
                counts=view.counts,
                checks=view.checks,
                is_first=not cursor,
                following="quality?" + urlencode({"cursor": view.next}) if view.next else "",
            )

        return await _or_problem("", made)

    async def replay(self) -> Response:
        """The replay of this process, how far it is, or the command that plays one."""
        replayed, pictures = await self.replayed()
        stages = self._about.work.stages
        return rendered(
            "replay.html",
            root="",
            title="Replay",
            replayed=replayed,
            stages=stages,
            decided=self._events.fleet_now,
            pictures=pictures,
            kept=await self._turns.run(self._about.replays.newest),
        )

    async def kept_replay(self, replay_id: str) -> tuple[KeptReplay, Pictures]:
        """The replay of this id that `lagcast replay` has kept, and its pictures."""

        def made() -> tuple[KeptReplay, Pictures]:
            found = self._about.replays.of(replay_id)
            return found, found.pictures

        return await self._turns.run(made)

    async def replayed(self) -> tuple[Replayed | None, Pictures]:
        """The replay of this process, and its picture, if there is one."""
        found = self._about.work.replayed
        return found, {} if found is None else {found.picture.name: found.picture}

    def settings(self) -> Response:
        """The settings in force, each with its origin; no path and no address is told."""
        return rendered(
            "settings.html",
            root="",
            title="Settings",
            version=self._about.version,
            started_at=self._about.started_at,
            settings=[_shown(each) for each in self._about.settings],
        )

    async def groups(self, cluster: str, group_id: str, cursor: str) -> tuple[_Fleet, Pictures]:
        """The groups from `cursor` on, and their pictures."""

        def made() -> tuple[_Fleet, Pictures]:
            named = {"cluster": cluster or None, "group": group_id or None}
            page, ledgers, fleet = self._reader.worst_with_totals(**named, cursor=cursor or None, limit=ROWS)
            checks = () if page.groups else self._reader.readiness()
            view = _Fleet(page=page, totals=fleet_sums(fleet.totals), ledgers=ledgers, checks=checks)
            return view, of_fleet(page, ledgers)

        return await self._turns.page(("fleet", cluster, group_id, cursor, self._events.fleet_now), made)

    async def group(self, key: str) -> tuple[GroupView, Pictures]:
        """The group of this key, and its pictures."""
        known = self._reader.known_groups.of(group_of_key(key))

        def made() -> tuple[GroupView, Pictures]:
            view = _group(self._reader, key)
            return view, of_group(view)

        return await self._turns.page(("group", key, None if known is None else known.decision_id), made)

    async def decision(self, decision_id: str) -> tuple[DecisionView, Pictures]:
        """The decision of this id, and its pictures."""

        def made() -> tuple[DecisionView, Pictures]:
            view = _decision(self._reader, decision_id)
            return view, of_decision(view.decision)

        return await self._turns.page(("decision", decision_id), made)


def routes_of(pages: Pages, events: Events) -> APIRouter:
    """Pages for browsers below the root; none of them is part of the described API."""
    routes = APIRouter(include_in_schema=False)
    _add_pages(routes, pages)
    _add_pictures(routes, "", lambda asked: pages.groups(*(asked.query_params.get(name, "") for name in ASKED)))
    _add_pictures(routes, "/groups/{group_key}", lambda asked: pages.group(asked.path_params["group_key"]))
    _add_pictures(
        routes,
        "/recommendations/{recommendation_id}",
        lambda asked: pages.decision(asked.path_params["recommendation_id"]),
    )
    _add_pictures(routes, "/replay", lambda _: pages.replayed())
    _add_pictures(routes, "/replays/{replay_id}", lambda asked: pages.kept_replay(asked.path_params["replay_id"]))
    _add_events(routes, events)
    return routes


def _add_pages(routes: APIRouter, pages: Pages) -> None:
    @routes.get("/quality")
    async def quality(cursor: str = "") -> Response:
        return await pages.quality(cursor)

    @routes.get("/settings")
    async def settings() -> Response:
        return pages.settings()

    @routes.get("/replay")
    async def replay() -> Response:
        return await pages.replay()

    @routes.get("/replays/{replay_id}")
    async def kept_replay(replay_id: str) -> Response:
        async def made() -> Response:
            found, pictures = await pages.kept_replay(replay_id)
            return rendered(
                "kept_replay.html",
                root="../",
                title=found.title,
                replay=found,
                replay_id=replay_id,
                pictures=pictures,
            )

        return await _or_problem("../", made)

    @routes.get("/groups/{group_key}")
    async def group(group_key: str) -> Response:
        async def made() -> Response:
            view, pictures = await pages.group(group_key)
            return rendered("group.html", root="../", view=view, title=view.latest.group_id, pictures=pictures)

        return await _or_problem("../", made)

    @routes.get("/recommendations/{recommendation_id}")
    async def decision(recommendation_id: str) -> Response:
        async def made() -> Response:
            view, pictures = await pages.decision(recommendation_id)
            return rendered("decision.html", root="../", view=view, title=view.decision.group_id, pictures=pictures)

        return await _or_problem("../", made)


def _add_pictures(routes: APIRouter, path: str, shown: Callable[[Request], Awaitable[tuple[object, Pictures]]]) -> None:
    """The pictures of the page at `path`: all as options for ECharts by name, and the table of each."""

    @routes.get(f"{path}/pictures")
    async def options(request: Request, theme: str = LIGHT.name) -> Response:
        _, pictures = await shown(request)
        chosen = THEMES.get(theme, LIGHT)
        return JSONResponse({name: picture.option(chosen) for name, picture in pictures.items()})

    @routes.get(f"{path}/pictures/{{name}}.csv")
    async def table(request: Request, name: str) -> Response:
        _, pictures = await shown(request)
        if name not in pictures:
            message = f"there is no picture '{name}' here; there are {', '.join(pictures) or 'none'}"
            raise NotFoundError(message)
        return Response(pictures[name].table.csv(), media_type="text/csv")


def _add_events(routes: APIRouter, events: Events) -> None:
    @routes.get("/events", response_class=EventSourceResponse)
    async def of_fleet() -> AsyncIterator[ServerSentEvent]:
        async for event in events.of_fleet():
            yield event

    @routes.get("/groups/{group_key}/events", response_class=EventSourceResponse)
    async def of_group(group: Annotated[Group, Depends(_group_of)]) -> AsyncIterator[ServerSentEvent]:
        async for event in events.of_group(group):
            yield event


def _group_of(group_key: str) -> Group:
    # Before the stream begins, whose status is that of success.
    return group_of_key(group_key)


def wants_page(request: Request) -> bool:
    """True if the caller is a browser: programs that do not ask for HTML by name get JSON."""
    return "text/html" in request.headers.get("accept", "")


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


def _shown(setting: Effective) -> dict[str, str]:
    """A setting as its page shows it: the kind of its origin alone, and no address in its value."""
    told = "not set" if setting.value is None else setting.value
    value = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
    kind = "environment" if setting.origin.startswith("LAGCAST_") else "file"
    origin = setting.origin if setting.origin == DEFAULT else kind
    return {"key": setting.key, "value": without_addresses(value), "origin": origin}


def _group(reader: Reader, key: str) -> GroupView:
    latest = reader.group(key).latest
    return GroupView(
        key=key,
        latest=latest,
        explanation=reader.explanation(latest.recommendation_id),
        decisions=reader.recommendations(key, since=None, until=None, cursor=None, limit=DECISIONS).decisions,
        moves=reader.outcomes(key, cursor=None, limit=MOVES).outcomes,
        ledger=_or_none(reader.ledger, key),
        day=reader.day(key),
        hourly_advice=reader.hourly_advice(key),
        hourly_rates=reader.hourly_rates(key),
        partitions=_or_none(reader.partitions, key),
    )


def _or_none(read: Callable[[str], Found], key: str) -> Found | None:
    """What is known of the group; None where nothing is yet, or not here."""
    try:
        return read(key)
    except NotFoundError:
        return None


def _decision(reader: Reader, decision_id: str) -> DecisionView:
    return DecisionView(decision=reader.by_id(decision_id), explanation=reader.explanation(decision_id))
