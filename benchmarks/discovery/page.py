"""The page of the lab of ten groups, from its JSON document alone."""

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.command import aged, table
from benchmarks.discovery.judge import CAPACITY_WITHIN, SHOWN_BY_KAFKA

Document = Mapping[str, Any]

# The bars: shares of groups and of figures, and minutes.
LEAST_GROUPS, LEAST_RIGHT = 0.8, 0.95
ADVICE_MINUTES, CAPACITY_MINUTES = 5.0, 60.0

INTRODUCTION = """# What lagcast finds out by itself

{count} consumer groups on a real Kafka, and `lagcast up --bootstrap ADDRESS` beside them with nothing set: no settings
file, no Kubernetes, no Prometheus. This page holds what lagcast told of each group against what is true of it. It is
made from one JSON document, which one command writes:

    make lab-discovery OUT=FILE MINUTES={minutes:g}
    python -m benchmarks.discovery --page FILE > docs/lab-discovery.md

- **Where and when.** {measured_at}, commit {commit}, Kafka {kafka}, one broker on loopback, a machine with {processors}
  processors (mean load {load:.1f}, other work included). The lab ran for {minutes:g} minutes from the start of
  lagcast's process; before it began, topics had {past:g} minutes of messages and members were at work.
- **Consumers.** {members} members of {clients} clients: {client_names}.
  A member takes the same time for each message, asleep, so that what a replica does at most is known. Rebalance
  protocols: {protocols}.
- **Load.** A day is compressed into {day:g} minutes, and each group begins at another hour of it. *Peak* groups are
  asked for more than their replicas do around noon; in *deploy* groups all replicas are replaced once (none runs for
  {deploy:g} s), which leaves a backlog; *roomy* groups are never asked for all that they do. Nobody carries advice out,
  so no move teaches what a rebalance stops and how long a replica takes to start: these figures are not judged.
- **Compressed** is only the load. Commits, sessions, samples each 15 s, and everything that lagcast waits for are as in
  life. In a real day a peak lasts longer and comes less often.
"""

WHY_ASSUMED = """Kafka does not show the settings that a consumer keeps to itself: its own heartbeats, its batches.
lagcast takes the defaults of Kafka for them, and says that it does; so they are never found, right or not.
"""

VERDICTS = """- *Found*: told as detected or measured, and right. *Assumed, right* and *assumed, off*: told as an
  assumption, or a capacity as a bound, which the advice says. *Wrong*: told as detected or measured at any time, and
  not so. *Silent*: not told.
- A capacity and a commit interval are right within {within:.0%} of the truth, the size of state within 25 %, all
  other figures exactly. Capacity, state and the number of members change while a group runs: their verdict is that of
  the end.
"""


def page_of(document: Document) -> str:
    """The page."""
    groups = document["groups"]
    text = "\n".join(
        [
            introduction(document),
            "## The bars\n",
            bars(document),
            WHY_ASSUMED,
            "## How soon\n",
            sooner(groups),
            *missed(document),
            "## Figures\n",
            VERDICTS.format(within=CAPACITY_WITHIN),
            by_figure(groups),
            "### What was not found\n",
            not_found(groups),
        ]
    )
    return aged(text, document)


def introduction(document: Document) -> str:
    """The procedure and the machine."""
    groups = document["groups"]
    clients = sorted({group["client"] for group in groups})
    protocols = sorted({str(_figure(group, "protocol")["truth"]) for group in groups})
    names = {"java": "Java's KafkaConsumer", "streams": "Kafka Streams", "franz-go": "franz-go", "sarama": "Sarama"}
    return INTRODUCTION.format(
        minutes=document["minutes"],
        measured_at=document["measured_at"],
        commit=document["commit"],
        kafka=document["kafka"],
        processors=document["processors"],
        load=document["mean_load"],
        past=document["past_minutes"],
        members=sum(group["replicas"] for group in groups),
        clients=len(clients),
        count=len(groups),
        protocols=", ".join(protocols),
        client_names=", ".join(names.get(client, client) for client in clients),
        day=document["day_minutes"],
        deploy=document["deploy_seconds"],
    )


def bars(document: Document) -> str:
    """Each bar beside what was found."""
    groups = document["groups"]
    count = len(groups)
    advised = within(groups, "first_advice_minute", ADVICE_MINUTES)
    known = within(groups, "capacity_minute", CAPACITY_MINUTES)
    figures = [figure for group in groups for figure in group["found"]["figures"]]
    shown = [figure for figure in figures if figure["name"] in SHOWN_BY_KAFKA]
    wrong = sum(figure["verdict"] == "wrong" for figure in figures)
    least = f"{LEAST_GROUPS * count:g} of {count} groups"
    rows = [
        (f"advice that is no refusal within {ADVICE_MINUTES:g} min", least, f"{advised} of {count}", advised),
        (f"capacity within 10 % of the truth in {CAPACITY_MINUTES:g} min", least, f"{known} of {count}", known),
    ]
    lines = [(*words, _holds(value >= LEAST_GROUPS * count)) for *words, value in rows]
    for words, some in (("figures that Kafka shows, found", shown), ("all figures, found", figures)):
        found = sum(figure["verdict"] == "found" for figure in some)
        share = f"{found / len(some):.0%} ({found} of {len(some)})"
        lines.append((words, f"{LEAST_RIGHT:.0%}", share, _holds(found >= LEAST_RIGHT * len(some))))
    lines.append(("figures wrong and not marked as assumed", "0", str(wrong), _holds(wrong == 0)))
    return table(("what", "bar", "here", "held"), lines, words=4)


