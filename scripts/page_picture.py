# ruff: noqa: INP001, T201 - a script is run, never imported, and prints
"""Makes docs/page.png anew: the page of the demo's group, as Chromium shows it after nine hours of its living time.

    PYTHONPATH=. python scripts/page_picture.py

The group is the one of `lagcast demo`, of which a week is known here; its rows come from the simulation itself, without
Spark. The picture is of the same pixels for the same code, but for fonts.
"""

import logging
import tempfile
from dataclasses import replace
from pathlib import Path

import structlog

from api.app import create_app
from api.keys import group_key
from cli.demo import contest_of
from cli.demo_living import GoingOn, LivingGroup, loop_over
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.known_groups import KnownGroups
from replay.sampling import rows_of
from tests.live.harness.browser import Watched, fetched_browser, running_browser, served_pages
from tests.recommender.loop import Rows

OUT = Path(__file__).parent.parent / "docs" / "page.png"
DAYS, CYCLES = 7, 9 * 60
WIDTH, HEIGHT = 1200, 1560


def main() -> None:
    """Simulate, decide, look, and write the picture."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory() as folder:
        draw(SqlDecisionStore(sqlite_url(Path(folder) / "decisions.sqlite")))
    print(f"{OUT}: {OUT.stat().st_size:,} bytes")


def draw(store: SqlDecisionStore) -> None:
    """The picture of the group whose decisions are kept in this store."""
    load, contest = contest_of(days=DAYS, seed=7)
    known_groups = KnownGroups()
    histories = GoingOn(Rows(rows_of(replace(contest, trace=load).plant(), contest.names)))
    loop = loop_over(histories, contest, store=store, known_groups=known_groups)
    loop.run_once(now=load.end_at)
    group = LivingGroup(contest, histories, loop, start_at=load.end_at)
    for _ in range(CYCLES):
        group.cycle()
    app = create_app(store, clock=lambda: group.now, version="0.1.0", known_groups=known_groups)
    with served_pages(app) as url, running_browser(fetched_browser()) as browser:
        seen = Watched(browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"))
        seen.open(f"{url}/groups/{group_key(*contest.names)}")
        seen.page.screenshot(path=OUT)
    store.close()


if __name__ == "__main__":
    main()
