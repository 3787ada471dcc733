# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""What the doctor finds on this machine and in the settings: Java, whether Spark starts, prices, who else scales."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.spark_process import SparkTrial
    from recommender.cluster.doctor import Diagnosis
    from recommender.configuring.settings import Settings

# A start takes 5 to 12 s, and on a machine that swaps half a minute.
SPARK_LIMIT_SECONDS = 90.0


def java_finding() -> "Diagnosis":
    """The Java that Spark would start on, and those that were skipped. To be asked before Spark sets JAVA_HOME."""
    from recommender.cluster.doctor import Diagnosis
    from spark_features.java import JavaError, find_java

    try:
        java = find_java(os.environ)
    except JavaError as error:
        what, _, remedy = str(error).rpartition("; ")
        return Diagnosis(check="Java", where="-", state="problem", sentence=f"{what}.", remedy=remedy)
    skipped = "".join(f"; {note}" for note in java.notes)
    return Diagnosis(check="Java", where="-", state="ok", sentence=f"Java {java.version} ({java.source}){skipped}.")


def spark_finding(trial: "SparkTrial", log_path: Path) -> "Diagnosis":
    """Whether Spark has started; waits until that is known, or until it hangs."""
    from cli.spark_process import Started
    from recommender.cluster.doctor import Diagnosis

    found = trial.outcome(limit_seconds=SPARK_LIMIT_SECONDS)
    if isinstance(found, Started):
        sentence = f"Spark {found.version} starts in {found.seconds:.1f} s."
        return Diagnosis(check="Spark", where="-", state="ok", sentence=sentence)
    if found is None:
        sentence = f"Spark hangs: it has not started within {SPARK_LIMIT_SECONDS:.0f} s, and was stopped."
    else:
        sentence = f"Spark did not start: {type(found).__name__}: {found}".partition("\n")[0]
    remedy = f"the reason is in {log_path}; LAGCAST_JAVA_HOME names another Java"
    return Diagnosis(check="Spark", where="-", state="problem", sentence=sentence, remedy=remedy)


def price_finding(settings: "Settings") -> "Diagnosis":
    """Where the price of a replica comes from, for all groups that name none of their own."""
    from recommender.cluster.doctor import Diagnosis

    price, currency = settings.decision.price_per_replica_hour, settings.decision.currency
    if price is not None:
        sentence = f"A replica-hour costs {price:g} {currency or 'USD'}, as set."
        return Diagnosis(check="price", where="-", state="ok", sentence=sentence)
    return Diagnosis(
        check="price",
        where="-",
        state="note",
        sentence="No price of a replica-hour is set: costs and savings are in pod-hours.",
        remedy="LAGCAST_DECISION__PRICE_PER_REPLICA_HOUR=0.05, or decision.price_per_replica_hour in --config FILE",
    )


def scaling_finding() -> "Diagnosis":
    """Without a namespace nobody looks at who else scales the workloads."""
    from recommender.cluster.doctor import Diagnosis

    return Diagnosis(
        check="autoscalers",
        where="-",
        state="note",
        sentence="Whether an HPA or KEDA scales the workloads of these groups was not looked at.",
        remedy="--kubernetes NAMESPACE looks there; advice alone changes nothing",
    )
