# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast demo`: the whole pipeline on a generated load, on this machine only."""

import logging
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from cli.demo_folder import FeatureFolder, decisions_file
from cli.errors import ExitCode
from cli.explain import wire_document
from cli.features import make_features
from cli.logs import log_to_stderr
from cli.output import Output, OutputFile, OutputFormat
from cli.progress import Talk
from cli.replay import league_document, write_league
from cli.spark import spark_beside
from cli.stopping import stopped_by_signals
from cli.study import play_league, read_rows, write_observed

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.demo_living import GoingOn
    from recommender.adapters.store_sql import SqlDecisionStore
    from recommender.deciding.recommendation import Decision
    from recommender.known_groups import KnownGroups
    from recommender.run import Recommender
    from replay.contest import Contest
    from replay.league import League
    from replay.trace import Trace

PARTITIONS = 24
# A judged day takes half a minute.
JUDGED_DAYS = 1
SECONDS_PER_DAY = 86_400
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)
# With a day of rows the first recommendation is there in half the time that all days take.


def demo(
    *,
    headless: Annotated[bool, typer.Option("--headless", help="Exit when done, on a terminal too.")] = False,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same table.")] = 7,
    days: Annotated[int, typer.Option(min=2, max=60, help="Days to generate; the last one is compared.")] = 14,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute features again, even if they exist.")] = False,
    host: Annotated[str, typer.Option(help="Address to serve on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; the next free one if it is taken.")] = 8686,
    state_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the files of the demo.")] = None,
) -> int:
    """Run everything on a generated load: samples, Spark features, forecast, decision, REST, and the league table.

    Nothing is contacted. On a terminal the REST service stays up until Ctrl-C; elsewhere, or with --headless, the
    command ends when the table is there. A second run reuses the features of the same seed and code.
    """
    from api.access.guard import Access
    from api.app import create_app
    from api.pages.work import Work
    from cli.league_table import league_picture, lost_days_sentence
    from cli.server import listen, serving, url_of
    from cli.wiring import replays_of, settings_of, version
    from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
    from recommender.known_groups import KnownGroups

    log_to_stderr(logging.WARNING)
    work = Work()
    talk = Talk(work.stage)
    talk.line(
        f'lagcast {version()}  demo "orders": {days} days, {PARTITIONS} partitions, generated from seed {seed}. '
        "Nothing is contacted."
    )
    settings = settings_of(state_dir=state_dir)
    load, contest = contest_of(days=days, seed=seed)
    store = SqlDecisionStore(sqlite_url(decisions_file(settings.state_dir, anew=True)))
    bound = listen(host, port, search=True)
    # The data end in the past. On the demo's clock their end is the present, so that the advice is in force.
    clock = DemoClock(load.end_at)
    known_groups = KnownGroups()
    app = create_app(
        store,
        clock=clock,
        version=version(),
        settings=settings,
        known_groups=known_groups,
        access=Access(hosts=[host]),
        work=work,
        replays=replays_of(settings),
    )
    with serving(app, bound):
        talk.line(f"REST: {url_of(bound)}{_instead_of(port, bound.getsockname()[1])}")
        with talk.running():
            league, decided = _run(load, contest, Kept(store, known_groups), settings.state_dir, fresh=fresh, talk=talk)
        advice = wire_document(decided.decision, settings=settings, now=load.end_at)
        document = {**league_document(league), "url": url_of(bound), "decision": advice}
        write_league(league, document, output, output_file, talk=talk)
        work.replay(league_picture(league), f"{lost_days_sentence(league)}.")
        talk.line(_answer(f"{url_of(bound)}/api/v1/groups"))
        talk.line(
            "next: `lagcast explain orders` shows the decision, `lagcast replay --trace FILE.csv` judges your load"
        )
        if sys.stderr.isatty() and sys.stdin.isatty() and not headless:
            _go_on(contest, decided, clock, url=url_of(bound), talk=talk)
    return ExitCode.OK


class Kept(NamedTuple):
    """Where the decision is kept for the REST service."""

    store: "SqlDecisionStore"
    known_groups: "KnownGroups"


def contest_of(*, days: int, seed: int) -> "tuple[Trace, Contest]":
    """The generated load, and the contest over its last day."""
    from replay.contest import PRICED, Contest, capacity_for
    from replay.sampling import Names
    from replay.workload import orders_workload
    from replay.world import World

    load = orders_workload(days=days, seed=seed)
    _, judged = load.split(JUDGED_DAYS * SECONDS_PER_DAY)
    capacity = capacity_for(load, partitions=PARTITIONS)
    world = World(partitions=PARTITIONS, capacity_messages_per_second_per_replica=capacity)
    names = Names("demo", "orders")
    return load, Contest(trace=judged, world=world, settings=PRICED, names=names, seed=seed)


