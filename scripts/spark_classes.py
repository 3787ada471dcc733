# ruff: noqa: INP001 - a script is run, never imported
"""Archives the classes that Spark loads, so that the JVMs of the tests start in half the time: spark_classes.py FILE.

Each of the hundred JVMs of the tests otherwise reads, checks and links the same classes anew: in a trial a session and
a small job took 14 s of the processor, and 7 s with the archive (-XX:SharedArchiveFile=FILE). A JVM leaves an archive
aside that is not there, or was made by another Java or of other jars. It takes 200 MB.
"""

import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark import SparkContext

from collector.sample import OffsetSample
from collector.sinks import write_samples
from spark_features.batch import build_features
from spark_features.java import find_java
from spark_features.session import spark_session
from spark_features.stream import follow_features

START_AT = datetime(2026, 5, 4, tzinfo=UTC)
_LIMIT_SECONDS = 600.0


def main(archive: Path) -> None:
    """Run the job, the stream and a function of Python in one JVM, which writes the archive as it ends."""
    archive.unlink(missing_ok=True)
    unfinished, java = archive.with_suffix(".unfinished"), find_java(os.environ)
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    kept = " ".join(word for word in options.split() if not word.startswith("-XX:SharedArchiveFile="))
    os.environ["SPARK_SUBMIT_OPTS"] = f"{kept} -XX:ArchiveClassesAtExit={unfinished}"
    with tempfile.TemporaryDirectory(prefix="lagcast-classes-") as name:
        folder = Path(name)
        spark = spark_session("classes", java=java, master="local[2]", log_path=folder / "spark.log")
        write_samples([sample(minute) for minute in range(20)], folder / "samples")
        build_features(spark, folder / "samples", folder / "batch")
        follow_features(spark, folder / "samples", folder / "stream", stop=RowsAreThere(folder / "stream"))
        rows = spark.createDataFrame([("a", 1.0), ("b", 2.0)], "name string, value double")
        rows.groupBy("name").applyInPandas(same, "name string, value double").write.parquet(str(folder / "same"))
        gateway: Any = SparkContext._gateway  # noqa: SLF001  (the only way to wait for the end of the JVM)
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_LIMIT_SECONDS)
    if unfinished.exists():
        unfinished.replace(archive)
    else:
        sys.stderr.write(f"Java {java.version} ({java.home}) archives no classes: tests of Spark take longer\n")


class RowsAreThere:
    """Stops the stream once its table has rows, or after ten minutes."""

    def __init__(self, table: Path) -> None:
        self._table, self._until = table, time.monotonic() + _LIMIT_SECONDS

    def wait(self, timeout: float) -> bool:
        """Wait so many seconds; true if the stream should stop."""
        time.sleep(timeout)
        return any(self._table.glob("versions/*/*/*/*.parquet")) or time.monotonic() > self._until


def same(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows."""
    return rows


def sample(minute: int) -> OffsetSample:
    """A sample of the only partition, which gets 100 messages/s."""
    return OffsetSample(
        cluster="c",
        group="g",
        topic="t",
        partition=0,
        sampled_at=START_AT + timedelta(minutes=minute),
        end_offset=6000 * minute,
        committed_offset=6000 * minute,
        log_start_offset=0,
        group_state="STABLE",
        group_protocol="consumer",
        group_assignor="range",
        members=2,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
