"""The assembled service: routes, errors as problems, and no resource that a browser loads from another host."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from api import openapi, problems, routes
from api.access.guard import Access, Guard
from api.events import Events
from api.pages.replays import Replays
from api.pages.routes import About, Pages, routes_of
from api.pages.work import Work
from api.reading import Reader
from api.slices import Slices
from api.turns import Turns
from recommender.adapters.metrics import Metrics
from recommender.configuring.effective import Effective
from recommender.configuring.settings import InForce
from recommender.known_groups import KnownGroups
from recommender.ports import DecisionStore, LongForecasts, PartitionSamples


def create_app(
    store: DecisionStore,
    *,
    clock: Callable[[], datetime],
    version: str,
    metrics: Metrics | None = None,
    settings: InForce | None = None,
    long_forecasts: LongForecasts | None = None,
    known_groups: KnownGroups | None = None,
    access: Access | None = None,
    is_deciding: Callable[[], bool] = lambda: False,
    hangs: Callable[[], bool] = lambda: False,
    effective: Sequence[Effective] = (),
    work: Work | None = None,
    partition_samples: PartitionSamples | None = None,
    replays: Replays | None = None,
) -> FastAPI:
    """The REST service over `store`.

    `clock` returns the instant at which advice is due or expired. `settings` add target and mode to each group; without
    them there is advice only. `long_forecasts` follow the forecast of the next hour. `metrics` is the page at
    `/metrics`; by default it is a page without counts. `known_groups` are those of the loop in this process, for
    what-ifs and pictures; without them there is nothing to ask about, and no past to show. `access` has who is let in;
    without it whoever asks is. While `is_deciding` is true readers have little of the time. `hangs` is told to a probe.
    `partition_samples` are those that this process reads; without them no page has figures by partition. `replays` are
    those that `lagcast replay` has kept.
    `effective` settings are shown on their page, with their origins; `work` is shown before there is a decision.
    """
    reader = Reader(
        store=store,
        clock=clock,
        metrics=metrics if metrics is not None else Metrics(store, clock=clock, version=version),
        settings=settings,
        long_forecasts=long_forecasts,
        known_groups=known_groups if known_groups is not None else KnownGroups(),
        partition_samples=partition_samples,
    )
    app = FastAPI(
        title="lagcast",
        version=version,
        summary="How many replicas a Kafka consumer group should have, and when.",
        docs_url=None,  # the framework's own pages load scripts from another host
        redoc_url=None,
    )
    turns = Turns(clock=clock, is_deciding=is_deciding)
    app.include_router(routes.v1(reader, turns))
    about = About(
        version=version,
        started_at=clock(),
        settings=tuple(effective),
        work=work or Work(),
        replays=replays or Replays(),
    )
    events = Events(reader, turns, about.work)
    pages = Pages(reader, turns, events, about)
    app.include_router(routes.service(reader, turns, pages, hangs=hangs))
    app.include_router(routes_of(pages, events))
    # Whoever stops the server closes them first: it waits for all its answers, and these have no end of their own.
    app.state.events = events
    app.mount("/static", StaticFiles(directory=Path(__file__).with_name("static")))
    problems.answer_with_problems(app)
    if access is not None:
        app.add_middleware(Guard, access=access)
    app.add_middleware(Slices)
    # Made at the first request: it takes longer than the rest of the start.
    app.openapi = cache(partial(openapi.describe, app))  # type: ignore[method-assign]  # the framework's documented way
    return app
