"""The page of a group in a real browser while decisions go on: it follows them, and answers what it is asked."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from api.app import create_app
from cli.server import listen, serving, url_of
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.known_groups import KnownGroups
from recommender.run import Recommender
from tests.api.conftest import Clock
from tests.api.test_what_if import KEY, loop_over, rows_until
from tests.live.harness.browser import Watched
from tests.recommender.loop import Rows

pytestmark = pytest.mark.browser

GROUP = f"/groups/{KEY}"
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
# Longer than any of it takes on a busy machine: tests wait for what is to be seen.
PATIENCE_MILLISECONDS = 30_000
expect.set_options(timeout=PATIENCE_MILLISECONDS)
# Rows after an hour without any until there is advice again.
RECOVERY_ROWS = 20


class Living:
    """A service, and the loop beside it, whose next cycle a test decides on."""

    def __init__(self, clock: Clock, store: SqlDecisionStore) -> None:
        self._clock = clock
        self._store = store
        self._rows = rows_until(clock)
        self._known = KnownGroups()
        self._loop: Recommender = loop_over(Rows(self._rows), store, self._known)
        self._open = ExitStack()
        self.port = 0

    def start(self) -> None:
        """Serve, on the port of before if there is one."""
        bound = listen("127.0.0.1", self.port, search=False)
        self.port = bound.getsockname()[1]
        app = create_app(self._store, clock=self._clock, version="0.1.0", known_groups=self._known)
        self._open.enter_context(serving(app, bound))
        self.url = url_of(bound)

    def stop(self) -> None:
        """Serve no more."""
        self._open.close()

    def decide_nothing(self) -> None:
        """An hour goes by without a row: the group is refused as stale."""
        self._clock.now += timedelta(hours=1)
        self._loop.run_once(now=self._clock.now)

    def decide(self, *, rate: float) -> None:
        """A quarter of a minute goes on at this produce rate, and is decided on."""
        self._clock.now += timedelta(seconds=15)
        newest = self._rows[-1]
        self._rows.append(
            replace(newest, interval_end_at=self._clock.now, produce_messages_per_second=rate, lag_messages=rate)
        )
        self._loop.watched.histories = Rows(self._rows)
        self._loop.run_once(now=self._clock.now)


@pytest.fixture
def living(tmp_path: Path) -> Iterator[Living]:
    """A service with one decision."""
    clock = Clock(NOON)
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    found = Living(clock, store)
    found.decide(rate=4000.0)
    found.start()
    yield found
    found.stop()
    store.close()


def test_a_page_shows_the_next_decision_without_being_loaded_again(
    living: Living, watched: Callable[..., Watched]
) -> None:
    """Instant, rate and pictures are those of the new decision; what the reader has opened stays open."""
    seen = watched()
    seen.open(living.url + GROUP)
    page = seen.page
    expect(page.locator("#live")).to_have_text("Up to date.")
    page.locator("[data-picture=fan] summary").click()
    page.evaluate("window.isTheSame = true")
    drawn = page.evaluate(
        "echarts.getInstanceByDom(document.querySelector('[data-picture=states] .drawing')).getOption()"
    )
    living.decide(rate=6000.0)
    expect(page.locator("#decided")).to_have_text("2026-01-05 12:00:30 UTC")
    expect(page.locator("#headline")).to_contain_text("5,000 messages/s")  # the mean of half a minute
    page.wait_for_function(
        "before => JSON.stringify(echarts.getInstanceByDom(document.querySelector('[data-picture=states] .drawing'))"
        ".getOption().xAxis) !== before",
        arg=page.evaluate("option => JSON.stringify(option.xAxis)", drawn),
    )
    assert page.evaluate("window.isTheSame")
    assert page.locator("[data-picture=fan] details").get_attribute("open") is not None
    assert seen.complaints == []


def test_a_decision_that_comes_before_the_first_event_is_shown(living: Living, watched: Callable[..., Watched]) -> None:
    """Between the making of a page and the begin of its stream; it was shown with the next decision only."""
    page = watched().page

    def decide_first(route: Route) -> None:
        living.decide(rate=6000.0)
        route.continue_()

    page.route("**/events", decide_first)
    page.goto(living.url + GROUP)
    expect(page.locator("#decided")).to_have_text("2026-01-05 12:00:30 UTC")


def test_a_stream_that_breaks_comes_back(living: Living, watched: Callable[..., Watched]) -> None:
    """The page says that it is not connected; when the service is there again it shows what was decided meanwhile."""
    page = watched().page
    page.goto(living.url + GROUP)
    status = page.locator("#live")
    expect(status).to_have_text("Up to date.")
    living.stop()
    expect(status).to_have_text("Not connected; trying again.")
    living.decide(rate=6000.0)
    living.start()
    expect(status).to_have_text("Up to date.")
    expect(page.locator("#decided")).to_have_text("2026-01-05 12:00:30 UTC")


def test_the_fleet_shows_what_is_decided(living: Living, watched: Callable[..., Watched]) -> None:
    """Its rows are renewed."""
    page = watched().page
    page.goto(living.url)
    expect(page.locator("#live")).to_have_text("Up to date.")
    page.evaluate("window.isTheSame = true")
    before = page.locator("#groups").inner_text()
    living.decide(rate=1000.0)
    expect(page.locator("#groups")).not_to_have_text(before)
    assert page.evaluate("window.isTheSame")


def test_a_refusal_takes_the_place_of_advice(living: Living, watched: Callable[..., Watched]) -> None:
    """It is another page, without prices, and is loaded as a whole."""
    page = watched().page
    page.goto(living.url + GROUP)
    expect(page.locator("#live")).to_have_text("Up to date.")
    living.decide_nothing()
    expect(page.locator("#headline")).to_contain_text("No advice")
    expect(page.locator("[data-picture=waterfall]")).to_have_count(0)
    expect(page.locator("[data-picture=fan] canvas")).to_be_visible()


def test_advice_takes_the_place_of_a_refusal(living: Living, watched: Callable[..., Watched]) -> None:
    """The page has prices and their picture then, without a hand: it is what a new group shows after some minutes."""
    living.decide_nothing()
    page = watched().page
    page.goto(living.url + GROUP)
    expect(page.locator("#live")).to_have_text("Up to date.")
    expect(page.locator("[data-picture=waterfall]")).to_have_count(0)
    for _ in range(RECOVERY_ROWS):
        living.decide(rate=6000.0)
    expect(page.locator("#headline .count").first).to_be_visible()
    expect(page.locator("[data-picture=waterfall] .drawing canvas")).to_be_visible()


def test_a_slider_asks_the_same_decision_with_another_figure(living: Living, watched: Callable[..., Watched]) -> None:
    """At a tenth of the capacity the load wants ten times the replicas; the button takes it back. By keyboard alone."""
    seen = watched()
    seen.open(living.url + GROUP)
    page = seen.page
    slider = page.get_by_label("Capacity of a replica")
    slider.focus()
    page.keyboard.press("Home")
    answer = page.locator("output.answer")
    expect(answer).to_contain_text("Replicas: 24 from 12:0")
    assert slider.get_attribute("aria-valuetext") == "100 messages/s"
    page.get_by_role("button", name="As it is").click()
    expect(answer).to_have_text("")
    assert slider.get_attribute("aria-valuetext") == "1,000 messages/s"
    assert seen.complaints == []


def test_times_are_shown_in_utc_or_in_the_zone_of_the_reader(living: Living, watched: Callable[..., Watched]) -> None:
    """The zone is always named, and the choice is remembered."""
    page = watched(timezone_id="Asia/Kolkata").page
    page.goto(living.url + GROUP)
    decided = page.locator("#decided")
    expect(decided).to_have_text("2026-01-05 12:00:15 UTC")
    page.get_by_role("button", name="Show local time").click()
    expect(decided).to_have_text("2026-01-05 17:30:15 UTC+05:30")
    expect(page.locator("[data-zone]")).to_contain_text("Times are local ones")
    page.reload()
    expect(decided).to_have_text("2026-01-05 17:30:15 UTC+05:30")
    page.get_by_role("button", name="Show UTC").click()
    expect(decided).to_have_text("2026-01-05 12:00:15 UTC")


def test_pictures_change_with_the_theme_of_the_system(living: Living, watched: Callable[..., Watched]) -> None:
    """Without loading the page again."""
    seen = watched(color_scheme="light")
    seen.open(living.url + GROUP)
    ink = "echarts.getInstanceByDom(document.querySelector('[data-picture=fan] .drawing')).getOption().textStyle.color"
    light = seen.page.evaluate(ink)
    seen.page.emulate_media(color_scheme="dark")
    seen.page.wait_for_function(f"before => {ink} !== before", arg=light)
    assert seen.complaints == []
