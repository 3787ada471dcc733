"""The load of a fleet and the page of its measured figures."""

import json
from pathlib import Path
from typing import Any

from benchmarks.fleet.load import Load
from benchmarks.fleet.page import bars_of, has_picture, page_of
from benchmarks.fleet.run import by_percent
from forecasting.columns import BASE_INTERVAL_SECONDS

DOCS = Path(__file__).parents[3] / "docs"

DOCUMENT: dict[str, Any] = {
    "measured_at": "2026-01-05",
    "commit": "0123456789ab",
    "processors": 2,
    "mean_load": 1.5,
    "groups": 1000,
    "partitions": 24,
    "minutes": 5.0,
    "noise": 0.05,
    "samples": 20_000,
    "first_advice_seconds": 90.0,
    "age_seconds": {"median": 9.0, "p95": 14.0, "longest": 19.0},
    "surge_seconds": 31.0,
    "recommender_cores": 0.5,
    "recommender_resident_mebibytes": 900.0,
    "below_cores": 0.8,
}
LOOKED: dict[str, Any] = {
    "age_seconds_by_percent": {
        "readings": [19.0 * percent / 100.0 for percent in range(101)],
        "groups": [10.0 + 9.0 * percent / 100.0 for percent in range(101)],
    },
    "recommender_looks": [{"seconds": 5.0 * look, "cores": 0.5, "resident_mebibytes": 900.0} for look in range(1, 61)],
}


def test_a_bar_that_is_missed_is_bold(tmp_path: Path) -> None:
    """The page holds every figure beside its bar."""
    assert [bar.is_kept for bar in bars_of(DOCUMENT)] == [True, True, True, False]
    page = page_of(DOCUMENT, picture=tmp_path / "a.svg")
    assert "| all changed at once, s | 31.00 | <= 30 | **no** |" in page
    assert "1,000 consumer groups of 24 partitions" in page
    assert "nan" not in page


def test_a_page_tells_with_what_past_groups_began(tmp_path: Path) -> None:
    """Half an hour; or weeks, with which the service was started again."""
    young, old = (
        page_of(DOCUMENT | past, picture=tmp_path / "a.svg")
        for past in ({}, {"weeks": 4, "restart_seconds": 90.0, "past_read_seconds": 900.0})
    )
    assert "half an hour of samples. The minutes of four weeks take 0.1 MB more" in young
    assert "rows of 4\n  weeks are put into its table" in old
    assert "second start" not in young
    assert "| the same from the second start, with the weeks | 90 |" in old
    assert "| until their weeks were read, s from the second start | 900 |" in old


def test_a_distribution_is_by_percent() -> None:
    """From the least to the most of them; one value is all of them."""
    drawn = by_percent([30.0, 10.0, 20.0])
    assert (len(drawn), drawn[0], drawn[25], drawn[50], drawn[100]) == (101, 10.0, 15.0, 20.0, 30.0)
    assert by_percent([7.0]) == [7.0] * 101


def test_ages_and_costs_are_drawn(tmp_path: Path) -> None:
    """Of a run that has noted them: the same bytes each time, and the page shows them."""
    pages, pictures = [], []
    for _ in range(2):
        pages.append(page_of(DOCUMENT | LOOKED, picture=tmp_path / "a.svg"))
        pictures.append((tmp_path / "a.svg").read_bytes())
    assert pages[0] == pages[1]
    assert pictures[0] == pictures[1]
    assert pages[0].replace(next(line for line in pages[0].splitlines() if "(a.svg)" in line) + "\n\n", "") == page_of(
        DOCUMENT, picture=tmp_path / "b.svg"
    )
    assert not (tmp_path / "b.svg").exists()


def test_the_page_is_made_from_its_run(tmp_path: Path) -> None:
    """No figure on the page is written by hand, and each bar is kept; the picture is there if it can be drawn."""
    document = json.loads((DOCS / "fleet.json").read_text())
    assert page_of(document, picture=tmp_path / "fleet.svg") == (DOCS / "fleet.md").read_text()
    assert (DOCS / "fleet.svg").exists() == has_picture(document)
    assert all(bar.is_kept for bar in bars_of(document))


def test_the_load_rises_for_all_groups_in_the_same_reading() -> None:
    """Rates are what offsets grow by; a committed offset stays behind its end."""
    load = Load(["a", "b"], partitions=4)
    ends = []
    for number in range(4):
        load.surge_at = 1.6 * BASE_INTERVAL_SECONDS
        samples = load.round_of(number)
        assert all((each.committed_offset or 0) < each.end_offset for each in samples)
        ends.append({(each.group, each.partition): each.end_offset for each in samples})
    for place in ends[0]:
        before, after = ends[1][place] - ends[0][place], ends[3][place] - ends[2][place]
        assert 1.3 < after / before < 1.7
