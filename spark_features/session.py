"""The start of Spark: without output on stderr, on loopback, in UTC, with the Java that was found."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

from spark_features.java import JavaError, JavaRuntime

# PySpark 4.3 warns about pandas 3 at each use; the functions that are used here were tested with it.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas >= 3", category=FutureWarning)

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]  # noqa: E402  (no types)
from pyspark import SparkConf, SparkContext  # noqa: E402  (the filter has to stand before the import)
from pyspark.errors import PySparkRuntimeError  # noqa: E402
from pyspark.java_gateway import launch_gateway  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

# Settings that the features job needs everywhere, spark-submit included.
SQL_SETTINGS: dict[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    # Spark's default of 200 doubles the time of a small job; a large one asks for more (`spark_features.batch`).
    "spark.sql.shuffle.partitions": "4",
    # The rows of a partition over which windows go, of three days. By default they move to a sorter's pages after 4,096
    # of them: a tenth more processor time for 10 million samples, in a trial, and for more a heap that ran over.
    "spark.sql.windowExec.buffer.in.memory.threshold": "20000",
    # By default collecting aggregates sort after 128 groups, and a day has 5,760 intervals; each takes about 1 kB.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # The old default, INT96, is known to Spark only by convention.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # As in every command: sums of several threads differ in their last bits, and the matrices are small.
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
}

# Workers of this machine alone ask its driver.
_LOOPBACK: dict[str, str] = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_QUIET: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # What its web page would show of past jobs, of which a thousand are remembered by default, page or not.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "100",
    "spark.ui.dagGraph.retainedRootRDDs": "20",
    "spark.sql.ui.retainedExecutions": "5",
}
# Short jobs on few cores do not profit from the background threads of the default, G1.
_FOR_A_JOB = "-XX:+UseParallelGC"
# The parallel collector lets a heap grow to its limit and keeps it; this one keeps a fifth to two fifths of it free. It
# never becomes smaller than at the start, by default a 64th of the machine's memory.
_FOR_MONTHS = "-XX:+UseSerialGC -Xms128m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
# With it and two arenas 50 million samples took 1.9 GB in all and 319 s (docs/features-bench.md); with 1.5 GB and all
# arenas they took 2.25 GB and 325 s, in a run before.
_HEAP_OF_A_JOB, _HEAP_FOR_MONTHS = "1200m", "2g"
# What threads of the JVM allocate in C; by default each of its some hundred threads has a share of sixteen arenas.
_ARENAS_OF_THE_JVM = "2"


def spark_session(
    app_name: str,
    *,
    java: JavaRuntime,
    master: str = "local[*]",
    memory: str | None = None,
    log_path: Path,
    is_lasting: bool = False,
) -> SparkSession:
    """The running session, or a new one: 2-5 s. All output of the JVM goes to `log_path`, never to stderr.

    `master` is Spark's; of a cluster, its workers have to reach this machine by its name. `memory` is the driver's heap
    in Java's notation; a session that `is_lasting` gives back what it does not need of it. Sets JAVA_HOME, and
    PYSPARK_PYTHON and MALLOC_ARENA_MAX if they are not set, in the environment of this process, from which Spark's
    launcher and its workers read them.
    Errors: JavaError if the JVM does not start, with its last line of output.
    """
    if SparkContext._active_spark_context is not None:  # noqa: SLF001  (read from the class; sessions are per thread)
        return SparkSession.builder.getOrCreate()
    os.environ["JAVA_HOME"] = str(java.home)
    # By default workers use `python3` from PATH, which may lack pandas.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName(app_name)
    heap = memory or (_HEAP_FOR_MONTHS if is_lasting else _HEAP_OF_A_JOB)
    conf.setAll([*SQL_SETTINGS.items(), *_QUIET.items(), ("spark.driver.memory", heap)])
    if master.startswith("local"):
        conf.setAll([*_LOOPBACK.items()])
    conf.set("spark.driver.extraJavaOptions", _FOR_MONTHS if is_lasting else _FOR_A_JOB)
    os.environ.setdefault("MALLOC_ARENA_MAX", _ARENAS_OF_THE_JVM)
    log_path.parent.mkdir(parents=True, exist_ok=True)
    # A process has one JVM: after `stop()` the next session runs in the existing one.
    if SparkContext._gateway is None:  # noqa: SLF001  (without it PySpark starts a JVM that inherits our stderr)
        gateway = _start_jvm(conf, java, log_path)
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    return SparkSession(SparkContext(conf=conf))


def submitted_session(app_name: str) -> SparkSession:
    """The session of a program of spark-submit, which decides where the job runs, and on which Java."""
    return SparkSession.builder.appName(app_name).config(map=dict(SQL_SETTINGS)).getOrCreate()


def _start_jvm(conf: SparkConf, java: JavaRuntime, log_path: Path) -> JavaGateway:
    with log_path.open("ab") as log:
        try:
            gateway: JavaGateway = launch_gateway(  # type: ignore[no-untyped-call]  # PySpark leaves it bare
                conf=conf, popen_kwargs={"stdout": log, "stderr": subprocess.STDOUT}
            )
        except PySparkRuntimeError as error:
            where = f"Java {java.version} ({java.home})"
            message = f"Spark did not start on {where}: {_last_line(log_path)}; see {log_path}"
            raise JavaError(message) from error
    return gateway


def _last_line(log_path: Path) -> str:
    lines = log_path.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "the log is empty")
