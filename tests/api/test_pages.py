"""The page, as a browser gets it: the fleet, a group, a decision; escaped, with links to what REST says."""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
import structlog.testing
from fastapi.testclient import TestClient
from httpx2 import Response

from api.access.guard import Access
from api.access.tokens import Tokens
from api.app import create_app
from api.keys import group_key
from api.pages.replays import MOST_KEPT, KeptReplay, LostDay, Replays
from api.pages.work import Work
from api.pictures.league import DayOfPolicy, Standing, league
from api.words import instant
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.configuring.effective import effective_settings
from recommender.deciding.recommendation import GradedMove, LedgerStanding, PolicyFigures, Recommendation
from recommender.ports import UnavailableError
from tests.api.access_files import token_file
from tests.api.conftest import Clock

PROMISE = PolicyFigures(
    name="balanced",
    price_per_replica_hour=0.05,
    price_per_late_message=1e-6,
    price_per_duplicate_message=0.0,
    price_per_move=0.0,
    risk_weight=0.0,
    max_lag_seconds=10.0,
)
OURS = Standing(
    policy="lagcast",
    replicas=7.0,
    late=0.5,
    duplicates=0,
    late_share=0.01,
    wait_p99_seconds=1,
    moves=9,
    part="ours",
)
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
KEY = group_key("prod-eu", "orders")
VOID = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """What a page says, what it links to and loads, and whether its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        # The links in the headers of a table's rows.
        self.rows: list[str] = []
        self._names_a_row = False
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        if tag not in VOID:
            self._open.append(tag)
        named = dict(attributes)
        assert not {"style", "onclick", "onload"} & named.keys()  # what the page's own policy forbids
        if tag == "a":
            self.links.append(named["href"] or "")
            if len(self._open) > 1 and self._open[-2] == "th":
                self._names_a_row = True
        if tag in {"link", "script", "img"}:
            self.loaded.append(named.get("href") or named.get("src") or "")

    def handle_endtag(self, tag: str) -> None:
        """Close it."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note the words between elements."""
        self.words.append(data)
        if self._names_a_row:
            self.rows.append(data)
            self._names_a_row = False

    @property
    def text(self) -> str:
        """All words, one space apart."""
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def read(service: TestClient) -> Callable[..., Page]:
    """Reads a page as a browser does."""

    def reading(path: str, status: int = 200) -> Page:
        answer = service.get(path, headers=BROWSER)
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/html")
        return Page(answer.text)

    return reading


def test_a_browser_gets_the_groups_where_a_program_gets_links(
    service: TestClient, store: SqlDecisionStore, advice: Callable[..., Recommendation]
) -> None:
    """Curl and scripts accept anything, and keep the JSON that they had."""
    store.save(advice())
    assert "orders" in Page(service.get("/", headers=BROWSER).text).text
    assert service.get("/").json()["groups"] == "api/v1/groups"
    assert {service.get("/", headers=headers).headers["vary"] for headers in ({}, BROWSER)} == {"Accept"}


def test_the_fleet_has_what_each_group_has_and_should_have(
    store: SqlDecisionStore,
    read: Callable[..., Page],
    advice: Callable[..., Recommendation],
    refusal: Callable[..., Refusal],
) -> None:
    """A refusal is a row with its reason, and no figure is invented for it."""
    given = advice()
    store.save(given)
    store.save(refusal(group="billing"))
    page = read("/")
    assert f"orders {given.current_replicas} {given.desired_replicas} 2026-01-05 12:02 UTC" in page.text
    assert "prod-eu shop" in page.text
    assert "billing unknown no advice" in page.text
    assert f"groups/{KEY}" in page.links


def test_pages_follow_each_other_and_names_are_found(
    store: SqlDecisionStore, read: Callable[..., Page], advice: Callable[..., Recommendation]
) -> None:
    """Fifty groups a page; the link to the next one has the whole view."""
    for number in range(51):
        store.save(advice(recommendation_id=f"r-{number}", group=f"g{number:02}"))
    (following,) = [link for link in read("/").links if link.startswith("?")]
    second = read(f"/{following}")
    assert ("g50" in second.text, "g49" in second.text) == (True, False)
    found = read("/?group_id=g07")
    assert ("g07" in found.text, "g08" in found.text) == (True, False)
    assert "No group of this name is known" in read("/?group_id=nobody").text


