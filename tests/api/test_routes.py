"""The service's answers to the requests of a client."""

import json
import os
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.app import create_app
from api.keys import group_key
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.hold import Hold, HoldScope
from recommender.deciding.recommendation import GradedMove, LearnedMoves, Recommendation, TurningPoint
from recommender.ports import UnavailableError, decision_id
from tests.api.conftest import Clock

MakeAdvice = Callable[..., Recommendation]
MakeRefusal = Callable[..., Refusal]
MakeMove = Callable[..., GradedMove]
KEY = group_key("prod-eu", "orders")
ADVICE = f"/api/v1/groups/{KEY}/recommendation"
DUE = f"/api/v1/groups/{KEY}/due-replicas"
HISTORY = f"/api/v1/groups/{KEY}/recommendations"
OUTCOMES = f"/api/v1/groups/{KEY}/outcomes"
LEARNED = LearnedMoves(
    rebalance_pause_scale_out_seconds=6.4,
    rebalance_pause_scale_in_seconds=8.6,
    move_risk=0.07,
    moves=2,
    source="assumed",
    target_utilization=0.95,
)
GOLDEN = Path(__file__).parent / "openapi.json"


def on_all_pages(service: TestClient, path: str, what: str, limit: int) -> list[dict[str, Any]]:
    """The entries of the first page and of all that `next` leads to, in their order."""
    seen: list[dict[str, Any]] = []
    parameters: dict[str, Any] = {"limit": limit}
    while True:
        page = service.get(path, params=parameters).json()
        seen += page[what]
        if "next" not in page:
            return seen
        parameters["cursor"] = page["next"]


