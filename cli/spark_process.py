# ruff: noqa: PLC0415 - the parent never imports PySpark
"""Spark in a process of its own, which is killed with its JVM where it hangs.

For `lagcast up` the process starts Spark at once, then makes the table or follows the samples as it is told, and ends
when its pipe is closed, also by the death of the parent; if it or its JVM dies, the next one goes on where the table
ends. For `lagcast doctor` it starts Spark once, and ends.
"""

import logging
import multiprocessing
import os
import signal
import socketserver
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Event
from typing import Literal, NamedTuple

from cli.keeping import first_kept_day
from cli.progress import Talk

Order = Literal["make", "follow"]
# While it follows, the process says so often that it does: each look asks its JVM.
_SAYS_SO_EVERY_SECONDS = 5.0
# A micro-batch of a whole day's samples takes a minute, and does not delay the looks.
HUNG_AFTER_SECONDS = 180.0
_GOES_ON = "goes on"

_LOOK_SECONDS = 0.2
# A micro-batch that has begun is finished: a few seconds.
_TO_END_SECONDS = 20.0


class SparkEndedError(Exception):
    """The process has ended without an answer; the sentence says by what, and where its log is."""


class SparkProcess:
    """The process, which is started when it is needed and there is none."""

    def __init__(self, samples: Path, features: Path, *, log_path: Path, keep_rows: int | None = None) -> None:
        self._paths = samples, features, log_path
        self._keep_rows = keep_rows
        self._child: tuple[BaseProcess, Connection] | None = None

    def make(self, stop: Event) -> None:
        """Make the table anew from all samples. Errors: those of the job, SparkEndedError."""
        self._do("make", stop)

    def follow(self, stop: Event) -> None:
        """Add the rows of new samples to the table until `stop`. Errors: those of the stream, SparkEndedError."""
        self._do("follow", stop)

    def start(self) -> tuple[BaseProcess, Connection]:
        """Start the process, and with it Spark, unless there is one."""
        if self._child is None or not self._child[0].is_alive():
            self.close()
            # A fork would copy locks that other threads of this process hold at that moment.
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, *self._paths, self._keep_rows), name="spark")
            process.start()
            theirs.close()  # otherwise the pipe would not close when the child ends
            self._child = process, ours
        return self._child

    def close(self) -> None:
        """End the process, if there is one."""
        if self._child is not None:
            process, pipe = self._child
            self._child = None
            pipe.close()
            process.join(_TO_END_SECONDS)
            _kill(process)
            process.join()

    def _do(self, order: Order, stop: Event) -> None:
        process, pipe = self.start()
        try:
            pipe.send(order)
            failure = self._result_of(order, process, pipe, stop)
        except (EOFError, OSError) as error:
            self.close()
            by = "by itself" if (process.exitcode or 0) >= 0 else signal.Signals(-(process.exitcode or 0)).name
            message = f"the process of Spark has ended ({by}); see {self._paths[-1]}"
            raise SparkEndedError(message) from error
        if isinstance(failure, Exception):
            self.close()
            raise failure

    def _result_of(self, order: Order, process: BaseProcess, pipe: Connection, stop: Event) -> object:
        """What the process says at the end: None, or its error. Errors: EOFError where it ends without a word."""
        heard_seconds = time.monotonic()
        while True:
            if pipe.poll(_LOOK_SECONDS):
                said: object = pipe.recv()
                if said != _GOES_ON:
                    return said
                heard_seconds = time.monotonic()
            elif stop.is_set():
                self.close()
                return None
            elif order == "follow" and time.monotonic() - heard_seconds > HUNG_AFTER_SECONDS:
                _kill(process)


@contextmanager
def spark_process(
    samples: Path, features: Path, *, log_path: Path, keep_rows: int | None = None
) -> Iterator[SparkProcess]:
    """The process during the block, started at its beginning. It removes rows older than `keep_rows` days."""
    process = SparkProcess(samples, features, log_path=log_path, keep_rows=keep_rows)
    process.start()
    try:
        yield process
    finally:
        process.close()


class Started(NamedTuple):
    """Spark has started: its version, and the seconds that it took, those of its process included."""

    version: str
    seconds: float