def test_the_worst_come_first_by_a_rule_that_the_page_states_and_totals_are_of_all_groups(
    store: SqlDecisionStore,
    read: Callable[..., Page],
    advice: Callable[..., Recommendation],
    refusal: Callable[..., Refusal],
    ledger: LedgerStanding,
) -> None:
    """Of 60 groups the page shows 50; it counts all of them, and adds up their replicas, savings and costs."""
    for number in range(58):
        store.save(advice(recommendation_id=f"r-{number}", group=f"g{number:02}", ledger=ledger))
    late = replace(advice().observed, lag_seconds=25.0)
    store.save(advice(recommendation_id="r-late", group="late", observed=late, policy=PROMISE))
    store.save(refusal(group="refused"))
    page = read("/")
    assert page.rows[:3] == ["refused", "late", "g00"]
    assert "25 s (promise missed)" in page.text
    assert "Groups 60 Without advice 1 Promise missed 1 Saving forgone 58 As they should be 0" in page.text
    assert f"Replicas, of groups with advice {59 * 6}; {59 * 8} advised" in page.text
    # 58 ledgers of 7.50 in a day, and 59 savings of 0.89 in an hour.
    assert "Advice would save 52.5 USD/h 58 of 59 have cost 18.1 USD/h" in page.text
    assert "The worst come first: groups without advice; groups whose lag is above the promise" in page.text
    (following,) = [link for link in page.links if link.startswith("?")]
    second = read(f"/{following}")
    assert sorted(page.rows + second.rows) == sorted(["refused", "late", *(f"g{number:02}" for number in range(58))])
    assert "Groups 60 Without advice 1" in second.text
    assert "Groups 1 Without advice 1" in read("/?group_id=refused").text
    assert "'xyz' is no cursor of groups with the worst first" in read("/?cursor=xyz", 400).text


def test_an_empty_store_says_what_is_missing(read: Callable[..., Page]) -> None:
    """Not an empty table: the failing check, and the command that looks further."""
    text = read("/").text
    assert "No decision has been made yet" in text
    assert "first cycle: no decision has been made yet; are samples collected and features computed?" in text
    assert "lagcast doctor" in text


def test_a_group_shows_why_what_it_costs_and_how_often_it_was_right(
    store: SqlDecisionStore,
    read: Callable[..., Page],
    advice: Callable[..., Recommendation],
    graded_move: Callable[..., GradedMove],
    ledger: LedgerStanding,
) -> None:
    """Every sentence of the explanation, the plans with their totals, the ledger, graded moves, earlier decisions."""
    given, move = advice(ledger=ledger), graded_move()
    store.save(given)
    store.keep_outcomes([move])
    page = read(f"/groups/{KEY}")
    for sentence in given.sentences:
        assert " ".join(sentence.split()) in page.text
    assert f"{given.current_replicas} replicas now" in page.text
    assert "What each plan costs" in page.text
    assert "What the last day has cost" in page.text
    assert all(account.scaler in page.text for account in ledger.accounts)
    assert f"{instant(move.graded_at)} {move.outcome.from_replicas} {move.outcome.to_replicas}" in page.text
    assert f"../recommendations/{given.recommendation_id}" in page.links


def test_the_items_of_each_plan_add_up_to_its_total(
    service: TestClient, store: SqlDecisionStore, advice: Callable[..., Recommendation]
) -> None:
    """As they are shown, to their last digit but one: people add them up."""
    store.save(advice())
    text = service.get(f"/groups/{KEY}", headers=BROWSER).text
    table = text.split('aria-label="What each plan costs as a table"')[1].split("</table>")[0]
    rows = [re.findall(r'<td class="figure">([-0-9.,e+]+)', row) for row in table.split("<tr")[2:]]
    assert len(rows) >= 2
    for _, *items, total in rows:
        figures = [float(item.replace(",", "")) for item in items]
        assert sum(figures) == pytest.approx(float(total.replace(",", "")), rel=0.01)


def test_a_page_has_its_pictures_as_options_and_as_tables(
    service: TestClient, store: SqlDecisionStore, advice: Callable[..., Recommendation], ledger: LedgerStanding
) -> None:
    """One request for all pictures of a page, in the theme that the browser has, and a link to the rows of each."""
    given = advice(ledger=ledger)
    store.save(given)
    for path, root, names in (
        ("/", "/", {"fleet-0"}),
        (
            f"/groups/{KEY}",
            f"/groups/{KEY}/",
            {"states", "fan", "replicas", "lag", "waterfall", "ledger", "rebalances", "accuracy", "calendar"},
        ),
        (f"/recommendations/{given.recommendation_id}", f"/recommendations/{given.recommendation_id}/", {"waterfall"}),
    ):
        text = service.get(path, headers=BROWSER).text
        # Of the lag and of what came nothing is known here: there is the sentence alone.
        assert set(re.findall(r'<figure data-picture="([^"]+)"', text)) == names - {"lag", "accuracy"}
        light, dark = (service.get(f"{root}pictures", params={"theme": theme}).json() for theme in ("light", "dark"))
        assert light.keys() == dark.keys() == names
        assert all(light[name] != dark[name] for name in names)
        for name in names:
            table = service.get(f"{root}pictures/{name}.csv")
            assert table.headers["content-type"].startswith("text/csv")
            assert f"pictures/{name}.csv" in text
        assert service.get(f"{root}pictures/other.csv").status_code == 404


