"""Requests made from REST's own schema, good and bad ones: each is answered as the schema says, and none with a 500.

What must hold of an answer is schemathesis': no error of the server, a status, a content type and a body that the
schema names, and a refusal of what the schema forbids.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import positive_data_acceptance

from api.app import create_app
from api.keys import group_key
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.hold import Hold, HoldScope
from recommender.known_groups import KnownGroups
from tests.api.conftest import Clock
from tests.api.test_what_if import loop_over, rows_until
from tests.recommender.loop import Rows

SCHEMA = Path(__file__).with_name("openapi.json")
OPERATIONS = [
    (path, method)
    for path, methods in json.loads(SCHEMA.read_text(encoding="utf-8"))["paths"].items()
    for method in methods
]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[schemathesis.BaseSchema]:
    """The schema of a service with one group that has advice, a hold, and inputs to ask what-ifs about."""
    clock, inputs = Clock(datetime.fromisoformat("2026-01-05T12:00:00+00:00")), KnownGroups()
    store = SqlDecisionStore(sqlite_url(tmp_path_factory.mktemp("fuzz") / "decisions.sqlite"))
    loop_over(Rows(rows_until(clock)), store, inputs).run_once(now=clock.now)
    store.place_hold(Hold(scope=HoldScope(cluster="c"), reason="upgrade", placed_at=clock.now))
    app = create_app(store, clock=clock, version="0.1.0", known_groups=inputs)
    yield schemathesis.openapi.from_asgi("/openapi.json", app)
    store.close()


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink]
)
@given(data=st.data())
def test_p20_every_request_is_answered_as_the_schema_says(
    schema: schemathesis.BaseSchema, path: str, method: str, data: st.DataObject
) -> None:
    """Of any path, query, header and body: of a known group and id in half of the cases."""
    operation = schema[path][method]
    mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
    case = data.draw(operation.as_strategy(generation_mode=mode))
    if "group_key" in case.path_parameters and data.draw(st.booleans()):
        case.path_parameters["group_key"] = group_key("c", "orders")
    # A schema cannot say that `to` follows `from`, or which steps a forecast has.
    case.call_and_validate(excluded_checks=[positive_data_acceptance])
