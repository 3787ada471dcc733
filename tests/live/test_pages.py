"""The pages in a real browser: what they load, how they look, and whether everyone can use them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # ships no types
from playwright.sync_api import Page

from api.access.guard import Access
from api.access.tokens import Tokens
from api.app import create_app
from api.keys import group_key
from api.pages.replays import KeptReplay, LostDay, Replays
from api.pages.work import Work
from api.pictures.league import DayOfPolicy, Part, Standing
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.configuring.effective import effective_settings
from recommender.deciding.recommendation import GradedMove, LedgerStanding
from recommender.known_groups import KnownGroups
from recommender.ports import GroupLoads, PartitionLoad
from tests.api.access_files import token_file
from tests.live.harness.browser import Below, Watched, served_pages
from tests.live.harness.decided import CLUSTER, DECIDED_AT, decisions, named

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
THEMES = ("light", "dark")
# A phone, and a laptop.
WIDTHS = (390, 1440)
HEIGHT = 900
# Height of a line of text, and of letters in a picture.
LINE, LETTER = 24, 12
# Rows of a page of groups, and groups that are there: one page, and some of the next.
ROWS, GROUPS = 50, 70
# Kafka allows so many characters in the name of a group.
LONG_NAME = "payments-" * 27 + "eu-west"
GROUP = f"/groups/{group_key(CLUSTER, 'orders')}"
REFUSED = f"/groups/{group_key(CLUSTER, 'billing')}"


COSTS = {"keda": (9.0, 0.5, 0.02), "lagcast": (7.0, 0.5, 0.01), "hindsight": (6.99, 0.0, 0.00995)}
PARTS: dict[str, Part] = {"lagcast": "ours", "hindsight": "bound"}
MIDNIGHT = DECIDED_AT.replace(hour=0, minute=0, second=0, microsecond=0)


def standing(policy: str) -> Standing:
    """A policy's costs of two days, on the first of which it paid twice what it paid on the second."""
    cost, late, share = COSTS[policy]
    return Standing(
        policy=policy,
        replicas=cost,
        late=late,
        duplicates=0.0,
        late_share=share,
        wait_p99_seconds=1.0,
        moves=9,
        part=PARTS.get(policy, "rival"),
        days=tuple(
            DayOfPolicy(
                begins_at=MIDNIGHT + timedelta(days=number),
                ends_at=MIDNIGHT + timedelta(days=number + 1),
                cost=cost * part if policy != "keda" or number == 0 else 2.0,
                late_share=share,
            )
            for number, part in enumerate((2 / 3, 1 / 3))
        ),
    )


REPLAY = KeptReplay(
    title="orders of May",
    played_at=DECIDED_AT,
    currency="USD",
    sentences=("lagcast lost 1 of 2 days.",),
    standings=tuple(map(standing, COSTS)),
    lost_days=(LostDay(day=MIDNIGHT.date() + timedelta(days=1), rival="keda", rival_cost=2.0, lagcast_cost=7 / 3),),
)


# What stands in a picture.
_WORDS = """name => echarts.getInstanceByDom(document.querySelector(`[data-picture=${name}] .drawing`)).getZr()
    .storage.getDisplayList().map(each => each.style.text).filter(text => typeof text === "string")"""


@dataclass(frozen=True, slots=True)
class Site:
    """Services whose pages are looked at: one with groups, and one without any; the path of each page by its name."""

    url: str
    empty_url: str
    decision: str

    def address(self, name: str) -> str:
        """The address of a page by its name."""
        paths = {
            "fleet": "/",
            "group": GROUP,
            "long-name": f"/groups/{group_key(CLUSTER, LONG_NAME)}",
            "refusal": REFUSED,
            "decision": self.decision,
            "problem": "/groups/zzz",
            "data": "/quality",
            "settings": "/settings",
            "replay": "/replay",
            "kept-replay": f"/replays/{REPLAY.replay_id}",
        }
        return f"{self.empty_url}/" if name == "empty" else self.url + paths[name]


