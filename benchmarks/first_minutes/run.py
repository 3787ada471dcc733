"""The stages of the first minutes, one after the other, and the document of what they took."""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import httpx2
from playwright.sync_api import Browser

from api.keys import group_key
from benchmarks.command import commit
from benchmarks.first_minutes.newcomer import (
    Newcomer,
    arrive,
    as_it_is,
    built_wheel,
    first_picture_seconds,
    installed,
    opened,
    updates_of,
)
from benchmarks.first_minutes.others import NAMES, WATCHED, Before, Others, at_work
from benchmarks.rebalances.run import kafka_version
from tests.live.harness.browser import fetched_browser, running_browser

Source = Literal["prometheus", "kafka"]
SOURCES: Sequence[Source] = ("prometheus", "kafka")
# A deploy of a minute and a half, two minutes ago.
BEFORE = Before(until_deploy_seconds=60.0, deploy_seconds=90.0, after_seconds=120.0)
# Longer than the bars: a bar that is missed has a figure too.
PATIENCE_SECONDS = 900.0
HELPS, PICTURES, UPDATES = 5, 3, 4
CSV_DAYS = 2


def measured(*, install: bool, shots: Path, before: Before = BEFORE) -> dict[str, Any]:
    """Run all stages; screenshots are kept in `shots`. Errors: RuntimeError and TimeoutError of stages that fail."""
    shots.mkdir(parents=True, exist_ok=True)
    begun_at, loads = commit(), [os.getloadavg()[0]]
    with (
        tempfile.TemporaryDirectory() as name,
        running_browser(fetched_browser()) as browser,
        at_work(_made(Path(name) / "others"), before) as others,
    ):
        folder = _made(Path(name) / "newcomer")
        newcomer, install_seconds = _arrived(folder, Path(name), install=install)
        loads.append(os.getloadavg()[0])
        helps = [newcomer.run("--help")[0] for _ in range(HELPS)]
        sources = {}
        for source in SOURCES:
            sources[source] = from_source(newcomer, others, source, browser=browser, shots=shots)
            loads.append(os.getloadavg()[0])
        csv = from_csv(newcomer, others, browser=browser, shots=shots)
        demo = from_demo(newcomer, browser=browser, shots=shots)
        loads.append(os.getloadavg()[0])
        installed_bytes = _bytes(folder / "venv") if install else None
    return {
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),  # noqa: TID251  # the day that the page names
        "commit": begun_at,
        "kafka": kafka_version(),
        "processors": os.cpu_count(),
        "mean_load": statistics.mean(loads),
        "before_seconds": [before.until_deploy_seconds, before.deploy_seconds, before.after_seconds],
        "install_seconds": install_seconds,
        "installed_bytes": installed_bytes,
        "help_seconds": helps,
        "sources": sources,
        "csv": csv,
        "demo": demo,
    }


def from_source(
    newcomer: Newcomer,
    others: Others,
    source: Source,
    *,
    browser: Browser,
    shots: Path,
    updates: int = UPDATES,
    within_seconds: float = PATIENCE_SECONDS,
) -> dict[str, Any]:
    """`lagcast doctor` and `lagcast up` on one source, until the page has a priced recommendation, and what follows."""
    where = ("--bootstrap", others.bootstrap) if source == "kafka" else ("--prometheus", others.prometheus)
    doctor_seconds, findings, _ = newcomer.run("doctor", *where, "-o", "json")
    with newcomer.serving(source, "up", *where) as served, opened(browser) as context:
        url = served.url(within_seconds=within_seconds)
        address_seconds = served.passed_seconds
        page = context.new_page()
        path = f"groups/{group_key('default', WATCHED)}"
        advice_seconds = served.priced(page, f"{url}/{path}", within_seconds=within_seconds)
        page.screenshot(path=shots / f"{source}-group.png", full_page=True)
        api = f"{url}/api/v1/{path}"
        found = {
            "doctor_seconds": doctor_seconds,
            "doctor": json.loads(findings),
            "address_seconds": address_seconds,
            "advice_seconds": advice_seconds,
            "said": served.said,
            "groups": {name: _told(url, name) for name in NAMES},
            "updates": [
                asdict(update)
                for update in updates_of(
                    served, browser, f"{url}/{path}", api, count=updates, within_seconds=within_seconds
                )
            ],
            "first_picture_seconds": [first_picture_seconds(browser, f"{url}/{path}") for _ in range(PICTURES)],
        }
        page.goto(url)
        page.screenshot(path=shots / f"{source}-fleet.png", full_page=True)
    return found


def from_csv(newcomer: Newcomer, others: Others, *, browser: Browser, shots: Path) -> dict[str, Any]:
    """`lagcast replay` of a load in a CSV, whose report is looked at."""
    start_at = datetime(2026, 1, 5, tzinfo=UTC)
    lines = ["timestamp,messages_per_second"]
    for minute in range(CSV_DAYS * 1440):
        at = start_at + timedelta(minutes=minute)
        lines.append(f"{at:%Y-%m-%dT%H:%M:%SZ},{others.rate(minute / 1440 % 1.0):.3f}")
    (newcomer.folder / "load.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    seconds, table, _ = newcomer.run("replay", "--trace", "load.csv", "--html", "report.html")
    with opened(browser) as context:
        page = context.new_page()
        page.goto((newcomer.folder / "report.html").as_uri())
        page.wait_for_function("() => document.querySelector('canvas, svg')")
        page.screenshot(path=shots / "csv-report.png", full_page=True)
    return {"seconds": seconds, "policies": len(table.splitlines()) - 1}


def from_demo(newcomer: Newcomer, *, browser: Browser, shots: Path) -> dict[str, Any]:
    """`lagcast demo`, until its page has the recommendation."""
    with newcomer.serving("demo", "demo") as served, opened(browser) as context:
        url = served.url(within_seconds=PATIENCE_SECONDS)
        address_seconds = served.passed_seconds
        page = context.new_page()
        key = group_key("demo", "orders")
        advice_seconds = served.priced(page, f"{url}/groups/{key}", within_seconds=PATIENCE_SECONDS)
        page.screenshot(path=shots / "demo-group.png", full_page=True)
    return {"address_seconds": address_seconds, "advice_seconds": advice_seconds}


def _arrived(folder: Path, beside: Path, *, install: bool) -> tuple[Newcomer, float | None]:
    """The newcomer with lagcast, and the seconds of its installation."""
    environment = arrive(folder, tools=beside / "tools")
    if not install:
        return as_it_is(folder, environment), None
    wheel = built_wheel(beside)
    began = time.monotonic()
    newcomer = installed(folder, wheel, environment)
    return newcomer, time.monotonic() - began


def _told(url: str, name: str) -> Mapping[str, Any]:
    """What REST says of a group, in short."""
    answer = httpx2.get(f"{url}/api/v1/groups/{group_key('default', name)}", timeout=10)
    latest: dict[str, Any] = answer.json()["latest"] if answer.status_code == httpx2.codes.OK else {"kind": "none"}
    if latest["kind"] != "Recommendation":
        return {"kind": latest["kind"], "reason": latest.get("reason", {}).get("code", "")}
    capacity = latest["capacity_messages_per_second_per_replica"]
    return {
        "kind": latest["kind"],
        "current": latest["current_replicas"],
        "desired": latest["desired_replicas"],
        "capacity": capacity["p50"],
        "capacity_source": capacity["source"],
        "currency": latest["cost"]["currency"],
    }


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
