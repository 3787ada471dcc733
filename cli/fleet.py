# ruff: noqa: PLC0415 - heavy parts are imported when the command runs, so that `--help` answers in 0.2 s
"""Decisions on Spark: the loop of `lagcast recommend`, wired on each worker for one group after the other."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cli.instants import read_clock
from cli.logs import log_to_stderr
from cli.progress import Talk

if TYPE_CHECKING:
    from recommender.adapters.feature_table import FeatureTable
    from recommender.configuring.settings import Settings
    from recommender.deciding.hold import Hold
    from recommender.deciding.recommendation import Decision
    from recommender.ports import Group, Histories, LoopStore, Obstacle
    from recommender.run import Recommender
    from recommender.watched_groups import Pooling
    from spark_features.fleet_decisions import FleetWork


def decided_on_spark(
    features: Path,
    settings: "Settings",
    *,
    samples: Path | None,
    instant: "Callable[[FeatureTable], datetime]",
    master: str | None,
) -> "tuple[datetime, list[Decision]]":
    """The instant that `instant` reads from the table, and the decision then of each group of it that is not off.

    They are made by Spark, kept beside the rows, and sorted by cluster and group. With `samples` the rows of these are
    made before, in the same Spark application, from the newest day of the table on. A group that is off is as one
    without rows, so that it is not even opened: it may be off because that kills its worker.
    Errors: those of `build_features`, of `decide_fleet`, and of a table that cannot be read.
    """
    from cli.features import make_features
    from cli.spark import spark_beside
    from recommender.adapters.documents import from_document
    from recommender.watched_groups import LOOK_BACK
    from spark_features.samples import find_samples

    # What is wrong with the input is told at once, not after the start of the JVM.
    if samples is None:
        first, asked = None, _asked(features, settings, instant)
    else:
        first, asked = _first_day(features), None
        find_samples(samples, first=first, last=None)
    talk = Talk()
    log_path = settings.state_dir / "spark.log"
    with talk.running(), spark_beside(talk, log_path=log_path, master=master) as starting:
        if samples is not None:
            make_features(starting, samples.absolute(), features.absolute(), talk=talk, first=first)
        now, listed, holds = asked or _asked(features, settings, instant)
        spark = starting.result()
        with talk.stage("decisions", f"the Spark job: {len(listed):,} groups") as stage:
            import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

            from spark_features.fleet_decisions import decide_fleet

            work = fleet_work(settings, holds=holds, now=now)
            run = decide_fleet(spark, features.absolute(), work, listed=listed, now=now, days=LOOK_BACK.days)
            rows = [
                row
                for file in run.decisions
                for row in pq.read_table(file, columns=["kind", "document"], partitioning=None).to_pylist()
            ]
            stage.note = f"{len(rows):,} decisions, version {run.version}"
    for file in run.left_out:
        talk.line(f"    {file} cannot be read and was left out")
    decisions = [from_document(row["kind"], row["document"]) for row in rows]
    return now, sorted(decisions, key=lambda decision: (decision.cluster, decision.group))


def _first_day(features: Path) -> date | None:
    """The day from which rows are made: the table's newest, or today's where a wrong clock has made later ones."""
    from spark_features.table import read_manifest

    days = [date.fromisoformat(part.date) for part in read_manifest(features).parts]
    return min(max(days), read_clock().date()) if days else None


def _asked(
    features: Path, settings: "Settings", instant: "Callable[[FeatureTable], datetime]"
) -> "tuple[datetime, list[Group], tuple[Hold, ...]]":
    """The instant of the decisions, the groups that are decided, and the holds that are in force.

    A table that cannot be read is an error here, and not the refusal of every group.
    """
    from cli.wiring import open_store
    from recommender.adapters.feature_table import FeatureTable

    table = FeatureTable(features)
    now = instant(table)
    listed = [group for group in table.groups(now=now) if settings.of(*group).mode != "off"]
    return now, listed, open_store(settings).holds(now=now)


def fleet_work(settings: "Settings", *, holds: "tuple[Hold, ...]", now: datetime) -> "FleetWork":
    """What workers do for each group; the place of the store, which may hold a password, stays here."""
    from recommender.adapters.fleet import GroupWork

    return GroupWork(_Loop(settings.model_copy(update={"store_url": ""})), holds, now)


@dataclass(frozen=True, slots=True)
class _Loop:
    """Makes the loop on a worker, as `lagcast recommend` makes it here."""

    settings: "Settings"

    def __call__(
        self,
        histories: "Histories",
        store: "LoopStore",
        *,
        pooling: "Pooling",
        obstacles: "Callable[[], Mapping[Group, Obstacle]]" = dict,
    ) -> "Recommender":
        from cli.wiring import recommender

        _prepare_worker()
        return recommender(histories, self.settings, store, pooling=pooling, obstacles=obstacles)


@cache
def _prepare_worker() -> None:
    """Log as the command does: a worker's stderr is in the folder of its executor."""
    log_to_stderr(logging.WARNING)
