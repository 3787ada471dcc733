"""The page of a comparison of rebalances, from its JSON alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.command import table

Document = dict[str, Any]

# An expectation holds where it is this near to the median, by share or in seconds, whichever is wider: differences
# below half a second depend on how busy the machine is.
NEAR_SHARE = 0.35
NEAR_SECONDS = 0.5
NEAR_MESSAGES = 30.0
# A protocol is called cheaper where it loses less than this share of the next one: more than machines differ by.
CLEARLY = 0.8

CHANGES = {"out": "joins", "in": "leaves in order", "killed": "is killed"}
PROTOCOLS = {"eager": "eager", "cooperative": "cooperative", "kip848": "KIP-848"}

INTRODUCTION = """# Rebalances, measured

What a change of a group's size stops and repeats on a real broker, compared with what the cost model's formulas and the
simulated group of the replay expect. The page is made from one JSON document, which one command writes, and its last
part from that of [another page](rebalances-streams.md):

    make bench-rebalances OUT=FILE ROUNDS=4
    python -m benchmarks.rebalances --page FILE --streams docs/rebalances-streams.json > docs/rebalances.md

- **Where.** One Kafka broker on loopback, a machine with {processors} processors that was busy (mean load {load:.1f})
  with all groups at once and with other work, which lengthens stops under a second. Nothing here was measured across a
  network.
- **Groups.** {partitions} partitions, {rate:g} messages/s, {few} members; then {more} more join, leave in order, join
  again and are killed (SIGKILL), {rounds} times over. Every member works in batches of a set length, whatever is in
  them. Defaults of Kafka elsewhere (heartbeats 3 s, KIP-848 5 s, automatic commits each 5 s), but a session of
  {session:g} s. Eager is `range`, cooperative `cooperative-sticky`. Static members leave without LeaveGroup.
- **Measured**, from what members record of each finished batch: a partition is stopped from the end of one batch to the
  beginning of the next, by whichever member, minus the usual time between two. Stops below 0.3 s count as none. Each
  figure is the median over the changes of its kind, with minimum and maximum. *Lost* messages were skipped and
  processed by no member, as the sum over all changes of the kind.
- **Lost seconds** are seconds per partition of the group, also counting partitions that did not stop: they compare
  protocols.
- **Expected** by the formulas from the group's own settings, with a round trip of 0.3 s, the prior, where loopback
  needs less; by the simulated group as the mean over 20 seeds. *Held*: within {share:.0%} or {seconds:g} s of the
  median, for duplicates within {share:.0%} or {messages:g} messages.

