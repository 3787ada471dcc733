# ruff: noqa: PLC0415 - pictures are imported when a report is asked for, so that `--help` answers in 0.2 s
"""The league as a table, policies as rows, costs and effects on messages as columns; and as a picture."""

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from cli.output import Field, Record, Table

if TYPE_CHECKING:
    from api.pictures.league import DayOfPolicy, Part, Standing
    from api.pictures.picture import Picture
    from replay.contest import Entry
    from replay.league import League
    from replay.trace import Trace

NAMES = {
    "fixed": "Fixed at peak",
    "hpa": "HPA sum of lag",
    "hpa-behavior": "HPA with behavior",
    "keda": "KEDA lagThreshold",
    "useful-counts": "Useful counts, reactive",
    "hindsight": "Perfect hindsight",
}

FIELDS = (
    Field(key="policy", heading="Policy", show=lambda policy: NAMES.get(policy, policy), left=True),
    Field(key="pod_hours", heading="Pod-hours", show=lambda hours: f"{hours:,.0f}"),
    Field(key="cost", heading="Cost", show=lambda cost: f"{cost:,.2f}"),
    Field(key="cost_pods", heading="= pods", show=lambda cost: f"{cost:,.2f}"),
    Field(key="cost_late", heading="+ late", show=lambda cost: f"{cost:,.2f}"),
    Field(key="cost_duplicates", heading="+ repeats", show=lambda cost: f"{cost:,.2f}"),
    Field(key="wait_p99_seconds", heading="Wait p99", show=lambda seconds: f"{seconds:,.1f} s"),
    Field(key="late_fraction", heading="Late share", show=lambda share: f"{share:.2%}"),
    Field(key="moves", heading="Moves", show=lambda count: f"{count:,}"),
    Field(key="rebalances", heading="Rebalances", show=lambda count: f"{count:,}"),
    Field(key="rebalancing_minutes", heading="Rebalancing", show=lambda minutes: f"{minutes:,.0f} min"),
    Field(key="duplicate_messages", heading="Repeated messages", show=lambda count: f"{count:,.0f}", wide=True),
    Field(key="verdict", heading="Verdict", left=True),
    Field(key="note", heading="Note", left=True, wide=True),
)


def league_table(league: "League") -> Table:
    """One row for each policy, in the league's order."""
    return Table(fields=FIELDS, records=[_record(league, entry) for entry in league.entries])


def league_picture(league: "League") -> "Picture":
    """What each policy pays for replicas, and how many messages are late under it."""
    from api.pictures.league import league as picture_of

    return picture_of(league_standings(league), currency=league.contest.settings.unit_of_cost)


def league_standings(league: "League") -> "list[Standing]":
    """The points of that picture, in the league's order, each with its days."""
    from replay.contest import LAGCAST
    from replay.hindsight import HINDSIGHT

    parts: dict[str, Part] = {LAGCAST: "ours", HINDSIGHT: "bound"}
    return [
        replace(standing_of(entry, part=parts.get(entry.policy, "rival")), days=_days(entry, league.contest.trace))
        for entry in league.entries
    ]


def _days(entry: "Entry", trace: "Trace") -> "tuple[DayOfPolicy, ...]":
    from api.pictures.league import DayOfPolicy

    begins = [trace.start_at + timedelta(days=index) for index in range(len(entry.daily))]
    return tuple(
        DayOfPolicy(begins_at=begin, ends_at=end, cost=cost.total, late_share=late_share)
        for begin, end, cost, late_share in zip(
            begins, [*begins[1:], trace.end_at], entry.daily, entry.daily_late_share, strict=True
        )
    )


def standing_of(entry: "Entry", *, part: "Part", name: str | None = None) -> "Standing":
    """The entry as a point of the picture, under another name where one is given."""
    from api.pictures.league import Standing

    return Standing(
        policy=name if name is not None else NAMES.get(entry.policy, entry.policy),
        replicas=entry.cost.pods,
        late=entry.cost.late,
        duplicates=entry.cost.duplicates,
        late_share=entry.late_share,
        wait_p99_seconds=entry.wait_p99_seconds,
        moves=entry.moves,
        part=part,
    )


# The figures of a league that `--fail-if` bounds: lagcast's own, what it saves against the cheapest rival, and its lost
# days.
FIGURES = (
    "saving",
    "saving_share",
    "cost",
    "pod_hours",
    "wait_p99_seconds",
    "late_fraction",
    "moves",
    "rebalances",
    "rebalancing_minutes",
    "duplicate_messages",
    "lost_days",
)


def figures(league: "League") -> dict[str, float | None]:
    """Those figures by name; costs are in the league's currency."""
    from replay.contest import LAGCAST

    ours = league.entry(LAGCAST)
    own = _record(league, ours)
    cheapest = min(rival.cost.total for rival in league.real if rival is not ours)
    saving = cheapest - ours.cost.total
    return {
        "saving": saving,
        "saving_share": saving / cheapest if cheapest else None,
        **{name: own[name] for name in FIGURES[2:-1]},
        "lost_days": len(league.lost_days),
    }


def lost_days(league: "League") -> list[Record]:
    """The days on which a rival was cheaper than lagcast, with both costs."""
    return [
        {
            "day": lost.day.isoformat(),
            "rival": lost.rival,
            "rival_cost": lost.rival_cost,
            "lagcast_cost": lost.lagcast_cost,
        }
        for lost in league.lost_days
    ]


def lost_days_sentence(league: "League") -> str:
    """The days that lagcast lost, and the winners; always printed."""
    days = league.lost_days
    judged = len(league.entries[0].daily)
    if not days:
        return f"lagcast was the cheapest on each of {judged} days" if judged > 1 else "lagcast was the cheapest"
    named = ", ".join(
        f"{lost.day:%a %Y-%m-%d} to {lost.rival} ({lost.lagcast_cost:,.2f} against {lost.rival_cost:,.2f})"
        for lost in days
    )
    return f"lagcast lost {len(days)} of {judged} days: {named}"


def _record(league: "League", entry: "Entry") -> Record:
    return {
        "policy": entry.policy,
        "pod_hours": entry.pod_hours,
        "cost": entry.cost.total,
        "cost_pods": entry.cost.pods,
        "cost_late": entry.cost.late,
        "cost_duplicates": entry.cost.duplicates,
        "wait_p99_seconds": entry.wait_p99_seconds,
        "late_fraction": entry.late_share,
        "moves": entry.moves,
        "rebalances": entry.rebalances,
        "rebalancing_minutes": entry.rebalancing_minutes,
        "duplicate_messages": entry.duplicate_messages,
        "verdict": league.verdict(entry),
        "note": entry.note or None,
    }