class SparkTrial:
    """A start of Spark that goes on beside other work, in a process of its own."""

    def __init__(self, log_path: Path) -> None:
        self._log_path = log_path
        self._began_seconds = time.monotonic()
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        arguments = (theirs, log_path, self._began_seconds)
        self._process = multiprocessing.get_context("spawn").Process(target=_try, args=arguments, name="spark")
        self._process.start()
        theirs.close()  # otherwise the pipe would not close when the child ends
        self._pipe = ours

    def outcome(self, *, limit_seconds: float) -> Started | Exception | None:
        """What came of it; None: nothing yet, so many seconds after its beginning. Waits until one is known."""
        left_seconds = self._began_seconds + limit_seconds - time.monotonic()
        if not self._pipe.poll(max(0.0, left_seconds)):
            return None
        try:
            said: Started | Exception = self._pipe.recv()
        except EOFError:
            return SparkEndedError(f"the process of Spark has ended; see {self._log_path}")
        self._process.join(_TO_END_SECONDS)
        return said

    def close(self) -> None:
        """End the process, and its JVM."""
        _kill(self._process)
        self._process.join()
        self._pipe.close()


@contextmanager
def spark_trial(log_path: Path) -> Iterator[SparkTrial]:
    """A start of Spark beside the block, at whose end nothing of it is left."""
    trial = SparkTrial(log_path)
    try:
        yield trial
    finally:
        trial.close()


def _try(pipe: Connection, log_path: Path, began_seconds: float) -> None:
    """The child: starts Spark, says so, and stops it."""
    os.setpgrp()  # its JVM is killed with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and then kills it
    _silence_pyspark()
    from spark_features.java import find_java
    from spark_features.session import spark_session

    try:
        session = spark_session("lagcast", java=find_java(os.environ), log_path=log_path)
    except Exception as error:  # noqa: BLE001  # the parent tells it
        pipe.send(_plain(error))
        return
    pipe.send(Started(session.version, time.monotonic() - began_seconds))
    session.stop()


def _kill(process: BaseProcess) -> None:
    """Kill the process, and the JVM with it: one that is frozen outlived it, with all its memory."""
    process.kill()
    if process.pid is not None:
        with suppress(ProcessLookupError):  # it has ended before it had a group of its own, or all of them have
            os.killpg(process.pid, signal.SIGKILL)


def _serve(pipe: Connection, samples: Path, features: Path, log_path: Path, keep_rows: int | None) -> None:
    """The child: does one order after the other, until the pipe is closed or an order fails."""
    os.setpgrp()  # its JVM and workers are killed with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and then closes the pipe
    from cli.logs import log_to_stderr, trace_crashes
    from cli.memory import keep_little_of_what_is_freed
    from cli.spark import spark_beside

    trace_crashes()
    keep_little_of_what_is_freed(for_readers=False)
    log_to_stderr()
    _silence_pyspark()
    talk = Talk()
    with spark_beside(talk, log_path=log_path, is_lasting=True) as starting:
        while True:
            try:
                order: Order = pipe.recv()
            except EOFError:
                return
            try:
                if order == "make":
                    from cli.features import make_features

                    make_features(starting, samples, features, talk=talk, keep_rows=keep_rows)
                else:
                    from spark_features.stream import follow_features

                    oldest = partial(first_kept_day, keep_rows)
                    follow_features(starting.result(), samples, features, stop=_Closed(pipe), oldest=oldest)
            except Exception as error:  # noqa: BLE001  # the parent logs it
                pipe.send(_plain(error))
                os._exit(1)  # to stop a session whose JVM has died would hang or fail
            if not pipe.closed:
                _answer(pipe)


def _silence_pyspark() -> None:
    """Let PySpark's own threads say nothing: each wrote a traceback when its JVM died, which the parent tells once."""
    logging.getLogger("py4j").propagate = False
    logging.getLogger("py4j").addHandler(logging.NullHandler())
    logging.getLogger().addHandler(logging.NullHandler())  # py4j uses the root logger too
    socketserver.BaseServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # no other server is here


class _Closed:
    """A stop that is requested when the parent closes the pipe, or dies; while it is not, the parent hears of it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._said_seconds = 0.0

    def wait(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds; true when the pipe is closed."""
        if self._pipe.poll(timeout):
            return True
        if time.monotonic() - self._said_seconds > _SAYS_SO_EVERY_SECONDS:
            self._said_seconds = time.monotonic()
            _answer(self._pipe, _GOES_ON)
        return False


def _answer(pipe: Connection, word: str | None = None) -> None:
    try:
        pipe.send(word)
    except OSError:
        return  # the parent has closed it, which the next reading shows


def _plain(error: Exception) -> Exception:
    """An error that survives the pipe: those that name a remedy as they are, a JVM's as text."""
    from spark_features.java import JavaError
    from spark_features.samples import FeaturesError

    if isinstance(error, FeaturesError | JavaError):
        return error
    return SparkEndedError(f"{type(error).__name__}: {error}".partition("\n")[0])
