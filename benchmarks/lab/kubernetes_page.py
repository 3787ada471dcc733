"""The page of the lab in Kubernetes, from its JSON alone."""

from collections.abc import Sequence
from itertools import pairwise
from textwrap import fill
from typing import Any

from benchmarks.command import table
from benchmarks.lab.autoscalers import (
    CYCLE_SECONDS,
    LAG_OF_A_REPLICA,
    LOOK_SECONDS,
    MOVE_SECONDS,
    POLL_SECONDS,
    WINDOW_SECONDS,
)
from benchmarks.lab.pods import START_DELAY_SECONDS
from benchmarks.lab.policies import CAPACITY, MOST_REPLICAS, PARTITIONS
from forecasting.units import SECONDS_PER_HOUR, MessagesPerSecond
from recommender.deciding.decision import DecisionSettings

Document = dict[str, Any]

_PRICES = DecisionSettings().prices(MessagesPerSecond(CAPACITY))
# The default price of a late message, in seconds of a pod.
LATE_POD_SECONDS = SECONDS_PER_HOUR * _PRICES.price_per_late_message / _PRICES.price_per_replica_hour

NAMES = {
    "fixed": "fixed at the peak",
    "hpa": "HPA on summed lag",
    "keda": "KEDA, Kafka scaler",
    "lagcast": "lagcast, executor",
    "lagcast-keda": "lagcast through KEDA",
}

INTRODUCTION = """# Autoscalers on a real Kafka and a real Kubernetes control plane

All of this page is written from figures in JSON, and those by one command:

    make lab-kubernetes OUT=FILE MINUTES={minutes:g}
    python -m benchmarks.lab.kubernetes --page FILE > docs/lab-kubernetes.md

- **Each policy** has a Kafka broker, a control plane (etcd, API server, controllers, scheduler), a topic of
  {partitions} partitions and a Deployment of its own; the load is the same {minutes:g} minutes, and the policies run
  one after the other. Here: {processors} processors, and a mean load of {load:.1f}, which other work is part of
  where there is any.
- **Pods** are played by kwok, and become ready {delay} s after they are made. For each ready pod there is a process
  with a librdkafka consumer ({protocol}), which takes 1/{capacity:g} s a message and is ended by SIGTERM when its pod
  is deleted. At most {most} pods; the peak takes nine tenths of what they do.
- **Time** is compressed: a minute of the generated workload passes in a second. So are periods, where programs take it:
  the HPA controller looks each {look:g} s (15 s), goes down after {window} s (300 s), KEDA polls each {poll} s (30 s;
  it takes whole seconds), lagcast moves at most every {move} s (300 s) and decides each {cycle} s (60 s). lagcast's
  rows stay what they are, 15 s, which is a quarter of an hour of this load; consumers, their commits each 5 s and
  rebalances are not quicker either. So lagcast sees a load late, and every move is more expensive than in life.
- **HPA and KEDA** have {lag} messages of lag as target for each pod, 5 s of its work. The HPA reads Kafka's lag through
  a stand-in for an adapter of external metrics, KEDA by its own Kafka scaler.
- **lagcast** is `lagcast serve --kubernetes` with the ConsumerGroupScaler of the group and the roles of the manifests,
  followed by `lagcast-executor` or by KEDA with the exported ScaledObject. It is given an hour of rows of the load
  before: two and a half days, whose peaks are higher than all that follows. Its prices and its horizon are the
  defaults; that is an hour, of which the load is a part. Rows come from a collector of this command, not from the
  Spark job.
- **Late** messages waited more than 10 s from their time stamp to the end of the batch that did them. Pod-seconds count
  from when a pod is made to the end of its process, the drain after the load included. Rebalances are those that
  lagcast's meter saw, those at the start included where the load had begun.
- **Cost** is in pod-seconds: those of the pods, and {late:.2f} for each late message, which is lagcast's default price
  of it.

{runs}: differences of a few per cent mean nothing.
"""

MOVES = """What each requested, as `spec.replicas` at the second of the load; before 0 are the replicas to begin with:
"""


def page(documents: Sequence[Document]) -> str:
    """The page, of figures from one command or several. Errors: ValueError where these are not of the same load."""
    document, *others = documents
    if any((each["seconds"], each["protocol"]) != (document["seconds"], document["protocol"]) for each in others):
        message = "they are of loads of different lengths, or of groups of different protocols"
        raise ValueError(message)
    runs = [policy for each in documents for policy in each["policies"]]
    document = document | {"policies": sorted(runs, key=lambda policy: list(NAMES).index(policy["policy"]))}
    each_run = max(sum(run["policy"] == name for run in runs) for name in NAMES)
    of_each = "One run of each policy" if each_run == 1 else f"{each_run} runs of each policy, in the order of the runs"
    introduction = INTRODUCTION.format(
        minutes=document["seconds"] / 60,
        processors=document["processors"],
        load=max(each["load"] for each in documents),
        protocol=document["protocol"],
        runs=of_each if len(documents) == 1 else f"{of_each}, by {len(documents)} commands",
        late=LATE_POD_SECONDS,
        partitions=PARTITIONS,
        capacity=CAPACITY,
        most=MOST_REPLICAS,
        delay=START_DELAY_SECONDS,
        look=LOOK_SECONDS,
        window=WINDOW_SECONDS,
        poll=POLL_SECONDS,
        move=MOVE_SECONDS,
        cycle=CYCLE_SECONDS,
        lag=LAG_OF_A_REPLICA,
    )
    moves = "\n".join(
        fill(f"- {NAMES[policy['policy']]}: {_moves_of(policy['replicas'])}", width=120, subsequent_indent="  ")
        for policy in document["policies"]
    )
    return f"{introduction}\n{table_of(document)}\n{MOVES}\n{moves}\n"


def table_of(document: Document) -> str:
    """A row for each policy."""
    head = ("policy", "cost", "pod-seconds", "late", "wait p99", "moves", "rebalances", "duplicates", "lost")
    return table(
        head,
        [
            (
                NAMES[policy["policy"]],
                f"{cost_of(policy):,.0f}",
                f"{policy['replica_seconds']:,.0f}",
                f"{policy['late_messages']:,} of {policy['messages']:,}",
                f"{policy['wait_p99_seconds']:.1f} s",
                str(policy["moves"]),
                str(policy["rebalances"]),
                f"{policy['duplicate_messages']:,}",
                f"{policy['lost_messages']:,}",
            )
            for policy in document["policies"]
        ],
    )


def cost_of(policy: Document) -> float:
    """Pod-seconds, and what late messages cost in them."""
    return float(policy["replica_seconds"] + LATE_POD_SECONDS * policy["late_messages"])


def _moves_of(looks: Sequence[Sequence[float]]) -> str:
    """Each new count, and the time at which it was requested.

    >>> _moves_of([[-9.0, 1, 0], [-5.0, 1, 1], [12.4, 3, 1]])
    '1, 3 at 12 s'
    """
    (_, first, _), *_ = looks
    changes = [(at, after) for (_, before, _), (at, after, _) in pairwise(looks) if after != before]
    return ", ".join([f"{first:.0f}", *(f"{count:.0f} at {at:.0f} s" for at, count in changes)])
