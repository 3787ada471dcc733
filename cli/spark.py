# ruff: noqa: PLC0415 - pyspark takes a second to import, so it is imported beside other work
"""Spark for commands: started in parallel to other work, and stopped with the command."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import InputError
from cli.progress import Stage, Talk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A person sees four changes a second as going on.
_LOOK_SECONDS = 0.25
# A look that hangs, because its JVM does, is left alone.
_JOIN_SECONDS = 1.0


Master = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark's cluster, as spark://HOST:7077; this machine unless set.")
]


@contextmanager
def spark_beside(
    talk: Talk, *, log_path: Path, master: str | None = None, is_lasting: bool = False
) -> Iterator["Future[SparkSession]"]:
    """A Spark session that starts in its own thread while the block runs; it is stopped when the block ends.

    It runs on the cluster `master`, without one on this machine, and under spark-submit where that says. One that
    `is_lasting` runs for months, in as little memory as it needs.
    Errors: InputError for a `master` under spark-submit.
    """
    if master is not None and is_submitted():
        message = f"--master {master}: under spark-submit its own --master says where the job runs; leave this one out"
        raise InputError(message)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="spark") as thread:
        starting = thread.submit(_started, talk, log_path, master, is_lasting=is_lasting)
        try:
            yield starting
        finally:
            if not starting.cancel() and starting.exception() is None:
                starting.result().stop()


@contextmanager
def tasks_shown(spark: "SparkSession", stage: Stage) -> Iterator[None]:
    """While the block runs, show how many tasks of the Spark stages that run are done; a job has several, in turn."""
    tracker, over = spark.sparkContext.statusTracker(), Event()

    def look() -> None:
        while not over.wait(_LOOK_SECONDS):
            try:
                running = [tracker.getStageInfo(stage_id) for stage_id in tracker.getActiveStageIds()]
            except Exception:  # noqa: BLE001  # the JVM has died, which the job itself tells
                return
            known = [each for each in running if each is not None]
            if known:
                done, tasks = (sum(getattr(each, name) for each in known) for name in ("numCompletedTasks", "numTasks"))
                stage.show(done, tasks, "tasks of Spark")

    thread = Thread(target=look, name="tasks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_JOIN_SECONDS)


def is_submitted() -> bool:
    """True in a program of spark-submit, whose JVM waits on this port."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _started(talk: Talk, log_path: Path, master: str | None, *, is_lasting: bool) -> "SparkSession":
    if is_submitted():
        from spark_features.session import submitted_session

        return submitted_session("lagcast")
    waiting_for = f"starting the JVM, usually 5-12 s; its log: {log_path}"
    with talk.stage("Spark", waiting_for) as stage:
        from spark_features.java import find_java

        java = find_java(os.environ)
        for note in java.notes:
            talk.line(f"    {note}")
        from spark_features.session import spark_session

        session = spark_session(
            "lagcast", java=java, master=master or "local[*]", log_path=log_path, is_lasting=is_lasting
        )
        stage.note = f"{session.version} {session.sparkContext.master}, Java {java.version} ({java.source})"
    return session