def test_the_data_of_groups_are_a_page_with_what_is_missing(
    store: SqlDecisionStore,
    read: Callable[..., Page],
    advice: Callable[..., Recommendation],
    refusal: Callable[..., Refusal],
) -> None:
    """Age, history and counts of each group's data; a refusal is a row with its reason, and no figure is invented."""
    store.save(advice())
    store.save(refusal(group="billing"))
    page = read("/quality")
    assert "orders prod-eu 2026-01-05 11:59:38 UTC 22 s 14 d weekly 3 0" in page.text
    assert "billing prod-eu unknown unknown unknown unknown unknown unknown history stale" in page.text
    assert "Store: ok" in page.text
    assert f"groups/{KEY}" in page.links
    for number in range(51):
        store.save(advice(recommendation_id=f"r-{number}", group=f"g{number:02}"))
    (following,) = [link for link in read("/quality").links if link.startswith("quality?")]
    assert "orders" in read(f"/{following}").text


def test_an_empty_store_has_no_data_to_tell_of(read: Callable[..., Page]) -> None:
    """And names the command that looks further."""
    text = read("/quality").text
    assert "First cycle: no decision has been made yet" in text
    assert "lagcast doctor" in text


def test_before_there_is_a_decision_a_page_shows_the_work_and_afterwards_its_replay(
    store: SqlDecisionStore, clock: Clock
) -> None:
    """Each stage with what it waits for, or what came of it; then the league as a picture, with its sentence."""
    work = Work()
    service = TestClient(create_app(store, clock=clock, version="0.1.0", work=work))

    def text(path: str) -> str:
        return Page(service.get(path, headers=BROWSER).text).text

    assert "No replay is played in this process" in text("/replay")
    work.stage("Spark", "starting the JVM", None)
    assert "Spark starting the JVM not over" in text("/")
    assert "The replay is not over" in text("/replay")
    work.stage("Spark", "4.3.0, Java 21", 7.9)
    assert "Spark 4.3.0, Java 21 7.9 s" in text("/")
    work.replay(league([OURS], currency="USD"), "lagcast was the cheapest.")
    assert "lagcast was the cheapest." in text("/replay")
    assert service.get("/replay/pictures").json().keys() == {"league"}
    assert "lagcast" in service.get("/replay/pictures/league.csv").text


def kept(title: str, at: datetime) -> KeptReplay:
    """A replay in which lagcast lost a day."""
    lost = LostDay(day=date(2026, 1, 4), rival="keda", rival_cost=1.25, lagcast_cost=1.5)
    return KeptReplay(
        title=title, played_at=at, currency="USD", sentences=("Two days.",), standings=(OURS,), lost_days=(lost,)
    )


def test_a_replay_of_ones_own_load_has_a_page(store: SqlDecisionStore, clock: Clock, tmp_path: Path) -> None:
    """In the list, the newest first; with its picture, its table as CSV, and the days that lagcast lost.

    A document that is broken costs its own place, and no name leads out of the folder.
    """
    replays = Replays(tmp_path / "replays")
    service = TestClient(create_app(store, clock=clock, version="0.1.0", replays=replays))
    assert "Replays of your own loads" not in service.get("/replay", headers=BROWSER).text
    for hours in range(MOST_KEPT + 2):
        replays.keep(kept("a load/<b>", clock.now + timedelta(hours=hours)))
    assert len(list((tmp_path / "replays").iterdir())) == MOST_KEPT
    (tmp_path / "replays" / "20270101T000000Z-broken.json").write_text("{")
    (tmp_path / "secret.json").write_text("{}")
    page = Page(service.get("/replay", headers=BROWSER).text)
    assert len(page.rows) == MOST_KEPT - 1
    newest = kept("a load/<b>", clock.now + timedelta(hours=MOST_KEPT + 1)).replay_id
    assert next(link for link in page.links if link.startswith("replays/")) == f"replays/{newest}"
    found = Page(service.get(f"/replays/{newest}", headers=BROWSER).text)
    assert "a load/<b>" in found.text
    assert "Two days." in found.text
    assert "2026-01-04 keda 1.25 USD 1.50 USD" in found.text
    assert service.get(f"/replays/{newest}/pictures").json().keys() == {"league"}
    assert "lagcast,1.0,7.0" in service.get(f"/replays/{newest}/pictures/league.csv").text
    for name in ("..%2Fsecret", "nothing", "20270101T000000Z-broken"):
        assert service.get(f"/replays/{name}", headers=BROWSER).status_code == 404