PAGES = (
    "fleet",
    "group",
    "long-name",
    "refusal",
    "decision",
    "problem",
    "empty",
    "data",
    "settings",
    "replay",
    "kept-replay",
)


class Read:
    """Partitions as a collector has read them: a hot one among 24."""

    def loads(self, cluster: str, group: str, *, until: datetime) -> GroupLoads:  # noqa: ARG002  # of any group
        """Them."""
        rates = [4_000.0, *(500.0 - 10 * number for number in range(22)), None]
        loads = (PartitionLoad("orders", number, rate, 50 * number) for number, rate in enumerate(rates))
        return GroupLoads(until - timedelta(minutes=5), until, tuple(loads))


@pytest.fixture(scope="module")
def known_groups() -> KnownGroups:
    """What the loop knows of `orders`, its last day among that."""
    return KnownGroups()


@pytest.fixture(scope="module")
def store(
    tmp_path_factory: pytest.TempPathFactory,
    known_groups: KnownGroups,
    refusal: Callable[..., Refusal],
    graded_move: Callable[..., GradedMove],
    ledger: LedgerStanding,
) -> Iterator[SqlDecisionStore]:
    """Decisions of the loop on `orders`, the last of them under many names; `billing` is refused."""
    store = SqlDecisionStore(sqlite_url(tmp_path_factory.mktemp("pages") / "decisions.sqlite"))
    *earlier, last = decisions("orders", cycles=5, known_groups=known_groups)
    for decision in (*earlier, replace(last, ledger=ledger)):
        store.save(decision)
    for name in (LONG_NAME, *(f"shop-{number:03}" for number in range(GROUPS - 3))):
        store.save(named(last, name))
    store.save(refusal(cluster=CLUSTER, group="billing", refused_at=DECIDED_AT))
    store.keep_outcomes([graded_move(cluster=CLUSTER)])
    yield store
    store.close()


