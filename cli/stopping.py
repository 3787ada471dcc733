"""Stop signals of a command that runs until it is stopped."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import FrameType

_ASKS_TO_STOP = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals() -> Iterator[Event]:
    """An event that Ctrl-C and SIGTERM set, so that a loop ends between two decisions instead of inside one.

    Python runs a signal's handler in the main thread only, and does not wake that thread if the system delivers the
    signal to another: on a busy machine about one server in twenty slept on to the end of its cycle. Python also writes
    each signal to a socket (`set_wakeup_fd`), which a separate thread reads.
    """
    stop = Event()
    reader, writer = socket.socketpair()
    writer.settimeout(0.0)

    def listen() -> None:
        while numbers := reader.recv(64):
            if not stop.is_set() and any(number in _ASKS_TO_STOP for number in numbers):
                stop.set()

    listening = Thread(target=listen, name="signals")
    # A signal without a Python handler is not written to the socket.
    before = {number: signal.signal(number, _leave_to_the_listener) for number in _ASKS_TO_STOP}
    writer_before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    listening.start()
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(writer_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        writer.close()
        listening.join()
        reader.close()


def _leave_to_the_listener(_signal: int, _frame: FrameType | None) -> None:
    pass
