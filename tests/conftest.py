"""Decisions of every kind, for the tests of code that stores, shows or carries them out."""

import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
import structlog
from hypothesis import settings
from hypothesis import strategies as st

from cost_model.physics.learned import MoveOutcome
from cost_model.physics.profile import Capacity
from cost_model.pricing.price import Cost
from forecasting.refusal import Refusal
from forecasting.units import MessagesPerSecond
from recommender.deciding.recommendation import (
    Decision,
    ForecastSummary,
    GradedMove,
    LedgerAccount,
    LedgerStanding,
    Observed,
    PricedPlan,
    PromisedPrice,
    RebalanceImpact,
    Recommendation,
)

# The duration of an example depends on the load of the machine: speed is measured in benchmarks/.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# The names in the cache of real parts as the run begins, by which tests/live/conftest.py orders its tests.
PARTS_AT_START = "LAGCAST_TEST_PARTS_AT_START"


def pytest_configure() -> None:
    """Let all processes of a run see the same parts, also one that takes the place of another that has died.

    Parts are built meanwhile; with an order of its own the new process could be given no test.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "lagcast")
    os.environ.setdefault(PARTS_AT_START, " ".join(found.name for found in folder.glob("*")))


ISSUED_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
_NOTHING = Cost(replicas=0, late=0, pause_late=0, backlog=0, duplicates=0, start_up=0, restore=0, risk=0)
_STAY = replace(_NOTHING, replicas=0.3, late=1.18)
_CHOSEN = replace(_NOTHING, replicas=0.38, late=0.05, pause_late=0.01, start_up=0.05, risk=0.1)

_ADVICE = Recommendation(
    recommendation_id="r-1",
    cluster="prod-eu",
    group="orders",
    topics=("orders",),
    issued_at=ISSUED_AT,
    valid_until=ISSUED_AT + timedelta(seconds=300),
    action="scale_out",
    current_replicas=6,
    desired_replicas=8,
    uncapped_replicas=8,
    useful_replicas=(1, 2, 3, 4, 5, 6, 8, 12, 24),
    execute_at=ISSUED_AT + timedelta(seconds=120),
    not_before=ISSUED_AT + timedelta(seconds=60),
    latest_safe=ISSUED_AT + timedelta(seconds=240),
    effective_at=ISSUED_AT + timedelta(seconds=162),
    lead_time_seconds=42.0,
    observed=Observed(
        as_of=ISSUED_AT - timedelta(seconds=22),
        produce_messages_per_second=18_400.0,
        consume_messages_per_second=18_380.0,
        lag_messages=5_200.0,
        lag_seconds=0.3,
    ),
    history_seconds=1_209_600.0,
    data_counts=(("gap", 3), ("no_commit", 0)),
    capacity=Capacity(
        p20=MessagesPerSecond(3_900.0),
        p50=MessagesPerSecond(4_100.0),
        p90=MessagesPerSecond(4_350.0),
        source="configured",
    ),
    forecast=ForecastSummary(
        model="blend", history_tier="weekly", step_seconds=60, p05=(1.0, 2.0), p50=(2.0, 3.0), p95=(3.0, 4.0)
    ),
    rebalance_impact=RebalanceImpact(
        protocol_profile="eager",
        rebalance_pause_seconds=12.0,
        moved_partition_fraction=1.0,
        expected_rebalances=2.0,
        duplicate_messages=4_000.0,
    ),
    horizon_seconds=3600.0,
    currency="USD",
    chosen=_CHOSEN,
    stay=_STAY,
    break_even_seconds=None,
    alternatives=(
        PricedPlan(desired_replicas=12, execute_at=ISSUED_AT + timedelta(seconds=120), cost=_CHOSEN),
        PricedPlan(desired_replicas=6, execute_at=None, cost=_STAY),
    ),
    reason="ramp_ahead",
    sentences=("6 replicas fall behind from 12:09.",),
)

_REFUSAL = Refusal(
    cluster="prod-eu",
    group="orders",
    reason="history_stale",
    sentence="The newest row ended 2,400 s before now; the freshness limit is 600 s.",
    evidence=(("history_age_seconds", 2400.0), ("freshness_limit_seconds", 600.0)),
    remedy="Check that samples are collected.",
    refused_at=ISSUED_AT,
)


@pytest.fixture(autouse=True)
def _logging_as_it_begins() -> None:
    """A command under test sets up logging; the tests after it start with the defaults, but with plain tracebacks.

    structlog's own print each local variable of each frame: 19 s for one error below a recommender of fifteen groups.
    """
    structlog.reset_defaults()
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], renderer])


@pytest.fixture(name="advice", scope="session")
def advice_fixture() -> Callable[..., Recommendation]:
    """`advice(**changed_fields)`: from 6 to 8 replicas two minutes after `issued_at`, valid for five."""
    return lambda **changes: replace(_ADVICE, **changes)


@pytest.fixture(name="refusal", scope="session")
def refusal_fixture() -> Callable[..., Refusal]:
    """`refusal(**changed_fields)`: the history of the same group is forty minutes old."""
    return lambda **changes: replace(_REFUSAL, **changes)


_LEDGER = LedgerStanding(
    since_at=ISSUED_AT - timedelta(days=1),
    currency="USD",
    error_ratio=1.03,
    paid=LedgerAccount(scaler="paid", replicas=7.0, late=0.5, distinguishable=False),
    accounts=(
        LedgerAccount(scaler="fixed-ceiling", replicas=7.75, late=0.0, distinguishable=False),
        LedgerAccount(scaler="keda-2000", replicas=9.0, late=0.25, distinguishable=True),
        LedgerAccount(scaler="hpa-10000", replicas=6.0, late=25.0, distinguishable=True),
    ),
)


@pytest.fixture(name="ledger", scope="session")
def ledger_fixture() -> LedgerStanding:
    """A day that cost 7.50; all replicas would have cost 7.75, KEDA at 2,000 9.25, and HPA at 10,000 31."""
    return _LEDGER


MOVE = GradedMove(
    cluster="prod-eu",
    group="orders",
    graded_at=ISSUED_AT,
    outcome=MoveOutcome(
        from_replicas=6,
        to_replicas=8,
        expected_rebalance_pause_seconds=12.0,
        rebalance_pause_seconds=3.4,
        expected_late_messages=18_400.0,
        late_messages=0.0,
        start_up_seconds=45.0,
        advised_as="r-1",
    ),
    promised=PromisedPrice(chosen=0.59, stay=1.48, horizon_seconds=3600.0, currency="USD"),
)


@pytest.fixture(name="graded_move", scope="session")
def graded_move_fixture() -> Callable[..., GradedMove]:
    """`graded_move(**changed_fields)`: the move from 6 to 8 that `advice` called for, quicker than expected."""
    return lambda **changes: replace(MOVE, **changes)


@pytest.fixture(name="any_move", scope="session")
def any_move_fixture() -> st.SearchStrategy[GradedMove]:
    """Every value that the types of a graded move allow, in UTC and with finite numbers."""
    return _values(GradedMove)


@pytest.fixture(name="any_decision", scope="session")
def any_decision_fixture() -> st.SearchStrategy[Decision]:
    """Every value that the types of a decision allow, in UTC and with finite numbers."""
    return st.one_of(_values(Recommendation), _values(Refusal))


def _values(kind: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401  # a type, a NewType or a union
    kind = getattr(kind, "__supertype__", kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: _values(hints[field.name]) for field in fields(kind)})
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        if inner[-1] is Ellipsis:
            return st.lists(_values(inner[0]), max_size=3).map(tuple)
        return st.tuples(*(_values(item) for item in inner))
    if get_origin(kind) in (UnionType, Union):
        return st.one_of(*(_values(option) for option in get_args(kind)))
    simple: dict[Any, st.SearchStrategy[Any]] = {
        float: st.floats(min_value=-1e15, max_value=1e15),  # sums and differences of them stay finite
        datetime: st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001  # given its zone here
    }
    return simple[kind] if kind in simple else st.from_type(kind)
