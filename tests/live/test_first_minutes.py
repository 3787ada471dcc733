"""The first five minutes in short, without installation: somebody else's Kafka, and a page with a priced plan."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.discovery.groups import GROUPS
from benchmarks.first_minutes.newcomer import arrive, as_it_is
from benchmarks.first_minutes.others import WATCHED, Before, at_work
from benchmarks.first_minutes.run import from_source
from tests.live.harness.browser import running_browser

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.spark, pytest.mark.alone]

# Nobody read the topics for four minutes, and then the groups came back: a minute at their limit shows what they do.
BEFORE = Before(unread_seconds=240)
# Of five minutes, without the installation, which takes one.
MOST_SECONDS_TO_ADVICE = 240.0


@pytest.mark.usefixtures("jars")
def test_an_address_leads_to_a_priced_recommendation_on_the_page(
    tmp_path: Path, browser_program: Path, program: Callable[[str], Path]
) -> None:
    """With nothing told but the broker's address, and without Java on the PATH.

    The doctor finds no problem. The page first says that the capacity is not known, and by itself shows replicas and
    the waterfall when the group has shown it; then it follows the next decision.
    """
    for name in ("klag-exporter", "prometheus"):
        program(name)
    folder = tmp_path / "newcomer"
    folder.mkdir()
    others = tmp_path / "others"
    others.mkdir()
    newcomer = as_it_is(folder, arrive(folder, tools=tmp_path / "tools"))
    with running_browser(browser_program) as browser, at_work(others, BEFORE) as work:
        found = from_source(
            newcomer, work, "kafka", browser=browser, shots=tmp_path, updates=1, within_seconds=MOST_SECONDS_TO_ADVICE
        )
    print(found)  # noqa: T201  # the measurement
    assert [each for each in found["doctor"] if each["state"] == "problem"] == []
    assert "(packaged)" in found["doctor"][0]["sentence"]
    told = found["groups"][WATCHED]
    assert (told["kind"], told["current"]) == ("Recommendation", 4)
    assert told["capacity"] == pytest.approx(GROUPS[WATCHED].capacity, rel=0.2)
    assert told["capacity_source"] != "configured"
    # Pictures were drawn, and the next decision was shown, or there would be no such times; what they are is a figure
    # of docs/first-minutes.md, and not of a machine that runs tests.
    assert found["first_picture_seconds"]
    assert found["updates"]
