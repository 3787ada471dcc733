"""A service over a real store, at an instant that a test sets."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.configuring.settings import load_settings

SETTINGS = """
groups:
  orders:
    mode: apply
    target: {namespace: shop, name: orders-consumer}
"""


class Clock:
    """A clock that returns the instant it was set to."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return that instant."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The clock, set to noon."""
    return Clock(datetime.fromisoformat("2026-01-05T12:00:00+00:00"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlDecisionStore]:
    """An empty SQLite store."""
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    yield store
    store.close()


@pytest.fixture
def service(store: SqlDecisionStore, clock: Clock, tmp_path: Path) -> TestClient:
    """The service; `orders` has a target and may be scaled, other groups have neither a target nor that permission."""
    path = tmp_path / "lagcast.yaml"
    path.write_text(SETTINGS)
    settings = load_settings(path, {"LAGCAST_STATE_DIR": str(tmp_path)})
    app = create_app(store, clock=clock, version="0.1.0", settings=settings)
    return TestClient(app, raise_server_exceptions=False)
