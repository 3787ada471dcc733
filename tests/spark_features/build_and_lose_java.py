"""Builds the feature table in a process of its own, whose JVM is killed while it writes the first parquet file.

build_and_lose_java.py SAMPLES OUT
"""

import os
import sys
import threading
import time
from pathlib import Path

from pyspark import SparkContext

from spark_features.batch import build_features
from spark_features.java import find_java
from spark_features.session import spark_session


def kill_at_the_first_file(out: Path) -> None:
    """SIGKILL for the JVM as soon as a file of the new version is begun: Spark writes it under `_temporary` first."""
    java = SparkContext._gateway.proc  # type: ignore[union-attr]  # there is one, of a session that was just begun
    versions = out / "versions"
    known = set(versions.glob("v*"))
    while True:
        for version in set(versions.glob("v*")) - known:
            if any(version.glob("**/_temporary/**/*.parquet")):
                java.kill()
                sys.stdout.write("killed\n")
                return
        time.sleep(0.001)


def main(samples: Path, out: Path) -> None:
    """Build; what Spark raises without its JVM ends the process."""
    log_path = out.parent / "killed.log"
    spark = spark_session("killed", java=find_java(os.environ), master="local[1]", memory="512m", log_path=log_path)
    threading.Thread(target=kill_at_the_first_file, args=(out,), daemon=True).start()
    build_features(spark, samples, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
