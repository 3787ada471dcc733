"""The tournament: worlds match their sentences, each seed judges its own day, one command plays and writes a page."""

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.decisions import run as command
from benchmarks.decisions.document import FOR_LAGCAST, FOR_RIVALS, TOURNAMENT, imported_by, runs_in
from benchmarks.decisions.ours import OURS
from benchmarks.decisions.tournament import (
    POLICY_NAMES,
    Run,
    history_rows,
    judged_day,
    own_loads,
    play_scenario,
    rescaled,
    scenarios_of,
    whitepaper_scenarios,
)
from benchmarks.decisions.whitepaper_page import whitepaper_section
from benchmarks.decisions.worlds import ALL_WORLDS, SLOW_START_WORLDS, WORLDS
from forecasting.history import HistoryBuffer
from forecasting.units import SECONDS_PER_DAY, read_only
from replay.plant.plant import Plant
from replay.policies.catalogue import CATALOGUE
from replay.sampling import Names
from replay.trace import Trace
from tests.benchmarks.decisions.made_runs import run as made_run

START_AT = datetime(2026, 1, 5, tzinfo=UTC)
NAMES = Names("test", "load")
DOCS = Path(__file__).parents[3] / "docs"


def load_of(days: float, *, step_seconds: int = 3600) -> Trace:
    """A load whose rate is the number of its step, so that every value shows its position."""
    steps = round(days * SECONDS_PER_DAY / step_seconds)
    return Trace(
        name="load",
        start_at=START_AT,
        step_seconds=step_seconds,
        messages_per_second=read_only(np.arange(1.0, steps + 1.0)),
    )


# Worlds


def test_all_worlds_have_forty_replicas_of_a_thousand_and_a_promise_of_ten_seconds() -> None:
    """The values that loads are scaled to, and from which prices follow, are the same in every world."""
    for kind in ALL_WORLDS.values():
        world = kind.world
        assert (world.capacity_messages_per_second_per_replica, world.replica_ceiling) == (1_000.0, 40)
        assert (world.max_lag_seconds, world.commit_interval_seconds) == (10.0, 5)


def test_four_worlds_are_slow_and_two_are_real() -> None:
    """The worlds have their names and their pauses."""
    pauses = {name: kind.pauses for name, kind in WORLDS.items()}
    assert pauses == {
        "tight": "slow",
        "fine": "slow",
        "cooperative": "slow",
        "ungraceful": "slow",
        "real-quick": "real",
        "real-long": "real",
    }


@pytest.mark.parametrize("name", ALL_WORLDS)
def test_a_world_matches_its_sentence(name: str) -> None:
    """The sentence has the world's partitions, batches, start-up, protocol, client and heartbeats."""
    world, sentence = ALL_WORLDS[name].world, ALL_WORLDS[name].sentence
    if sentence.startswith("The same"):
        assert replace(world, partitions=40) == WORLDS["tight"].world
        assert "with 120 partitions" in sentence
        assert world.partitions == 120
        return
    assert sentence.startswith(f"{world.partitions} partitions")
    assert world.protocol in sentence
    assert ("Java client" in sentence) == (world.protocol == "cooperative" and world.client == "java")
    assert f"batches of {world.batch_seconds:g} s" in sentence
    assert f"pods ready after {world.start_up_seconds:g} s" in sentence
    assert ("independent heartbeats" in sentence) == (world.heartbeat_drift >= 10.0)
    assert ("heartbeats in step" in sentence) == (ALL_WORLDS[name].pauses == "real")
    assert ("static" in sentence) == world.static_membership
    if world.static_membership:
        assert f"session of {world.session_timeout_seconds:g} s" in sentence
    assert ("one pod in twenty at four fifths" in sentence) == (world.slow_pod_share == 0.05)
    if world.start_up_spread_seconds != 10.0:
        assert f"give or take {world.start_up_spread_seconds / 2:g} s" in sentence
    assert ("Streams" in sentence) == (world.restore_seconds > 0.0)
    if world.restore_seconds > 0.0:
        assert f"{world.warmup_slots} partitions at a time are restored in {world.restore_seconds:g} s" in sentence
        assert f"each {world.probing_seconds:g} s" in sentence


