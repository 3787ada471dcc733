"""The metrics page: the known figures of each group at the instant of the scrape, and nothing else."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from executor.metrics import ExecutorMetrics
from forecasting.refusal import Refusal
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.deciding.recommendation import LedgerStanding, Recommendation

MakeAdvice = Callable[..., Recommendation]
MakeRefusal = Callable[..., Refusal]
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
OF_ADVICE = {
    "lagcast_desired_replicas",
    "lagcast_due_replicas",
    "lagcast_useful_maximum_replicas",
    "lagcast_execute_at_timestamp_seconds",
    "lagcast_valid_until_timestamp_seconds",
    "lagcast_lead_time_seconds",
    "lagcast_lag_messages",
    "lagcast_lag_seconds",
    "lagcast_produce_messages_per_second",
    "lagcast_consume_messages_per_second",
    "lagcast_capacity_messages_per_second_per_replica",
    "lagcast_cost_per_hour",
    "lagcast_data_quality_samples",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlDecisionStore]:
    """An empty SQLite store."""
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    yield store
    store.close()


def _scraped(
    store: SqlDecisionStore, *, now: datetime, leads: Callable[[], bool] | None = None
) -> dict[str, dict[str, float]]:
    """Samples by name, then by the labels beside cluster and group."""
    found: dict[str, dict[str, float]] = {}
    page = Metrics(store, clock=lambda: now, version="0.1.0", leads=leads).page().decode()
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            others = [value for name, value in sample.labels.items() if name not in ("cluster", "group")]
            found.setdefault(sample.name, {})[",".join(others)] = sample.value
    return found


def test_advice_in_force_is_shown(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """Each figure of the advice has its sample, instants in seconds since the epoch."""
    given = advice()
    store.save(given)
    seen = _scraped(store, now=given.issued_at)
    assert OF_ADVICE.issubset(seen)
    assert seen["lagcast_desired_replicas"] == {"": 8.0}
    assert seen["lagcast_current_replicas"] == {"": 6.0}
    assert seen["lagcast_useful_maximum_replicas"] == {"": 24.0}
    assert seen["lagcast_execute_at_timestamp_seconds"] == {"": given.execute_at.timestamp()}
    assert seen["lagcast_produce_messages_per_second"] == {"orders": 18_400.0}
    assert seen["lagcast_capacity_messages_per_second_per_replica"] == {"0.2": 3_900.0, "0.5": 4_100.0, "0.9": 4_350.0}
    assert seen["lagcast_data_age_seconds"] == {"": 22.0}
    assert seen["lagcast_build_info"] == {"0.1.0": 1.0}


def test_the_range_of_counts_is_shown_where_it_is_known(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """The cheapest counts of both tails; advice without them has no sample, and no 0."""
    store.save(advice())
    seen = _scraped(store, now=advice().issued_at)
    assert {"lagcast_desired_replicas_lower", "lagcast_desired_replicas_upper"}.isdisjoint(seen)
    later = advice(
        recommendation_id="r-2",
        issued_at=advice().issued_at + timedelta(minutes=1),
        desired_replicas_lower=6,
        desired_replicas_upper=12,
    )
    store.save(later)
    seen = _scraped(store, now=later.issued_at)
    assert (seen["lagcast_desired_replicas_lower"], seen["lagcast_desired_replicas_upper"]) == ({"": 6.0}, {"": 12.0})


def test_the_forecast_is_shown_at_four_horizons(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """Five minutes ahead is the fifth minute; what lies beyond a short forecast has no sample."""
    rising = tuple(float(minute) for minute in range(1, 31))
    forecast = replace(advice().forecast, p05=rising, p50=tuple(10 * rate for rate in rising), p95=rising)
    store.save(advice(forecast=forecast))
    seen = _scraped(store, now=advice().issued_at)["lagcast_forecast_produce_messages_per_second"]
    assert {label: seen[label] for label in ("300,0.5", "900,0.5", "1800,0.5", "300,0.05")} == {
        "300,0.5": 50.0,
        "900,0.5": 150.0,
        "1800,0.5": 300.0,
        "300,0.05": 5.0,
    }
    assert not [label for label in seen if label.startswith("3600,")]


def test_prices_are_shown_by_the_hour(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """Every item of the advice and of staying, whatever the horizon: half an hour for 0.38 is 0.76 an hour."""
    store.save(advice(horizon_seconds=1800.0))
    seen = _scraped(store, now=advice().issued_at)["lagcast_cost_per_hour"]
    assert (seen["replicas,USD,chosen"], seen["late,USD,stay"]) == (0.76, 2.36)
    assert len(seen) == 2 * 8


def test_oddities_of_the_samples_are_shown_by_kind(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """As the advice counts them."""
    store.save(advice())
    seen = _scraped(store, now=advice().issued_at)["lagcast_data_quality_samples"]
    assert seen == {"gap": 3.0, "no_commit": 0.0}


def test_savings_and_regret_are_shown_by_the_hour(
    store: SqlDecisionStore, advice: MakeAdvice, ledger: LedgerStanding
) -> None:
    """A day paid 7.50: HPA at 31 would have cost 0.979 an hour more; no scaler that can be told was cheaper."""
    store.save(advice(ledger=ledger))
    seen = _scraped(store, now=advice().issued_at)
    assert seen["lagcast_saving_per_hour"]["hpa-10000,USD"] == pytest.approx(23.5 / 24)
    assert seen["lagcast_regret_per_hour"] == {"USD": 0.0}
    cheap = replace(ledger.accounts[1], replicas=5.0)
    later = advice(
        recommendation_id="r-2",
        issued_at=advice().issued_at + timedelta(minutes=1),
        ledger=replace(ledger, since_at=advice().issued_at - timedelta(minutes=59), accounts=(cheap,)),
    )
    store.save(later)
    seen = _scraped(store, now=later.issued_at)
    assert seen["lagcast_regret_per_hour"]["USD"] == pytest.approx(2.25)
    assert seen["lagcast_saving_per_hour"] == {"keda-2000,USD": pytest.approx(-2.25)}


def _of_groups(page: bytes) -> list[str]:
    """The lines that are of a group's decision alone: no counter, and nothing that published forecasts taught."""
    return [line for line in page.decode().splitlines() if 'group="' in line and "_ratio" not in line]


