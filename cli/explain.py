# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""`lagcast explain`: one decision in full, to stay or to move, with the price of every alternative."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.demo_folder import decisions_file
from cli.errors import ExitCode, InputError
from cli.instants import read_clock
from cli.output import Answer, Field, Output, OutputFile, OutputFormat, Part, Record, Table, write_answer
from cli.progress import Talk
from cli.report import HtmlFile, require_place, write_report

if TYPE_CHECKING:
    from api.pictures.picture import Picture
    from cost_model.pricing.price import Cost
    from forecasting.refusal import Refusal
    from recommender.configuring.settings import InForce, Settings
    from recommender.deciding.recommendation import Decision, GradedMove, Recommendation

MOVES_SHOWN = 5
# Short headings, so that nine amounts and a plan's name stay under 100 columns.
ITEMS = {
    "replicas": "replicas",
    "late": "late",
    "pause_late": "pause-late",
    "backlog": "backlog",
    "duplicates": "dupl.",
    "start_up": "start",
    "restore": "restore",
    "risk": "risk",
    "total": "total",
}


def explain(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Name of the consumer group in Kafka.")],
    *,
    cluster: Annotated[str | None, typer.Option(help="Cluster of the group, where several have such a group.")] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings file (YAML).")] = None,
    state_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for decisions.")] = None,
    output: Output = OutputFormat.TABLE,
    output_file: OutputFile = None,
    html: HtmlFile = None,
) -> int:
    """Show the last decision for GROUP: sentences, each price of staying and moving, and figures learned from moves."""
    from cli.wiring import settings_of

    require_place(html)
    settings, now = settings_of(config, state_dir=state_dir), read_clock()
    decision, moves = _last_of(settings, group, cluster)
    shown = (*shown_of(decision), known_text(decision, moves))
    answer = Answer(
        title=f"Decision on {decision.group}",
        document=wire_document(decision, settings=settings, now=now),
        records=plan_table((decision,)),
        shown=shown,
    )
    write_answer(answer, output, output_file)
    if html is not None:
        sentences, *notes = (part for part in shown if not isinstance(part, Table))
        write_report(
            html,
            answer.title,
            _pictures(decision, settings=settings, now=now),
            sentences=_without_marks(sentences),
            notes=[line for part in notes for line in _without_marks(part)],
            talk=Talk(),
        )
    return ExitCode.OK


def _last_of(settings: "Settings", group: str, cluster: str | None) -> "tuple[Decision, tuple[GradedMove, ...]]":
    """The group's last decision and moves: from the store, or from the demo if the store has no such group."""
    from cli.wiring import open_store
    from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url

    store = open_store(settings)
    demo_file = decisions_file(settings.state_dir, anew=False)
    stores = [store, SqlDecisionStore(sqlite_url(demo_file))] if demo_file.is_file() else [store]
    for kept in stores:
        keys = [key for key in kept.groups() if key[1] == group and cluster in (None, key[0])]
        if len(keys) > 1:
            message = f"group {group!r} is in the clusters {', '.join(key[0] for key in keys)}; add --cluster"
            raise InputError(message)
        decision = kept.latest(*keys[0]) if keys else None
        if decision is not None:
            return decision, kept.outcomes(*keys[0], limit=MOVES_SHOWN)
    known = sorted({name for kept in stores for _, name in kept.groups()})
    message = (
        f"no decision is kept for group {group!r}; there is one for {', '.join(known) or 'none yet'}. "
        "`lagcast demo` or `lagcast recommend` makes one"
    )
    raise InputError(message)


def shown_of(decision: "Decision") -> Sequence[Part]:
    """One decision for people: its sentences, and for advice the price of every plan."""
    from recommender.deciding.recommendation import Recommendation

    if not isinstance(decision, Recommendation):
        return (refusal_text(decision),)
    minutes = decision.horizon_seconds / 60
    below = (
        f" {decision.currency} over {minutes:.0f} min; a plan is its first move and the best that can follow it. "
        "Advice only: nothing was changed."
    )
    return (headline(decision), *(f" - {each}" for each in decision.sentences)), plan_table((decision,)), (below,)


def known_text(decision: "Decision", moves: "Sequence[GradedMove]") -> tuple[str, ...]:
    """The figures of the advice, what the group has cost, and its last moves beside their expected effects."""
    from recommender.deciding.beliefs import beliefs, ledger_sentence, outcome_sentence, reversals
    from recommender.deciding.recommendation import Recommendation

    lines: list[str] = []
    if isinstance(decision, Recommendation):
        lines += [" what is known", *(f" - {sentence}" for sentence in beliefs(decision))]
        if decision.ledger is not None:
            lines += [f" - {ledger_sentence(decision.ledger, now=decision.issued_at)}"]
        if decision.sensitivity:
            lines += [" what would reverse it", *(f" - {sentence}" for sentence in reversals(decision))]
    if moves:
        lines += [" last moves, newest first"]
        lines += [f" - {move.graded_at:%Y-%m-%d %H:%M} {outcome_sentence(move)}" for move in moves]
    return tuple(lines)