def test_worlds_of_slow_starts_play_only_where_they_are_named() -> None:
    """They are none of the six; a pod takes 90 s, 180 s, or 30 s and minutes of restoring."""
    assert not SLOW_START_WORLDS.keys() & WORLDS.keys()
    starts = {
        name: (kind.world.start_up_seconds, kind.world.restore_seconds) for name, kind in SLOW_START_WORLDS.items()
    }
    assert starts == {"slow-pods": (90.0, 0.0), "new-nodes": (180.0, 0.0), "restoring": (30.0, 240.0)}


def test_restored_partitions_move_after_five_to_fifteen_minutes() -> None:
    """From 20 to 40 replicas 20 of 40 partitions move, 8 at each probing rebalance."""
    world = SLOW_START_WORLDS["restoring"].world
    steady = replace(load_of(1 / 24, step_seconds=60), messages_per_second=read_only(np.full(60, 9_000.0)))
    plant = Plant(world=world, trace=steady, seed=1, replicas=20)
    plant.advance(60)
    plant.scale(40)
    moved = []
    for minutes in (5, 1, 5, 5):
        plant.advance(60 * minutes)
        moved.append(int((plant._state.partitions.owner >= 20).sum()))
    assert moved == [0, 8, 16, 20]


def test_the_useful_counts_of_tight_are_few() -> None:
    """Of 40 partitions 21 to 39 replicas carry no more than 20."""
    world = WORLDS["tight"].world
    assert {world.carried(replicas) for replicas in range(20, 40)} == {20_000.0}


# Loads


def test_a_load_is_rescaled_to_nine_tenths_of_all_replicas() -> None:
    """The load that one minute in a thousand exceeds becomes 36,000 messages/s; the shape stays."""
    trace = load_of(2.0, step_seconds=60)
    scaled = rescaled(trace)
    assert np.quantile(scaled.minute_rates(), 0.999) == pytest.approx(36_000.0)
    assert np.ptp(scaled.messages_per_second / trace.messages_per_second) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("days", "seed", "first_day"),
    [
        (10.0, 0, 9),
        (10.0, 1, 8),
        (10.0, 4, 5),
        (10.0, 7, 2),  # two days remain before it
        (10.0, 8, 9),  # one would remain: the last day again
        (5.0, 2, 2),
        (5.0, 3, 4),
        (2.5, 0, 1.5),  # half of it remains
        (2.5, 1, 1.5),
        (2.0, 0, 1),
    ],
)
def test_each_seed_judges_its_own_day(days: float, seed: int, first_day: float) -> None:
    """It is the last day, the one before it and so on, as long as two days or half of a short load remain before it."""
    past, judged = judged_day(load_of(days), seed)
    assert judged.start_at == START_AT + timedelta(days=first_day)
    assert judged.days == 1.0
    assert past is not None
    assert past.start_at == START_AT
    assert past.end_at == judged.start_at


@pytest.mark.parametrize("days", [0.1, 1.0, 1.9])
def test_a_short_load_is_judged_whole(days: float) -> None:
    """It is judged whole under every seed, with nothing before it."""
    trace = load_of(days)
    assert [judged_day(trace, seed) for seed in (0, 3)] == [(None, trace)] * 2


@given(hours=st.integers(48, 24 * 40), seed=st.integers(0, 200))
def test_enough_always_remains_before_the_judged_day(hours: int, seed: int) -> None:
    """Two days, or half of the load; and the judged day is one whole day of it."""
    trace = load_of(hours / 24)
    past, judged = judged_day(trace, seed)
    assert past is not None
    assert judged.days == 1.0
    assert past.days >= min(2.0, trace.days / 2.0)
    assert judged.end_at <= trace.end_at