def test_the_page_of_a_new_process_is_that_of_the_one_before(
    store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """What was not published is read from the store: after a start, or where another process decided."""
    advised, refused = advice(), refusal(group="billing", hold_replicas=3)
    before = Metrics(store, clock=lambda: NOON, version="1")
    for decision in (advised, refused):
        store.save(decision)
        before.publish(decision)
    after = Metrics(store, clock=lambda: NOON, version="1")
    assert _of_groups(after.page()) == _of_groups(before.page())
    assert len(_of_groups(after.page())) > 50
    newer = advice(recommendation_id="r-2", issued_at=advised.issued_at + timedelta(seconds=1), desired_replicas=11)
    store.save(newer)
    assert 'lagcast_desired_replicas{cluster="prod-eu",group="orders"} 11.0' in after.page().decode()


def test_what_was_published_is_not_read_again(
    store: SqlDecisionStore, advice: MakeAdvice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of 15,000 groups asks the store for names alone: their documents take a second to read."""
    metrics = Metrics(store, clock=lambda: NOON, version="1")
    store.save(advice())
    metrics.publish(advice())
    for name in ("latest_page", "latest_recommendation", "by_id", "latest"):
        monkeypatch.delattr(SqlDecisionStore, name)
    assert any(line.startswith("lagcast_due_replicas") for line in _of_groups(metrics.page()))


def test_many_decisions_of_another_process_are_read_at_once(
    store: SqlDecisionStore, advice: MakeAdvice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a start they are all unknown."""
    decided = [advice(recommendation_id=f"r-{number}", group=f"group-{number:03}") for number in range(101)]
    store.save_all([(each, ()) for each in decided])
    asked: list[object] = []
    latest_page = SqlDecisionStore.latest_page

    def counted(
        self: SqlDecisionStore, *, cluster: str | None = None, group: str | None = None
    ) -> tuple[Recommendation | Refusal, ...]:
        asked.append((cluster, group))
        return latest_page(self, cluster=cluster, group=group)

    monkeypatch.setattr(SqlDecisionStore, "latest_page", counted)
    metrics = Metrics(store, clock=lambda: NOON, version="1")
    pages = [_of_groups(metrics.page()) for _ in range(2)]
    assert asked == [(None, None)]
    assert pages[0] == pages[1]
    assert sum(line.startswith("lagcast_due_replicas") for line in pages[0]) == 101


def test_a_fleet_that_was_refused_before_the_start_is_read_at_once(
    store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The age of each group's data is that of its last advice; one group after the other would be 10,000 queries."""
    names = [f"group-{number:03}" for number in range(101)]
    store.save_all([(advice(recommendation_id=f"r-{name}", group=name), ()) for name in names])
    store.save_all([(refusal(group=name), ()) for name in (*names, "never-advised")])
    monkeypatch.delattr(SqlDecisionStore, "latest_recommendation")
    pages = [_of_groups(Metrics(store, clock=lambda: NOON, version="1").page()) for _ in range(2)]
    assert pages[0] == pages[1]
    ages = [line for line in pages[0] if line.startswith("lagcast_data_age_seconds")]
    assert len(ages) == 101
    assert len({line.rpartition(" ")[2] for line in ages}) == 1


def test_any_name_can_be_read_back(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """Kafka allows no such names; a store may hold what it likes."""
    name = 'a "quoted" \\ back\nslash'
    store.save(advice(group=name))
    page = Metrics(store, clock=lambda: NOON, version="1").page().decode()
    found = {
        sample.labels["group"]
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if "group" in sample.labels
    }
    assert found == {name}


def test_due_replicas_follow_the_clock(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """A scaler without a clock reads 6 until the move is due, and 8 from then on."""
    given = advice()
    store.save(given)
    assert _scraped(store, now=given.execute_at - timedelta(seconds=1))["lagcast_due_replicas"] == {"": 6.0}
    assert _scraped(store, now=given.execute_at)["lagcast_due_replicas"] == {"": 8.0}


def test_expired_advice_has_no_samples(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """A moment past `valid_until` there is no sample, so no 0 that a scaler could follow."""
    store.save(advice())
    seen = _scraped(store, now=advice().valid_until + timedelta(seconds=1))
    assert OF_ADVICE.isdisjoint(seen)
    assert seen["lagcast_data_age_seconds"] == {"": 323.0}


def test_the_series_of_a_group_end_two_hours_after_its_last_decision(
    store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """A group that is gone, advised or refused, leaves the page of the process that decided it, and of any other."""
    given = advice()
    last_at, later = given.issued_at + timedelta(hours=2), advice(recommendation_id="r-9", group="billing")
    later = replace(later, issued_at=last_at, valid_until=last_at + timedelta(minutes=5))
    now = last_at
    metrics = Metrics(store, clock=lambda: now, version="1")
    for decision in (given, refusal(group="gone", refused_at=given.issued_at), later):
        store.save(decision)
        metrics.publish(decision)

    def shown() -> list[set[str]]:
        pages = (metrics.page(), Metrics(store, clock=lambda: now, version="1").page())
        return [{line.split('group="')[1].split('"')[0] for line in _of_groups(page)} for page in pages]

    assert shown() == [{"orders", "gone", "billing"}] * 2
    now = last_at + timedelta(seconds=1)
    assert shown() == [{"billing"}] * 2


def test_a_refused_group_has_its_reason_and_no_advice(
    store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """A refusal removes the advice before it; its reason is 1, every other reason 0."""
    store.save(advice())
    store.save(refusal(refused_at=advice().issued_at + timedelta(minutes=1), hold_replicas=6))
    seen = _scraped(store, now=advice().issued_at + timedelta(minutes=1))
    assert OF_ADVICE.isdisjoint(seen)
    assert [reason for reason, value in seen["lagcast_refusal"].items() if value] == ["HistoryStale"]
    assert len(seen["lagcast_refusal"]) == 15
    assert seen["lagcast_current_replicas"] == {"": 6.0}
    assert seen["lagcast_data_age_seconds"] == {"": 82.0}


def test_a_value_that_the_rows_lack_has_no_sample(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """Advice from rows without a consume rate has no sample for it, and no NaN."""
    given = advice()
    observed = type(given.observed)(
        as_of=given.observed.as_of,
        produce_messages_per_second=1.0,
        consume_messages_per_second=None,
        lag_messages=2.0,
        lag_seconds=None,
    )
    store.save(advice(observed=observed))
    seen = _scraped(store, now=given.issued_at)
    assert {"lagcast_consume_messages_per_second", "lagcast_lag_seconds"}.isdisjoint(seen)


def test_the_ledger_has_the_items_of_what_was_paid_and_of_each_scaler(
    store: SqlDecisionStore, advice: MakeAdvice, ledger: LedgerStanding
) -> None:
    """Replicas and late messages of the day, and the error of the simulation; without a ledger no sample."""
    given = advice(ledger=ledger)
    store.save(given)
    seen = _scraped(store, now=given.issued_at)
    costs = seen["lagcast_ledger_cost"]
    assert len(costs) == 8
    assert {name: costs[name] for name in ("replicas,paid", "late,paid", "late,hpa-10000")} == {
        "replicas,paid": 7.0,
        "late,paid": 0.5,
        "late,hpa-10000": 25.0,
    }
    assert seen["lagcast_ledger_error_ratio"] == {"": 1.03}
    store.save(advice(recommendation_id="r-2", issued_at=given.issued_at + timedelta(seconds=1)))
    assert "lagcast_ledger_cost" not in _scraped(store, now=given.issued_at + timedelta(seconds=1))


def test_decisions_are_counted(store: SqlDecisionStore, advice: MakeAdvice, refusal: MakeRefusal) -> None:
    """Published decisions count by action and reason, refusals among them."""
    metrics = Metrics(store, clock=lambda: advice().issued_at, version="0.1.0")
    for decision in (advice(), advice(), refusal()):
        metrics.publish(decision)
    page = metrics.page().decode()
    assert 'lagcast_decisions_total{action="scale_out",reason="RampAhead"} 2.0' in page
    assert 'lagcast_decisions_total{action="refuse",reason="HistoryStale"} 1.0' in page


def test_interruptions_are_counted_with_their_pauses(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """Two rebalances, one of which stopped partitions for 3 s, have their counts and their duplicate messages."""
    metrics = Metrics(store, clock=lambda: advice().issued_at, version="0.1.0")
    metrics.interrupted(
        "prod", "orders", kind="rebalance", rebalance_pause_seconds=3.0, repeated_least=0, repeated_most=200
    )
    metrics.interrupted(
        "prod", "orders", kind="rebalance", rebalance_pause_seconds=None, repeated_least=5, repeated_most=5
    )
    lines = metrics.page().decode().splitlines()
    of_group = 'cluster="prod",group="orders"'
    assert f'lagcast_interruptions_total{{{of_group},kind="rebalance"}} 2.0' in lines
    assert f'lagcast_rebalance_pause_seconds_sum{{{of_group},kind="rebalance"}} 3.0' in lines
    assert f'lagcast_rebalance_pause_seconds_count{{{of_group},kind="rebalance"}} 1.0' in lines
    assert f'lagcast_duplicate_messages_total{{bound="least",{of_group}}} 5.0' in lines
    assert f'lagcast_duplicate_messages_total{{bound="most",{of_group}}} 205.0' in lines


def test_only_the_leader_shows_advice(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """The page has the metric of the leader; another's advice is not on it, nor that of a former leader."""
    given = advice()
    store.save(given)
    led = _scraped(store, now=given.issued_at, leads=lambda: True)
    assert led["lagcast_leader"] == {"": 1.0}
    assert OF_ADVICE.issubset(led)
    followed = _scraped(store, now=given.issued_at, leads=lambda: False)
    assert followed["lagcast_leader"] == {"": 0.0}
    assert [name for name in followed if name.startswith("lagcast")] == ["lagcast_leader", "lagcast_build_info"]
    assert "lagcast_leader" not in _scraped(store, now=given.issued_at)


# Every name, as docs/api.md has them; what a library adds to it (`_total`, `_bucket`) is left out.
PROMISED = {
    *("desired_replicas", "due_replicas", "desired_replicas_lower", "desired_replicas_upper", "current_replicas"),
    *("useful_maximum_replicas", "execute_at_timestamp_seconds", "valid_until_timestamp_seconds", "lead_time_seconds"),
    *("produce_messages_per_second", "consume_messages_per_second", "lag_messages", "lag_seconds"),
    *("capacity_messages_per_second_per_replica", "forecast_produce_messages_per_second"),
    *("forecast_error_ratio", "forecast_skill_ratio", "forecast_coverage_ratio"),
    *("failures", "interruptions", "rebalance_pause_seconds", "duplicate_messages"),
    *("cost_per_hour", "saving_per_hour", "regret_per_hour", "ledger_cost", "ledger_error_ratio"),
    *("decisions", "refusal", "data_age_seconds", "data_quality_samples", "step_duration_seconds"),
    *("source_requests", "leader", "build_info"),
}
OF_THE_EXECUTOR = {"executions", "conflicts"}


def test_only_own_groups_are_shown(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """A Prometheus that scrapes every shard sees each group once, though all of them read one store."""
    for name in ("ours", "theirs"):
        store.save(replace(advice(), group=name, recommendation_id=f"r-{name}"))

    def page(owns: Callable[[str, str], bool]) -> str:
        now = advice().issued_at
        return Metrics(store, clock=lambda: now, version="0.1.0", owns=owns).page().decode()

    pages = [page(lambda _, group: group == "ours"), page(lambda _, group: group == "theirs")]
    assert [each.count('lagcast_due_replicas{cluster="prod-eu",group=') for each in pages] == [1, 1]
    assert ['group="ours"' in each for each in pages] == [True, False]


def test_the_names_of_all_metrics_are_those_that_are_promised(store: SqlDecisionStore) -> None:
    """A metric that is renamed or lost breaks dashboards: the list changes on purpose only."""
    page = Metrics(store, clock=lambda: NOON, version="1", leads=lambda: True).page().decode()
    assert {family.name.removeprefix("lagcast_") for family in text_string_to_metric_families(page)} == PROMISED
    of_the_executor = {family.name.removeprefix("lagcast_") for family in ExecutorMetrics().registry.collect()}
    assert of_the_executor == OF_THE_EXECUTOR


def test_forecasts_are_judged_by_what_came(store: SqlDecisionStore, advice: MakeAdvice) -> None:
    """Advice each minute, 1,000 forecast and 800 come: off by a quarter of what came, and outside a band of 100."""
    metrics = Metrics(store, clock=lambda: NOON + timedelta(minutes=7), version="1")
    for minute in range(8):
        at = NOON + timedelta(minutes=minute)
        given = advice(recommendation_id=f"r-{minute}", issued_at=at, valid_until=at + timedelta(minutes=5))
        observed = replace(given.observed, as_of=at, produce_messages_per_second=800.0)
        low, middle, high = ((rate,) * 60 for rate in (900.0, 1000.0, 1100.0))
        forecast = replace(given.forecast, origin_at=at, p05=low, p50=middle, p95=high)
        given = replace(given, observed=observed, forecast=forecast)
        store.save(given)
        metrics.publish(given)
    shown = {
        sample.name: (sample.labels.get("horizon_seconds"), sample.value)
        for family in text_string_to_metric_families(metrics.page().decode())
        for sample in family.samples
        if sample.name.startswith("lagcast_forecast_") and "produce" not in sample.name
    }
    assert shown == {"lagcast_forecast_error_ratio": ("300", 0.25), "lagcast_forecast_coverage_ratio": (None, 0.0)}


def test_requests_are_counted_by_source_and_outcome(store: SqlDecisionStore) -> None:
    """Each source has its answers and its failures."""
    metrics = Metrics(store, clock=lambda: NOON, version="1")
    for outcome in ("answered", "answered", "unavailable"):
        metrics.requested("kafka", outcome)
    counted = {
        (sample.labels["source"], sample.labels["outcome"]): sample.value
        for family in text_string_to_metric_families(metrics.page().decode())
        for sample in family.samples
        if sample.name == "lagcast_source_requests_total"
    }
    assert counted == {("kafka", "answered"): 2.0, ("kafka", "unavailable"): 1.0}