class DemoClock:
    """Shows `start_at` at first and runs on from there, until it follows a group that lives in another time."""

    def __init__(self, start_at: datetime) -> None:
        began_seconds = time.monotonic()
        self._now: Callable[[], datetime] = lambda: start_at + timedelta(seconds=time.monotonic() - began_seconds)

    def __call__(self) -> datetime:
        """The present of the demo."""
        return self._now()

    def follow(self, now: "Callable[[], datetime]") -> None:
        """Show that instant from here on."""
        self._now = now


class Decided(NamedTuple):
    """The decision at the end of the data, and the loop that goes on from there."""

    decision: "Decision"
    loop: "Recommender"
    histories: "GoingOn"


def _go_on(contest: "Contest", decided: Decided, clock: DemoClock, *, url: str, talk: Talk) -> None:
    """Let the group live on until the user stops it."""
    from cli.demo_living import CYCLE_SECONDS, SPEED, LivingGroup, live_on

    group = LivingGroup(contest, decided.histories, decided.loop, start_at=contest.trace.end_at)
    clock.follow(lambda: group.now)
    with stopped_by_signals() as stop:
        talk.line(
            f"{url} goes on: the group lives {SPEED} times as fast, is decided on each {CYCLE_SECONDS} s of its time, "
            "and does what is advised; Ctrl-C stops"
        )
        live_on(group, stop)


def _run(
    load: "Trace", contest: "Contest", kept: "Kept", state_dir: Path, *, fresh: bool, talk: Talk
) -> "tuple[League, Decided]":
    """Samples, features, the decision at the end of the data, and the league."""
    folder = FeatureFolder.of(state_dir, seed=contest.seed, days=round(load.days))
    if fresh:
        folder.forget()
    if folder.is_there:
        talk.line(f" .. features reused from {folder.path}; `--fresh` makes them anew")
        return _judge(load, contest, kept, folder.path / "features", talk=talk)
    with spark_beside(talk, log_path=state_dir / "spark.log") as starting:
        with folder.making() as scratch:
            samples, features = scratch / "samples", scratch / "features"
            write_observed(contest, load, samples, talk=talk)
            newest = (load.end_at - _DAY).date()
            if newest - _DAY > load.start_at.date():
                # Whoever looks at the page sees a first answer while the older days are made.
                make_features(starting, samples, features, talk=talk, first=newest)
                _decide(contest, kept, features, talk=talk, at=load.end_at - _MINUTE)
                make_features(starting, samples, features, talk=talk, last=newest - _DAY)
            else:
                make_features(starting, samples, features, talk=talk)
        return _judge(load, contest, kept, folder.path / "features", talk=talk)


def _judge(load: "Trace", contest: "Contest", kept: "Kept", features: Path, *, talk: Talk) -> "tuple[League, Decided]":
    """The decision, and then the league: whoever looks at the page waits for the first, and both take all cores."""
    from replay.contest import RIVALS

    decided = _decide(contest, kept, features, talk=talk, at=load.end_at)
    return play_league(contest, RIVALS, lambda: read_rows(contest, features), talk=talk), decided


def _decide(contest: "Contest", kept: "Kept", features: Path, *, talk: Talk, at: datetime) -> Decided:
    """The decision as of `at`; it is stored where the REST service reads it."""
    from cli.demo_living import GoingOn, loop_over
    from recommender.adapters.feature_table import FeatureTable

    histories = GoingOn(FeatureTable(features))
    loop = loop_over(histories, contest, store=kept.store, known_groups=kept.known_groups)
    with talk.stage("decision", "the recommendation as of the end of the data so far") as stage:
        (decision,) = loop.run_once(now=at)
        stage.note = f"for {decision.group} at {at:%Y-%m-%d %H:%M} UTC"
    return Decided(decision, loop, histories)


def _instead_of(wanted: int, got: int) -> str:
    return "" if wanted in (0, got) else f" (port {wanted} is taken)"


def _answer(url: str) -> str:
    """One line about an answer of the service, requested over HTTP."""
    import httpx2

    answer = httpx2.get(url, timeout=10.0)
    return f"GET {url} answered {answer.status_code}: {len(answer.json()['groups'])} group"