def test_the_history_is_noise_around_the_rates_of_fifteen_days_at_most() -> None:
    """A row a minute, up to the judged day: 60 s of Poisson arrivals, all consumed, 40 members, 2.5 s of lag."""
    trace = replace(load_of(20.0), messages_per_second=read_only(np.full(480, 600.0)))
    rows = history_rows(trace, 24, 3, NAMES)
    assert len(rows) == 15 * 1440
    assert rows[-1].interval_end_at == trace.end_at
    rates = np.array([row.produce_messages_per_second for row in rows])
    # 600 x 60 = 36,000 messages a minute, give or take 190: 3.2 messages/s.
    assert rates.mean() == pytest.approx(600.0, abs=0.2)
    assert rates.std() == pytest.approx(np.sqrt(600.0 / 60.0), rel=0.03)
    row = rows[0]
    assert (row.members, row.partitions, row.consume_messages_per_second) == (40, 24, row.produce_messages_per_second)
    assert row.lag_messages == pytest.approx(2.5 * (row.produce_messages_per_second or 0.0))
    assert rows != history_rows(trace, 24, 4, NAMES)


def test_a_history_can_be_kept() -> None:
    """The rows fit without a gap into the buffer that lagcast reads."""
    buffer = HistoryBuffer(*NAMES)
    for row in history_rows(load_of(2.0), 40, 0, NAMES):
        buffer.append(row)
    history = buffer.history()
    assert history is not None
    assert history.minutes == 2 * 1440
    assert not np.isnan(history.produce_messages_per_second).any()


# Scenarios


def test_every_load_meets_every_world_under_every_seed() -> None:
    """The first seed of all comes first; variants play in two worlds under the first seed only; all begin with 40."""
    scenarios = scenarios_of([load_of(4.0)], list(WORLDS), 2, POLICY_NAMES)
    assert [(scenario.world, scenario.contest.seed) for scenario in scenarios] == [
        (name, seed) for seed in (0, 1) for name in WORLDS
    ]
    with_variants = {
        (scenario.world, scenario.contest.seed) for scenario in scenarios if set(OURS) <= set(scenario.policies)
    }
    assert with_variants == {("fine", 0), ("real-quick", 0)}
    assert all({*CATALOGUE, "lagcast"} <= set(scenario.policies) for scenario in scenarios)
    assert {scenario.contest.first_replicas for scenario in scenarios} == {40}


def test_prices_are_those_of_a_thousand_messages_a_second() -> None:
    """0.05 a pod-hour, 5e-7 a late message, 1e-7 a duplicate."""
    prices = scenarios_of([load_of(4.0)], ["fine"], 1, ("useful-counts",))[0].contest.prices
    assert prices.price_per_replica_hour == 0.05
    assert (prices.price_per_late_message, prices.price_per_duplicate_message) == pytest.approx((5e-7, 1e-7))


def test_b26_the_published_load_is_played_at_three_capacities() -> None:
    """40, 20 or 10 consumers just carry the peak of 112,600 messages a minute; sessions of static members last 30 s."""
    scenarios = whitepaper_scenarios(2, ("useful-counts", "lagcast", "lagcast-cold", "lagcast-no-cost"))
    assert [(scenario.world, scenario.contest.seed) for scenario in scenarios] == [
        (n, s) for n in ("40", "20", "10") for s in (0, 1)
    ]
    for scenario in scenarios:
        world = scenario.contest.world
        assert world.capacity_messages_per_second_per_replica * int(scenario.world) == pytest.approx(
            112_600 / 60, rel=1e-3
        )
        assert (world.partitions, world.static_membership, world.session_timeout_seconds) == (40, True, 30.0)
        assert scenario.policies == ("useful-counts", "lagcast", "lagcast-cold")
        assert scenario.past is not None
        assert (scenario.past.days, scenario.past.end_at) == (2.0, scenario.contest.trace.start_at)