@pytest.fixture(scope="module")
def site(
    store: SqlDecisionStore, known_groups: KnownGroups, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The services, half a minute after the decisions."""
    nothing = SqlDecisionStore(sqlite_url(tmp_path_factory.mktemp("empty") / "decisions.sqlite"))
    last = store.latest_recommendation(CLUSTER, "orders")
    assert last is not None
    settings, work = effective_settings(None, {}), Work()
    work.replay(REPLAY.pictures["league"], "lagcast was the cheapest.")
    replays = Replays(tmp_path_factory.mktemp("replays"))
    replays.keep(REPLAY)
    app = create_app(
        store,
        clock=_clock,
        version="0.1.0",
        effective=settings,
        work=work,
        known_groups=known_groups,
        partition_samples=Read(),
        replays=replays,
    )
    with (
        served_pages(app) as url,
        served_pages(create_app(nothing, clock=_clock, version="0.1.0")) as empty_url,
    ):
        yield Site(url, empty_url, f"/recommendations/{last.recommendation_id}")
    nothing.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_readable_by_everyone(
    site: Site, watched: Callable[..., Watched], name: str, theme: str, width: int
) -> None:
    """It asks no other host, breaks no rule of accessibility, tells the console nothing, and is no wider than a screen.

    A picture of it is kept for people to look at.
    """
    seen = watched(color_scheme=theme, viewport={"width": width, "height": HEIGHT})
    address = site.address(name)
    seen.open(address)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    seen.page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{theme}.png", full_page=True)
    assert {urlsplit(each).netloc for each in seen.requested} == {urlsplit(address).netloc}
    assert seen.failed == []
    assert seen.complaints == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(seen.page)
    assert found.violations_count == 0, found.generate_report()


def test_the_worst_groups_are_on_top(site: Site, watched: Callable[..., Watched]) -> None:
    """The refused one is the first row, above it stands the rule, and totals are of both pages."""
    page = watched().page
    page.goto(site.address("fleet"))
    assert page.locator("#groups th").first.inner_text() == "billing"
    assert "The worst come first" in page.locator("main").inner_text()
    assert page.locator("#totals dd").first.inner_text() == str(GROUPS)


def test_the_pictures_of_a_group_are_drawn(site: Site, watched: Callable[..., Watched]) -> None:
    """Hindsight, its areas and the partitions among them; nothing is told to the console."""
    seen = watched()
    seen.open(site.address("group"))
    assert {"replicas", "skew", "rebalances", "lag"} <= {
        str(figure.get_attribute("data-picture")) for figure in seen.page.locator("figure.drawn").all()
    }
    told = seen.page.locator("#replicas-says").inner_text()
    assert "beside the cheapest plan, known afterwards" in told
    assert seen.complaints == []


def test_the_cursor_stands_on_one_day_in_both_pictures_of_a_replay(site: Site, watched: Callable[..., Watched]) -> None:
    """Over the evening of the second day in one: its costs are told there, and its late messages in the other.

    The tables have the same figures, for who has no pointer.
    """
    seen = watched()
    seen.open(site.address("kept-replay"))
    page = seen.page
    place = page.locator("[data-picture=days] .drawing")
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.5 * box["height"])
    begins = MIDNIGHT + timedelta(days=1)
    for name, figures in (("days", ("2", "2.33", "2.33")), ("late-days", ("2", "1", "0.995"))):
        page.wait_for_function(f"() => ({_WORDS})('{name}').some(word => word.includes(' UTC to '))")
        told = page.evaluate(f"({_WORDS})('{name}')")
        assert f"{begins:%Y-%m-%d} 00:00 UTC to {begins + timedelta(days=1):%Y-%m-%d} 00:00 UTC" in told
        shown = dict(pairwise(told))
        assert {policy: shown[policy] for policy in COSTS} == dict(zip(COSTS, figures, strict=True))
        row = page.locator(f"#{name}-rows tr").last.locator("th, td").all_text_contents()
        assert row[2:5] == list(figures)


def test_names_of_policies_that_are_close_together_can_be_read(site: Site, watched: Callable[..., Watched]) -> None:
    """A cent and a two-hundredth of a percent apart: one name is below the other."""
    seen = watched()
    seen.open(site.address("kept-replay"))
    page = seen.page
    heights = page.evaluate(
        """() => Object.fromEntries(
            echarts.getInstanceByDom(document.querySelector("[data-picture=league] .drawing")).getZr()
                .storage.getDisplayList().filter(each => ["lagcast", "hindsight"].includes(each.style.text))
                .map(each => [each.style.text, each.getComputedTransform()[5]]))"""
    )
    assert abs(heights["lagcast"] - heights["hindsight"]) >= LETTER


def test_the_themes_differ(site: Site, watched: Callable[..., Watched]) -> None:
    """Each is the one that the reader's system asks for: dark letters on light, and light ones on dark."""
    brightness = {}
    for theme in THEMES:
        page = watched(color_scheme=theme).page
        page.goto(site.address("fleet"))
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness[theme] = sum(int(part) for part in re.findall(r"\d+", colour)[:3])
    assert brightness["light"] > 3 * 200 > 3 * 60 > brightness["dark"]


@pytest.mark.parametrize("name", PAGES)
def test_without_a_script_every_table_and_link_is_there(site: Site, watched: Callable[..., Watched], name: str) -> None:
    """What a script adds is a picture of what can be read without it."""
    shown = {}
    for scripts in (True, False):
        seen = watched(java_script_enabled=scripts)
        if scripts:
            seen.open(site.address(name))
        else:
            seen.page.goto(site.address(name))
        page = seen.page
        tables = [table.inner_text() for table in page.locator("table").all() if table.is_visible()]
        shown[scripts] = (tables, _links(page))
    assert set(shown[True][0]) <= set(shown[False][0])
    assert shown[True][1] <= shown[False][1]
    assert (len(shown[False][0]) > 0) == (
        name in {"fleet", "group", "long-name", "refusal", "decision", "data", "settings", "replay", "kept-replay"}
    )
    assert len(shown[False][1]) >= 4


def test_the_keyboard_alone_leads_from_the_fleet_to_a_decision_and_back(
    site: Site, watched: Callable[..., Watched]
) -> None:
    """Each stop of the tab key can be seen; the first leads past what every page begins with."""
    page = watched().page
    page.goto(site.address("fleet"))
    page.keyboard.press("Tab")
    assert _focused(page)["text"] == "To the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    _follow(page, "orders")
    assert urlsplit(page.url).path == GROUP
    _follow(page, page.locator("[aria-label='Last decisions'] a").first.inner_text())
    assert urlsplit(page.url).path == site.decision
    _follow(page, "orders")
    assert urlsplit(page.url).path == GROUP
    _follow(page, "All groups")
    assert urlsplit(page.url).path == "/"


def test_a_table_that_is_wider_than_a_phone_scrolls_by_keyboard(site: Site, watched: Callable[..., Watched]) -> None:
    """Its last column is reached without a finger or a mouse."""
    page = watched(viewport={"width": WIDTHS[0], "height": HEIGHT}).page
    page.goto(site.address("fleet"))
    region = page.locator(".wide").first
    assert region.evaluate("each => each.scrollWidth > each.clientWidth")
    region.focus()
    for _ in range(100):
        page.keyboard.press("ArrowRight")
        if region.evaluate("each => each.scrollLeft + each.clientWidth >= each.scrollWidth - 1"):
            return
    pytest.fail("the end of the table was not reached")


def test_the_longest_name_leaves_the_columns_beside_it_in_sight(site: Site, watched: Callable[..., Watched]) -> None:
    """On a laptop all but the last are seen, and on a phone what the group has; a short name stays in one line."""
    for width, seen in ((WIDTHS[0], "Has"), (WIDTHS[1], "Decided")):
        page = watched(viewport={"width": width, "height": HEIGHT}).page
        page.goto(site.address("fleet"))
        assert page.get_by_role("link", name=LONG_NAME).is_visible()
        column = page.get_by_role("columnheader", name=seen).bounding_box()
        assert column is not None
        assert column["x"] + column["width"] <= width
        assert page.get_by_role("link", name="shop-000").evaluate("each => each.offsetHeight") < 1.5 * LINE


def test_groups_go_on_on_a_next_page(site: Site, watched: Callable[..., Watched]) -> None:
    """Fifty at a time, each of them once, and back to the first."""
    page = watched().page
    page.goto(site.address("fleet"))
    first = page.locator("#groups th").all_inner_texts()
    page.get_by_role("link", name="Next page").click()
    second = page.locator("#groups th").all_inner_texts()
    assert len(first) == ROWS
    assert len(first) + len(second) == len({*first, *second}) == GROUPS
    page.get_by_role("link", name="First page").click()
    assert page.locator("#groups th").all_inner_texts() == first


def test_a_group_is_found_by_its_name(site: Site, watched: Callable[..., Watched]) -> None:
    """The address then holds what was asked, and can be handed on."""
    page = watched().page
    page.goto(site.address("fleet"))
    page.get_by_label("Group", exact=True).fill("billing")
    page.get_by_role("button", name="Show", exact=True).click()
    assert page.locator("#groups th").all_inner_texts() == ["billing"]
    assert "group_id=billing" in page.url


def test_behind_a_token_a_browser_asks_for_a_password(
    store: SqlDecisionStore, watched: Callable[..., Watched], tmp_path: Path
) -> None:
    """With it each page has its styles; without it there is none."""
    access = Access(tokens=Tokens([token_file(tmp_path / "tokens", "secret")]))
    with served_pages(create_app(store, clock=_clock, version="0.1.0", access=access)) as url:
        seen = watched(http_credentials={"username": "anyone", "password": "secret"})
        for path in ("/", GROUP):
            seen.open(url + path)
            assert seen.page.locator("tbody th").count() > 0
            assert _is_styled(seen.page)
        assert seen.failed == []
        assert seen.complaints == []
        answer = watched(http_credentials={"username": "anyone", "password": "wrong"}).page.goto(url)
        assert answer is not None
        assert answer.status == 401


def test_behind_a_proxy_that_signs_people_in_no_browser_asks(
    store: SqlDecisionStore, watched: Callable[..., Watched], tmp_path: Path
) -> None:
    """The proxy shows a token of its own, under a path of its own; who comes without it is not let in."""
    app = create_app(
        store, clock=_clock, version="0.1.0", access=Access(tokens=Tokens([token_file(tmp_path / "tokens", "secret")]))
    )
    with served_pages(Below("/lagcast", app, signed_in=("kim", "secret"))) as url:
        seen = watched()
        for path in ("/", GROUP):
            seen.open(f"{url}/lagcast{path}")
            assert seen.page.locator("tbody th").count() > 0
            assert _is_styled(seen.page)
        assert seen.failed == []
        assert seen.complaints == []
    for refused in (Below("/lagcast", app), Below("/lagcast", app, signed_in=("kim", "wrong"))):
        with served_pages(refused) as url:
            answer = watched().page.request.get(f"{url}/lagcast/")
            assert answer.status == 401


@pytest.mark.parametrize("name", ["fleet", "group", "refusal", "decision", "problem", "data", "replay"])
def test_under_a_path_of_a_reverse_proxy_every_link_works(
    store: SqlDecisionStore, site: Site, watched: Callable[..., Watched], name: str
) -> None:
    """Also those that programs are sent to, and the styles."""
    with served_pages(Below("/lagcast", create_app(store, clock=_clock, version="0.1.0"))) as url:
        seen = watched()
        base = f"{url}/lagcast"
        seen.open(base + urlsplit(site.address(name)).path)
        assert _is_styled(seen.page)
        assert all(each.startswith(f"{base}/") for each in seen.requested)
        assert seen.complaints == []
        links = _links(seen.page)
        assert f"{base}/" in links
        answers = {link: seen.page.request.get(link).status for link in links - {seen.page.url}}
        assert {link: status for link, status in answers.items() if status != 200} == {}


def _clock() -> datetime:
    return DECIDED_AT


def _links(page: Page) -> set[str]:
    """Where the links lead that can be seen, without the places within the page."""
    links = [link.evaluate("each => each.href") for link in page.locator("a[href]").all() if link.is_visible()]
    return {str(link).partition("#")[0] for link in links}


def _is_styled(page: Page) -> bool:
    """True if the styles have come: without them the skip link stands in the text."""
    return bool(page.evaluate("getComputedStyle(document.querySelector('.skip')).position === 'absolute'"))


def _follow(page: Page, text: str) -> None:
    """Go on with the tab key until the link with this text has the focus, and open it."""
    for _ in range(200):
        page.keyboard.press("Tab")
        focused = _focused(page)
        assert focused["outlined"], f"nothing shows where the focus is: {focused}"
        assert focused["in_sight"], f"the focus is out of sight: {focused}"
        if focused["text"] == text:
            with page.expect_navigation():
                page.keyboard.press("Enter")
            return
    pytest.fail(f"the tab key does not lead to {text!r} of {page.url}")


def _focused(page: Page) -> dict[str, Any]:
    """What has the focus: its text, whether an outline is drawn around it, and whether it is in the window."""
    focused = page.evaluate(
        """() => {
            const each = document.activeElement, style = getComputedStyle(each), box = each.getBoundingClientRect();
            return {
                text: each.innerText.trim().slice(0, 300),
                tag: each.tagName,
                outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
                in_sight: box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight,
            };
        }"""
    )
    assert isinstance(focused, dict)
    return focused
