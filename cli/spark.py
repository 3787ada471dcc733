# ruff: noqa: PLC0415 - pyspark takes a second to import, so it is imported beside other work
"""Spark for commands: started in parallel to other work, and stopped with the command."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import InputError
from cli.progress import Talk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Master = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark's cluster, as spark://HOST:7077; this machine unless set.")
]


@contextmanager
def spark_beside(talk: Talk, *, log_path: Path, master: str | None = None) -> Iterator["Future[SparkSession]"]:
    """A Spark session that starts in its own thread while the block runs; it is stopped when the block ends.

    It runs on the cluster `master`, without one on this machine, and under spark-submit where that says.
    Errors: InputError for a `master` under spark-submit.
    """
    if master is not None and is_submitted():
        message = f"--master {master}: under spark-submit its own --master says where the job runs; leave this one out"
        raise InputError(message)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="spark") as thread:
        starting = thread.submit(_started, talk, log_path, master)
        try:
            yield starting
        finally:
            if not starting.cancel() and starting.exception() is None:
                starting.result().stop()


def is_submitted() -> bool:
    """True in a program of spark-submit, whose JVM waits on this port."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _started(talk: Talk, log_path: Path, master: str | None) -> "SparkSession":
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

        session = spark_session("lagcast", java=java, master=master or "local[*]", log_path=log_path)
        stage.note = f"{session.version} {session.sparkContext.master}, Java {java.version} ({java.source})"
    return session
