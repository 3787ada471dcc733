# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast hold`, `lagcast release` and `lagcast holds`: times in which groups keep their replicas, in the store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import ExitCode, InputError
from cli.instants import parse_instant, read_clock
from cli.output import Answer, Field, Output, OutputFile, OutputFormat, Table, write_answer
from cli.progress import Talk

if TYPE_CHECKING:
    from recommender.adapters.store_sql import SqlDecisionStore
    from recommender.deciding.hold import HoldScope

GroupName = Annotated[str | None, typer.Option(metavar="GROUP", help="Only the group of this name.")]
ClusterName = Annotated[str | None, typer.Option(metavar="CLUSTER", help="Only groups of this Kafka cluster.")]
Namespace = Annotated[
    str | None,
    typer.Option(metavar="NAMESPACE", help="Only groups whose object or target is in this Kubernetes namespace."),
]
EveryGroup = Annotated[bool, typer.Option("--all", help="Every group.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="Settings file (YAML), for its store.")]
StateDir = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the store.")]

FIELDS = [
    Field(key="cluster", heading="Cluster", left=True),
    Field(key="namespace", heading="Namespace", left=True),
    Field(key="group", heading="Group", left=True),
    Field(key="placed_at", heading="Placed", left=True),
    Field(key="until", heading="Until", left=True),
    Field(key="reason", heading="Reason", left=True),
]


def hold(
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for everyone who reads the advice.")],
    group: GroupName = None,
    cluster: ClusterName = None,
    namespace: Namespace = None,
    every: EveryGroup = False,
    until: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="When it ends; until it is released unless given.")
    ] = None,
    config: Config = None,
    state_dir: StateDir = None,
) -> int:
    """Keep groups at the replicas that they have: one group, those of a cluster or of a namespace, or --all.

    Advice goes on, with prices, and is to stay; executors, KEDA and HPAs leave the count alone. It is in force from the
    next cycle of the recommender that uses the same store, and replaces an earlier hold on the same groups.
    """
    from recommender.deciding.hold import Hold

    now = read_clock()
    scope = _scope(group, cluster, namespace, every=every)
    if not reason.strip():
        message = "--reason is empty; say why, for everyone who wonders why nothing moves"
        raise InputError(message)
    end = None if until is None else parse_instant(until, option="--until")
    if end is not None and end <= now:
        message = f"--until is {end:%Y-%m-%dT%H:%M:%SZ}, which is over; it is {now:%Y-%m-%dT%H:%M:%SZ}"
        raise InputError(message)
    store = _store(config, state_dir)
    placed = Hold(scope=scope, reason=" ".join(reason.split()), placed_at=now, until=end)
    store.place_hold(placed)
    talk = Talk()
    talk.line(placed.sentence)
    known = store.groups()
    if not any(scope.covers(*each, namespace=scope.namespace) for each in known):
        names = ", ".join(sorted({name for _, name in known})) or "none yet"
        talk.line(f"no decision was made yet for {scope.words}; there are some for: {names}")
    return ExitCode.OK


def release(
    *,
    group: GroupName = None,
    cluster: ClusterName = None,
    namespace: Namespace = None,
    every: EveryGroup = False,
    config: Config = None,
    state_dir: StateDir = None,
) -> int:
    """End a hold: the one that was placed with the same options; others stay in force.

    A hold in a ConsumerGroupScaler is its owner's, and is removed there.
    """
    scope = _scope(group, cluster, namespace, every=every)
    if _store(config, state_dir).release_hold(scope) is None:
        message = f"there is no hold on {scope.words}; `lagcast holds` lists what there is"
        raise InputError(message)
    Talk().line(f"released {scope.words}")
    return ExitCode.OK


def holds(
    *,
    config: Config = None,
    state_dir: StateDir = None,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
) -> int:
    """List the holds in force; an absent name is any."""
    standing = _store(config, state_dir).holds(now=read_clock())
    records = [
        {
            "cluster": each.scope.cluster,
            "namespace": each.scope.namespace,
            "group": each.scope.group,
            "placed_at": f"{each.placed_at:%Y-%m-%dT%H:%M:%SZ}",
            "until": None if each.until is None else f"{each.until:%Y-%m-%dT%H:%M:%SZ}",
            "reason": each.reason,
        }
        for each in standing
    ]
    write_answer(Answer.of("Holds in force", Table(fields=FIELDS, records=records)), output, output_file)
    return ExitCode.OK


def _scope(group: str | None, cluster: str | None, namespace: str | None, *, every: bool) -> "HoldScope":
    from recommender.deciding.hold import HoldScope

    named = any((group, cluster, namespace))
    if named == every:
        wrong = "--all is given with a name" if every else "no group is named"
        message = f"{wrong}; give --group, --cluster or --namespace, together or alone, or only --all"
        raise InputError(message)
    return HoldScope(cluster=cluster or None, namespace=namespace or None, group=group or None)


def _store(config: Path | None, state_dir: Path | None) -> "SqlDecisionStore":
    from cli.wiring import open_store, settings_of

    return open_store(settings_of(config, state_dir=state_dir))
