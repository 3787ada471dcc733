"""C14, C15: the hour and the week ahead over HTTP, as JSON and as CSV."""

import csv
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import numpy as np
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.keys import group_key
from forecasting.forecast import QUANTILES, Forecast
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Recommendation
from recommender.ports import MalformedError

MakeAdvice = Callable[..., Recommendation]

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
FORECAST = f"/api/v1/groups/{group_key('prod-eu', 'orders')}/forecast"


class Weeks:
    """A store of one long forecast, which is known from its issue on."""

    def __init__(self, *, issued_at: datetime, broken: bool = False) -> None:
        self.issued_at = issued_at
        self.broken = broken

    def newest(self, cluster: str, group: str, *, until: datetime) -> Forecast | None:
        """The week at 500 messages/s, p05 at 525, p99 at 995."""
        if self.broken:
            message = "the long forecast x.parquet cannot be read (cut short); remove it"
            raise MalformedError(message)
        if self.issued_at > until:
            return None
        return Forecast(
            cluster=cluster,
            group=group,
            model="long_term",
            history_tier="weekly",
            origin_at=self.issued_at,
            step_seconds=300,
            paths=np.outer(1.0 + np.array(QUANTILES), np.full(2016, 500.0)),
        )


@pytest.fixture
def with_hour(advice: MakeAdvice) -> Recommendation:
    """Advice that expects 900, 1,000 and 1,100 messages/s for an hour from noon on."""
    lower, median, upper = ((level,) * 60 for level in (900.0, 1000.0, 1100.0))
    return advice(forecast=replace(advice().forecast, origin_at=NOON, p05=lower, p50=median, p95=upper))


@pytest.fixture
def make_client(store: SqlDecisionStore, clock: Callable[[], datetime]) -> Callable[[Weeks | None], TestClient]:
    """`make_client(weeks)`: a client of a service that reads these weeks."""

    def made(weeks: Weeks | None) -> TestClient:
        app = create_app(store, clock=clock, version="0.1.0", long_forecasts=weeks)
        return TestClient(app, raise_server_exceptions=False)

    return made


MakeClient = Callable[[Weeks | None], TestClient]


@pytest.fixture
def whole(make_client: "MakeClient", store: SqlDecisionStore, with_hour: Recommendation) -> TestClient:
    """A service with advice for the hour and a forecast of the week from noon on."""
    store.save(with_hour)
    return make_client(Weeks(issued_at=NOON))


def test_the_hour_and_the_week_are_one_series(
    make_client: MakeClient, store: SqlDecisionStore, with_hour: Recommendation
) -> None:
    """A day is sixty steps of a minute from the advice, then steps of 5 minutes, and both sources are named."""
    store.save(with_hour)
    answer = make_client(Weeks(issued_at=NOON - timedelta(hours=3))).get(
        FORECAST, params={"to": "2026-01-06T12:00:00Z"}
    )
    series = answer.json()
    assert answer.status_code == 200
    assert series["step_seconds"] == [60] * 60 + [300] * 276
    assert (series["ends_at"][0], series["ends_at"][-1]) == ("2026-01-05T12:01:00Z", "2026-01-06T12:00:00Z")
    rates = series["produce_messages_per_second"]
    assert sorted(rates) == ["p05", "p50", "p95"]
    assert rates["p50"][:60] == [1000.0] * 60
    # Two hours after the border the week is as it was issued: 1.5 times 500.
    assert rates["p50"][60] > 900.0
    assert rates["p50"][60 + 24 :] == pytest.approx([750.0] * 252)
    assert [
        (part["model"], part["history_tier"], part["issued_at"], part["step_seconds"]) for part in series["parts"]
    ] == [
        ("blend", "weekly", "2026-01-05T12:00:00Z", 60),
        ("long_term", "weekly", "2026-01-05T09:00:00Z", 300),
    ]
    assert "notes" not in series