Versions: {versions}. [Kafka Streams](#kafka-streams-with-state) is at the end.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of group under one change: all measurements, and the expected effect."""

    group_kind: Document
    change: str
    lost_seconds: tuple[float, ...]
    pauses: tuple[float, ...]
    duplicates: tuple[int, ...]
    lost: tuple[int, ...]
    formula: Document
    plant: Document

    @property
    def kind(self) -> str:
        """The group in words."""
        static = ", static" if self.group_kind["static"] else ""
        return f"{self.group_kind['client']}, {PROTOCOLS[self.group_kind['protocol']]}{static}"

    @property
    def formula_holds(self) -> bool:
        """True where the formula is near the measured value."""
        return is_near(median(self.lost_seconds), self.formula["lost_seconds"], NEAR_SECONDS)

    @property
    def plant_holds(self) -> bool:
        """True where the simulated group is near the measured value."""
        return is_near(median(self.lost_seconds), self.plant["lost_seconds"], NEAR_SECONDS)


def write_page(document: Document) -> None:
    """The page on stdout."""
    rows = rows_of(document)
    parts = [introduction(document), summary(rows)]
    for (batch, static), group in grouped(
        rows, lambda row: (row.group_kind["batch_seconds"], row.group_kind["static"])
    ):
        parts.append(section(batch, group, static=static))
    parts += [cheaper(rows), missed(rows)]
    print("\n".join(parts), end="")


def is_near(measured: float, expected: float, slack: float) -> bool:
    """True where an expectation holds.

    >>> is_near(10.0, 13.4, 0.5), is_near(10.0, 13.6, 0.5), is_near(0.2, 0.6, 0.5)
    (True, False, True)
    """
    return abs(expected - measured) <= max(NEAR_SHARE * measured, slack)


def rows_of(document: Document) -> list[Row]:
    """Expectations with their measurements."""
    rows = []
    for expected in document["expected"]:
        found = [
            change
            for change in document["changes"]
            if change["group_kind"] == expected["group_kind"] and change["change"] == expected["change"]
        ]
        stopped = [[stop for stop in change["stops"] if stop > 0.0] for change in found]
        rows.append(
            Row(
                group_kind=expected["group_kind"],
                change=expected["change"],
                lost_seconds=tuple(sum(change["stops"]) / len(change["stops"]) for change in found),
                pauses=tuple(sum(stops) / len(stops) for stops in stopped if stops),
                duplicates=tuple(change["duplicates"] for change in found),
                lost=tuple(change["lost"] for change in found),
                formula=expected["formula"],
                plant=expected["plant"],
            )
        )
    return rows


def introduction(document: Document) -> str:
    """The introduction of the page: the procedure and the machine."""
    few, many = document["members"]
    return INTRODUCTION.format(
        processors=document["processors"],
        load=document["mean_load"],
        partitions=document["partitions"],
        rate=document["messages_per_second"],
        few=few,
        more=many - few,
        rounds=sum(change["change"] == "in" for change in document["changes"]) // len(kinds_of(document)),
        session=document["session_seconds"],
        share=NEAR_SHARE,
        seconds=NEAR_SECONDS,
        messages=NEAR_MESSAGES,
        versions=", ".join(f"{name} {number}" for name, number in document["versions"].items()),
    )


def kinds_of(document: Document) -> list[Document]:
    """The kinds of groups."""
    return [group_kind for group_kind, _ in grouped(document["expected"], lambda expected: expected["group_kind"])]


def summary(rows: list[Row]) -> str:
    """The number of expectations that held, by protocol."""
    lines = []
    for protocol, group in grouped(rows, lambda row: row.group_kind["protocol"]):
        near = [row for row in group if is_near(median(row.duplicates), row.formula["duplicates"], NEAR_MESSAGES)]
        lines.append(
            (
                PROTOCOLS[protocol],
                str(len(group)),
                str(sum(row.formula_holds for row in group)),
                str(sum(row.plant_holds for row in group)),
                str(len(near)),
                f"{sum(sum(row.lost) for row in group):,}",
            )
        )
    head = ("protocol", "kinds of change", "formula held", "simulated group held", "duplicates held", "messages lost")
    return "## What held\n\n" + table(head, lines)


def section(batch: float, rows: list[Row], *, static: bool) -> str:
    """All kinds of groups with batches of one length."""
    title = f"## Batches of {batch:g} s{', static members' if static else ''}\n\n"
    lines = [
        (
            row.kind,
            CHANGES[row.change],
            str(len(row.lost_seconds)),
            spread(row.lost_seconds),
            marked(row.formula["lost_seconds"], row.formula_holds),
            marked(row.plant["lost_seconds"], row.plant_holds),
            f"{median(row.pauses):.1f}" if row.pauses else "-",
            f"{row.formula['rebalance_pause_seconds']:.1f}",
            f"{median(row.duplicates):,.0f} ({min(row.duplicates):,} to {max(row.duplicates):,})",
            f"{row.formula['duplicates']:,.0f}",
            f"{row.plant['duplicates']:,.0f}",
            f"{sum(row.lost):,}",
        )
        for row in rows
    ]
    head = (
        *("group", "who", "changes", "lost seconds per partition", "formula", "simulated"),
        *("stop of those that stopped", "formula", "duplicates", "formula", "simulated", "lost"),
    )
    return title + table(head, lines, words=2)


def cheaper(rows: list[Row]) -> str:
    """The protocol that loses least for each client, batch length and change, and by how much."""
    lines = []
    for (client, batch, static, change), group in grouped(
        rows,
        lambda row: (row.group_kind["client"], row.group_kind["batch_seconds"], row.group_kind["static"], row.change),
    ):
        ranked = sorted(group, key=lambda row: median(row.lost_seconds))
        least, next_one = (median(row.lost_seconds) for row in ranked[:2])
        clear = least < CLEARLY * next_one and next_one - least > NEAR_SECONDS
        by_formula = min(group, key=lambda row: row.formula["lost_seconds"])
        lines.append(
            (
                f"{client}{', static' if static else ''}",
                f"{batch:g} s",
                CHANGES[change],
                PROTOCOLS[ranked[0].group_kind["protocol"]] if clear else "no clear one",
                ", ".join(f"{PROTOCOLS[row.group_kind['protocol']]} {median(row.lost_seconds):.1f}" for row in ranked),
                PROTOCOLS[by_formula.group_kind["protocol"]],
            )
        )
    head = ("client", "batches", "who", "cheapest", "lost seconds per partition, measured", "cheapest by formula")
    words = "## Which protocol is cheaper when\n\nClearly is by a fifth and by half a second.\n\n"
    return words + table(head, lines, words=6)


def missed(rows: list[Row]) -> str:
    """The kinds of change for which the formula did not hold, the farthest first."""
    wrong = sorted(
        (row for row in rows if not row.formula_holds),
        key=lambda row: abs(row.formula["lost_seconds"] - median(row.lost_seconds)),
        reverse=True,
    )
    lines = [
        (
            row.kind,
            f"{row.group_kind['batch_seconds']:g} s",
            CHANGES[row.change],
            spread(row.lost_seconds),
            f"{row.formula['lost_seconds']:.1f}",
            "too high" if row.formula["lost_seconds"] > median(row.lost_seconds) else "too low",
        )
        for row in wrong
    ]
    head = ("group", "batches", "who", "lost seconds per partition", "formula", "the formula is")
    words = "## Where the formula did not hold\n\n"
    return words + (table(head, lines, words=3) if lines else "It held everywhere.\n")


def spread(values: tuple[float, ...]) -> str:
    """The median, the least and the most."""
    return f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def marked(value: float, holds: bool) -> str:  # noqa: FBT001  # reads as what it is
    """A figure, bold where it did not hold."""
    return f"{value:.1f}" if holds else f"**{value:.1f}**"


def grouped(rows: Iterable[Any], key: Any) -> list[tuple[Any, list[Any]]]:  # noqa: ANN401  # JSON and rows alike
    """Rows that share a key, in the order in which the keys first appear."""
    found: list[tuple[Any, list[Any]]] = []
    for row in rows:
        group = next((group for known, group in found if known == key(row)), None)
        if group is None:
            found.append((key(row), group := []))
        group.append(row)
    return found
