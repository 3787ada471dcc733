"""The signals that stop a command."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from cli.stopping import stopped_by_signals

# The system may deliver a signal for the process to any of its threads that is awake.
SIGNALLED_IN_ANOTHER_THREAD = """
import signal, threading
from cli.stopping import stopped_by_signals

with stopped_by_signals() as stop:
    send = lambda: signal.pthread_kill(threading.get_ident(), signal.{name})
    threading.Timer(0.5, send).start()
    print(stop.wait(60))
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_that_another_thread_receives_stops_the_command(name: str) -> None:
    """The command stops at once, and not when the main thread wakes by itself."""
    began = time.monotonic()
    script = SIGNALLED_IN_ANOTHER_THREAD.format(name=name)
    printed = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=50
    ).stdout
    assert printed == "True\n"
    assert time.monotonic() - began < 30


def test_signal_handling_is_restored_afterwards() -> None:
    """Handlers, the socket that Python writes to, and threads are as before."""
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT), threading.active_count()
    with stopped_by_signals() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.wait(10)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT), threading.active_count()) == before
    wakeup_fd = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup_fd)
    assert wakeup_fd == -1


def test_other_signals_do_not_stop_it() -> None:
    """Python writes other signals into the same socket, and they do not stop the command."""
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with stopped_by_signals() as stop:
            signal.raise_signal(signal.SIGUSR1)
            assert not stop.wait(0.2)
            signal.raise_signal(signal.SIGTERM)
            assert stop.wait(10)
    finally:
        signal.signal(signal.SIGUSR1, before)