def test_a_whole_week_has_at_most_the_points_of_a_chart(
    make_client: MakeClient, store: SqlDecisionStore, with_hour: Recommendation
) -> None:
    """A week of 2,064 points, with a limit of 2,000, comes in steps of 10 minutes, and a finer step is an error."""
    store.save(with_hour)
    service = make_client(Weeks(issued_at=NOON))
    assert set(service.get(FORECAST).json()["step_seconds"]) == {600}
    hourly = service.get(FORECAST, params={"step": 3600}).json()
    assert hourly["step_seconds"] == [3600] * 168
    answer = service.get(FORECAST, params={"step": 60})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json()["detail"] == "that is 2,064 points; the limit is 2,000. Request step=600, or a shorter span"


def test_csv_is_sent_to_clients_that_accept_it(
    make_client: MakeClient, store: SqlDecisionStore, with_hour: Recommendation
) -> None:
    """Each step is a row with the figures of the JSON and the forecast that the step belongs to."""
    store.save(with_hour)
    service, parameters = make_client(Weeks(issued_at=NOON)), {"to": "2026-01-05T14:00:00Z"}
    answer = service.get(FORECAST, params=parameters, headers={"Accept": "text/csv"})
    assert (answer.headers["content-type"], answer.headers["vary"]) == ("text/csv; charset=utf-8", "Accept")
    header, *rows = csv.reader(StringIO(answer.text))
    assert header == [
        "ends_at",
        "step_seconds",
        *(f"produce_messages_per_second_{name}" for name in ("p05", "p50", "p95")),
        "model",
        "history_tier",
        "issued_at",
    ]
    series = service.get(FORECAST, params=parameters).json()
    assert [row[0] for row in rows] == series["ends_at"]
    assert [float(row[3]) for row in rows] == series["produce_messages_per_second"]["p50"]
    assert [row[5] for row in rows] == ["blend"] * 60 + ["long_term"] * 12


def test_a_missing_forecast_is_noted(
    make_client: MakeClient, store: SqlDecisionStore, with_hour: Recommendation
) -> None:
    """Without a readable and fresh long forecast the answer is the hour alone, with a note that states the cause."""
    store.save(with_hour)
    for weeks, note in (
        (None, "started without --forecasts"),
        (Weeks(issued_at=NOON + timedelta(minutes=5)), "no long forecast of this group was issued"),
        (Weeks(issued_at=NOON - timedelta(hours=49)), "176,400 s before now; the limit is 172,800 s"),
        (Weeks(issued_at=NOON, broken=True), "its file cannot be read; the log has the reason"),
    ):
        series = make_client(weeks).get(FORECAST).json()
        assert (len(series["ends_at"]), len(series["parts"])) == (60, 1)
        assert note in series["notes"][0]


def test_a_week_without_advice_has_all_its_quantiles(make_client: MakeClient) -> None:
    """The week of a group without advice has all quantiles, from the step that holds the present on."""
    series = make_client(Weeks(issued_at=NOON - timedelta(minutes=8))).get(FORECAST).json()
    assert sorted(series["produce_messages_per_second"]) == ["p05", "p10", "p25", "p50", "p75", "p90", "p95", "p99"]
    assert "no advice with a forecast" in series["notes"][0]
    assert series["ends_at"][0] == "2026-01-05T12:02:00Z"


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        ("from=2026-01-05T12:00:00", 422, "'from' is '2026-01-05T12:00:00'; input should have timezone info"),
        ("step=59", 422, "'step' is '59'"),
        ("step=420", 422, "step is 420 s; it has to be a multiple of 300 s"),
        ("from=2026-02-01T00:00:00Z", 404, "the forecast covers 2026-01-05T12:00:00+00:00 to 2026-01-12T12:00:00"),
        ("to=2026-01-05T11:00:00Z", 404, "no step lies in that span"),
    ],
)
def test_a_request_that_cannot_be_served_is_a_problem(whole: TestClient, query: str, status: int, detail: str) -> None:
    """The problem has one sentence that names the limit."""
    answer = whole.get(f"{FORECAST}?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert detail in answer.json()["detail"]


def test_a_group_without_any_forecast_is_not_found(service: TestClient) -> None:
    """Without the hour and the week the answer is 404 with both reasons."""
    answer = service.get(FORECAST)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    detail = answer.json()["detail"]
    assert "nothing is forecast for group 'orders' of cluster 'prod-eu'. The next hour is not known" in detail
    assert "started without --forecasts" in detail
    assert service.get("/api/v1/groups/xyz/forecast").status_code == 404
