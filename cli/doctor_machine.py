# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""What the doctor finds on this machine and in the settings: Java, whether Spark starts, prices, who else scales."""

import os
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from recommender.cluster.doctor import Diagnosis
    from recommender.configuring.settings import Settings


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


class SparkStart:
    """A start of Spark that goes on beside other checks, and the seconds that it took."""

    def __init__(self, starting: "Future[SparkSession]") -> None:
        self._starting, self._began_seconds = starting, time.monotonic()
        self._seconds = 0.0
        starting.add_done_callback(self._done)

    def finding(self, log_path: Path) -> "Diagnosis":
        """Whether it has started; waits until that is known."""
        from recommender.cluster.doctor import Diagnosis

        failure = self._starting.exception()
        if failure is None:
            sentence = f"Spark {self._starting.result().version} starts in {self._seconds:.1f} s."
            return Diagnosis(check="Spark", where="-", state="ok", sentence=sentence)
        sentence = f"Spark did not start: {type(failure).__name__}: {failure}".partition("\n")[0]
        remedy = f"the reason is in {log_path}; LAGCAST_JAVA_HOME names another Java"
        return Diagnosis(check="Spark", where="-", state="problem", sentence=sentence, remedy=remedy)

    def _done(self, _: object) -> None:
        self._seconds = time.monotonic() - self._began_seconds


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
