"""The ledger of a group over HTTP, as JSON and as CSV."""

import csv
from collections.abc import Callable
from io import StringIO

import pytest
from fastapi.testclient import TestClient

from api.convert import group_key
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import LedgerStanding, Recommendation

MakeAdvice = Callable[..., Recommendation]
LEDGER = f"/api/v1/groups/{group_key('prod-eu', 'orders')}/ledger"


@pytest.fixture
def kept(store: SqlDecisionStore, advice: MakeAdvice, ledger: LedgerStanding) -> Recommendation:
    """Advice with a ledger of a day, in the store."""
    given = advice(ledger=ledger)
    store.save(given)
    return given


@pytest.mark.usefixtures("kept")
def test_the_ledger_is_the_one_of_the_last_advice(service: TestClient) -> None:
    """What was paid, each scaler with its sum, the error, and the instants between which it counts."""
    answer = service.get(LEDGER)
    assert answer.headers["vary"] == "Accept"
    body = answer.json()
    assert (body["group_id"], body["issued_at"]) == ("orders", "2026-01-05T12:00:00Z")
    assert body["ledger"]["paid"] == {"replicas": 7.0, "late": 0.5, "total": 7.5}
    assert body["ledger"]["accounts"][1] == {
        "replicas": 9.0,
        "late": 0.25,
        "total": 9.25,
        "scaler": "keda-2000",
        "distinguishable": True,
    }
    assert (body["ledger"]["error_ratio"], body["ledger"]["since_at"]) == (1.03, "2026-01-04T12:00:00Z")


@pytest.mark.usefixtures("kept")
def test_the_same_as_csv_has_one_row_for_what_was_paid_and_one_for_each_scaler(service: TestClient) -> None:
    """A spreadsheet gets the sums, and on each row the currency, the error and the instants."""
    answer = service.get(LEDGER, headers={"Accept": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(StringIO(answer.text)))
    assert [(row["scaler"], row["total"], row["distinguishable"]) for row in rows] == [
        ("paid", "7.5", ""),
        ("fixed-ceiling", "7.75", "false"),
        ("keda-2000", "9.25", "true"),
        ("hpa-10000", "31.0", "true"),
    ]
    assert {(row["currency"], row["error_ratio"], row["since_at"]) for row in rows} == {
        ("USD", "1.03", "2026-01-04T12:00:00Z")
    }


def test_a_group_of_which_nothing_is_counted_has_no_ledger_and_a_reason(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice
) -> None:
    """404, with the begin of a ledger named; so has a group that is not known."""
    assert service.get(LEDGER).status_code == 404
    store.save(advice())
    answer = service.get(LEDGER)
    assert answer.status_code == 404
    assert "a ledger begins with the first row" in answer.json()["detail"]


@pytest.mark.usefixtures("kept")
def test_a_refusal_leaves_the_last_ledger_readable(
    service: TestClient, store: SqlDecisionStore, refusal: Callable[..., Refusal], kept: Recommendation
) -> None:
    """What was paid is known while no advice is given, with the instant up to which it counts."""
    store.save(refusal(refused_at=kept.valid_until))
    assert service.get(LEDGER).json()["issued_at"] == "2026-01-05T12:00:00Z"


@pytest.mark.usefixtures("kept")
def test_advice_carries_its_ledger(service: TestClient) -> None:
    """The same document as under its own address."""
    advised = service.get(LEDGER.replace("/ledger", "/recommendation")).json()
    assert advised["ledger"] == service.get(LEDGER).json()["ledger"]
