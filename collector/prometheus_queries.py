"""The PromQL expressions that fill `prometheus_rows.Readings`, for the past and for each round of a live collector."""

import re
from collections.abc import Callable, Mapping, Sequence

from collector.prometheus_dialects import (
    CLIENT_GROUP,
    IDLE_CLIENT,
    RESTORED_CLIENT,
    RESTORED_TOPIC,
    RESTORING_THREAD,
    TARGET,
    Selector,
    quoted,
)
from collector.prometheus_found import Discovered, of_topics

# The label by which the parts of `at_once` are told apart; exporters of Kafka's offsets have no such label.
FIELD = "lagcast_field"
ENDS_AT, PROGRESS_AT = "ends_at", "progress_at"
# What a thread restores is counted over this time, if it restores in each scrape within it: two at least, so that no
# time without a restore is in it.
RESTORE_SECONDS = 60


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
        idle = _with_group(
            spoken.idle.text, IDLE_CLIENT, discovered, "consumer-({0})-.+|({0})-.+-StreamThread-[0-9]+-consumer"
        )
        queries["idle"] = f"avg by ({CLIENT_GROUP}) ({idle})"
        queries["idle_clients"] = f"count by ({CLIENT_GROUP}) ({idle})"
    if spoken.restored is not None and spoken.restoring is not None:
        queries |= _restores(discovered, spoken.restored, spoken.restoring)
    return queries


def _restores(discovered: Discovered, restored: Selector, restoring: Selector) -> dict[str, str]:
    """The bytes/s of threads, and the least number of tasks that each restores; both over the same time.

    Two jobs that scrape one target are one.
    """
    window = f"[{RESTORE_SECONDS}s]"

    def rate(*, like: Mapping[str, Sequence[str]]) -> str:
        return f"rate({restored.text(like=like, present=RESTORED_TOPIC)}{window}) > 0"

    def least(*, like: Mapping[str, Sequence[str]]) -> str:
        return f"min_over_time({restoring.text(like=like)}{window}) > 0"

    ids = "({0})-.+-(?:StateUpdater|StreamThread)-[0-9]+-restore-consumer"
    each = f"{CLIENT_GROUP}, {TARGET}, {RESTORED_CLIENT}, {RESTORED_TOPIC}"
    return {
        "restored": f"max by ({each}) ({_with_group(rate, RESTORED_CLIENT, discovered, ids)})",
        "restoring": _with_group(least, RESTORING_THREAD, discovered, "({0})-.+-StateUpdater-[0-9]+"),
    }


def _with_group(expression: Callable[..., str], label: str, discovered: Discovered, ids: str) -> str:
    """An expression over the clients of the groups, each with its group: `ids` are those that Java gives by default.

    They are `consumer-GROUP-1` and the like, or with Kafka Streams `GROUP-...-StreamThread-1-consumer`. Of two groups
    whose names begin alike the longer one is meant.
    """
    pattern = ids.format("|".join(map(re.escape, sorted(discovered.topics, key=len, reverse=True))))
    replacement = "".join(f"${number + 1}" for number in range(ids.count("({0})")))
    series = expression(like={label: [pattern]})
    return f'label_replace({series}, "{CLIENT_GROUP}", "{replacement}", "{label}", {quoted(pattern)})'


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
