"""Groups whose workers die: known by marks, set aside while the others go on, and tried again alone.

A worker that dies, mostly because memory is used up, tells nothing, and Spark fails the whole job once one of its tasks
has died as often as it is tried. Only then is the job made again with marks: files that name the group that a worker is
at, which a dead worker leaves behind. Groups with such a file are set aside, and the job is made again without them.
What Spark has persisted of a job stays, so that it makes only what is missing. Groups that were merely beside others
pass alone; one that does not is what kills its worker.

Workers are told by a local property of Spark what a job leaves out, as the plan of a persisted frame must not change.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark import TaskContext
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession

Group = tuple[str, str]
Result = TypeVar("Result")

# Spark's own classes of errors, and what PySpark has none for.
JOB_ERRORS = (PySparkException, Py4JError)
# So often is a job made: once without marks, and nine times to set groups aside. With more that kill their workers than
# that finds, one in each core at a time, the workers are too small for this fleet, whatever group they are at.
MOST_TRIES = 10
# On a cluster Spark tries a task four times, on this machine once. A worker that Spark ends together with the job
# leaves one mark too; on a cluster its group need not be set aside for it.
_DEATHS_ON_A_CLUSTER, _DEATHS_HERE = 2, 1
_PROPERTY = "lagcast.deaths"


class WorkersDieError(RuntimeError):
    """Workers die whatever group they are at."""

    def __init__(self) -> None:
        super().__init__("workers die whatever group they are at; give them more memory, or executors fewer cores")


def watched(group: Group, work: Callable[[], Result], *, aside: Result) -> Result:
    """What `work` makes of the group; on a worker, in a job of `Deaths`. `aside`: what a group that is set aside gets.

    While a job is watched, each worker of a task has a file that names the group it is at, until that is done.
    """
    context = TaskContext.get()
    told = None if context is None else context.getLocalProperty(_PROPERTY)
    if context is None or told is None:
        return work()
    folder, set_aside = json.loads(told)
    if list(group) in set_aside:
        return aside
    mark = Path(folder, f"{context.taskAttemptId()}-{os.getpid()}")
    mark.write_text(json.dumps(group))
    try:
        return work()
    finally:
        mark.unlink()


class Deaths:
    """The groups of one run at which workers have died.

    Each job that is watched has a folder of its own below `folder`, on a disk that all workers share: tasks of the job
    before, which may not have ended yet, leave their marks elsewhere, and NFS has no old list of a new folder.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._context, self._folder = spark.sparkContext, folder
        self._watched_jobs = 0
        self.is_watching = False
        self.aside: list[Group] = []
        self.fatal: list[Group] = []
        self.of: Counter[Group] = Counter()

    def survived(self, job: Callable[[], Result]) -> Result:
        """What the job makes of all groups but those `aside`, to which others are added until it passes.

        Errors: those of the job where no worker has died at a group; WorkersDieError after `MOST_TRIES` of them.
        """
        last: Exception | None = None
        for _ in range(MOST_TRIES):
            try:
                return self._made(job, self.aside)
            except PythonException:  # an error that a worker lived to tell
                raise
            except JOB_ERRORS as error:
                if self.is_watching and not self._set_aside():
                    raise
                self.is_watching, last = True, error
        raise WorkersDieError from last

    def alone(self, group: Group, job: Callable[[], Result]) -> Result | None:
        """What the job makes of this group, which is the only one in it; None, and `fatal`, where its worker dies.

        Errors: those of the job where its worker has not died.
        """
        if group in self.fatal:
            return None
        try:
            return self._made(job, [])
        except JOB_ERRORS:
            left = self._left()
            if group not in left:
                raise
            self.of[group] += left[group]
            self.fatal.append(group)
            return None

    def _made(self, job: Callable[[], Result], aside: Sequence[Group]) -> Result:
        """The job, whose workers know what is set aside and make marks, once a job has failed."""
        if not self.is_watching:
            return job()
        self._watched_jobs += 1
        folder = self._job_folder
        folder.mkdir(parents=True)
        self._context.setLocalProperty(_PROPERTY, json.dumps([str(folder), aside]))
        try:
            return job()
        finally:
            self._context.setLocalProperty(_PROPERTY, None)  # type: ignore[arg-type]  # which removes it

    @property
    def _job_folder(self) -> Path:
        return self._folder / str(self._watched_jobs)

    def _set_aside(self) -> bool:
        """Set aside the groups at which workers of the last job have died; False where there are none."""
        fewest = _DEATHS_HERE if str(self._context.master).startswith("local") else _DEATHS_ON_A_CLUSTER
        found = {group: deaths for group, deaths in self._left().items() if deaths >= fewest}
        self.of.update(found)
        self.aside += sorted(found)
        return bool(found)

    def _left(self) -> Counter[Group]:
        """The groups that workers of the last job have begun and not ended, and how often."""
        left: Counter[Group] = Counter()
        for mark in self._job_folder.iterdir():
            # Spark has ended the job, and a worker of it may just have written its mark, or remove it.
            with suppress(FileNotFoundError, ValueError):
                cluster, group = json.loads(mark.read_text())
                left[cluster, group] += 1
        return left