def _without_marks(lines: tuple[str, ...]) -> list[str]:
    return [line.strip().removeprefix("- ") for line in lines]


def _pictures(decision: "Decision", *, settings: "InForce", now: datetime) -> "list[Picture]":
    """What each plan costs, and the forecast that they rest on; a refusal has neither."""
    from api.convert import to_wire
    from api.keys import group_key
    from api.pictures.fan import fan
    from api.pictures.waterfall import waterfall
    from api.schemas import GroupDay, RecommendationV1

    sent = to_wire(decision, settings.of(decision.cluster, decision.group), now=now)
    if not isinstance(sent, RecommendationV1):
        return []
    day = GroupDay(
        group_key=group_key(sent.cluster, sent.group_id),
        cluster=sent.cluster,
        group_id=sent.group_id,
        since_at=sent.issued_at,
        until_at=sent.issued_at,
        minutes=(),  # only the service has seen them
        standings=(),
        quarters=(),
    )
    return [waterfall(sent), fan(day, sent, ())]


def wire_document(decision: "Decision", *, settings: "InForce", now: datetime) -> dict[str, object]:
    """The decision as the REST service returns it at `now`."""
    from api.convert import to_wire

    document = to_wire(decision, settings.of(decision.cluster, decision.group), now=now)
    return document.model_dump(mode="json", exclude_none=True)


def headline(advice: "Recommendation") -> str:
    """Replica counts before and after the move, its time, and its saving."""
    minutes = advice.horizon_seconds / 60
    if advice.action == "hold":
        what = f"stay at {advice.current_replicas} replicas"
    else:
        what = (
            f"{advice.current_replicas} -> {advice.desired_replicas} replicas, act at {advice.execute_at:%H:%M:%S}, "
            f"latest safe {advice.latest_safe:%H:%M:%S}"
        )
    saving = f"saves {advice.saving:.3f} {advice.currency} in {minutes:.0f} min against staying"
    return f"{advice.group}  {what}   {saving if advice.action != 'hold' else 'no move is cheaper'}   [{advice.reason}]"


def refusal_text(refusal: "Refusal") -> tuple[str, ...]:
    """The reason why there is no advice, the figures behind it, and the next step."""
    lines = [f"{refusal.group}  refused   [{refusal.reason}]", f" - {refusal.sentence}"]
    lines += [f" - {name}: {value:,.0f}" for name, value in refusal.evidence]
    return (*lines, f" next: {refusal.remedy}")


PLAN_FIELDS = (
    Field(key="cluster", heading="cluster", left=True, wide=True),
    Field(key="group", heading="group", left=True, wide=True),
    Field(key="chosen", heading="", show=lambda chosen: ">" if chosen else " ", left=True),
    Field(key="plan", heading="plan", left=True),
    Field(key="execute_at", heading="at", show=lambda at: f"{at:%H:%M}"),
    *(Field(key=item, heading=heading, show=lambda value: f"{value:.3f}") for item, heading in ITEMS.items()),
)


def plan_table(decisions: "Iterable[Decision]") -> Table:
    """Every priced plan of the advice among these, cheapest first, one column per cost item, over its horizon."""
    from recommender.deciding.recommendation import Recommendation

    advice = (decision for decision in decisions if isinstance(decision, Recommendation))
    return Table(fields=PLAN_FIELDS, records=[plan for each in advice for plan in _plans(each)])


def _plans(advice: "Recommendation") -> list[Record]:
    plans = [
        {"plan": _plan_name(plan.desired_replicas, moves=plan.execute_at is not None), "execute_at": plan.execute_at}
        | _items(plan.cost)
        for plan in advice.alternatives
    ]
    chosen_name = _plan_name(advice.desired_replicas, moves=advice.action != "hold")
    if chosen_name not in {plan["plan"] for plan in plans}:
        at = None if advice.action == "hold" else advice.execute_at
        plans.append({"plan": chosen_name, "execute_at": at} | _items(advice.chosen))
    named = {"cluster": advice.cluster, "group": advice.group}
    marked = [named | plan | {"chosen": plan["plan"] == chosen_name} for plan in plans]
    return sorted(marked, key=lambda plan: plan["total"])


def _plan_name(replicas: int, *, moves: bool) -> str:
    return f"scale to {replicas}" if moves else f"stay at {replicas}"


def _items(cost: "Cost") -> dict[str, float]:
    return {**asdict(cost), "total": cost.total}