def within(groups: Iterable[Document], name: str, minutes: float) -> int:
    """The number of groups for which something came within so many minutes."""
    return sum(group["found"][name] is not None and group["found"][name] <= minutes for group in groups)


def _holds(holds: bool) -> str:  # noqa: FBT001  # reads as what it is
    return "yes" if holds else "**no**"


def sooner(groups: Iterable[Document]) -> str:
    """A row for each group: the minutes, and whether the load ever showed what a replica does."""
    lines = []
    for group in groups:
        experiment, capacity = group["experiment"], _figure(group, "capacity")
        told = capacity["told"]
        lines.append(
            (
                group["name"],
                group["words"],
                group["day"],
                str(group["replicas"]),
                _minute(group["found"]["first_advice_minute"]),
                _minute(group["found"]["capacity_minute"]),
                "none" if experiment is None else f"{experiment['first_minute']:.0f}",
                "-" if experiment is None else f"{experiment['messages_per_second_per_replica']:.1f}",
                f"{group['capacity']:g}",
                "-" if told is None else f"{told['value']:.1f}",
                "-" if told is None else told["source"].replace("_", " "),
            )
        )
    head = (
        *("group", "consumers", "day", "replicas", "first advice, min", "capacity within 10 %, min"),
        *("first whole minute of a backlog, min", "a replica did in backlogs, messages/s", "capacity, messages/s"),
        *("told", "as"),
    )
    return table(head, lines, words=3)


def _minute(minute: float | None) -> str:
    return "not reached" if minute is None else f"{minute:.1f}"


def _figure(group: Document, name: str) -> Document:
    return next(figure for figure in group["found"]["figures"] if figure["name"] == name)


def missed(document: Document) -> list[str]:
    """What kept groups from advice, and which capacities were not found, in sentences."""
    sentences = []
    for group in document["groups"]:
        held = [f"{reason} until minute {end:.1f}" for reason, _, end in group["found"]["refusals"] if end > 1.0]
        if held:
            sentences.append(f"- **{group['name']}** was refused: {', '.join(held)}.")
        capacity = _figure(group, "capacity")
        if capacity["wrong_at_minute"] is not None and capacity["verdict"] != "wrong":
            sentences.append(
                f"- **{group['name']}**'s capacity was told as measured and was off from minute "
                f"{capacity['wrong_at_minute']:.1f} on, and right for good from the minute in the table."
            )
        if group["found"]["capacity_minute"] is None:
            why = (
                "its load never asked for all that its replicas do, so that what was shown is a bound"
                if group["experiment"] is None
                else "although its load left a backlog for a minute"
            )
            sentences.append(f"- **{group['name']}**'s capacity was not found within the lab: {why}.")
    return ["### What was missed\n", "\n".join(sentences) + "\n"] if sentences else []


def by_figure(groups: Iterable[Document]) -> str:
    """A row for each figure, with the number of groups of each verdict."""
    names: dict[str, dict[str, int]] = {}
    for group in groups:
        for figure in group["found"]["figures"]:
            names.setdefault(figure["name"], {})
            names[figure["name"]][figure["verdict"]] = names[figure["name"]].get(figure["verdict"], 0) + 1
    order = ("found", "assumed", "off", "wrong", "silent")
    lines = [
        (f"`{name}`", "yes" if name in SHOWN_BY_KAFKA else "no", *(str(counts.get(verdict, 0)) for verdict in order))
        for name, counts in sorted(names.items(), key=lambda item: (item[0] not in SHOWN_BY_KAFKA, item[0]))
    ]
    head = ("figure", "Kafka shows it", "found", "assumed, right", "assumed, off", "wrong", "silent")
    return table(head, lines, words=2)


def not_found(groups: Iterable[Document]) -> str:
    """Every figure that was told wrongly, was not told, or was assumed to be something else."""
    words = {"off": "assumed, off", "wrong": "**wrong**", "silent": "silent"}
    lines = []
    for group in groups:
        for figure in group["found"]["figures"]:
            if figure["verdict"] in words:
                told = figure["told"]
                value = "-" if told is None else f"{_value(told['value'])} ({told['source'].replace('_', ' ')})"
                at = figure["wrong_at_minute"]
                since = "" if at is None else f", at minute {at:.1f}"
                verdict = words[figure["verdict"]] + since
                lines.append((group["name"], f"`{figure['name']}`", value, _value(figure["truth"]), verdict))
    return table(("group", "figure", "told", "true", "verdict"), lines, words=5) if lines else "Nothing.\n"


def _value(value: str | bool | float) -> str:  # noqa: FBT001  # a figure of any kind
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:,.4g}"