def test_a_replay_of_several_days_tells_what_each_policy_paid_on_each(
    store: SqlDecisionStore, clock: Clock, tmp_path: Path
) -> None:
    """As pictures with their tables; a document that was written before days were kept has a page without them."""
    replays = Replays(tmp_path)
    service = TestClient(create_app(store, clock=clock, version="0.1.0", replays=replays))
    midnight = datetime(2026, 1, 3, tzinfo=UTC)
    days = tuple(
        DayOfPolicy(begins_at=begin, ends_at=begin + timedelta(days=1), cost=3.5, late_share=0.02)
        for begin in (midnight, midnight + timedelta(days=1))
    )
    other = replace(OURS, policy="keda", part="rival", days=(replace(days[0], cost=4.5), replace(days[1], cost=3.25)))
    replay = replace(kept("days", clock.now), standings=(other, replace(OURS, days=days)))
    replays.keep(replay)
    path = f"/replays/{replay.replay_id}"
    page = Page(service.get(path, headers=BROWSER).text)
    assert "Day by day" in page.text
    assert "2026-01-04 00:00:00 UTC 24 3.25 3.50 keda yes" in page.text
    assert service.get(f"{path}/pictures").json().keys() == {"league", "days", "late-days"}
    assert service.get(f"{path}/pictures/days.csv").text.splitlines()[:2] == [
        "begins_at,hours,keda,lagcast,paid_least,lost",
        "2026-01-03T00:00:00Z,24.0,4.5,3.5,lagcast,false",
    ]
    assert "2026-01-03T00:00:00Z,24.0,2.0,2.0" in service.get(f"{path}/pictures/late-days.csv").text

    document = tmp_path / f"{replay.replay_id}.json"
    before = json.loads(document.read_text())
    for standing in before["standings"]:
        del standing["days"]
    document.write_text(json.dumps(before))
    page = Page(service.get(path, headers=BROWSER).text)
    assert "Each policy on the same load" in page.text
    assert "2026-01-04 keda 1.25 USD 1.50 USD" in page.text
    assert "Day by day" not in page.text
    assert service.get(f"{path}/pictures").json().keys() == {"league"}


def test_the_settings_are_a_page_with_the_origin_of_each(store: SqlDecisionStore, clock: Clock, tmp_path: Path) -> None:
    """And without where anything is: neither the file's path, nor the store's address, nor the state folder."""
    path = tmp_path / "lagcast.yaml"
    path.write_text("decision: {currency: EUR}\n")
    variables = {
        "LAGCAST_DECISION__CYCLE_SECONDS": "20",
        "LAGCAST_STORE_URL": "postgresql+psycopg://me:secret@db/lagcast",
    }
    app = create_app(store, clock=clock, version="0.1.0", effective=effective_settings(path, variables))
    page = Page(TestClient(app).get("/settings", headers=BROWSER).text)
    assert "decision.currency EUR file" in page.text
    assert "decision.cycle_seconds 20 environment" in page.text
    assert "store_url ADDRESS environment" in page.text
    assert "port 8686 default" in page.text
    assert not [word for word in ("secret", str(tmp_path), "db/lagcast") if word in page.text]


def test_a_refusal_names_reason_and_next_step(
    store: SqlDecisionStore, read: Callable[..., Page], refusal: Callable[..., Refusal]
) -> None:
    """And says that the group keeps its replicas."""
    refused = refusal()
    store.save(refused)
    text = read(f"/groups/{group_key(refused.cluster, refused.group)}").text
    assert "No advice" in text
    assert "keeps its replicas" in text
    assert refused.sentence in text
    assert f"Next: {refused.remedy}" in text


def test_advice_that_has_expired_says_so(
    store: SqlDecisionStore, read: Callable[..., Page], clock: Clock, advice: Callable[..., Recommendation]
) -> None:
    """It is shown, and nobody should act on it."""
    given = advice()
    store.save(given)
    clock.now = given.valid_until.replace(hour=23)
    assert "(expired at" in read(f"/groups/{KEY}").text
    assert "(expired)" in read("/").text


