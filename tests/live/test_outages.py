"""P17, P3: faults of what all groups share, one after the other, beside one `lagcast serve` that never ends."""

import json
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import sqlalchemy as sa

from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Recommendation
from recommender.ports import issued_at
from tests.feature_folder import steady_hour
from tests.live.harness.clients import wait_until
from tests.live.harness.executors import read_clock
from tests.live.harness.postgres import Postgres, running_postgres

pytestmark = pytest.mark.postgres

GROUPS = tuple(f"group-{number}" for number in range(5))
CYCLE_SECONDS = 1
SEED = 1


class Served:
    """A service over five groups, whose store is a PostgreSQL."""

    def __init__(self, folder: Path, features: Path, server: Postgres) -> None:
        self.server, self.features, self._log = server, features, folder / "serve.log"
        groups = {group: {"capacity_messages_per_second_per_replica": 600} for group in GROUPS}
        decision = {"cycle_seconds": CYCLE_SECONDS, "freshness_limit_seconds": 7200}
        config = folder / "lagcast.yaml"
        config.write_text(json.dumps({"decision": decision, "groups": groups}), encoding="utf-8")
        command = [sys.executable, "-m", "cli.main", "serve", "--features", str(features), "--config", str(config)]
        environment = {**os.environ, "LAGCAST_STATE_DIR": str(folder), "LAGCAST_STORE_URL": server.url()}
        with self._log.open("wb") as output:
            self.process = subprocess.Popen([*command, "--port", "0"], stderr=output, env=environment)
        wait_until(lambda: "serves http" in self.logged, seconds=60)
        address = re.search(r"serves (http://\S+)", self.logged)
        assert address is not None
        self.url = address[1]
        self.store = SqlDecisionStore(server.url())

    @property
    def logged(self) -> str:
        """The log so far."""
        return self._log.read_text(encoding="utf-8")

    def cycles(self) -> int:
        """The cycles so far, by their log lines."""
        return self.logged.count('"event": "cycle"')

    def advises_again(self) -> None:
        """Wait until every group has advice that was made after now, and check that it took two cycles at most."""
        began, cycles = read_clock(), self.cycles()

        def advised() -> bool:
            newest = [each for each in self.store.latest_page() if issued_at(each) > began]
            return len(newest) == len(GROUPS) and all(isinstance(each, Recommendation) for each in newest)

        wait_until(advised, seconds=60)
        # The cycle that was under way when the fault ended, two more, and the one whose line is not written yet.
        assert self.cycles() - cycles <= 4

    def failures(self, unit: str) -> float:
        """The count of failures of a kind of unit, from the page of metrics."""
        page = httpx2.get(f"{self.url}/metrics", timeout=30).text
        found = re.search(rf'lagcast_failures_total{{unit="{unit}"}} (\S+)', page)
        return float(found[1]) if found else 0.0


@pytest.fixture
def served(tmp_path: Path, tools_for_postgres: None) -> Iterator[Served]:
    """The service, with its first advice."""
    del tools_for_postgres
    features = steady_hour(tmp_path / "features", GROUPS, end_at=read_clock())
    with running_postgres() as server:
        service = Served(tmp_path, features, server)
        try:
            wait_until(lambda: len(service.store.latest_page()) == len(GROUPS), seconds=120)
            service.advises_again()
            yield service
        finally:
            service.process.kill()
            service.process.wait()
            service.store.close()


def restarted(served: Served) -> None:
    """The database stops, a cycle refuses for it, and it starts again."""
    before = served.logged.count('"name": "store"')
    served.server.stop()
    wait_until(lambda: served.logged.count('"name": "store"') > before, seconds=60)
    served.server.start()


def away(served: Served) -> None:
    """The folder of features is away for a cycle."""
    elsewhere = served.features.with_name("elsewhere")
    served.features.rename(elsewhere)
    refused = '"refused": "source_unreachable"'
    before = served.logged.count(refused)
    wait_until(lambda: served.logged.count(refused) >= before + len(GROUPS), seconds=60)
    elsewhere.rename(served.features)


def unreadable(served: Served) -> None:
    """The newest decision of one group is no document any more."""
    engine = sa.create_engine(served.server.url())
    with engine.begin() as connection:
        spoilt = sa.text("UPDATE decisions SET document = '{}' WHERE newest AND \"group\" = :group")
        connection.execute(spoilt, {"group": GROUPS[0]})
    engine.dispose()


def crowded(served: Served) -> None:
    """Forty readers at once, each for the whole page and the metrics."""
    statuses: list[int] = []

    def read() -> None:
        with httpx2.Client(base_url=served.url, timeout=60) as client:
            pages = ("/metrics", "/api/v1/groups?limit=500", "/api/v1/ledger", "/metrics")
            statuses.extend(client.get(path).status_code for path in pages)

    readers = [threading.Thread(target=read) for _ in range(40)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) > len(statuses) / 2


FAULTS: tuple[Callable[[Served], None], ...] = (restarted, away, unreadable, crowded)


@contextmanager
def never_down(served: Served) -> Iterator[None]:
    """Its probe answers all the time."""
    over, answers = threading.Event(), set[int]()

    def probe() -> None:
        while not over.wait(0.2):
            answers.add(httpx2.get(f"{served.url}/livez", timeout=30).status_code)

    probing = threading.Thread(target=probe)
    probing.start()
    try:
        yield
    finally:
        over.set()
        probing.join()
    assert answers == {200}


def test_p17_faults_of_what_all_share_end_nothing_and_advice_is_back_within_two_cycles(served: Served) -> None:
    """Each of them ended the process: a restart of the database, a folder that was away, a document, forty readers."""
    dice = random.Random(SEED)  # noqa: S311  # a test's dice
    faults = [*FAULTS, *FAULTS]
    dice.shuffle(faults)
    with never_down(served):
        for fault in faults:
            fault(served)
            served.advises_again()
    assert served.process.poll() is None
    assert served.failures("step") > 0
