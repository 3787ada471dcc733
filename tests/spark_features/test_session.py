"""What a session that runs for months keeps of its heap."""

import subprocess
import sys
from pathlib import Path

import pytest

# 200 MB that are used at the first collection, and garbage at the next ones.
SCRIPT = """
import gc, os, sys, time
from pathlib import Path
from spark_features.java import find_java
from spark_features.session import spark_session
java, log_path = find_java(os.environ), Path(sys.argv[1]) / "spark.log"
spark = spark_session("t", java=java, master="local[1]", memory="512m", log_path=log_path, is_lasting=True)
gateway = spark.sparkContext._gateway
runtime = gateway.jvm.java.lang.Runtime.getRuntime()
held = [gateway.new_array(gateway.jvm.long, 125_000) for _ in range(200)]
runtime.gc()
grown = runtime.totalMemory()
held.clear()
gc.collect()
until = time.monotonic() + 60.0
# Py4J lets go of its objects from a thread of its own, and the heap shrinks in steps, a larger one at each collection.
while runtime.totalMemory() > grown / 2 and time.monotonic() < until:
    time.sleep(0.2)
    runtime.gc()
print(grown, runtime.totalMemory())
spark.stop()
"""


@pytest.mark.spark
def test_a_lasting_session_gives_the_heap_back_that_it_does_not_need(folder: Path) -> None:
    """With the collector of short jobs it stays as large as it once was."""
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    grown, kept = map(int, done.stdout.split())
    assert grown > 200_000_000
    assert kept < grown / 2
