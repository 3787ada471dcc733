"""docs/api.md describes what the service answers."""

import json
import re
from pathlib import Path
from typing import get_args

from api.schemas import ForecastSeries
from forecasting.refusal import RefusalReason
from recommender.deciding.recommendation import LagCause, ReasonCode
from recommender.ports import wire_code
from recommender.steps import STEPS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text()


def test_every_route_is_on_the_page() -> None:
    """Each path of the contract is in the page's table, and no other."""
    contract = json.loads((ROOT / "tests" / "api" / "openapi.json").read_text())
    on_page = {path.partition("?")[0] for path in re.findall(r"`(?:GET|POST) (/[^`]*)`", PAGE)}
    named = {path.replace("{recommendation_id}", "{id}") for path in contract["paths"]}
    assert named - {"/"} <= on_page
    assert on_page <= named | {"/openapi.json"}


def test_the_example_of_a_series_is_valid() -> None:
    """The JSON on the page is read by the wire's own type, which has all of its fields, and its times are in order."""
    example = json.loads(PAGE.split("```json\n")[1].split("```")[0])
    series = ForecastSeries.model_validate(example)
    assert json.loads(series.model_dump_json(exclude_none=True)) == example
    assert len(series.ends_at) == len(series.step_seconds) == len(series.produce_messages_per_second.p50)
    assert list(series.ends_at) == sorted(series.ends_at)


def test_every_reason_is_on_the_page() -> None:
    """Each value of `reason` is in one of the tables, once, and no other."""
    section = PAGE.split("## Why: the reasons")[1].split("## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    on_page = [word for cell in cells for word in re.findall(r"`(\w+)`", cell)]
    known = [wire_code(reason) for reason in (*get_args(ReasonCode), *get_args(RefusalReason))]
    assert sorted(on_page) == sorted(known)


def test_every_cause_is_on_the_page() -> None:
    """Each value of `reason.cause` has a line, and no other."""
    section = PAGE.split("### Causes of a backlog")[1].split("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(get_args(LagCause))


def test_every_step_that_is_timed_is_on_the_page() -> None:
    """The table under the metric has each step of a cycle, in their order, and no other."""
    table = PAGE.split("`lagcast_step_duration_seconds{step}`")[1].split("\n\n")[1]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)[1:] == list(STEPS)
