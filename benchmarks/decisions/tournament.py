"""The tournament: every policy through many contests, each a day of one load in one world under one seed.

A load is rescaled so that its busiest minutes take nine tenths of the capacity of all replicas. One day of it is
judged, a different one for each seed; the time before it is lagcast's history.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import numpy as np

from benchmarks.decisions.echo import PlayedContest
from benchmarks.decisions.ours import COLD, LAGCAST, OURS
from benchmarks.decisions.whitepaper import (
    CARRYING_THE_PEAK,
    OVER_PROVISIONED_REPLICAS,
    PARTITIONS,
    capacity_carrying_the_peak,
    in_bursts,
    twin,
)
from benchmarks.decisions.worlds import ALL_WORLDS, CAPACITY_MESSAGES_PER_SECOND, MOST_REPLICAS
from forecasting.history import MINUTE_SECONDS, GroupInterval
from forecasting.units import SECONDS_PER_DAY, read_only
from replay.contest import PEAK_QUANTILE, PRICED, Contest, Entry, run_policy
from replay.hindsight import HINDSIGHT, best_plan
from replay.plant.arrivals import draw_arrivals
from replay.policies.catalogue import CATALOGUE
from replay.sampling import Names
from replay.trace import Trace
from replay.workload import orders_workload
from replay.world import World

PEAK_SHARE = 0.9
LEAST_DAYS_BEFORE = 2.0
MOST_HISTORY_SECONDS = 15 * SECONDS_PER_DAY
# Messages consumed in the last commit interval of 5 s are not committed yet: 2.5 s of the rate on average.
COMMIT_LAG_SECONDS = 2.5
# The place where variants of lagcast play as well: one world of slow pauses and one of real ones, under the first seed.
VARIANT_WORLDS = ("fine", "real-quick")
VARIANT_SEED = 0
# Rivals, lagcast and its variants; hindsight always plays.
POLICY_NAMES = (*CATALOGUE, *OURS)
# Policies whose moves others may repeat: fixed counts, and HPA with a target that KEDA and the HPA of 2019 have too.
ECHOED_FAMILIES = ("fixed", "fixed-ceiling", "hpa-2019", "hpa", "keda")
# The demo behind the white paper gave its consumers random static ids and sessions of 30 s.
WHITEPAPER_SESSION_SECONDS = 30.0
# Two days of similar load: enough to learn its shape, without the minutes that are judged.
EARLIER_LISTS = 20

_NAMES = Names("tournament", "load")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeededScenario:
    """A scenario, one trace in one world, under one seed: its contest, the history before it, and its policies."""

    trace: str
    world: str
    contest: Contest
    past: Trace | None
    policies: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One policy in one scenario under one seed: `cost` is `pods` + `late` + `duplicates_cost`, waits are in seconds.

    `day` is the instant at which the judged span begins, `late_share` and `mean_replicas` are over the whole span.
    """

    trace: str
    world: str
    seed: int
    day: str
    policy: str
    family: str
    cost: float
    pods: float
    late: float
    duplicates_cost: float
    mean_replicas: float
    mean_lag_messages: float
    wait_p95: float
    wait_p99: float
    late_share: float
    moves: int
    rebalances: int
    rebalancing_minutes: float
    paused_partition_seconds: float
    seconds_of_cpu: float
    note: str


def own_loads() -> list[Trace]:
    """The loads that need no file: the project's own workload and the white paper's twin."""
    return [orders_workload(), twin()]


def rescaled(trace: Trace) -> Trace:
    """The same shape, with the rate exceeded in one minute of a thousand at nine tenths of all replicas' capacity."""
    peak = float(np.quantile(trace.minute_rates(), PEAK_QUANTILE))
    return trace.scaled(PEAK_SHARE * MOST_REPLICAS * CAPACITY_MESSAGES_PER_SECOND / peak)