def test_the_latest_decision_is_returned_whatever_its_kind(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """Advice and a refusal are both returned with 200, and `kind` distinguishes them."""
    store.save(advice())
    first = service.get(ADVICE)
    assert (first.status_code, first.json()["kind"], first.json()["desired_replicas"]) == (200, "Recommendation", 8)
    refused = refusal(refused_at=advice().issued_at + timedelta(minutes=1))
    store.save(refused)
    second = service.get(ADVICE)
    assert (second.status_code, second.json()["reason"]["code"]) == (200, "HistoryStale")
    assert service.get("/api/v1/recommendations/r-1").json() == first.json()
    assert service.get(f"/api/v1/recommendations/{decision_id(refused)}").json() == second.json()


def test_an_unchanged_answer_is_not_sent_again(
    service: TestClient, store: SqlDecisionStore, clock: object, advice: MakeAdvice
) -> None:
    """With the tag of the last answer a client gets 304 and no body, until the replicas fall due."""
    store.save(advice())
    first = service.get(ADVICE)
    tag = first.headers["etag"]
    again = service.get(ADVICE, headers={"If-None-Match": f'"other", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    clock.now = advice().execute_at  # type: ignore[attr-defined]  # the fixture's own class
    due = service.get(ADVICE, headers={"If-None-Match": tag})
    assert (due.status_code, due.json()["due_replicas"]) == (200, 8)


def test_pages_of_groups_follow_each_other(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """The pages that `next` leads to list every group once, refused ones among them, and the last one has no `next`."""
    for index in range(5):
        store.save(advice(recommendation_id=f"r-{index}", group=f"g{index}"))
    store.save(refusal(group="g5"))
    seen, cursor = [], None
    while True:
        page = service.get("/api/v1/groups", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [(row["group_id"], row["kind"]) for row in page["groups"]]
        cursor = page.get("next")
        if cursor is None:
            break
    assert seen == [(f"g{index}", "Recommendation") for index in range(5)] + [("g5", "Refusal")]
    only = service.get("/api/v1/groups", params={"cluster": "prod-eu", "group_id": "g3"}).json()
    assert [row["group_id"] for row in only["groups"]] == ["g3"]
    assert service.get("/api/v1/groups", params={"cluster": "prod-us"}).json() == {"groups": []}


def test_pages_of_groups_begin_with_the_worst_where_that_is_asked_for(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """Each page has the cursor of the next one, which is none of groups by name; each group says what is wrong."""
    store.save(refusal(group="refused"))
    store.save(advice(group="fine", recommendation_id="r-1", desired_replicas=6, action="hold"))
    store.save(advice(group="moves", recommendation_id="r-2"))
    shown, cursor = [], ""
    while True:
        page = service.get(f"/api/v1/groups?order=worst&limit=1{cursor}").json()
        shown += [(each["group_id"], each.get("concern")) for each in page["groups"]]
        if "next" not in page:
            break
        cursor = f"&cursor={page['next']}"
        assert service.get(f"/api/v1/groups?limit=1{cursor}").status_code == 400
    assert shown == [("refused", "no_advice"), ("moves", "saving_forgone"), ("fine", None)]


@pytest.mark.parametrize(
    "place",
    ['[9,"",0.0,"c","g"]', '[0,"",NaN,"c","g"]', '[0,"",0.0,"c"]', '[0,"",0.0,"\\ud800","g"]', "[" * 3000, "{}", "0"],
)
def test_a_cursor_of_the_worst_that_was_made_up_is_refused(service: TestClient, place: str) -> None:
    """It is none that a page has given."""
    cursor = urlsafe_b64encode(place.encode()).decode().rstrip("=")
    answer = service.get(f"/api/v1/groups?order=worst&cursor={cursor}")
    assert (answer.status_code, "take `next` of the page before" in answer.json()["detail"]) == (400, True)


def test_the_fleet_is_added_up_by_currency(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """What is refused has no currency; what nothing was paid for has no cost, not one of 0."""
    store.save(refusal(group="refused"))
    store.save(advice())
    counted = {"expired": 0, "no_advice": 0, "promise_missed": 0, "saving_forgone": 0, "groups_with_ledger": 0}
    nothing = {"current_replicas": 0, "desired_replicas": 0, "advised_saving_per_hour": 0.0}
    of_orders = {"current_replicas": 6, "desired_replicas": 8, "advised_saving_per_hour": pytest.approx(0.89)}
    assert service.get("/api/v1/fleet?cluster=prod-eu").json() == {
        "cluster": "prod-eu",
        "totals": [
            {**counted, **nothing, "groups": 1, "no_advice": 1},
            {**counted, **of_orders, "currency": "USD", "groups": 1, "saving_forgone": 1},
        ],
    }
    assert service.get("/api/v1/fleet?cluster=other").json() == {"cluster": "other", "totals": []}


def test_a_group_is_found_by_its_key(service: TestClient, store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """The key in the list leads to the group, also where its name contains slashes."""
    store.save(advice(group="team/orders ü"))
    key = service.get("/api/v1/groups").json()["groups"][0]["group_key"]
    group = service.get(f"/api/v1/groups/{key}").json()
    assert (group["group_id"], group["cluster"], group["latest"]["recommendation_id"]) == (
        "team/orders ü",
        "prod-eu",
        "r-1",
    )


def test_due_replicas_are_one_number(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, clock: Clock
) -> None:
    """The present count before the move is due, the advised one from then on."""
    store.save(advice())
    for now, replicas in ((advice().execute_at - timedelta(seconds=1), 6), (advice().execute_at, 8)):
        clock.now = now
        answer = service.get(DUE)
        assert (answer.status_code, answer.json()) == (200, {"value": replicas})


def test_without_valid_advice_no_replicas_are_due(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal, clock: Clock
) -> None:
    """Expired advice and a refusal are a 503 with the reason, never a number."""
    store.save(advice())
    clock.now = advice().valid_until + timedelta(seconds=1)
    expired = service.get(DUE)
    store.save(refusal(refused_at=clock.now))
    refused = service.get(DUE)
    assert (expired.status_code, refused.status_code) == (503, 503)
    assert "the last advice expired at" in expired.json()["detail"]
    assert refused.json()["detail"].startswith("no advice: ")
    keep = "; keep the replicas that run, and ask again"
    assert all(answer.json()["detail"].endswith(keep) for answer in (expired, refused))


@given(sizes=st.tuples(st.integers(min_value=1, max_value=7), st.integers(min_value=1, max_value=4)))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pages_of_decisions_show_each_once(
    sizes: tuple[int, int], service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, clock: Clock
) -> None:
    """The pages that `next` leads to list each decision of the last day once, newest first, and its id leads to it."""
    decisions, limit = sizes
    group = f"d{decisions}-{limit}"
    instants = [clock.now - timedelta(hours=4 * place) for place in range(decisions)]
    for place, at in enumerate(instants):
        store.save(advice(recommendation_id=f"r-{group}-{place}", group=group, issued_at=at))
    seen = on_all_pages(service, f"/api/v1/groups/{group_key('prod-eu', group)}/recommendations", "decisions", limit)
    assert [datetime.fromisoformat(each["issued_at"]) for each in seen] == instants
    assert service.get(f"/api/v1/recommendations/{seen[-1]['recommendation_id']}").status_code == 200


def test_a_span_of_decisions_is_asked_for(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, clock: Clock
) -> None:
    """`from` and `to` belong to the span; one that ends before it begins is refused in a sentence."""
    for place in range(4):
        store.save(advice(recommendation_id=f"r-{place}", issued_at=clock.now - timedelta(hours=place)))
    span = {"from": (clock.now - timedelta(hours=2)).isoformat(), "to": (clock.now - timedelta(hours=1)).isoformat()}
    decisions = service.get(HISTORY, params=span).json()["decisions"]
    assert [each["recommendation_id"] for each in decisions] == ["r-1", "r-2"]
    turned = service.get(HISTORY, params={"from": span["to"], "to": span["from"]})
    assert (turned.status_code, turned.json()["detail"].endswith("; exchange them")) == (422, True)


def test_a_decision_is_explained_in_sentences(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """Advice has its reasons, what is known, and what would reverse it; a refusal its reason and the next step."""
    turning = TurningPoint(quantity="rebalance_pause_seconds", present=12.0, turning=30.0)
    store.save(advice(learned=LEARNED, sensitivity=(turning,)))
    store.save(refusal())
    explained = service.get("/api/v1/recommendations/r-1/explanation").json()
    assert explained["sentences"] == list(advice().sentences)
    assert any(sentence.startswith("A move stops what it moves 6.4 s") for sentence in explained["known"])
    assert explained["reversals"] == ["Another decision from a rebalance pause of 30 s on, in place of 12."]
    refused = service.get(f"/api/v1/recommendations/{decision_id(refusal())}/explanation").json()
    assert (refused["kind"], refused["sentences"]) == ("Refusal", [refusal().sentence])
    assert refused["remedy"] == refusal().remedy
    assert service.get("/api/v1/recommendations/none/explanation").status_code == 404


def test_moves_are_listed_with_what_was_expected_of_them(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, graded_move: MakeMove
) -> None:
    """A move is listed with its outcome and with the expectation of its advice; unknown values are absent."""
    store.save(advice(learned=LEARNED))
    foreign = replace(graded_move().outcome, advised_as=None, start_up_seconds=None)
    later = graded_move().graded_at + timedelta(hours=1)
    store.keep_outcomes([graded_move(), graded_move(graded_at=later, outcome=foreign, promised=None)])
    page = service.get(OUTCOMES).json()
    own, advised = page["outcomes"]
    assert advised["expected"] == {
        "rebalance_pause_seconds": 12.0,
        "late_messages": 18_400.0,
        "chosen": 0.59,
        "stay": 1.48,
        "saving": 0.89,
        "currency": "USD",
        "horizon_seconds": 3600.0,
    }
    assert advised["happened"] == {"rebalance_pause_seconds": 3.4, "late_messages": 0.0, "start_up_seconds": 45.0}
    assert service.get(f"/api/v1/recommendations/{advised['recommendation_id']}").status_code == 200
    assert {"expected", "recommendation_id"}.isdisjoint(own)
    assert (own["graded_at"], own["happened"]["rebalance_pause_seconds"]) == ("2026-01-05T13:00:00Z", 3.4)
    assert (page["learned"]["source"], page["learned"]["moves"]) == ("assumed", 2)


def test_a_refusal_names_neither_a_path_nor_a_url(
    service: TestClient, store: SqlDecisionStore, refusal: MakeRefusal
) -> None:
    """What is away is told in its sentence; where that is, is nobody's business but the operator's, who has the log."""
    store.save(refusal(sentence="/var/lib/lagcast/features is no folder, and postgresql://db.shop/lagcast is away"))
    decision = service.get(f"/api/v1/groups/{KEY}/recommendation").json()
    told = "FILE is no folder, and ADDRESS is away"
    assert decision["reason"]["sentences"] == [told]
    explained = service.get(f"/api/v1/recommendations/{decision['recommendation_id']}/explanation").json()
    assert any(told in sentence for sentence in explained["sentences"])
    assert "lib/lagcast" not in service.get(f"/groups/{KEY}", headers={"accept": "text/html"}).text


def test_a_group_that_never_moved_has_an_empty_page(
    service: TestClient, store: SqlDecisionStore, refusal: MakeRefusal
) -> None:
    """Without moves and advice the page has no moves and no learned values."""
    store.save(refusal())
    assert service.get(OUTCOMES).json() == {
        "group_key": KEY,
        "cluster": "prod-eu",
        "group_id": "orders",
        "outcomes": [],
    }


@given(sizes=st.tuples(st.integers(min_value=0, max_value=7), st.integers(min_value=1, max_value=4)))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pages_of_moves_show_each_once(
    sizes: tuple[int, int], service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, graded_move: MakeMove
) -> None:
    """The pages that `next` leads to list each move once, newest first, for any count of moves and size of pages."""
    moves, limit = sizes
    group = f"g{moves}-{limit}"
    store.save(advice(recommendation_id=f"r-{group}", group=group))
    start = graded_move().graded_at
    instants = [start + timedelta(minutes=minute, microseconds=minute) for minute in range(moves)]
    store.keep_outcomes([graded_move(group=group, graded_at=at) for at in instants])
    seen = on_all_pages(service, f"/api/v1/groups/{group_key('prod-eu', group)}/outcomes", "outcomes", limit)
    assert [datetime.fromisoformat(outcome["graded_at"]) for outcome in seen] == instants[::-1]


def test_an_invalid_cursor_is_refused(service: TestClient, store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """A text, a group's key, an instant without its zone and one before the year 1 are refused as cursors."""
    store.save(advice())
    instants = ("2026-01-05T12:00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59")
    for cursor in ("xyz", KEY, *(urlsafe_b64encode(each.encode()).decode().rstrip("=") for each in instants)):
        for path in (OUTCOMES, f"/api/v1/groups/{KEY}/recommendations", "/api/v1/groups"):
            if (cursor, path) == (KEY, "/api/v1/groups"):
                continue  # there a group's key is the cursor
            answer = service.get(path, params={"cursor": cursor})
            assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
            assert f"'{cursor}' is no cursor; take `next` of the page before" in answer.json()["detail"]


@pytest.mark.parametrize("instant", ["1767614400", "1767614400000", "0", "1.7e9", "nan"])
def test_an_instant_is_written_out(service: TestClient, instant: str) -> None:
    """A number was taken for seconds or, where it is large, for milliseconds."""
    answer = service.get(f"/api/v1/groups/{group_key('c', 'orders')}/recommendations", params={"from": instant})
    assert answer.status_code == 422
    assert answer.json()["detail"].endswith("an instant has to be written out, such as 2026-01-05T12:00:00Z")


@pytest.mark.parametrize("name", ["from", "to"])
@pytest.mark.parametrize(
    "instant", ["0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"]
)
def test_instants_at_the_ends_of_the_calendar_are_no_failure(
    *, service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, name: str, instant: str
) -> None:
    """There is a page, or one sentence about the parameter."""
    store.save(advice())
    for path in (f"/api/v1/groups/{KEY}/recommendations", f"/api/v1/groups/{KEY}/forecast"):
        answer = service.get(path, params={name: instant})
        assert answer.status_code in {200, 404, 422}, answer.text


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        (f"{OUTCOMES}?limit=0", 422, "'limit' is '0'"),
        (OUTCOMES, 404, "nothing was decided for group 'orders'"),
        ("/api/v1/groups?limit=501", 422, "'limit' is '501'"),
        ("/api/v1/groups?limit=none", 422, "'limit' is 'none'"),
        ("/api/v1/groups?cursor=xyz", 400, "'xyz' is no cursor"),
        ("/api/v1/groups/xyz", 404, "'xyz' is no group key"),
        (f"/api/v1/groups/{KEY}", 404, "nothing was decided for group 'orders' of cluster 'prod-eu'"),
        ("/api/v1/recommendations/r-9", 404, "'r-9'"),
        ("/api/v2/groups", 404, "there is nothing here; the root lists what there is"),
        ("/docs", 404, "there is nothing here; the root lists what there is"),
    ],
)
def test_errors_are_problems_in_one_sentence(service: TestClient, path: str, status: int, detail: str) -> None:
    """Each error names the next step, as application/problem+json, and neither a path nor a URL."""
    answer = service.get(path)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status)
    assert detail in problem["detail"]
    assert problem["instance"].startswith("urn:uuid:")
    assert "/" not in answer.text.replace("application/json", "")


def test_writing_is_not_offered(service: TestClient) -> None:
    """No route accepts a POST."""
    answer = service.post(ADVICE)
    assert (answer.status_code, answer.headers["content-type"]) == (405, "application/problem+json")


def test_ready_means_store_and_first_cycle(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service is alive all the time, and ready from the first decision on; the failing check is named."""
    assert (service.get("/readyz").status_code, service.get("/readyz").text) == (503, "not ready: first_cycle\n")
    store.save(advice())
    assert (service.get("/readyz").status_code, service.get("/readyz").text) == (200, "ok\n")

    def broken(**_: object) -> None:
        message = "could not read the decision store /var/lib/x.sqlite of postgresql://me@db/lagcast: disk I/O error"
        raise UnavailableError(message)

    monkeypatch.setattr(store, "latest_page", broken)
    verbose = service.get("/readyz?verbose")
    assert verbose.status_code == 503
    assert verbose.text.startswith("store: it does not answer\n")
    answer = service.get("/api/v1/groups")
    assert (answer.status_code, answer.json()["detail"]) == (503, "the store of decisions does not answer; retry later")
    assert service.get("/livez").text == "ok\n"


def test_a_probe_fails_while_the_loop_hangs(store: SqlDecisionStore, clock: Clock) -> None:
    """The process is started again then; a store that does not answer is no reason for that."""
    hanging = [False]
    service = TestClient(create_app(store, clock=clock, version="1", hangs=lambda: hanging[0]))
    assert service.get("/livez").status_code == 200
    hanging[0] = True
    answer = service.get("/livez")
    assert (answer.status_code, answer.text) == (503, "the loop has looked for rows last 15 min ago\n")


def test_holds_in_force_are_listed(service: TestClient, store: SqlDecisionStore, clock: Clock) -> None:
    """Scope, reason and end of each; a name that is absent is any, and one that is over is not listed."""
    ends_at = clock.now + timedelta(hours=1)
    store.place_hold(Hold(scope=HoldScope(), reason="upgrade", placed_at=clock.now - timedelta(minutes=1)))
    scope = HoldScope(namespace="shop", group="orders")
    store.place_hold(Hold(scope=scope, reason="sale", placed_at=clock.now, until=ends_at))
    assert service.get("/api/v1/holds").json() == {
        "holds": [
            {"reason": "upgrade", "placed_at": "2026-01-05T11:59:00Z"},
            {
                "namespace": "shop",
                "group_id": "orders",
                "reason": "sale",
                "placed_at": "2026-01-05T12:00:00Z",
                "until": "2026-01-05T13:00:00Z",
            },
        ]
    }
    clock.now = ends_at
    assert [hold["reason"] for hold in service.get("/api/v1/holds").json()["holds"]] == ["upgrade"]


def test_an_internal_error_shows_no_secrets(
    service: TestClient, store: SqlDecisionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug is answered as a problem without its traceback."""

    def buggy(**_: object) -> None:
        message = "password=hunter2"
        raise RuntimeError(message)

    monkeypatch.setattr(store, "latest_page", buggy)
    answer = service.get("/api/v1/groups")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "hunter2" not in answer.text


def test_a_reason_names_neither_file_nor_address(
    service: TestClient, store: SqlDecisionStore, refusal: MakeRefusal
) -> None:
    """What a refusal says of a source is cut where it is part of an error; the rest of the sentence stays."""
    store.save(
        replace(refusal(), sentence="http://me:pw@prom.shop:9090/x did not answer, see /etc/lagcast/client.properties.")
    )
    detail = service.get(DUE).json()["detail"]
    assert detail == "no advice: ADDRESS did not answer, see FILE; keep the replicas that run, and ask again"


def test_the_root_links_lead_somewhere(service: TestClient, store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """Every link of the root leads to an answer and is relative, so that a proxy may serve all under a sub-path."""
    store.save(advice())
    for link in service.get("/").json().values():
        assert not link.startswith(("/", "http"))
        assert service.get(f"/{link}").status_code == 200


def test_p21_no_answer_is_a_page_that_loads_from_elsewhere(service: TestClient) -> None:
    """The framework's own pages, whose scripts come from another host, are off; the rest is JSON or plain text."""
    assert [service.get(path).status_code for path in ("/docs", "/redoc")] == [404, 404]
    for path in ("/", "/openapi.json", "/metrics", "/livez", "/readyz?verbose", "/api/v1/groups"):
        kind = service.get(path).headers["content-type"]
        assert kind.startswith(("application/json", "application/problem+json", "text/plain")), path


def test_p24_the_description_is_the_checked_in_one(service: TestClient) -> None:
    """The OpenAPI document changes only on purpose: `REWRITE=1 pytest tests/api -k checked_in` rewrites it."""
    document = service.get("/openapi.json").json()
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    assert document == json.loads(GOLDEN.read_text())
    assert document["openapi"].startswith("3.1")


def test_the_time_of_a_page_depends_on_its_size(
    service: TestClient, store: SqlDecisionStore, advice: MakeAdvice
) -> None:
    """The first page of 1,000 groups comes within 0.3 s."""
    for index in range(1000):
        store.save(advice(recommendation_id=f"r-{index}", group=f"g{index:04}"))
    service.get("/api/v1/groups?limit=1")  # another page, because this one would be kept
    started = perf_counter()
    assert len(service.get("/api/v1/groups").json()["groups"]) == 50
    assert perf_counter() - started < 0.3
