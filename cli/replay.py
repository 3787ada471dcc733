# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast replay`: judges the policies on the user's own load."""

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from cli.bounds import FailIf, parse_bound
from cli.errors import ExitCode, InputError
from cli.features import make_features
from cli.instants import read_clock
from cli.league_table import (
    FIGURES,
    figures,
    league_standings,
    league_table,
    lost_days,
    lost_days_sentence,
)
from cli.output import Answer, Output, OutputFile, OutputFormat, write_answer
from cli.progress import Talk
from cli.report import HtmlFile, require_place, write_report
from cli.spark import spark_beside
from cli.study import play_league, read_rows, write_observed

if TYPE_CHECKING:
    from api.pages.replays import KeptReplay
    from forecasting.history import GroupInterval
    from recommender.configuring.settings import Settings
    from replay.contest import Contest
    from replay.league import League
    from replay.policies.declared import Declared
    from replay.trace import Trace

SECONDS_PER_DAY = 86_400
# Pods of one scale-up become ready this far apart, or less if they start faster than that.
START_UP_SPREAD_SECONDS = 10.0


class Protocol(StrEnum):
    """Rebalance protocol of the group."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"


def replay(
    *,
    trace: Annotated[
        Path, typer.Option(metavar="FILE", help="CSV or CSV.gz with the columns timestamp,messages_per_second.")
    ],
    against: Annotated[str, typer.Option(metavar="POLICIES", help="Rivals, separated by commas.")] = (
        "fixed,hpa,hpa-behavior,keda,useful-counts"
    ),
    manifest: Annotated[
        list[Path] | None,
        typer.Option(
            "--manifest",
            metavar="FILE",
            help="Your own HPA or ScaledObject (YAML), compared too; may be given several times.",
        ),
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the group's topics.")] = 24,
    capacity: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Messages per second that one replica consumes. By default, four fifths of all replicas just carry "
            "the peak load.",
        ),
    ] = None,
    protocol: Annotated[Protocol, typer.Option(help="Rebalance protocol of the group.")] = Protocol.EAGER,
    days: Annotated[
        float | None,
        typer.Option(min=0.01, help="Judge the last N days. By default, half of the trace, at most seven."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same table.")] = 7,
    start_up: Annotated[
        float, typer.Option(min=0, help="Seconds from the command until a new replica consumes.")
    ] = 30.0,
    price_per_replica_hour: Annotated[
        float | None,
        typer.Option(min=0.000001, help="Price of one replica for one hour. By default costs are in pod-hours."),
    ] = None,
    fail_if: FailIf = None,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
    html: HtmlFile = None,
) -> int:
    """Compare lagcast with a fixed count, HPA, KEDA and a reactive rule on your own load, in a simulated group.

    With --manifest also with your own autoscaler, by the arithmetic of the HPA controller and of KEDA.

    What comes before the judged days is history, and passes through the Spark features job like samples of a real
    Kafka. A trace shorter than two days is judged whole, without history.
    """
    from cli.rivals import own_rivals
    from cli.wiring import settings_of
    from recommender.deciding.decision import DecisionSettings
    from replay.contest import Contest, capacity_for
    from replay.sampling import Names
    from replay.trace import judged_days, read_trace
    from replay.world import World

    bound, settings = parse_bound(fail_if, FIGURES), settings_of()
    require_place(html)
    load = read_trace(trace)
    rivals, own = parse_rivals(against), own_rivals(manifest or (), ceiling=partitions)
    past, judged = load.split(round(judged_days(load.days, requested=days) * SECONDS_PER_DAY))
    contest = Contest(
        trace=judged,
        world=World(
            partitions=partitions,
            capacity_messages_per_second_per_replica=(
                capacity if capacity is not None else capacity_for(load, partitions=partitions)
            ),
            protocol=protocol.value,
            start_up_seconds=start_up,
            start_up_spread_seconds=min(START_UP_SPREAD_SECONDS, start_up),
        ),
        settings=DecisionSettings(price_per_replica_hour=price_per_replica_hour),
        names=Names("replay", load.name),
        seed=seed,
    )
    talk = Talk()
    announcement = _announcement(load, past, contest)
    talk.line(announcement)
    for name, policy in own.items():
        for note in policy.notes:
            talk.line(f"{name}: {note}")
    league = _league(contest, past, rivals, own, talk=talk)
    said = (f"{announcement}.", f"{lost_days_sentence(league)}.")
    kept = _kept(league, load.name, said, settings, talk=talk)
    write_league(league, league_document(league), output, output_file, talk=talk)
    if html is not None:
        write_report(html, f"Replay of {load.name}", tuple(kept.pictures.values()), sentences=said, talk=talk)
    return ExitCode.OK if bound is None else bound.code(figures(league), talk=talk)


def _kept(
    league: "League", title: str, sentences: tuple[str, ...], settings: "Settings", *, talk: Talk
) -> "KeptReplay":
    """The result, kept for the page of a service with the same state folder; a line tells if it cannot be."""
    from api.pages.replays import KeptReplay, LostDay
    from cli.wiring import replays_of

    replay = KeptReplay(
        title=title,
        played_at=read_clock(),
        currency=league.contest.settings.unit_of_cost,
        sentences=sentences,
        standings=tuple(league_standings(league)),
        lost_days=tuple(LostDay(**asdict(lost)) for lost in league.lost_days),
    )
    try:
        replays_of(settings).keep(replay)
    except OSError as error:
        talk.line(f"not kept for the page of `lagcast serve`: {settings.state_dir} is not writable ({error.strerror})")
    else:
        talk.line(f"kept for the page of `lagcast serve` and `lagcast up`: /replays/{replay.replay_id}")
    return replay


def parse_rivals(text: str) -> tuple[str, ...]:
    """The rivals of `--against`, in that order, each once.

    Errors: InputError naming the first unknown rival.
    """
    from replay.contest import RIVALS

    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in RIVALS]
    if unknown or not names:
        message = (
            f"--against {text!r}: {unknown[0] if unknown else 'nothing'} is no rival; there are {','.join(RIVALS)}"
        )
        raise InputError(message)
    return names


def write_league(
    league: "League", document: Mapping[str, object], output: OutputFormat, file: Path | None, *, talk: Talk
) -> None:
    """The league as an answer, with this document; the days that lagcast lost are in it, and otherwise on stderr."""
    table = league_table(league)
    lost = lost_days_sentence(league)
    answer = Answer(title="League of policies", document=document, records=table, shown=(table,), remarks=(lost,))
    write_answer(answer, output, file)
    if output not in {OutputFormat.JSON, OutputFormat.YAML}:
        talk.line(lost)


def league_document(league: "League") -> dict[str, object]:
    """The league as one document: the judged span, every policy, and the days that lagcast lost."""
    contest = league.contest
    return {
        "trace": contest.trace.name,
        "judged_from": contest.trace.start_at.isoformat(),
        "judged_until": contest.trace.end_at.isoformat(),
        "seed": contest.seed,
        "partitions": contest.world.partitions,
        "protocol": contest.world.protocol,
        "capacity_messages_per_second_per_replica": contest.world.capacity_messages_per_second_per_replica,
        "currency": contest.settings.unit_of_cost,
        "policies": league_table(league).records,
        "lost_days": lost_days(league),
    }


def _announcement(load: "Trace", past: "Trace | None", contest: "Contest") -> str:
    judged, world = contest.trace, contest.world
    known = f"the {past.days:.3g} days before them are history" if past is not None else "nothing before it is known"
    return (
        f"replay of {load.name}: {load.days:.3g} days; the last {judged.days:.3g} are judged, {known}. "
        f"{world.partitions} partitions, {world.protocol}, "
        f"{world.capacity_messages_per_second_per_replica:,g} messages/s per replica, seed {contest.seed}"
    )


def _league(
    contest: "Contest", past: "Trace | None", rivals: tuple[str, ...], own: "dict[str, Declared]", *, talk: Talk
) -> "League":
    if past is None:
        with talk.running():
            return play_league(contest, rivals, lambda: (), own=own, talk=talk)
    with TemporaryDirectory(prefix="lagcast-") as scratch, talk.running():
        folder = Path(scratch)
        with spark_beside(talk, log_path=folder / "spark.log") as starting:
            write_observed(contest, past, folder / "samples", talk=talk)

            def history() -> "list[GroupInterval]":
                make_features(starting, folder / "samples", folder / "features", talk=talk)
                return read_rows(contest, folder / "features")

            return play_league(contest, rivals, history, own=own, talk=talk)
