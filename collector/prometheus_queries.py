"""The PromQL expressions that fill `prometheus_rows.Readings`, for the past and for each round of a live collector."""

import re
from collections.abc import Callable, Sequence

from collector.prometheus_dialects import IDLE_CLIENT, IDLE_GROUP, Selector, quoted
from collector.prometheus_found import Discovered, of_topics

# The label by which the parts of `at_once` are told apart; exporters of Kafka's offsets have no such label.
FIELD = "lagcast_field"
ENDS_AT, PROGRESS_AT = "ends_at", "progress_at"


def expressions(discovered: Discovered, *, newest: Callable[[str], str]) -> dict[str, str]:
    """The expressions by the field of `Readings` that their answer fills; `newest` takes offsets from a selector.

    Two exporters of one cluster are one: the higher of two offsets is the newer one. States and members are queried
    as of the instant, so that a label that is removed is missing at once.
    """
    spoken, dialect = discovered.spoken, discovered.spoken.dialect
    place, whose = _place(discovered), _whose(discovered)
    grouped = _grouped(discovered)
    progress = f"max by ({whose}, {place}) ({newest(spoken.progress.text(grouped))})"
    if dialect.counts == "messages":
        progress = f"sum by ({whose}, {dialect.topic}) ({progress})"
    queries = {
        "ends": f"max by ({place}) ({newest(of_topics(discovered, spoken.ends))})",
        "progress": progress,
    }
    if spoken.starts is not None:
        queries["starts"] = f"max by ({place}) ({newest(of_topics(discovered, spoken.starts))})"
    if dialect.member_label:
        members = spoken.progress.text(grouped, present=dialect.member_label)
        queries["members"] = f"count by ({whose}) (count by ({whose}, {dialect.member_label}) ({members}))"
    if spoken.members is not None:
        queries["members"] = f"max by ({whose}) ({spoken.members.text(grouped)})"
    if spoken.states is not None and dialect.state_label:
        labels = ", ".join(filter(None, (whose, dialect.state_label, dialect.state_member_count)))
        queries["states"] = f"count by ({labels}) ({spoken.states.text(grouped)})"
    elif spoken.states is not None:
        queries["states"] = f"max by ({whose}) ({spoken.states.text(grouped)})"
    if spoken.idle is not None:
        idle = _with_group(spoken.idle, sorted(discovered.topics))
        queries["idle"] = f"avg by ({IDLE_GROUP}) ({idle})"
        queries["idle_clients"] = f"count by ({IDLE_GROUP}) ({idle})"
    return queries


def _with_group(idle: Selector, groups: Sequence[str]) -> str:
    """The idle shares of the clients of these groups, with their group, by the ids that Java gives by default.

    They are `consumer-GROUP-1` and the like, or with Kafka Streams `GROUP-...-StreamThread-1-consumer`. Of two groups
    whose names begin alike the longer one is meant.
    """
    names = "|".join(map(re.escape, sorted(groups, key=len, reverse=True)))
    clients = f"consumer-({names})-.+|({names})-.+-StreamThread-[0-9]+-consumer"
    series = idle.text(like={IDLE_CLIENT: [clients]})
    return f'label_replace({series}, "{IDLE_GROUP}", "$1$2", "{IDLE_CLIENT}", {quoted(clients)})'


def at_once(discovered: Discovered) -> str:
    """One expression for all fields, told apart by the label `FIELD`, and for the instants at which they were scraped.

    Prometheus appends a scrape as a whole and answers a query from one state: separate queries could get the ends of
    one scrape and the commits of the next. Series that are stale are missing.
    """
    ends, progress = (
        of_topics(discovered, discovered.spoken.ends),
        discovered.spoken.progress.text(_grouped(discovered)),
    )
    parts = {
        **expressions(discovered, newest=str),
        ENDS_AT: f"max by ({_place(discovered)}) (timestamp({ends}))",
        PROGRESS_AT: f"max by ({_whose(discovered)}, {_place(discovered)}) (timestamp({progress}))",
    }
    return "\nor ".join(f'label_replace({part}, "{FIELD}", "{name}", "", "")' for name, part in parts.items())


def _place(discovered: Discovered) -> str:
    return f"{discovered.spoken.dialect.topic}, {discovered.spoken.dialect.partition}"


def _whose(discovered: Discovered) -> str:
    return ", ".join(discovered.spoken.dialect.owners) or discovered.spoken.dialect.group


def _grouped(discovered: Discovered) -> dict[str, list[str]]:
    where = {label: [value] for label, value in discovered.where.items()}
    dialect = discovered.spoken.dialect
    return where if dialect.owners else {**where, dialect.group: sorted(discovered.topics)}