def test_b26_every_arm_plays_the_published_load_in_ten_draws() -> None:
    """All 40, the vendor's HPA, HPAs on lag and on CPU and KEDA at several targets, Federator's formula, and lagcast.

    It also plays without its cost model and with a naive forecast. The figures that are checked in are of ten draws.
    """
    families = {CATALOGUE[policy].family for policy in POLICY_NAMES if policy in CATALOGUE}
    assert families >= {"fixed-ceiling", "hpa-2019", "hpa", "hpa-behavior", "hpa-cpu", "keda", "pcc"}
    assert {"lagcast", "lagcast-no-cost", "lagcast-naive"} <= set(OURS)
    assert command.WHITEPAPER_SEEDS == 10
    draws: dict[tuple[str, str], set[int]] = {}
    for run in runs_in(json.loads((DOCS / "decisions-bench.json").read_text()), "whitepaper_runs"):
        draws.setdefault((run.world, run.policy), set()).add(run.seed)
    assert {world for world, _ in draws} == {"40", "20", "10"}
    assert {frozenset(seeds) for seeds in draws.values()} == {frozenset(range(10))}


def test_b26_the_page_has_what_was_published_beside_what_comes_out() -> None:
    """22 of 40 consumers and a lag of 100 instead of 1,000 are -45 % and -90 %; dearer than a rival, it says so."""
    figures: dict[str, tuple[float, float, float]] = {
        "hpa-2019": (9.0, 1000.0, 20.0),
        "fixed-ceiling": (2.0, 50.0, 40.0),
        "lagcast": (3.0, 100.0, 22.0),
        "hindsight": (1.5, 60.0, 30.0),
    }
    made = [
        made_run(policy, cost, world=world, seed=seed, mean_lag_messages=lag, mean_replicas=replicas)
        for world in ("40", "20", "10")
        for seed in (0, 1)
        for policy, (cost, lag, replicas) in figures.items()
    ]
    section = whitepaper_section(made)
    assert "| unknown | as published | -45.0% | -98.46% |" in section
    for capacity in ("40", "20", "10"):
        assert f"| {capacity} | lagcast | -45.0% +/- 0.0% | -90.00% +/- 0.00% |" in section
        fair = section.partition(f"### {capacity} consumers just carry the peak")[2].partition("###")[0]
        assert "is `fixed-ceiling`; lagcast costs 1.500 times as much, and 2.000 times as much as hindsight." in fair
        assert "| lagcast | 3.00 +/- 0.00 | 22.0 | 100 |" in fair


def test_own_loads_need_no_file() -> None:
    """They are two weeks of orders and 144 minutes of the twin."""
    assert [(trace.name, trace.duration_seconds) for trace in own_loads()] == [
        ("orders", 14 * SECONDS_PER_DAY),
        ("whitepaper-twin", 8_640),
    ]


# End to end


@pytest.mark.slow
def test_a_scenario_gives_every_policy_the_same_arrivals() -> None:
    """Two hours, two policies: a fixed count costs its pods, hindsight is the cheapest of all, seeds repeat."""
    trace = rescaled(replace(load_of(2 / 24, step_seconds=60), name="two-hours"))
    (scenario,) = scenarios_of([trace], ["fine"], 1, ("fixed-ceiling", "useful-counts"))
    runs = play_scenario(scenario)
    costs = {each.policy: each.cost for each in runs}
    assert list(costs) == ["fixed-ceiling", "useful-counts", "hindsight"]
    assert costs["fixed-ceiling"] == pytest.approx(40 * 2 * 0.05)
    assert costs["hindsight"] == min(costs.values())
    again = [replace(each, seconds_of_cpu=0.0) for each in play_scenario(scenario)]
    assert again == [replace(each, seconds_of_cpu=0.0) for each in runs]


