"""The ledger of a group over HTTP, as JSON and as CSV."""

import csv
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from fastapi.testclient import TestClient

from api.keys import group_key
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import LedgerStanding, Recommendation
from tests.api.conftest import Clock

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
        "saving": 1.75,
    }
    assert body["ledger"]["regret"] == 0.0
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
    assert [(row["saving"], row["regret"]) for row in rows][:2] == [("", "0.0"), ("0.25", "")]
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


FLEET = "/api/v1/ledger"


@pytest.fixture
def fleet(store: SqlDecisionStore, advice: MakeAdvice, ledger: LedgerStanding) -> None:
    """Two groups with a day each, one with an hour in euros, one without a ledger, one whose ledger is of yesterday."""
    hour = replace(ledger, since_at=advice().issued_at - timedelta(hours=1), currency="EUR")
    store.save(advice(ledger=ledger))
    cheap = replace(ledger.accounts[1], replicas=5.0)
    store.save(
        advice(
            recommendation_id="r-2",
            group="billing",
            ledger=replace(ledger, error_ratio=1.1, accounts=(cheap, ledger.accounts[2])),
        )
    )
    store.save(advice(recommendation_id="r-3", cluster="prod-us", group="clicks", ledger=hour))
    store.save(advice(recommendation_id="r-4", group="new"))
    day_before = advice().issued_at - timedelta(days=1)
    store.save(advice(recommendation_id="r-5", group="stale", ledger=ledger, issued_at=day_before))


@pytest.mark.usefixtures("fleet")
def test_the_ledgers_of_a_fleet_are_added_up_by_currency(service: TestClient) -> None:
    """What was paid, each scaler for the groups that have it, and apart from them the groups that are not counted."""
    body = service.get(FLEET).json()
    assert "cluster" not in body
    assert body["groups_without_ledger"] == 2
    euros, dollars = body["totals"]
    assert (euros["currency"], euros["groups"], euros["group_hours"]) == ("EUR", 1, 1.0)
    assert (dollars["currency"], dollars["groups"], dollars["group_hours"]) == ("USD", 2, 48.0)
    assert dollars["paid"] == {"replicas": 14.0, "late": 1.0, "total": 15.0}
    assert dollars["error_ratio"] == pytest.approx((1.03 + 1.1) / 2)
    assert dollars["regret"] == pytest.approx(2.25)
    accounts = {account["scaler"]: account for account in dollars["accounts"]}
    assert accounts["keda-2000"] == {
        "scaler": "keda-2000",
        "groups": 2,
        "distinguishable_groups": 2,
        "replicas": 14.0,
        "late": 0.5,
        "total": 14.5,
        "saving": -0.5,
    }
    ceiling = accounts["fixed-ceiling"]
    assert (ceiling["groups"], ceiling["distinguishable_groups"], ceiling["saving"]) == (1, 0, 0.25)


@pytest.mark.usefixtures("fleet")
def test_a_cluster_or_a_namespace_is_added_up_alone(service: TestClient) -> None:
    """Only the groups of that cluster, or whose workload is in that namespace; an unknown one is not an empty sum."""
    assert [total["currency"] for total in service.get(FLEET, params={"cluster": "prod-us"}).json()["totals"]] == [
        "EUR"
    ]
    shop = service.get(FLEET, params={"namespace": "shop"}).json()
    assert (shop["namespace"], shop["groups_without_ledger"]) == ("shop", 0)
    assert [total["groups"] for total in shop["totals"]] == [1]
    answer = service.get(FLEET, params={"cluster": "prod-eu", "namespace": "shp"})
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith("no group of cluster 'prod-eu' and namespace 'shp' is known; ")


@pytest.mark.usefixtures("fleet")
def test_a_group_that_is_refused_is_counted_by_its_last_advice(
    service: TestClient, store: SqlDecisionStore, refusal: Callable[..., Refusal], clock: Clock
) -> None:
    """For an hour; then its last day is over."""
    store.save(refusal(refused_at=clock.now + timedelta(minutes=1)))
    clock.now += timedelta(hours=1)
    assert service.get(FLEET, params={"namespace": "shop"}).json()["groups_without_ledger"] == 0
    clock.now += timedelta(seconds=1)
    body = service.get(FLEET, params={"namespace": "shop"}).json()
    assert (body["groups_without_ledger"], body["totals"]) == (1, [])


@pytest.mark.usefixtures("fleet")
def test_the_sums_as_csv_have_a_row_for_each_currency_and_scaler(service: TestClient) -> None:
    """With the currency on each row, and the regret beside what was paid."""
    answer = service.get(FLEET, headers={"Accept": "text/csv"})
    assert (answer.headers["content-type"].split(";")[0], answer.headers["vary"]) == ("text/csv", "Accept")
    rows = list(csv.DictReader(StringIO(answer.text)))
    assert [(row["currency"], row["scaler"], row["total"]) for row in rows][:2] == [
        ("EUR", "paid", "7.5"),
        ("EUR", "fixed-ceiling", "7.75"),
    ]
    assert [row["regret"] for row in rows if row["scaler"] == "paid"] == ["0.0", "2.25"]
    assert len(rows) == 2 * 4


def test_a_fleet_of_no_groups_has_no_sums(service: TestClient) -> None:
    """Nothing was decided yet: no total, and nobody who misses one."""
    assert service.get(FLEET).json() == {"totals": [], "groups_without_ledger": 0}
