"""The service put together: routes, errors as problems, and nothing that a browser would fetch from elsewhere."""

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial

from fastapi import FastAPI

from api import openapi, problems, routes
from api.reading import Reader
from recommender.adapters.metrics import Metrics
from recommender.configuring.settings import InForce
from recommender.ports import DecisionStore, LongForecasts


def create_app(
    store: DecisionStore,
    *,
    clock: Callable[[], datetime],
    version: str,
    metrics: Metrics | None = None,
    settings: InForce | None = None,
    long_forecasts: LongForecasts | None = None,
) -> FastAPI:
    """The REST service over `store`.

    `clock` gives the instant at which advice is due or expired. `settings` add target and mode to each group; without
    them there is advice only. `long_forecasts` are joined to the hour that advice looks ahead. `metrics` is the page at
    `/metrics`; without it, one that counts nothing is made.
    """
    reader = Reader(
        store=store,
        clock=clock,
        metrics=metrics if metrics is not None else Metrics(store, clock=clock, version=version),
        settings=settings,
        long_forecasts=long_forecasts,
    )
    app = FastAPI(
        title="lagcast",
        version=version,
        summary="How many replicas a Kafka consumer group should have, and when.",
        docs_url=None,  # the pages that come with the framework load scripts from another host
        redoc_url=None,
    )
    app.include_router(routes.v1(reader))
    app.include_router(routes.service(reader))
    problems.answer_with_problems(app)
    # Made at the first request: it takes longer than all the rest of a start.
    app.openapi = cache(partial(openapi.describe, app))  # type: ignore[method-assign]  # the framework's documented way
    return app