def judged_day(trace: Trace, seed: int) -> tuple[Trace | None, Trace]:
    """The history before the day that this seed judges, and that day.

    Days are counted back from the trace's end: seed 0 judges the last one, seed 1 the one before it, and so on as long
    as two days (or half of a short trace) remain before it; then again from the last. Less than two days are judged
    whole, with nothing before them.
    """
    if trace.days < 2.0:
        return None, trace
    before = min(LEAST_DAYS_BEFORE, trace.days / 2.0)
    usable = int(trace.days - before)
    until, _ = trace.split(seed % usable * SECONDS_PER_DAY)
    return (until or trace).split(SECONDS_PER_DAY)


def history_rows(past: Trace, partitions: int, seed: int, names: Names) -> list[GroupInterval]:
    """Rows of a minute each that end with `past`, fifteen days at most: Poisson numbers around its rates.

    Nothing was late and nothing moved: all replicas were running, and consumed all that was produced.
    """
    _, known = past.split(MOST_HISTORY_SECONDS)
    rates = known.minute_rates()
    produced = np.random.default_rng([seed, 5]).poisson(rates * MINUTE_SECONDS) / MINUTE_SECONDS
    return [
        GroupInterval(
            cluster=names.cluster,
            group=names.group,
            topics=names.group,
            interval_end_at=known.start_at + timedelta(minutes=minute + 1),
            interval_seconds=MINUTE_SECONDS,
            produce_messages_per_second=rate,
            consume_messages_per_second=rate,
            lag_messages=COMMIT_LAG_SECONDS * rate,
            lag_seconds=COMMIT_LAG_SECONDS if rate > 0.0 else None,
            partitions=partitions,
            sampled_partitions=partitions,
            members=MOST_REPLICAS,
        )
        for minute, rate in enumerate(produced.tolist())
    ]


def scenarios_of(
    traces: Iterable[Trace], worlds: Sequence[str], seeds: int, policies: Sequence[str]
) -> list[SeededScenario]:
    """Every trace in every world under every seed, the first seed of all of them first."""
    scaled = [rescaled(trace) for trace in traces]
    scenarios = []
    for seed in range(seeds):
        for trace in scaled:
            for name in worlds:
                has_variants = seed == VARIANT_SEED and name in VARIANT_WORLDS
                playing = tuple(
                    policy for policy in policies if policy in CATALOGUE or policy == LAGCAST or has_variants
                )
                scenarios.append(scenario_of(trace, name, seed, playing))
    return scenarios


def scenario_of(trace: Trace, world: str, seed: int, policies: Sequence[str]) -> SeededScenario:
    """The day of a load, rescaled already, that the seed judges."""
    past, judged = judged_day(trace, seed)
    contest = contest_of(judged, ALL_WORLDS[world].world, seed)
    return SeededScenario(trace=trace.name, world=world, contest=contest, past=past, policies=tuple(policies))


def whitepaper_scenarios(seeds: int, policies: Sequence[str]) -> list[SeededScenario]:
    """The white paper's twin in bursts, at 20,000 to 120,000 messages a minute, for each guess at the capacity.

    The world's name is the number of consumers that just carry the peak. lagcast's history is two days of other lists
    of the same kind; `lagcast-cold` has none.
    """
    trace, past = in_bursts(twin()), _earlier_lists()
    scenarios = []
    for replicas in CARRYING_THE_PEAK:
        world = World(
            partitions=PARTITIONS,
            capacity_messages_per_second_per_replica=capacity_carrying_the_peak(twin(), replicas=replicas),
            max_replicas=OVER_PROVISIONED_REPLICAS,
            static_membership=True,
            session_timeout_seconds=WHITEPAPER_SESSION_SECONDS,
        )
        playing = tuple(policy for policy in policies if policy in (*CATALOGUE, LAGCAST, COLD))
        for seed in range(seeds):
            contest = contest_of(trace, world, seed)
            scenarios.append(
                SeededScenario(trace=trace.name, world=str(replicas), contest=contest, past=past, policies=playing)
            )
    return scenarios


def _earlier_lists() -> Trace:
    """Twenty twins of 144 minutes, each from a seed of its own, up to where the judged one begins: 48 hours."""
    lists = [twin(seed=seed) for seed in range(EARLIER_LISTS)]
    return replace(
        lists[0],
        start_at=lists[0].start_at - timedelta(seconds=sum(each.duration_seconds for each in lists)),
        messages_per_second=read_only(np.concatenate([each.messages_per_second for each in lists])),
    )