@pytest.mark.slow
def test_the_command_writes_runs_and_the_page_from_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace of two hours in one world: JSON with every run, one line of progress, the same page and picture twice."""
    monkeypatch.setattr(command, "own_loads", list)
    rows = [f"{(START_AT + timedelta(minutes=m)).isoformat()},{1_000 + 5 * m}" for m in range(120)]
    (tmp_path / "climb.csv").write_text("\n".join(["timestamp,messages_per_second", *rows, ""]))
    out = tmp_path / "new" / "decisions.json"
    words = ["--traces", str(tmp_path), "--out", str(out), "--seeds", "1", "--jobs", "1"]
    words += ["--worlds", "real-quick", "--policies", "fixed-ceiling,lagcast"]
    monkeypatch.setattr("sys.argv", ["decisions", *words])
    assert command.main() == 0
    printed = capsys.readouterr().err.splitlines()
    assert printed[0].startswith("0 of 1 are in ")
    assert "1/1" in printed[1]
    assert "climb real-quick seed 0: lagcast" in printed[1]

    document = json.loads(out.read_text())
    runs = [dict(zip(document["columns"], row, strict=True)) for row in document["runs"]]
    assert document["columns"] == [field.name for field in fields(Run)]
    assert [each["policy"] for each in runs] == ["fixed-ceiling", "lagcast", "hindsight"]
    for each in runs:
        assert each["cost"] == pytest.approx(each["pods"] + each["late"] + each["duplicates_cost"], rel=1e-6)
    (scenario,) = document["summary"]["scenarios"]
    assert (scenario["trace"], scenario["best_rival"], scenario["tuned_on"]) == ("climb", "fixed-ceiling", False)

    written = out.read_bytes()
    assert command.main() == 0
    assert capsys.readouterr().err.splitlines() == [f"1 of 1 are in {out}"]
    assert out.read_bytes() == written

    for row in document["runs"]:
        row[document["columns"].index("note")] = "of another day"
    mine, others = {"lagcast"}, {"fixed-ceiling", "hindsight"}
    for changed, kept in (({"code"}, others), ({"judge"}, mine), ({"code", "judge"}, set())):
        out.write_text(json.dumps(document | dict.fromkeys(changed, "of another day")))
        assert command.main() == 0
        (first, *_) = capsys.readouterr().err.splitlines()
        assert first == f"0 of 1 are in {out}" + (", parts of 1 more" if kept else "")
        again = {run.policy: run.note for run in runs_in(json.loads(out.read_text()), "runs")}
        assert {policy for policy, note in again.items() if note == "of another day"} == kept

    pages, pictures = [], []
    for name in ("a.svg", "b.svg"):
        monkeypatch.setattr("sys.argv", ["decisions", "--page", str(out), "--picture", str(tmp_path / name)])
        assert command.main() == 0
        pages.append(capsys.readouterr().out.replace(name, "picture"))
        pictures.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]
    assert pictures[0] == pictures[1]
    assert "## World real-quick" in pages[0]
    assert "| climb | fixed-ceiling |" in pages[0]


def test_lagcasts_runs_are_kept_when_rivals_change_and_theirs_when_it_does() -> None:
    """Plant, loads and prices are in both digests, rivals and planner in one each."""
    lagcast, judge = (imported_by(TOURNAMENT, without=without) for without in (FOR_RIVALS, FOR_LAGCAST))
    assert {"replay/plant/plant.py", "replay/workload.py", "cost_model/pricing/price.py"} <= judge & lagcast
    assert {"replay/policies/keda.py", "replay/policies/hpa.py"} <= judge - lagcast
    deciding = {
        "recommender/following/session.py",
        "cost_model/pricing/rollout.py",
        "forecasting/blend.py",
        "replay/policies/lagcast.py",
    }
    assert deciding <= lagcast - judge
    assert not [name for name in lagcast if "adapters" in name or name.startswith(("api/", "cli/", "executor/"))]


def test_an_unknown_world_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The error lists all worlds, and the exit code is 2."""
    monkeypatch.setattr("sys.argv", ["decisions", "--worlds", "tight,loose"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "there is no 'loose'; there are tight, fine" in capsys.readouterr().err


def test_a_rival_is_left_out_in_its_own_trace_and_world_only() -> None:
    """Left out in `fine` on this load, it still plays in `tight`."""
    trace = rescaled(replace(load_of(2 / 24, step_seconds=60), name="load"))
    fine, tight = scenarios_of([trace], ["fine", "tight"], 1, ("useful-counts", "keda-2000", "lagcast"))
    spared = {("load", "fine", "keda-2000")}
    assert command.without(fine, spared).policies == ("useful-counts", "lagcast")
    assert command.without(tight, spared).policies == tight.policies