def test_an_earlier_decision_has_a_page_of_its_own(
    store: SqlDecisionStore, read: Callable[..., Page], advice: Callable[..., Recommendation]
) -> None:
    """With a way back to its group."""
    given = advice()
    store.save(given)
    page = read(f"/recommendations/{given.recommendation_id}")
    assert given.sentences[0] in page.text
    assert f"../groups/{KEY}" in page.links


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/groups/zzz", "All groups"),
        (f"/groups/{group_key('c', 'nobody')}", "Nothing was decided for group 'nobody' of cluster 'c' yet"),
        ("/recommendations/r-none", "No recommendation or refusal has the id 'r-none'"),
    ],
)
def test_what_is_not_there_is_a_page_with_a_sentence(read: Callable[..., Page], path: str, said: str) -> None:
    """And not JSON in a browser's window."""
    page = read(path, 404)
    assert said in page.text
    assert "../" in page.links


@pytest.mark.parametrize(("error", "status"), [(UnavailableError("no disk"), 503), (KeyError("a bug"), 500)])
def test_a_page_that_fails_says_so_and_the_log_has_the_reason(
    store: SqlDecisionStore, read: Callable[..., Page], monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """The sentence sends its reader to the log."""

    def fail(*_words: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(store, "worst_page_with_totals", fail)
    with structlog.testing.capture_logs() as logged:
        page = read("/", status)
    assert "no disk" not in page.text
    assert "a bug" not in page.text
    assert [(line["event"], line["error"]) for line in logged] == [("page_failed", str(error))]


def test_names_are_shown_and_never_run(
    store: SqlDecisionStore, service: TestClient, advice: Callable[..., Recommendation]
) -> None:
    """Who names a consumer group is no friend of ours."""
    name = "<script>alert(1)</script>\"'&"
    store.save(advice(group=name, cluster=name))
    for path in ("/", f"/groups/{group_key(name, name)}", "/?cluster=%22%3E%3Cscript%3E"):
        answer = service.get(path, headers=BROWSER)
        assert re.findall(r"<script(?! src=| type=\"module\" src=)", answer.text) == []
        assert name in Page(answer.text).text or path.startswith("/?")


def test_p21_nothing_is_loaded_from_elsewhere_and_links_work_under_any_path(
    store: SqlDecisionStore, service: TestClient, advice: Callable[..., Recommendation]
) -> None:
    """Every address is relative; the policy of the page lets a browser load from this service alone."""
    given = advice()
    store.save(given)
    for path in ("/", f"/groups/{KEY}", f"/recommendations/{given.recommendation_id}", "/groups/zzz"):
        answer = service.get(path, headers=BROWSER)
        page = Page(answer.text)
        assert all(not address.startswith(("/", "http", "data:")) for address in [*page.loaded, *page.links])
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        for address in page.loaded:
            assert service.get(f"{path.rsplit('/', 1)[0]}/{address}").status_code == 200


def test_the_page_is_behind_the_tokens_of_the_api(
    store: SqlDecisionStore, clock: Clock, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A group's lag is somebody's business figure, in HTML too."""
    tokens = Tokens([token_file(tmp_path_factory.mktemp("tokens") / "one", "secret")])
    guarded = TestClient(create_app(store, clock=clock, version="0.1.0", access=Access(tokens=tokens)))

    def asked(path: str, **headers: str) -> Response:
        return guarded.get(path, headers={**BROWSER, "host": "localhost", **headers})

    for path in ("/", f"/groups/{KEY}", "/static/lagcast.css"):
        assert asked(path).status_code == 401
    assert asked("/", authorization="Bearer secret").status_code == 200


def test_a_browser_asks_for_the_token_as_a_password(
    store: SqlDecisionStore, clock: Clock, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Under any name; a wrong one is asked for again, and programs are told of bearer tokens alone."""
    tokens = Tokens([token_file(tmp_path_factory.mktemp("tokens") / "one", "sécret")])
    guarded = TestClient(create_app(store, clock=clock, version="0.1.0", access=Access(tokens=tokens)))

    def asked(credentials: str | None, accept: str) -> Response:
        headers = {"accept": accept, "host": "localhost"}
        if credentials is not None:
            headers["authorization"] = f"Basic {b64encode(credentials.encode()).decode()}"
        return guarded.get("/", headers=headers)

    assert asked(None, BROWSER["accept"]).headers["www-authenticate"] == 'Basic realm="lagcast", charset="UTF-8"'
    assert asked(None, "*/*").headers["www-authenticate"] == 'Bearer realm="lagcast"'
    assert asked("me:sécret", BROWSER["accept"]).status_code == 200
    for wrong in ("me:secret", "sécret", "sécret:", ":", ""):
        assert asked(wrong, BROWSER["accept"]).status_code == 401