def play_scenario(scenario: SeededScenario, known: Sequence[Run] = (), *, hindsight: bool = True) -> list[Run]:
    """The run of each policy of the scenario, hindsight last; they share one draw of the produced messages.

    `known` runs of the same scenario and seed, from an earlier run of the same plant, are not played again.
    Without `hindsight` no best plan is searched for; a known one stays.
    """
    held = {run.policy: run for run in known}
    drawn = draw_arrivals(scenario.contest.world, scenario.contest.trace, scenario.contest.seed)
    contest = replace(scenario.contest, arrivals=drawn)
    stage = PlayedContest(contest=contest)
    history = (
        []
        if scenario.past is None
        else history_rows(scenario.past, contest.world.partitions, contest.seed, contest.names)
    )
    timed = {
        policy: _timed(partial(_play, policy, stage, history)) for policy in scenario.policies if policy not in held
    }
    if hindsight and HINDSIGHT not in held:
        held[HINDSIGHT] = _run(scenario, *_timed(partial(best_plan, contest, ())))
    played = [held[policy] if policy in held else _run(scenario, *timed[policy]) for policy in scenario.policies]
    if HINDSIGHT not in held:
        return played
    # A policy may have found a better plan than the search.
    best = min([held[HINDSIGHT], *played], key=lambda run: run.cost)
    note = held[HINDSIGHT].note if best.policy == HINDSIGHT else f"best plan found: what {best.policy} did"
    return [*played, replace(best, policy=HINDSIGHT, family=HINDSIGHT, note=note)]


def contest_of(judged: Trace, world: World, seed: int) -> Contest:
    """The contest over a trace in a world, which all policies begin with all replicas."""
    return Contest(
        trace=judged,
        world=world,
        settings=PRICED,
        names=_NAMES,
        seed=seed,
        start_replicas=MOST_REPLICAS,
    )


def _play(name: str, stage: PlayedContest, history: Sequence[GroupInterval]) -> Entry:
    contest = stage.contest
    if name not in CATALOGUE:
        policy = OURS[name](contest.world, contest.settings, contest.names, history)
        return run_policy(name, policy, contest)
    make = partial(CATALOGUE[name].make, contest.world, contest.first_replicas)
    return stage.play(name, make) if CATALOGUE[name].family in ECHOED_FAMILIES else run_policy(name, make(), contest)


def _timed(play: Callable[[], Entry]) -> tuple[Entry, float]:
    begun = time.process_time()
    entry = play()
    return entry, time.process_time() - begun


def family_of(policy: str) -> str:
    """A rival's family; lagcast, its variants and hindsight are families of their own.

    >>> family_of("hpa-behavior-2000"), family_of("lagcast-no-cost"), family_of("hindsight")
    ('hpa-behavior', 'lagcast-no-cost', 'hindsight')
    """
    return CATALOGUE[policy].family if policy in CATALOGUE else policy


def _run(scenario: SeededScenario, entry: Entry, seconds_of_cpu: float) -> Run:
    cost = entry.cost
    return Run(
        trace=scenario.trace,
        world=scenario.world,
        seed=scenario.contest.seed,
        day=scenario.contest.trace.start_at.isoformat(),
        policy=entry.policy,
        family=family_of(entry.policy),
        cost=cost.total,
        pods=cost.pods,
        late=cost.late,
        duplicates_cost=cost.duplicates,
        mean_replicas=entry.mean_replicas,
        mean_lag_messages=entry.mean_lag_messages,
        wait_p95=entry.wait_p95_seconds,
        wait_p99=entry.wait_p99_seconds,
        late_share=entry.late_share,
        moves=entry.moves,
        rebalances=entry.rebalances,
        rebalancing_minutes=entry.rebalancing_minutes,
        paused_partition_seconds=entry.paused_partition_seconds,
        seconds_of_cpu=seconds_of_cpu,
        note=entry.note,
    )
