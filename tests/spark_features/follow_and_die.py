"""Follows a folder of samples in a process of its own, and dies by SIGKILL at a given point.

    follow_and_die.py SAMPLES OUT POINT

Points: `rows` when the rows of a micro-batch are on the disk and not yet in the manifest, `commit` when they are in the
manifest and Spark does not know it, `merge` in the middle of a merge, `settled` when all files are in the table,
`never` to stop as Ctrl-C does when they are. With PYSPARK_GATEWAY_PORT set it runs in a JVM that outlives it.
"""

import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

from pyspark.java_gateway import launch_gateway

from spark_features import growth
from spark_features.java import find_java
from spark_features.session import spark_session
from spark_features.stream import follow_features
from spark_features.table import Followed, Manifest, read_manifest, swap


def die() -> None:
    """End this process as a power cut would: no handler runs, and nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


def dying_swap(point: str, table_dir: Path, *, before: Manifest, after: Manifest) -> None:
    """Swap the table with a death before or after it."""
    advances = _files(after.followed) > _files(before.followed)
    here = "rows" if advances else "merge"
    if here == point and _files(before.followed):
        die()
    swap(table_dir, before=before, after=after)
    if point == "commit" and advances:
        die()


def _files(followed: Followed | None) -> int:
    return followed.files if followed is not None else 0


def stop_the_dead() -> None:
    """In a JVM that has outlived another process, end what that process has left running."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        spark = launch_gateway().jvm.org.apache.spark  # type: ignore[no-untyped-call]  # PySpark leaves it bare
        # The running context; a new one where there is none, which a JVM has only once.
        spark.SparkContext.getOrCreate(spark.SparkConf().setMaster("local[1]").setAppName("dead")).stop()


def main(samples: Path, out: Path, point: str) -> None:
    """Follow until the death at the given point, or until all files are in the table."""
    growth.swap = partial(dying_swap, point)  # type: ignore[attr-defined]  # imported there, not exported
    growth.MOST_PARTS, growth.MERGED_PARTS = 2, 2
    stop_the_dead()
    spark = spark_session(
        "killed", java=find_java(os.environ), master="local[1]", memory="512m", log_path=out.parent / "killed.log"
    )
    stop = threading.Event()
    files = len(list(samples.glob("date=*/*.parquet")))

    def stop_when_done() -> None:
        while _files(read_manifest(out).followed) < files:
            time.sleep(0.05)
        if point == "settled":
            die()
        stop.set()

    threading.Thread(target=stop_when_done, daemon=True).start()
    sys.stdout.write(f"{follow_features(spark, samples, out, stop=stop)}\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
