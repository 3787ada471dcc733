"""Reports and notebooks in a real browser: every picture is drawn, and nothing is loaded from anywhere."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # ships no types

from api.convert import to_wire
from api.parts import Happened, Ledger, LedgerItems, ObservedMinute
from api.pictures.backtest import coverages, errors
from api.pictures.calendar import calendar
from api.pictures.days import by_day
from api.pictures.fleet import fleet
from api.pictures.league import DayOfPolicy, Standing, league
from api.pictures.ledger import group_ledger
from api.pictures.notebook import Engine, Shown
from api.pictures.picture import Column, Picture
from api.pictures.rebalances import rebalances
from api.pictures.report import report
from api.pictures.skew import skew
from api.pictures.waterfall import waterfall
from api.schemas import GroupDay, GroupLedger, GroupSummary, Outcome, RecommendationV1
from forecasting.backtest import Backtest
from forecasting.forecast import QUANTILES
from recommender.configuring.settings import GroupSettings
from recommender.deciding.recommendation import LedgerStanding, Recommendation
from tests.live.harness.browser import Watched

pytestmark = pytest.mark.browser

# A name that would be a script if anything took it for HTML.
HOSTILE = "</script><script>document.title = 'taken'</script>"
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def pictures(advice: Callable[..., Recommendation], ledger: LedgerStanding) -> list[Picture]:
    """One of each kind that a report or a notebook may have beside those of a group's page."""
    given = advice(ledger=ledger)
    sent = to_wire(given, GroupSettings(), now=given.issued_at)
    assert isinstance(sent, RecommendationV1)
    assert sent.ledger is not None
    kept = GroupLedger(group_key="k", cluster="c", group_id="g", issued_at=sent.issued_at, ledger=sent.ledger)
    judged = Backtest(
        model="blend",
        origins=np.arange(5),
        actuals=np.full((5, 2), 100.0),
        paths=np.linspace(90.0, 110.0, 5 * len(QUANTILES) * 2).reshape(5, len(QUANTILES), 2),
    )
    standings = [_standing("lagcast", 80.0), replace(_standing(HOSTILE, 120.0), part="rival")]
    rate = Column(name="produce_messages_per_second", title="Produce rate, messages/s")
    return [
        waterfall(sent),
        group_ledger(kept),
        league(standings, currency="USD"),
        *by_day(standings, currency="USD"),
        *fleet([_summary(HOSTILE)], {HOSTILE: _paid(HOSTILE)}),
        calendar([(NOON + timedelta(hours=hour), float(hour)) for hour in range(100)], rate, title="When load comes"),
        errors([judged], steps=(1, 2), ours="blend"),
        coverages([judged], steps=(1, 2), ours="blend"),
        rebalances(_day(), [_move()]),
        skew([(f"{HOSTILE}-{number}", 100.0 * number) for number in range(24)], 1500.0),
    ]


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_report_is_whole_wherever_it_is_opened(
    watched: Callable[..., Watched], pictures: list[Picture], tmp_path: Path, theme: str, width: int
) -> None:
    """From a disk: no request but for the file, no complaint, everyone can use it, and it is light on a dark screen."""
    file = tmp_path / "report.html"
    file.write_text(report(HOSTILE, pictures, sentences=[HOSTILE], notes=[HOSTILE], footer="lagcast"))
    seen = watched(viewport={"width": width, "height": 900}, color_scheme=theme)
    seen.open(file.as_uri())
    assert (seen.requested, seen.failed, seen.complaints) == ([file.as_uri()], [], [])
    assert seen.page.locator("figure.drawn:has(canvas)").count() == len(pictures)
    assert seen.page.title() == HOSTILE
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(seen.page)
    assert found.violations_count == 0, found.generate_report()


def test_a_notebook_draws_its_pictures_once_the_engine_is_there(
    watched: Callable[..., Watched], pictures: list[Picture], tmp_path: Path
) -> None:
    """As a saved notebook: a loader of modules of its own, the engine in one cell, and each picture in another."""
    loader = "<script>window.define = () => { throw new Error('loaded') }; define.amd = {};</script>"
    cells = "".join(f"<div>{Shown(picture)._repr_html_()}</div>" for picture in pictures)
    file = tmp_path / "notebook.html"
    file.write_text(
        f'<!doctype html><html lang="en"><title>n</title><main>{loader}{Engine()._repr_html_()}{cells}</main>'
    )
    seen = watched()
    seen.open(file.as_uri())
    seen.page.wait_for_function(f"document.querySelectorAll('figure.drawn:has(canvas)').length === {len(pictures)}")
    assert (seen.requested, seen.failed, seen.complaints) == ([file.as_uri()], [], [])
    assert seen.page.title() == "n"


def _standing(name: str, replicas: float) -> Standing:
    return Standing(
        policy=name,
        replicas=replicas,
        late=1.0,
        duplicates=0.0,
        late_share=replicas / 10_000,
        wait_p99_seconds=1.0,
        moves=1,
        part="ours",
        days=tuple(
            DayOfPolicy(begins_at=begin, ends_at=begin + timedelta(days=1), cost=replicas, late_share=0.0)
            for begin in (NOON, NOON + timedelta(days=1))
        ),
    )


def _summary(group: str) -> GroupSummary:
    return GroupSummary(
        group_key=group,
        cluster="c",
        group_id=group,
        kind="Recommendation",
        recommendation_id="r",
        reason_code="ramp_ahead",
        issued_at=NOON,
        saving=1.0,
        currency="USD",
    )


def _paid(group: str) -> GroupLedger:
    paid = LedgerItems(replicas=24.0, late=0.0, total=24.0)
    kept = Ledger(since_at=NOON - timedelta(days=1), currency="USD", paid=paid, accounts=())
    return GroupLedger(group_key=group, cluster="c", group_id=group, issued_at=NOON, ledger=kept)


def _day() -> GroupDay:
    minutes = [
        ObservedMinute(ends_at=NOON + timedelta(minutes=minute + 1), in_rebalance_fraction=minute % 7 / 7)
        for minute in range(100)
        if minute // 20 != 3
    ]
    return GroupDay(
        group_key="k",
        cluster="c",
        group_id="g",
        since_at=NOON,
        until_at=NOON + timedelta(minutes=100),
        minutes=tuple(minutes),
        standings=(),
        quarters=(),
    )


def _move() -> Outcome:
    happened = Happened(rebalance_pause_seconds=3.4)
    return Outcome(
        graded_at=NOON + timedelta(minutes=30), from_replicas=6, to_replicas=8, happened=happened, sentence="-"
    )
