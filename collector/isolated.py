"""A collector in a child process: if the client crashes or hangs, one round is lost and the collector goes on.

librdkafka ends its process (`Assertion eonce->refcnt > 0`, issue 4605 of confluentinc/librdkafka) when a broker
stops while it is queried for the groups that it coordinates: most restarts of a broker are enough.
"""

import multiprocessing
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from collector.errors import AdapterError, UnavailableError
from collector.kafka_admin import Collected
from collector.run import Collector

# A round of 1,000 groups takes 2 s, and one whose brokers are all away three requests of 6 s.
HUNG_AFTER_SECONDS = 60.0
# A reading that is no round, whose loss would end a command, is tried so often where the client dies.
_MOST_TRIES = 3
# Interval between two looks for a stop during a request, and what a child has to end by itself.
_LOOK_SECONDS = 0.2
_TO_END_SECONDS = 2.0


class IsolatedCollector:
    """Runs the collector that `make` returns in a child process.

    A new child is started when the old one has died or hung, and after a round in which the source did not answer.
    Once `is_stopped()` is true no request is waited for.

    `make` is sent to the child by name: a function or class of a module, or a `functools.partial` of one. A context
    manager: the child begins and ends with the block. Errors: those of `make`, when the block begins.
    """

    def __init__(self, make: Callable[[], Collector], *, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self._make = make
        self._is_stopped = is_stopped
        self._child: tuple[BaseProcess, Connection] | None = None
        self._has_died = False

    def collect_once(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        """The result of the collector where no other round follows: a client that dies is asked again, twice at most.

        Errors: those of `collect`.
        """
        for _ in range(_MOST_TRIES - 1):
            self._has_died = False
            try:
                return self.collect(groups, now=now)
            except UnavailableError:
                if not self._has_died:
                    raise
        return self.collect(groups, now=now)

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        """The result of the collector. Errors: its own; UnavailableError where its process died or hung."""
        if self._child is not None and not self._child[0].is_alive():
            self.close()  # it died between two rounds: neither of them is lost
        process, pipe = self._child or self._started()
        try:
            pipe.send((groups, now))
        except ConnectionError:
            raise self._ended(process) from None
        answer = self._answer_of(process, pipe)
        if not isinstance(answer, Collected):
            message = f"the collector's process answered with {type(answer).__name__}"
            raise TypeError(message)
        return answer

    def close(self) -> None:
        """End the child, if there is one."""
        if self._child is not None:
            process, pipe = self._child
            pipe.close()
            process.terminate()
            process.join(_TO_END_SECONDS)
            process.kill()  # one that is frozen does not hear the first signal
            process.join()
            self._child = None

    def __enter__(self) -> Self:
        self._started()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _started(self) -> tuple[BaseProcess, Connection]:
        # A fork would copy locks that other threads of this process hold at that moment.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_answer, args=(theirs, self._make), daemon=True)
        process.start()
        theirs.close()  # otherwise the pipe would not close when the child ends
        self._child = process, ours
        try:
            self._answer_of(process, ours)
        except AdapterError:
            self.close()
            raise
        return process, ours

    def _answer_of(self, process: BaseProcess, pipe: Connection) -> object:
        waited_seconds = 0.0
        while not pipe.poll(_LOOK_SECONDS):
            waited_seconds += _LOOK_SECONDS
            if self._is_stopped() or waited_seconds >= HUNG_AFTER_SECONDS:
                self.close()
                reason = "was stopped" if self._is_stopped() else f"did not answer for {HUNG_AFTER_SECONDS:g} s"
                message = f"the collector's process {reason} during a request; the next round starts a new one"
                raise UnavailableError(message)
        try:
            answer = pipe.recv()
        except (EOFError, ConnectionError):
            raise self._ended(process) from None
        if isinstance(answer, UnavailableError):
            # Answers to failed requests come late, and they are what crashes the client.
            self.close()
        if isinstance(answer, AdapterError):
            raise answer
        return answer

    def _ended(self, process: BaseProcess) -> Exception:
        """The reason for the missing answer: the child was killed by a signal, or it ended by a bug of lagcast."""
        process.join()
        self.close()
        if process.exitcode is None or process.exitcode >= 0:
            return RuntimeError("the collector's process ended by itself; its output is above")
        self._has_died = True
        name = signal.Signals(-process.exitcode).name
        return UnavailableError(f"Kafka's client died ({name}) during a request; the next round starts a new one")


def _answer(pipe: Connection, make: Callable[[], Collector]) -> None:
    """The child process: makes the collector, reports that it is ready, and answers until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and then ends the child
    sys.stdout = sys.stderr  # what is logged here is talk, and the command's stdout is for data
    try:
        collector = make()
    except AdapterError as error:
        pipe.send(error)
        return
    pipe.send(None)
    while True:
        try:
            groups, now = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(collector.collect(groups, now=now))
        except AdapterError as error:
            pipe.send(error)
