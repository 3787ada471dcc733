# ruff: noqa: PLC0415 - heavy parts are imported when a study runs, so that `--help` answers in 0.2 s
"""A study: one load in one simulated world, and the steps from there to a league table.

`lagcast demo` and `lagcast replay` are two studies: of a generated load, and of the user's own load.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from multiprocessing import active_children, get_context
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from cli.progress import Talk

if TYPE_CHECKING:
    from forecasting.history import GroupInterval
    from replay.contest import Contest, Entry
    from replay.league import League
    from replay.policies.policy import Policy
    from replay.trace import Trace

MINUTES_PER_DAY = 1440


def write_observed(contest: "Contest", trace: "Trace", samples: Path, *, talk: Talk) -> None:
    """Write the samples of a collector for `trace` in the contest's world at the fixed replica count."""
    with talk.stage("workload", "simulating what a collector would see") as stage:
        from collector.sinks import write_table
        from replay.sampling import samples_of

        observed = samples_of(replace(contest, trace=trace).plant(), contest.names)
        write_table(observed, samples)
        stage.note = f"{observed.num_rows:,} offset samples, {trace.days:.3g} days"


def read_rows(contest: "Contest", features: Path) -> "list[GroupInterval]":
    """The contest's rows of the feature table that end before the judged span begins."""
    from recommender.adapters.feature_table import FeatureTable

    return list(FeatureTable(features).intervals(*contest.names, until=contest.trace.start_at))


def play_league(
    contest: "Contest",
    rivals: "Sequence[str]",
    history: "Callable[[], Sequence[GroupInterval]]",
    *,
    own: "Mapping[str, Policy]" = MappingProxyType({}),
    talk: Talk,
) -> "League":
    """The league of `rivals`, the user's `own` by name, and lagcast.

    Rivals need no features, so they replay while `history` is being made.
    """
    from replay.contest import LAGCAST, play
    from replay.hindsight import HINDSIGHT
    from replay.league import League

    with _in_background() as pool, ThreadPoolExecutor(1) as thread:
        others: Future[tuple[list[Entry], Entry]] = thread.submit(_play_others, pool, contest, rivals, own, talk)
        known = history()
        with talk.stage("lagcast", "its own replay, a decision a minute") as stage:
            minutes = round(contest.trace.days * MINUTES_PER_DAY)
            ours = play(LAGCAST, contest, known, played=lambda so_far: stage.show(so_far, minutes, "minutes of load"))
            stage.note = f"{contest.trace.days:.3g} d judged, {ours.moves} moves"
        entries, bound = others.result()
    if ours.cost.total < bound.cost.total:
        bound = replace(ours, policy=HINDSIGHT, note=f"best plan found: what {LAGCAST} did")
    return League(contest=contest, entries=(*entries, ours, bound))


def _play_others(
    pool: ProcessPoolExecutor, contest: "Contest", rivals: "Sequence[str]", own: "Mapping[str, Policy]", talk: Talk
) -> "tuple[list[Entry], Entry]":
    from replay.contest import play, run_policy
    from replay.hindsight import best_plan

    with talk.stage("rivals", "replaying beside the rest") as stage:
        of_rivals = pool.map(play, rivals, [contest] * len(rivals))
        of_own = pool.map(run_policy, own, own.values(), [contest] * len(own))
        entries = []
        for entry in chain(of_rivals, of_own):
            entries.append(entry)
            stage.show(len(entries), len(rivals) + len(own), "policies")
        stage.note = ", ".join((*rivals, *own))
    with talk.stage("hindsight", "looking for the best plan of those that see everything") as stage:
        bound = pool.submit(best_plan, contest, entries).result()
        stage.note = bound.note
    return entries, bound


@contextmanager
def _in_background() -> Iterator[ProcessPoolExecutor]:
    """One more process, started without a copy of this one, so that it has no JVM and none of its threads.

    An error in the block, Ctrl-C included, ends the process at once, because its results are not needed any more.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_leave_ctrl_c_alone) as pool:
        try:
            yield pool
        except BaseException:
            for child in active_children():
                child.terminate()
            raise


def _leave_ctrl_c_alone() -> None:
    # Ctrl-C reaches every process of the terminal; the command itself handles it, and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
